"""A whole training, from files to a folder that is locked meanwhile and says what made its files."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from decision.learn.checkpoint import read_manifest
from decision.learn.config import TrainConfig, all_settings
from decision.learn.schedulers import ShareOut, TrainingInputs, train_scheduler, training_of
from decision.learn.training import STATE, Report, run_together, training_files
from decision.model.errors import ConfigError

from .folder import Stopped, describe_training, run_folder
from .inputs import LogOnHosts


def check_resumable(folder: Path) -> None:
    """Check that a training has left its state in a folder. Raises ConfigError if none has."""
    if not (folder / STATE).is_file():
        raise ConfigError(
            f"{folder}: there is no training to resume; leave the option out to begin one", field="resume"
        )


def train_to_folder(
    log: LogOnHosts,
    config: TrainConfig,
    output: Path,
    *,
    data: Path | None = None,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Report], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
    command: str = "",
    share_out: ShareOut | None = None,
) -> Path:
    """Train a scheduler; ``output/run.json`` says how, and whether it finished, failed or was interrupted.

    Args:
        log: what is learned from.
        config: what is learned and how.
        output: gets the checkpoint, the curves and the state.
        data: a file of recorded choices, for algorithms that learn from such.
        resume: as of `decision.learn.training.run_training`, like `stop` and `report`.
        note: gets a line if more steps give another result than one training of so many, and on recorded choices.
        command: what the user typed, for ``run.json``.
        share_out: as of `decision.learn.schedulers.train_scheduler`.

    Returns:
        The checkpoint.

    Raises:
        ConfigError: if the inputs do not fit together, the folder holds something else, or another training goes on
            there.
        InputError: if the state in the folder is damaged.
    """
    facts = describe_training(config.scheduler, all_settings(config), config.seed, log.files, log.selection, command)
    with suppress(Stopped), run_folder(output, facts) as written:
        if resume and (line := _difference(output, config)):
            note(line)
        checkpoint = train_scheduler(
            TrainingInputs(
                log.platform, log.workload, log.files, events=log.events, selection=log.selection, data=data
            ),
            config,
            output,
            resume=resume,
            stop=stop,
            report=report,
            note=note,
            share_out=share_out,
        )
        if (steps := read_manifest(checkpoint).steps) < config.steps:
            raise Stopped(f"{steps:,} of {config.steps:,} steps are done")
        written += training_files(checkpoint)
    return checkpoint


def train_to_folders(log: LogOnHosts, configs: Sequence[TrainConfig], folders: Sequence[Path]) -> list[Path]:
    """As `train_to_folder`, of several that learn together where they can; those begun before go on."""
    inputs = TrainingInputs(log.platform, log.workload, log.files, events=log.events, selection=log.selection)
    with ExitStack() as locked:
        written = []
        for config, folder in zip(configs, folders, strict=True):
            facts = describe_training(config.scheduler, all_settings(config), config.seed, log.files, log.selection, "")
            written.append(locked.enter_context(run_folder(folder, facts)))
        tasks = [training_of(inputs, config, folder) for config, folder in zip(configs, folders, strict=True)]
        checkpoints = run_together(tasks, resume=True)
        for files, checkpoint in zip(written, checkpoints, strict=True):
            files += training_files(checkpoint)
    return checkpoints


def _difference(folder: Path, config: TrainConfig) -> str:
    """What is to be said of a training that is given more steps than it began with; empty where there is nothing."""
    checkpoint = folder / f"{config.scheduler}.ckpt"
    before = read_manifest(checkpoint).config.steps if checkpoint.is_file() else config.steps
    if before >= config.steps or not config.learn.timed:
        return ""
    return (
        f"{folder}: {config.learn.timed} was planned for {before:,} steps: going on to {config.steps:,} gives another "
        f"result than one training of {config.steps:,} steps"
    )
