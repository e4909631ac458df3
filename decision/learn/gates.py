"""Whether a learned policy may be deployed: ``decision gates`` has checked it, and it has passed."""

from decision.model.errors import ConfigError
from decision.model.notices import warn_once
from decision.model.workload import Workload

from . import SHIPPED_MODELS, find_checkpoint


def require_unseen(policy: str, workload: Workload) -> str:
    """Refuse to judge a policy on jobs that it was learned from.

    Returns:
        What is not known of that, for people; or "".

    Raises:
        ConfigError: if it was learned from some of them.
        InputError: if the checkpoint or the file cannot be used.
    """
    from .seen_jobs import seen_jobs, seen_text

    text = seen_text(policy, workload)
    if seen_jobs(policy, workload):
        raise ConfigError(f"{text}: gates are for jobs that nothing was learned from; choose others", field="select")
    return text


def require_gates(policy: str) -> None:
    """Refuse to deploy a checkpoint that has not passed its gates; any other policy passes.

    A policy that is shipped is known for what it fails, which ``decision policies`` says: there a warning names it.

    Args:
        policy: as ``--policy`` takes it.

    Raises:
        ConfigError: naming what is missing.
        InputError: if the checkpoint cannot be read.
    """
    name = policy.split(",")[0]
    checkpoint = find_checkpoint(name)
    if checkpoint is None:
        return
    from .checkpoint import read_manifest

    checks = read_manifest(checkpoint).gates
    failed = [f"{gate.name} on {check.workload.name}" for check in checks for gate in check.gates if not gate.passed]
    if checks and not failed:
        return
    why = f"it fails {failed[0]}" if failed else "its manifest has no gates"
    if name in SHIPPED_MODELS:
        warn_once(f"policy {name}: {why}; decision policies says what shipped policies are for")
        return
    raise ConfigError(
        f"policy {policy}: {why}, so it is not deployed; decision gates checks a checkpoint on your logs, and --force "
        "runs it all the same",
        field="policy",
    )
