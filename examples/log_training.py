"""Log a training to MLflow or Weights & Biases, whichever is installed, and stop it early. Needs the extra `learn`.

`d.train(..., report=f)` calls `f` before the first iteration and after each. Without either package the numbers are
printed; TensorBoard's files and `progress.csv` are in the folder anyway.
"""

from importlib.util import find_spec

import decision as d


def logger():
    """A function of a step and its numbers, of what is installed."""
    if find_spec("mlflow"):
        import mlflow

        mlflow.start_run(run_name="dbf")
        return lambda step, numbers: mlflow.log_metrics(numbers, step=step)
    if find_spec("wandb"):
        import wandb

        run = wandb.init(project="decision", name="dbf")
        return lambda step, numbers: run.log(numbers, step=step)
    print("neither mlflow nor wandb is installed: pip install mlflow, or wandb, to log there")
    return lambda step, numbers: print(step, numbers)


log = logger()


def report(now):
    log(now.steps, {name: value for name, value in now.row.items() if value == value})  # nan: not known yet
    return (
        now.row.get("validation_waiting_time", 0) > 20_000
    )  # seconds; True: stop, as d.train(..., resume=True) may go on


small = {"learn.envs": 4, "learn.rollout": 8, "learn.minibatch": 16, "learn.threads": 1, "env.jobs": 20}
d.train("dbf", "cluster256", "lublin_256", "out/log_training", steps=64, changes=small, report=report)
