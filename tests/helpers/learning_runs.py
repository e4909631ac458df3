"""Training runs on the toys."""

import numpy as np

from decision.files import write_swf
from decision.files.generate.jobs import workload_of
from decision.files.text import InputFacts
from decision.model.workload import Delay, Job, Workload
from decision.rl.learning.checkpoint import Manifest
from decision.rl.learning.config import NetworkConfig, PpoConfig, TrainConfig
from decision.rl.learning.ppo import PpoLearner
from decision.rl.learning.training import Training, run_training

SMALL = PpoConfig(steps=8 * 16 * 6, envs=8, rollout=16, minibatch=32, lr=3e-3, threads=1)


def task(envs, folder, ppo=SMALL, seed=0, metrics=("cost",)):
    """A run on a toy, with a perceptron of 32 by 32."""
    none = InputFacts(name="toy", sha256="")
    config = TrainConfig(learn=ppo, network=NetworkConfig(kind="mlp", hidden=(32, 32)), seed=seed)
    manifest = Manifest(
        decision="0", algorithm="ppo", config=config, encoder={}, nb_hosts=2, platform=none, workloads=(none,), steps=0
    )
    return Training(lambda config: PpoLearner(config, envs, None, metrics), metrics, manifest, folder, "toy")


def curve(envs, folder, **more):
    """The rows of a run's progress.csv, as dicts of texts."""
    run_training(task(envs, folder, **more))
    header, *rows = (folder / "progress.csv").read_text().splitlines()
    return [dict(zip(header.split(","), row.split(","), strict=True)) for row in rows]


FILES = [InputFacts(name=name, sha256="") for name in ("p.xml", "w.json")]


def workload(nb_jobs: int, sizes: list[int], seed: int, load: float) -> Workload:
    """Jobs of these sizes on max(sizes) hosts, run times from seconds to an hour, walltimes exact."""
    rng = np.random.default_rng(seed)
    size = rng.choice(sizes, nb_jobs)
    run = np.ceil(np.exp(rng.uniform(np.log(5), np.log(3600), nb_jobs)))
    gap = float((size * run).mean()) / (max(sizes) * load)
    submit = np.cumsum(np.round(rng.exponential(gap, nb_jobs)))
    jobs = [
        Job(id=f"w0!{i:04}", submit_time=float(s), size=int(n), walltime=float(r), profile=f"d{r:g}")
        for i, (s, n, r) in enumerate(zip(submit, size, run, strict=True))
    ]
    return Workload(name="w0", jobs=jobs, profiles={f"d{r:g}": Delay(float(r)) for r in set(run)}, nb_res=max(sizes))


def write_log(path):
    """Jobs of one to eight of eight cores, more than there is room for."""
    rng = np.random.default_rng(1)
    run = np.ceil(np.exp(rng.uniform(np.log(5), np.log(3600), 400)))
    size = rng.choice([1, 1, 2, 4, 8], 400)
    submit = np.cumsum(np.round(rng.exponential((size * run).mean() / 8, 400)))
    write_swf(path, workload_of(submit, size, run, 8, walltimes=run), run)
