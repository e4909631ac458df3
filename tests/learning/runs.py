"""Training runs on the toys."""

from decision.learn.checkpoint import InputFacts, Manifest
from decision.learn.config import NetworkConfig, PpoConfig, TrainConfig
from decision.learn.learner import Learner
from decision.learn.training import Task, train

SMALL = PpoConfig(steps=8 * 16 * 6, envs=8, rollout=16, minibatch=32, lr=3e-3, threads=1)


def task(envs, folder, ppo=SMALL, seed=0, metrics=("cost",)):
    """A run on a toy, with a perceptron of 32 by 32."""
    none = InputFacts(name="toy", sha256="")
    config = TrainConfig(learn=ppo, network=NetworkConfig(kind="mlp", hidden=(32, 32)), seed=seed)
    manifest = Manifest(
        decision="0",
        algorithm="ppo",
        config=config,
        encoder={},
        nb_hosts=2,
        platform=none,
        workloads=(none,),
        steps=0,
    )
    return Task(lambda config: Learner(config, envs, None, metrics), metrics, manifest, folder, "toy")


def curve(envs, folder, **more):
    """The rows of a run's progress.csv, as dicts of texts."""
    train(task(envs, folder, **more))
    header, *rows = (folder / "progress.csv").read_text().splitlines()
    return [dict(zip(header.split(","), row.split(","), strict=True)) for row in rows]
