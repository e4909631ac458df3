"""Pages made from the package itself while the site is built, so that they cannot go stale."""

import html
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from decision.cli.app import app
from decision.cli.command import Command
from decision.cli.schemas import field_comments
from decision.experiments.metric_list import METRICS
from decision.files import load_platform, load_workload
from decision.model.computer import shipped_platforms, shipped_workloads
from decision.policies import list_policies
from decision.rl.envs.environment import MEANINGS
from decision.rl.schedulers.base import ChoosingScheduler, choosing, records


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; MkDocs calls this when it has found those that are written."""
    for name, content in pages():
        files.append(File.generated(config, name, content=content))
    return files


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of each."""
    made = {
        "reference/command-line": _command_line,
        "reference/policies": _policies,
        "reference/shipped": _shipped,
        "reference/metrics": _metrics,
        "reference/environments": _environments,
        "extend/contribute": _contribute,
    }
    for name, make in made.items():
        yield f"{name}.md", "\n".join(make()) + "\n"


def _contribute() -> Iterator[str]:
    """CONTRIBUTING.md, whose pictures are one folder up from here."""
    yield Path("CONTRIBUTING.md").read_text().replace("](docs/", "](../")


def _command_line() -> Iterator[str]:
    yield "# Command line"
    yield "\nMade from the commands themselves; `decision -v COMMAND --help` prints the same.\n"
    yield from _command(app, "decision", 2)


def _command(command: Any, name: str, level: int) -> Iterator[str]:
    """A command, and those below it that are not hidden."""
    yield f"\n{'#' * level} `{name}`\n"
    yield from _help(command.help or "")
    yield from _parameters(command, name)
    for child, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from _command(below, f"{name} {child}", min(level + 1, 4))


def _help(text: str) -> Iterator[str]:
    """Help as Markdown: indented parts are examples, bold is what one types."""
    for part in _bold(text.replace("\b\n", "")).split("\n\n"):
        yield f"\n```\n{_outdented(part)}\n```\n" if part.startswith("  ") else f"\n{part}\n"


def _outdented(part: str) -> str:
    return "\n".join(line.removeprefix("  ") for line in part.splitlines())


def _parameters(command: Any, name: str) -> Iterator[str]:
    """A table of a command's arguments and options, as its help has them."""
    context = command.make_context(name, [], resilient_parsing=True)
    shown = command.explained() if isinstance(command, Command) else command.params
    records = [parameter.get_help_record(context) for parameter in shown]
    if records:
        yield "\n| option | meaning |\n|---|---|"
        yield from (f"| {_code(names)} | {_cell(_bold(text))} |" for names, text in filter(None, records))


def _bold(text: str) -> str:
    """Rich's markup as Markdown's."""
    return re.sub(r"\[/?bold\]", "**", text)


def _code(text: str) -> str:
    """Code in a table's cell, which a bar must not end."""
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _policies() -> Iterator[str]:
    yield "# Policies"
    yield "\nWhat `decision policies` lists. A policy is named where `--policy` or a function takes one.\n"
    yield "| name | what it does | from |\n|---|---|---|"
    yield from (f"| {_code(entry.name)} | {_cell(entry.summary)} | {_cell(entry.paper)} |" for entry in list_policies())


def _metrics() -> Iterator[str]:
    yield "# Metrics"
    yield "\nWhat `--metric` takes, and the columns of `runs.csv`. Those that a run does not have are empty there.\n"
    yield "| name | unit | better | what it is |\n|---|---|---|---|"
    for metric in METRICS.values():
        yield f"| `{metric.name}` | {metric.unit or '-'} | {metric.better} | {_cell(metric.summary)} |"


def _environments() -> Iterator[str]:
    """Each scheduler's environment: what its record says of it, and its settings."""
    yield "# Environments"
    yield "\nOf each learned scheduler that chooses step by step; made from its record. `d.make_env` makes one, or many"
    yield "side by side (`num_envs=`), Gymnasium's `make` and `make_vec` do after `import decision.rl.envs`:\n"
    yield '```python\nenv = d.make_env("dbf", "cluster256", "log.swf", head=16, tail=4)'
    yield 'env = gymnasium.make("decision/DBF-v0", platform="cluster256", workload="log.swf", head=16, tail=4)\n```\n'
    yield "With `dict_observation=True` observations are dicts of `observation` and `action_mask`; `encoder=` names"
    yield "another of the observations. All jobs need a walltime. In `decision train` an option is `--set"
    yield "env.OPTION=VALUE`, and a preset has its own values. [Learners of your own](learners.md) uses it.\n"
    yield "An environment without a `platform` has as many equal hosts as the workload was made for."
    judged = ", ".join(f"`{each.name}`" for each in records().values() if not isinstance(each, ChoosingScheduler))
    yield f"\nWhat evolution learns from whole schedules has no environment: {judged}."
    for scheduler in (each for each in choosing() if type(each).__module__.startswith("decision.")):
        yield from _environment(scheduler)
    yield "\n## Metrics of every environment\n"
    yield 'What `info["metrics"]` has when an episode ends, `decision.rl.envs.EPISODE_METRICS`:\n'
    yield "| name | what it is |\n|---|---|"
    yield from (f"| `{name}` | {_cell(text)} |" for name, text in MEANINGS.items())


def _environment(scheduler: ChoosingScheduler) -> Iterator[str]:
    """What the docstring of a scheduler's record says, and a table of the settings."""
    title, _, text = inspect.cleandoc(type(scheduler).__doc__ or "").partition("\n")
    yield f"\n## `decision/{scheduler.env_id}-v0`\n\n**{title}**\n"
    text = re.sub(r"^(Observation\b|Actions|Reward|Episode|Masks|Looks|Decisions)", r"**\1**", text, flags=re.MULTILINE)
    yield re.sub(r"::$", ":\n", text, flags=re.MULTILINE).replace("``", "`")
    observations = ", ".join(f"`{name}`" for name in scheduler.observations)
    yield f'\n`d.make_env("{scheduler.name}", ...)`; observations: {observations}.\n'
    yield "| option | default | what it is |\n|---|---|---|"
    settings, _ = scheduler.read_options(scheduler.env_options)
    for name, comment in field_comments(type(settings)).items():
        choices = get_args(hint) if get_origin(hint := get_type_hints(type(settings))[name]) is Literal else ()
        kinds = f" ({', '.join(f'`{each}`' for each in choices)})" if choices else ""
        value = getattr(settings, name)
        shown = f"{value:.4g}" if isinstance(value, float) else value
        yield f"| `{name}` | `{shown}` | {_cell(comment)}{kinds} |"


def _shipped() -> Iterator[str]:
    yield "# Shipped platforms and workloads"
    yield '\nThey are accepted where a file is: `decision run -p taurus -w taurus_week`, `d.simulate("taurus", ...)`.'
    yield "In a checkout they are the files of `platforms/` and `workloads/`.\n"
    yield "| platform | hosts | power |\n|---|---|---|"
    for name in shipped_platforms():
        platform = load_platform(name)
        yield f"| `{name}` | {len(platform.hosts):,} | {'yes' if platform.has_power else 'no'} |"
    yield "\n| workload | jobs | for hosts | what it is |\n|---|---|---|---|"
    for name in shipped_workloads():
        workload = load_workload(name)
        yield f"| `{name}` | {len(workload.jobs):,} | {workload.nb_res:,} | {_cell(workload.description)} |"


if __name__ == "__main__":  # for builders without hooks: write the pages into a copy of this folder
    for page, text in pages():
        (Path(sys.argv[1]) / page).write_text(text)
