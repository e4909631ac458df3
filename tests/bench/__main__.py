"""`scripts/bench`: all benchmarks as a table, or one of them as a line of JSON."""

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import click
from rich.console import Console
from rich.table import Column, Table

from decision.cli.declared import Argument, Option, make_command

from . import batsim_side, communication, environments, learned, measures, placements


class Benchmark(NamedTuple):
    """What is measured, its unit, its target, and what others reached on machines like ours (2 cores)."""

    measure: Callable[[Path | None], list[float]]
    unit: str
    target: str
    peers: str
    missing: Callable[[], list[str]] = list  # programs that it needs and that are not here


DBF_PAPER = ("learn.envs=32", "learn.rollout=94")
ON_TWO_CORES = "by the clock, actor and critic learning side by side"
BENCHMARKS = {
    "engine-easy": Benchmark(
        measures.engine("easy"),
        "jobs/s",
        "at least 1,000,000",
        "Batsim 4.2.1 with batsched easy_bf_fast 2,400, with pybatsim 1,740; RLScheduler's loop 27,000",
    ),
    "engine-conservative": Benchmark(
        measures.engine("conservative"), "jobs/s", "at least 100,000", "Batsim with batsched conservative_bf 147"
    ),
    "engine-kamelot": Benchmark(
        measures.engine("kamelot"),
        "jobs/s",
        "at least 2,000",
        "before, in plain Python with all reservations made each time: 31, lublin_256 49",
    ),
    "engine-last2": Benchmark(
        measures.predicted_engine("last2"), "times", "at least 0.7 of engine-easy in the same run", ""
    ),
    "engine-regression": Benchmark(
        measures.predicted_engine("regression"), "times", "at least 0.35 of engine-easy in the same run", ""
    ),
    "process-last2": Benchmark(
        measures.predicted_process, "ratio", "at most 1.25 times process-easy in the same run", ""
    ),
    "predicted-memory": Benchmark(measures.predicted_memory, "MB", "at most 100 above easy", ""),
    "process-easy": Benchmark(
        measures.process("easy"), "s", "at most 0.5", "batsched easy_bf_fast 2.1, easy_bf 12.5, pybatsim 3.3"
    ),
    "process-conservative": Benchmark(
        measures.process("conservative"), "s", "at most 2", "batsched conservative_bf 64.9"
    ),
    "batsim-side": Benchmark(
        batsim_side.replayed, "s", "at most 1.3", "batsched easy_bf_fast 1.3 as Batsim measures it; 65 us a message"
    ),
    "batsim-scheduling": Benchmark(
        batsim_side.ratio("scheduling"), "ratio", "at most 1", "batsched easy_bf_fast is 1", batsim_side.missing
    ),
    "batsim-whole": Benchmark(
        batsim_side.ratio("whole"), "ratio", "at most 1", "batsched easy_bf_fast is 1", batsim_side.missing
    ),
    "batsim-conservative": Benchmark(
        batsim_side.ratio("whole", "conservative", "conservative_bf", energy=True),
        "ratio",
        "at most 1",
        "batsched conservative_bf is 1",
        batsim_side.missing,
    ),
    "engine-ratio": Benchmark(
        batsim_side.embedded,
        "times",
        "at least 100",
        "Batsim 4.2.1 with batsched easy_bf_fast is 1",
        batsim_side.missing,
    ),
    "turnaround-median": Benchmark(
        batsim_side.turnaround(50), "us", "", "batsched easy_bf_fast: see batsim-scheduling"
    ),
    "turnaround-99": Benchmark(batsim_side.turnaround(99), "us", "", "of batsched's see batsim-scheduling"),
    "engine-million": Benchmark(measures.million, "s", "at most 60, 2 GB", ""),
    "run-stream": Benchmark(measures.stream(0), "s", "at most 30", ""),
    "run-stream-memory": Benchmark(measures.stream(1), "MB", "at most 500", ""),
    "workload-lublin": Benchmark(measures.lublin, "s", "at most 5", ""),
    "workload-swf": Benchmark(measures.from_swf(100_000, 1_024), "s", "at most 2", ""),
    "workload-swf-memory": Benchmark(measures.from_swf_memory, "MB", "at most 500", ""),
    "workload-mira": Benchmark(measures.from_swf(22_508, 49_152), "s", "at most 1", ""),
    "env-dbf20": Benchmark(
        environments.dbf(window=20, tail=4),
        "steps/s",
        "at least 1,000,000",
        "on one core: SchedInspector 55,000 (7 features), RLScheduler 4,600, sched-rl-gym 4,200, DeepRLScheduler 2,700",
    ),
    "env-dbf128": Benchmark(environments.dbf(window=128, tail=16), "steps/s", "at least 300,000", ""),
    "ppo-compact": Benchmark(learned.ppo_compact, "steps/s", "at least 12,000", ""),
    "ppo-ratio": Benchmark(learned.ppo_ratio, "times", "at least 2", "sb3-contrib's MaskablePPO is 1"),
    "learn-dbf-paper": Benchmark(
        learned.agent("dbf-paper", *DBF_PAPER), "steps/s", "", "by MKL and with one environment: 0.51 of it"
    ),
    "learn-dbf-paper-2": Benchmark(learned.agent("dbf-paper", *DBF_PAPER, threads=2), "steps/s", "", ON_TWO_CORES),
    "learn-dbf-first-2": Benchmark(
        learned.agent("dbf-paper", *DBF_PAPER, "learn.epochs=1", threads=2), "steps/s", "", ON_TWO_CORES
    ),
    "learn-packing-paper": Benchmark(learned.agent("packing-nn1", "learn.epochs=4"), "steps/s", "", ""),
    "learn-packing-paper-2": Benchmark(
        learned.agent("packing-nn1", "learn.epochs=4", threads=2), "steps/s", "", ON_TWO_CORES
    ),
    "learn-deepscheduling-paper": Benchmark(learned.agent("deepscheduling-paper"), "steps/s", "", ""),
    "learn-deepscheduling-paper-2": Benchmark(
        learned.agent("deepscheduling-paper", threads=2), "steps/s", "", ON_TWO_CORES
    ),
    "learn-repair-paper": Benchmark(learned.agent("repair-paper", "learn.epochs=20"), "steps/s", "", ""),
    "learn-repair-paper-2": Benchmark(
        learned.agent("repair-paper", "learn.epochs=20", threads=2), "steps/s", "", ON_TWO_CORES
    ),
    "learn-launchpad-paper": Benchmark(
        learned.agent("green-paper", "learn.offline=0", "learn.warmup=1", "learn.envs=1"), "updates/s", "", ""
    ),
    "learn-bc": Benchmark(learned.updates("bc"), "updates/s", "at least 280", "d3rlpy 2.8.1's DiscreteBC: 140"),
    "learn-crr": Benchmark(learned.updates("crr"), "updates/s", "at least 150", "d3rlpy 2.8.1's DiscreteSAC: 62"),
    "learn-sac": Benchmark(learned.updates("sac"), "updates/s", "at least 150", "d3rlpy 2.8.1's DiscreteSAC: 62"),
    "learn-bc-ratio": Benchmark(
        learned.updates_ratio("bc", "DiscreteBC"),
        "times",
        "at least 2",
        "d3rlpy's DiscreteBC is 1",
        learned.without_d3rlpy,
    ),
    "learn-sac-ratio": Benchmark(
        learned.updates_ratio("sac", "DiscreteSAC"),
        "times",
        "at least 2",
        "d3rlpy's DiscreteSAC is 1",
        learned.without_d3rlpy,
    ),
    "decide-latency": Benchmark(learned.decide_latency, "ms", "at most 1", ""),
    "decide-learned": Benchmark(learned.decide_learned, "ms", "at most 1", ""),
    "network": Benchmark(communication.network, "times", "at least 30", "Batsim 4.2.1 is 1", communication.missing),
    "place-tree": Benchmark(placements.place_tree, "us", "at most 30", ""),
    "place-tree-16384": Benchmark(placements.place_large_tree, "ms", "at most 1", ""),
    "window-exact": Benchmark(
        placements.window_exact, "ms", "median at most 1, worst at most 20", "Lan et al., SCIP: 18,960"
    ),
    "anneal": Benchmark(placements.anneal_moves, "moves/s", "at least 500,000", "Lan et al.'s program: 660"),
    "nsa": Benchmark(placements.neural_moves, "moves/s", "at least 5,000", "Lan et al.'s program: 325"),
    "env-one": Benchmark(environments.own(False), "steps/s", "", "one environment, its steps made from Python"),
    "env-own": Benchmark(environments.own(True), "steps/s", "at least 20,000", "env-one in the same run"),
    "simulation-copy": Benchmark(environments.copies, "ms", "at most 1", ""),
    "env-repair": Benchmark(environments.repair, "steps/s", "at least 300,000", ""),
    "env-packing": Benchmark(environments.packing, "steps/s", "at least 250,000", ""),
    "env-packing-memory": Benchmark(environments.packing_memory, "MB", "at most 500", ""),
    "ppo-packing": Benchmark(learned.ppo_packing, "steps/s", "at least 8,000", ""),
    "ppo-packing-ratio": Benchmark(learned.ppo_packing_ratio, "times", "at least 1.5", "Stable-Baselines3's PPO is 1"),
    "decide-packing": Benchmark(learned.packing_latency, "ms", "at most 1", ""),
    "env-deepscheduling": Benchmark(
        environments.deepscheduling("orion"), "steps/s", "at least 400,000", "the authors' environment 500 to 2,300"
    ),
    "env-deepscheduling-econome": Benchmark(  # of 512 environments the arrays no longer stay in a cache of 32 MB
        environments.deepscheduling("econome", 128), "steps/s", "at least 200,000", ""
    ),
    "env-deepscheduling-memory": Benchmark(environments.deepscheduling_memory, "MB", "at most 500", ""),
    "ppo-deepscheduling": Benchmark(learned.ppo_deepscheduling, "steps/s", "at least 10,000", ""),
    "decide-deepscheduling": Benchmark(learned.deepscheduling_latency("deepscheduling-compact"), "ms", "at most 1", ""),
    "decide-deepscheduling-gru": Benchmark(
        learned.deepscheduling_latency("deepscheduling-paper"), "ms", "at most 3", ""
    ),
    "env-green10": Benchmark(environments.green(10), "steps/s", "at least 400,000", ""),
    "env-green100": Benchmark(environments.green(100), "steps/s", "at least 250,000", ""),
    "startup": Benchmark(measures.startup, "s", "at most 1.5", ""),
}

