"""What is learned, with which network and how: frozen structs, presets in TOML, and changes last."""

import re
import tomllib
import typing
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec

from decision.model.errors import ConfigError, InputError
from decision.model.hosts import nearest
from decision.rl.schedulers.base import convert_settings, find_scheduler, records
from decision.rl.schedulers.own_record import OwnScheduler

# Settings of a network, and of each algorithm that learns.

_STEPPED = 16  # environments that are worth a thread
_SMALL = 64  # widest layer of a network that one thread computes
_APART = frozenset({"mlp", "fcn", "cnn", "gru", "image"})  # kinds whose actor and critic have no layer in common
ALGORITHM = "algorithm"  # field of section ``learn`` that says which config it is
Count = Annotated[int, msgspec.Meta(ge=1, le=2**62)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Threads = Annotated[int, msgspec.Meta(ge=0, le=1024)]
Weight = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Widths = Annotated[tuple[Annotated[int, msgspec.Meta(ge=1, le=8192)], ...], msgspec.Meta(max_length=16)]


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An actor and a critic; `decision.rl.learning.networks` has the kinds."""

    kind: Literal["mlp", "jobs", "priority", "fcn", "cnn", "gru", "image"] = "jobs"
    hidden: Widths = (
        32,
    )  # of layers; the one width of jobs; channels of cnn's or image's two; units of gru, of a layer
    encoder: Literal["separate", "shared"] = "separate"  # whether critics read an image with the actor's layers

    def __post_init__(self) -> None:
        if self.encoder == "shared" and self.kind != "image":
            raise ConfigError(f"network.encoder is shared: that needs network.kind=image, and it is {self.kind}")


class PpoConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="ppo", tag_field=ALGORITHM):
    """Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347); `decision.rl.learning.ppo` follows it."""

    learner: ClassVar[str] = "ppo:PpoLearner"  # in this package: its class method `make` gives an `Algorithm`
    validated_every: ClassVar[int] = 250_000  # steps: validations take a few per cent of the time
    replays: ClassVar[bool] = False  # whether it learns from recorded choices

    steps: Count = 2_000_000  # environment steps in all
    envs: Count = 64  # environments side by side
    rollout: Count = 128  # steps of each environment between two updates
    epochs: Count = 4  # times that an update goes over a rollout
    minibatch: Count = 1024  # steps
    lr: Positive = 3e-4  # Adam's
    critic_lr: Weight = 0.0  # of the layers that the critic has to itself; 0: as lr
    lr_schedule: Literal["constant", "linear", "exponential"] = "linear"  # linear: to 0 at the last step
    lr_last: Positive = 1e-6  # exponential: to this
    discount: Share = 0.99
    gae_lambda: Share = 0.95
    clip: Positive = 0.2
    value_clip: Weight = 0.0  # how far a value may move from the rollout's within an update; 0: as far as it will
    value_weight: Weight = 0.5
    entropy: Weight = 0.01
    max_gradient: Positive = 0.5  # norm
    target_kl: Weight = 0.0  # an update ends when it has moved the policy further than this; 0: never
    normalise_advantages: bool = True
    reward_scale: Positive = 1.0
    overlap: bool = True  # collect the next rollout, with the policy from before the update, while the update runs
    threads: Threads = 0  # that compute an update; 0: one for a small network, else one per core, half with overlap
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: float32, multiplied on a GPU as TF32
    compile: Literal["auto", "on", "off"] = "auto"  # whether torch compiles the network, on a CPU; auto: no

    @property
    def timed(self) -> str:
        """What depends on how far the training is of all its steps; empty where nothing does."""
        return "" if self.lr_schedule == "constant" else "the learning rate"

    def rate_at(self, done: float) -> float:
        """Adam's, when this share of all steps is done."""
        if self.lr_schedule == "exponential":
            return self.lr * (self.lr_last / self.lr) ** done
        return self.lr * (1 - done if self.lr_schedule == "linear" else 1)

    def stepping_threads(self, cores: int) -> int:
        """Threads that step the environments: as many as there are cores, of which an update beside them has one.

        Some microseconds are an environment's step, and some ten it takes to wake a thread for it.
        """
        free = cores // 2 if self.overlap else cores
        return 1 if self.threads == 1 else max(1, min(free, self.envs // _STEPPED))

    def learns_apart(self, cores: int, network: NetworkConfig | None) -> bool:
        """Whether actor and critic learn side by side, each in a thread of its own.

        They wait for each other twice a minibatch, where torch's threads do at each operation: DBF's networks learn
        2.1 times as fast on two quiet cores as on one, and 0.8 times with two threads of torch's.
        """
        apart = network is not None and network.kind in _APART and self.compile != "on" and self.precision != "bfloat16"
        return apart and self._threads(cores, network) > 1

    def torch_threads(self, cores: int, network: NetworkConfig | None) -> int:
        """Threads that torch computes with, of each that learns.

        Operations of small networks take microseconds. Two threads that wait for each other at each of them gain
        nothing on two quiet cores, and next to one busy process they are a quarter as fast as one.
        """
        threads = self._threads(cores, network)
        return threads // 2 if self.learns_apart(cores, network) else threads

    def _threads(self, cores: int, network: NetworkConfig | None) -> int:
        small = network is not None and max(network.hidden, default=0) <= _SMALL
        return self.threads or (1 if small else max(1, cores // 2 if self.overlap else cores))


class CmaEsConfig(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="cma-es", tag_field=ALGORITHM
):
    """Evolution by whole schedules or episodes (Hansen, arXiv 1604.00772); `decision.rl.learning.evolution` follows
    it.
    """

    learner: ClassVar[str] = "evolution:EvolutionLearner"
    validated_every: ClassVar[int] = 250_000  # steps
    replays: ClassVar[bool] = False

    steps: Count = 150_000_000  # jobs that are placed in all
    population: Annotated[int, msgspec.Meta(ge=4)] = 20  # candidates of a generation
    sequences: Count = 24  # of jobs, that each candidate schedules
    spread: Positive = 0.3  # standard deviation of the first candidates
    threads: Threads = 0  # that schedule; 0: one per core

    @property
    def timed(self) -> str:
        """What depends on how far the training is of all its steps."""
        return "what is minimised"

    def torch_threads(self, cores: int, network: NetworkConfig | None) -> int:
        """Threads that torch computes with: it has nothing to compute."""
        return 1


class _GradientConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What algorithms share that learn from single transitions."""

    batch: Count = 256  # transitions of an update
    lr: Positive = 3e-4  # Adam's
    max_gradient: Positive = 40.0  # norm
    threads: Threads = 0  # that torch computes with; 0: one for a small network, else one per core
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: float32, multiplied on a GPU as TF32

    timed: ClassVar[str] = ""
    replays: ClassVar[bool] = True

    def torch_threads(self, cores: int, network: NetworkConfig | None) -> int:
        """Threads that torch computes with."""
        return self.threads or (1 if network is not None and max(network.hidden, default=0) <= _SMALL else cores)


class _CriticConfig(_GradientConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What algorithms share that learn values of actions."""

    discount: Share = 0.99
    critics: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2  # the lowest of their values counts
    target_rate: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.005  # by which the networks of targets follow
    popart: Share = 1e-4  # by which the scale of values follows; 0: it stays 1
    reward_scale: Positive = 1.0


class BcConfig(_GradientConfig, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="bc", tag_field=ALGORITHM):
    """Behaviour cloning: the likelihood of recorded choices (`decision.rl.learning.offline`)."""

    learner: ClassVar[str] = "offline:BcLearner"
    validated_every: ClassVar[int] = 5_000  # updates

    steps: Count = 20_000  # updates in all


class CrrConfig(_CriticConfig, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="crr", tag_field=ALGORITHM):
    """Critic-regularised regression (Wang et al., NeurIPS 2020, arXiv 2006.15134); `decision.rl.learning.offline`
    follows it.
    """

    learner: ClassVar[str] = "offline:CrrLearner"
    validated_every: ClassVar[int] = 5_000  # updates

    steps: Count = 20_000  # updates in all
    filter: Literal["binary", "none"] = "binary"  # which choices are cloned: those better than the policy's mean; all


class SacConfig(_CriticConfig, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="sac", tag_field=ALGORITHM):
    """Soft actor-critic for discrete actions (Christodoulou 2019, arXiv 1910.07207), as `decision.rl.learning.sac` has
    it.
    """

    learner: ClassVar[str] = "sac:SacLearner"
    validated_every: ClassVar[int] = 50_000  # steps

    steps: Count = 200_000  # environment steps in all
    envs: Count = 16  # environments side by side
    updates: Positive = 0.25  # for each environment step
    warmup: Count = 2_000  # environment steps before the first update
    buffer: Count = 100_000  # newest transitions that are learned from, besides the recorded ones
    offline: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0  # updates by crr before, from recorded choices
    temperature: Weight = 0.0  # weight of entropy; 0: it is tuned
    entropy: Share = 0.3  # which share of the most that the valid actions allow it is tuned to
    epsilon: Share = 0.99  # share of random choices at first; with `offline` there are none: the policy explores
    epsilon_last: Share = 0.1  # and from `epsilon_steps` on
    epsilon_steps: Count = 50_000

    def epsilon_at(self, step: int) -> float:
        """The share of random choices at an environment step."""
        if self.offline:
            return 0.0
        return self.epsilon + min(step / self.epsilon_steps, 1.0) * (self.epsilon_last - self.epsilon)


LearnConfig = (
    PpoConfig | CmaEsConfig | BcConfig | CrrConfig | SacConfig
)  # the field `algorithm` says which; one more for each algorithm to come


class TrainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of a training run but its inputs.

    Raises:
        ConfigError: if there is no such scheduler, or the sections do not fit it.
    """

    scheduler: str = "dbf"  # name of a `decision.rl.schedulers` record
    env: Any = msgspec.field(default_factory=dict)  # its Settings, or a dict of some of them
    network: NetworkConfig | None = NetworkConfig()  # None where it has no network
    learn: LearnConfig = PpoConfig()
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0

    def __post_init__(self) -> None:
        record = find_scheduler(self.scheduler)
        if isinstance(self.env, dict):
            msgspec.structs.force_setattr(self, "env", convert_settings(record, self.env))
        elif not isinstance(self.env, record.Settings):
            raise ConfigError(f"env: must be a table of settings, found {type(self.env).__name__}")
        if not record.networks:
            msgspec.structs.force_setattr(self, "network", None)
        if self.algorithm not in record.algorithms:
            fitting = " or ".join(record.algorithms)
            raise ConfigError(f"learn.algorithm is {self.algorithm}: {self.scheduler} is learned with {fitting}")

    @property
    def algorithm(self) -> str:
        """The algorithm by which it is learned."""
        return str(self.learn.__struct_config__.tag)

    @property
    def settings(self) -> dict[str, Any]:
        """Of the environment, by name."""
        return dict(msgspec.to_builtins(self.env))

    @property
    def sections(self) -> tuple[str, ...]:
        """Those that say how it is learned; the last one has the steps."""
        return ("learn",) if self.network is None else ("network", "learn")

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return self.learn.steps


def preset_names() -> list[str]:
    """Names of the presets of all schedulers."""
    return sorted(_preset_files())


def load_config(preset: str, changes: Iterable[str] = (), **more: Any) -> TrainConfig:
    """A preset with changes.

    Args:
        preset: a preset's name, a TOML file ``mine.toml``, or a class of one's own (``./mine.py:MyScheduler``), which
            says it itself.
        changes: ``section.key=value``, like ``learn.lr=1e-4``, in order; ``learn.method=evolution``, ``ppo``, ``bc``,
            ``crr`` or ``sac`` first, with which the section learn begins with that one's defaults.
        more: top-level values, last: ``seed=3``.

    Raises:
        ConfigError: if there is no such preset or key, or a value does not fit.
        InputError: if the file cannot be used.
    """
    tree = _read_preset(preset)
    record = find_scheduler(str(tree.get("scheduler", "dbf")))
    learn = tree.setdefault("learn", {})
    if isinstance(learn, dict):
        learn.setdefault(ALGORITHM, record.algorithms[0])
    for change in sorted(changes, key=lambda change: not change.startswith(_METHOD)):  # it replaces the section
        _apply(tree, change)
    return _convert(tree | more, preset)


def alternatives(change: str) -> list[str]:
    """The changes that ``key=a,b`` stands for: ``key=a`` and ``key=b``; a comma within brackets parts nothing."""
    key, equals, values = change.partition("=")
    return [f"{key}{equals}{value.strip()}" for value in _OUTSIDE.split(values)]


class Range(NamedTuple):
    """Numbers that a search chooses from, ``1e-5..1e-3:log``; whole ones where both ends are."""

    low: float
    high: float
    whole: bool
    log: bool  # whether it is searched by its logarithm


class Space(NamedTuple):
    """What a search varies, and what all its trainings share."""

    fixed: tuple[str, ...]  # changes that all its trainings share
    varied: dict[str, Range | list[str]]  # by key: a range, or the values to choose from

    @property
    def first(self) -> list[str]:
        """Changes for a config: what is fixed, the lower end of each range, and the first of several values."""
        return [*self.fixed, *(f"{key}={_first(values)}" for key, values in self.varied.items())]


def _first(values: Range | list[str]) -> str:
    if not isinstance(values, Range):
        return values[0]
    return str(int(values.low) if values.whole else values.low)


def read_space(changes: Iterable[str]) -> Space:
    """What ``key=value``, ``key=low..high``, ``key=low..high:log`` and ``key=a,b,c`` say.

    Raises:
        ConfigError: if nothing is varied, or something is there twice.
    """
    fixed, varied = [], dict[str, Range | list[str]]()
    for change in changes:
        key = change.partition("=")[0]
        values = [each.partition("=")[2] for each in alternatives(change)]
        found = range_of(change)
        if key in varied or len(set(values)) < len(values):
            raise ConfigError(f"{change}: name each setting and each value once", field="changes")
        if found is not None or len(values) > 1:
            varied[key] = found or values
        else:
            fixed.append(change)
    if not varied:
        example = "like learn.lr=1e-5..1e-3:log and learn.envs=8,16,32"
        raise ConfigError(f"a search varies nothing; name ranges or several values, {example}", field="changes")
    return Space(tuple(fixed), varied)


def range_of(change: str) -> Range | None:
    """The range of a change, ``learn.lr=1e-5..1e-3:log``; None where it has none.

    Raises:
        ConfigError: if its ends are not in order, or it has no logarithm.
    """
    found = _RANGE.fullmatch(change.partition("=")[2].strip())
    if found is None:
        return None
    low, high = (text.replace("_", "") for text in found.group("low", "high"))
    ends = float(low), float(high)
    if not ends[0] < ends[1] or (found["log"] and ends[0] <= 0):
        wanted = "a lower end above 0, for :log" if ends[0] < ends[1] else "its lower end first"
        raise ConfigError(f"{change!r}: write a range with {wanted}, like learn.lr=1e-5..1e-3:log", field="changes")
    return Range(*ends, whole=all(text.lstrip("+-").isdecimal() for text in (low, high)), log=bool(found["log"]))


def all_settings(config: TrainConfig) -> dict[str, str]:
    """Each of a config's settings, ``learn.lr`` and the like, in words."""
    flat = _flat(msgspec.to_builtins(config))
    return {name: str(value) for name, value in flat.items() if name not in ("scheduler", "seed")}


def changed_settings(one: TrainConfig, other: TrainConfig) -> list[str]:
    """Keys whose values differ, as ``learn.lr: 0.0003 and 0.0001``."""
    first, second = _flat(msgspec.to_builtins(one)), _flat(msgspec.to_builtins(other))
    return [f"{key}: {value} and {second.get(key)}" for key, value in first.items() if value != second.get(key)]


def config_of_format_1(tree: dict[str, Any]) -> dict[str, Any]:
    """A config as checkpoints of format 1 have it, in the present form; what is damaged stays as it is.

    Then there was one section ``env`` for all schedulers, and a section for each algorithm.
    """
    record = find_scheduler(str(tree.get("scheduler")))
    sections = {name: value for name in ("env", "learn", "evolve") if isinstance(value := tree.get(name), dict)}
    evolves = record.algorithms[0] == "cma-es"
    learn, env = dict(sections.get("evolve" if evolves else "learn", {})), dict(sections.get("env", {}))
    known = record.Settings.__struct_fields__
    env |= {name: learn.pop(name) for name in known if name in learn and name not in env}
    upgraded = {name: value for name, value in tree.items() if name not in ("env", "learn", "evolve")}
    return upgraded | {
        "env": {name: value for name, value in env.items() if name in known},
        "learn": {ALGORITHM: record.algorithms[0], **learn},
    }


def config_of_format_2(tree: dict[str, Any]) -> dict[str, Any]:
    """A config as checkpoints of format 2 have it, in the present form: with what was not yet a setting."""
    record, env = find_scheduler(str(tree.get("scheduler"))), tree.get("env")
    return tree | {"env": {**record.former_settings, **env}} if isinstance(env, dict) else tree


def _preset_files() -> dict[str, Any]:
    """The file of each preset by name: schedulers of this package name one that ships, others a file of their own."""
    folder = files("decision.rl.learning") / "presets"
    presets = [preset for record in records().values() for preset in record.presets]
    paths = [folder / f"{preset}.toml" if isinstance(preset, str) else preset for preset in presets]
    return {path.name.removesuffix(".toml"): path for path in paths}


def _read_preset(name: str) -> dict[str, Any]:
    if ":" in name and isinstance(record := find_scheduler(name), OwnScheduler):
        return record.own_preset
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{name}: cannot be read ({error}); check the path") from None
        return _parse(name, text)
    known = _preset_files()
    if name not in known:
        raise ConfigError(f"there is no preset {name!r}{nearest(name, known)} (there are {', '.join(sorted(known))})")
    return _parse(name, known[name].read_text())


def _parse(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: {error}; write it as TOML") from None


def _apply(tree: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if change.startswith(_METHOD):
        if text not in _METHODS:
            raise ConfigError(f"{change!r}: there is no such way of learning (there are {', '.join(_METHODS)})")
        if tree["learn"].get(ALGORITHM) != _METHODS[text]:
            tree["learn"] = {ALGORITHM: _METHODS[text]}
        return
    section, dot, name = key.partition(".")
    if not (equals and dot and section and name):
        raise ConfigError(f"{change!r}: write it as section.key=value, like learn.lr=1e-4", field="changes")
    kind = _SECTIONS.get(section) or _LEARN.get(str(tree["learn"].get(ALGORITHM)), PpoConfig)
    valid = [f"{section}.{field}" for field in (*kind.__struct_fields__, *([ALGORITHM] if section == "learn" else ()))]
    if section != "env" and key not in valid:
        raise ConfigError(f"{change!r}: there is no {key}{nearest(key, valid)}", field="changes")
    tree.setdefault(section, {})[name] = _value(text)


_LEARN: dict[str, Any] = {str(kind.__struct_config__.tag): kind for kind in typing.get_args(LearnConfig)}
_METHODS = {"evolution": "cma-es", **{name: name for name in ("ppo", "bc", "crr", "sac")}}
_OUTSIDE = re.compile(r",(?![^\[]*\])")  # a comma that is in no list
_NUMBER = r"[-+]?(?:\d[\d_]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})(?P<log>:log)?")
_METHOD = "learn.method="  # another algorithm, with its own defaults
_SECTIONS: dict[str, Any] = {"network": NetworkConfig, "env": TrainConfig}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text.replace('_', '')}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _convert(tree: Mapping[str, Any], where: str) -> TrainConfig:
    try:
        config = msgspec.convert(tree, TrainConfig)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        raise ConfigError(f"{where}: {place.rstrip('`') or 'the file'}: {message[0].lower()}{message[1:]}") from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}", field=error.field) from None
    if "network" in tree and config.network is None:
        raise ConfigError(f"{where}: {config.scheduler} has no section network: how it is learned is in learn")
    find_scheduler(config.scheduler).check(config.env, f"{where}: ")
    check_network(config, where)
    return config


def check_network(config: TrainConfig, where: str) -> None:
    """Refuse a network that does not fit the scheduler. Raises ConfigError."""
    network, fitting = config.network, find_scheduler(config.scheduler).networks
    if network is None:
        return
    if network.kind not in fitting:
        kinds = " or ".join(fitting)
        raise ConfigError(f"{where}: network.kind is {network.kind}: {config.scheduler} is learned with {kinds}")
    if network.kind == "jobs" and len(network.hidden) != 1:
        raise ConfigError(f"{where}: network.hidden is {list(network.hidden)}: the network jobs has one width")
    if network.kind == "gru" and len(network.hidden) != 2:
        found = f"network.hidden is {list(network.hidden)}"
        raise ConfigError(f"{where}: {found}: the network gru has two widths, of its GRUs and of the layer after them")
    if network.kind in ("cnn", "image") and len(network.hidden) != 2:
        found = f"network.hidden is {list(network.hidden)}"
        raise ConfigError(f"{where}: {found}: the network {network.kind} has two convolutions")


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat
