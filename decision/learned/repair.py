"""Repair: a network says where in the sequence of free hosts the jobs of a window begin.

What Lan et al. train as the repair operator of neural simulated annealing ("Optimization of Topology-Aware Job
Allocation on a High-Performance Computing Cluster by Neural Simulated Annealing"): the jobs of a window, the one on
most hosts first, are placed by the dynamic strategy, each from the entry on that the network chooses. As a policy it
places windows without any search; in ``window,solver=nsa`` it chooses where removed jobs go back.

`decision.policies.window` says which jobs a window takes, `decision.placement.repair` what the network sees. As in the
published program a window of the training has two jobs on more than one host at most, and begins where the windows
before it have left the cluster.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.allocation import check_tree
from decision.state.cluster import ClusterState, nb_hosts

from .base import ChoosingScheduler
from .encoder import Encoder
from .registry import register
from .repair_kernels import (
    RepairMemory,
    repair_act,
    repair_begin,
    repair_measure,
    repair_observe,
    repair_open,
    repair_reward,
)
from .window import Count

LEAST_ENTRIES = 14  # that the convolutions need
MOST_LEVELS = 8


class RepairSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The windows."""

    period: Annotated[float, msgspec.Meta(gt=0)] = 60.0  # seconds
    window: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 2  # jobs on more than one host, at most in a window
    q: Annotated[int, msgspec.Meta(ge=LEAST_ENTRIES, le=8192)] = 100  # free hosts that are seen
    levels: Annotated[int, msgspec.Meta(ge=1, le=MOST_LEVELS)] = 3  # of the tree
    jobs: Count = 200  # placed jobs that end an episode
    pay: Literal["window", "job"] = "window"  # a window's hops when its last job is placed, or each job's with the job
    online: bool = True  # whether other jobs arrive after those


class RepairEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first free hosts of the sequence, and the jobs of the window."""

    name: str = "repair"
    q: int
    levels: int
    period: float
    jobs: int  # in a window
    pay: str = "window"

    @property
    def actions(self) -> int:
        """A: where to begin."""
        return self.q

    @property
    def shape(self) -> tuple[int]:
        """(D,)"""
        return ((self.levels + 2) * self.q,)

    def check_platform(self, platform: Platform) -> None:
        """Refuse a platform that is not a tree of so many levels. Raises ConfigError."""
        check_tree("a network for windows", platform)
        if len(platform.down) != self.levels:
            given = f"{platform.path or 'the platform'} has {len(platform.down)}"
            raise ConfigError(f"the network for windows is for trees of {self.levels} levels, and {given}")

    def new_memory(self, state: ClusterState) -> "RepairMemory":
        """The encoder as numbers for the kernels; no window was decided."""
        hosts = nb_hosts(state)
        return RepairMemory(
            most_seen=self.q,
            most_jobs=self.jobs,
            pays_each=self.pay == "job",
            period=self.period,
            jobs=np.zeros(self.jobs, np.int64),
            hosts=np.zeros(hosts, np.int64),
            groups=np.zeros((self.levels - 1, hosts), np.int64),
            on=np.zeros(hosts, np.int64),
            own=np.zeros(hosts, np.int64),
            switches=np.zeros(hosts, np.int64),
        )


class Repair(ChoosingScheduler):
    """The repair operator of neural simulated annealing: where each job of a window begins (Lan et al. 2023).

    The platform must be a fat-tree. The free hosts, from left to right in the tree, are a sequence; each job takes
    consecutive ones of those that the jobs before it have left, from the chosen one on, with wrap-around.

    Observation, version 1, f32 ((levels + 2) * q,), feature by feature, of the first q hosts that are left; zeros where
    there are fewer. With the three levels of the paper::

        0            number of its switch / number of the last switch; then the same of its pod
        levels - 1   1
        levels       hosts of the job / 40
        levels + 1   hosts of the window's jobs that are placed after it / 40

    Actions: 0 to q - 1, the host at which the job begins; where there are fewer hosts, the rest is masked.

    Reward: when the last job of a window is placed, minus the hops that the window costs (`decision.placement.cost`);
    else 0. With ``pay=job``, for each job minus its own hops.

    Episode: begins on an idle cluster with the arrival of a random job of the trace, and ends when `jobs` jobs have
    been placed.

    Masks: ``info["action_mask"]`` i8 (q,), `action_masks()`, and in the observation with `dict_observation`.

    At the end ``info["metrics"]`` has what `decision.envs.EPISODE_METRICS` names, and ``window_cost``, the mean
    hops of a window.
    """

    name = "repair"
    summary = "neural annealing: a network chooses where the jobs of a window begin on a fat-tree"
    paper = "Lan et al. 2023"
    Settings = RepairSettings
    presets = ("repair", "repair-paper")
    algorithms = ("ppo", "cma-es")
    networks = ("cnn", "fcn")
    curves = ("waiting_time", "utilization")
    env_id = "Repair"
    observations = {"repair": {}}
    encoder_type = RepairEncoder
    metrics = ("window_cost",)
    choices_per_job = 1
    calls = True
    begin, open, act = repair_begin, repair_open, repair_act
    observe, reward, measure = repair_observe, repair_reward, repair_measure
    model_summary = "windows of {period:g} s on a fat-tree of {levels} levels; with window,solver=nsa,repair=repair"

    def encoder_fields(self, settings: RepairSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings."""
        fields = {"q": settings.q, "levels": settings.levels, "period": settings.period, "jobs": settings.window}
        return {"name": self.name, "pay": settings.pay, **fields}

    def make_encoder(  # type: ignore[override]  # it has no options but the settings
        self, settings: RepairSettings, cores: int, workloads: Sequence[Workload]
    ) -> RepairEncoder:
        """The encoder for the settings."""
        return RepairEncoder(**self.encoder_fields(settings, cores))


register(Repair())