_WIDE = 400  # columns of a file: more than a line of the table needs


def main(
    name: Annotated[str | None, Argument(help=f"One of {', '.join(BENCHMARKS)}; all without it.")] = None,
    as_json: Annotated[bool, Option("--json", help="One line of JSON per benchmark.")] = False,
    swf: Annotated[
        Path | None, Option(exists=True, help="The log to run; a made one of the same size without it.")
    ] = None,
) -> None:
    """Measure. The figure is the median over the repetitions."""
    if name and name not in BENCHMARKS:
        raise click.BadParameter(f"there is no benchmark {name!r}; choose one of {', '.join(BENCHMARKS)}")
    name_column = Column("benchmark", no_wrap=True, min_width=max(map(len, BENCHMARKS)))
    table = Table(name_column, "median", "best", "worst", "unit", "target", "peers", title="Benchmarks")
    for each in [name] if name else BENCHMARKS:
        benchmark = BENCHMARKS[each]
        if absent := benchmark.missing():
            print(f"{each}: left out, for {' and '.join(absent)} is not on the path", file=sys.stderr)
            continue
        runs = benchmark.measure(swf)
        value = statistics.median(runs)
        if as_json:
            print(json.dumps({"name": each, "value": value, "unit": benchmark.unit, "runs": runs}), flush=True)
        table.add_row(each, *(f"{v:,.4g}" for v in (value, *_best_worst(runs, benchmark.unit))), *benchmark[1:4])
    if not as_json:
        Console(width=None if sys.stdout.isatty() else _WIDE).print(table)


def _best_worst(runs: list[float], unit: str) -> tuple[float, float]:
    return (max(runs), min(runs)) if unit.endswith("/s") or unit == "times" else (min(runs), max(runs))


if __name__ == "__main__":
    make_command(main, "bench", click.Command)()
