"""Whole runs, from files to files: one run, many runs side by side, cached results, converted workloads.

Design
------
`inputs` reads what a run starts from, `run` is one run, on the engine that its options name, and `standin` is our
engine in Batsim's place. `folder` holds a run's folder, says in ``run.json`` what made it, and writes the small file
that ``decision report view`` follows; `again` does what it says once more. `plan` says which runs a comparison has, and
`compare` does them; `advise`, `gates` and `whole` run whole logs, on shaken copies. `training` is a whole training.
`conversion` makes workloads of workloads: it is here because it needs readers and generators, which do not know each
other.

What runs come to: `metrics` has the formulas, `metric_list` all of them by name, `energy`, `worth`, `groups` and
`curves` have figures of their own, `results` are runs side by side. Metrics are computed from a job table, which our
engine returns or `decision.files.outputs_read` reads from Batsim's files, so that the values of both mean the same.
Each metric's docstring has its formula, because programs that use the same word (makespan, slowdown, utilization)
compute different things. `comparison` judges with one set of published statistics (`statistics`), so that a verdict
means the same here as elsewhere. Rejected: paired tests, which separate more policies but which nobody else reports for
such runs. Learning curves are read from the files of trainings, without torch. Seeds are grouped where their
checkpoints say that nothing else differs; rejected: by the names of folders, which would be a guess.

What logs are: `audit` says what one can answer and a simulation leaves out, `conversion` proposes what
to leave out, `descriptions` describes, `fetch_log` brings public ones; `value_bound` is what no schedule can exceed.

A real Batsim writes its tables line by line, so it writes them into a hidden folder in the run's own, from which whole
files are renamed at the end. What an older run left is replaced then, or stays as it was. Rejected: a new folder in the
place of the old one, which would take away what a user keeps there.

``run.json`` is written first and completed last, and lists the files, so readers refuse what is half or mixed. That a
run died is known by its lock, which ends with the process. Rejected: refusing a folder that has a run, since ``-o out``
is what everybody types; the process's number, which another process gets, perhaps on another machine.

`tasks` does many tasks by an executor: `workers` of this machine, or those of a Dask `cluster`. It stores each result
(`store`) under a hash of the task's definition and of the numerics: the package's version in an installed release, all
sources (except the command line) in a checkout. A result is whole or absent even if a process is killed, and nothing is
done twice; runs that fail are listed (``failures.csv``). What must compile runs first, alone: otherwise each process
would wait for the others. Only the command writes, so results need no locks. Rejected: a file for each result, since
10^7 of them are more than file systems like; forked workers, which inherit locks of threads that they do not have;
``ProcessPoolExecutor``, which ends with the first process that is killed; a hash that ignores docstrings and comments,
which takes half a second and more for each command; leases and heartbeats of our own, which Dask has.
"""

from enum import StrEnum


class Engine(StrEnum):
    """The simulator of a run, by the name that ``--engine`` takes."""

    EMBEDDED = "embedded"  # our compiled engine
    REFERENCE = "reference"  # our engine in plain Python
    BATSIM = "batsim"  # a Batsim that we start
    DOCKER = "docker"  # a Batsim in a container


class Verbosity(StrEnum):
    """How much Batsim prints; its own four levels."""

    QUIET = "quiet"
    NETWORK_ONLY = "network-only"
    INFORMATION = "information"
    DEBUG = "debug"
