#!/usr/bin/env python3
"""Make the pictures of README and site: the same sources give the same pictures.

usage: make_pictures.py [FOLDER]    (default: docs/pictures; takes some minutes)
"""

import sys
from configparser import ConfigParser
from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib import pyplot as plt

import decision
from decision.cli.app import app
from decision.files.text import write_files
from decision.report.plots.figures import BLUE, DARK, PALE, save, styled
from decision.report.plots.results import advice_pictures

LOG = "lublin_10000"
ROOT = Path(__file__).parents[1]
ROOMS = {  # by floor: what is done there, from the top
    "papers": "what was published, and what we get",
    "cli": "what people type and call",
    "report": "tables, pictures, pages",
    "experiments": "whole runs: compared, kept, resumed",
    "rl": "what is learned; a model of Slurm",
    "batsim": "a policy with Batsim, or with our engine",
    "engine": "the simulator, and who decides",
    "state": "the cluster as arrays, and its one writer",
    "files": "kernels; files; messages",
    "model": "jobs, workloads, platforms",
}


def make(folder: Path) -> None:
    """Draw them into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_floors(folder / "floors.png")
    with TemporaryDirectory() as name:
        out = Path(name)
        advice = decision.advise(LOG, folder=out / "advice")
        drawn = advice_pictures(advice)
        write_files({folder / f"{which}.png": [drawn[which].drawn(".png")] for which in ("plane", "classes")})
        _type("run -p taurus -w taurus_week_flops --policy easy,power=idle-timeout --energy --plot -o", out / "run")
        (out / "run/schedule.png").replace(folder / "schedule.png")
        _type(f"workload describe {LOG} --plot", folder / "workload.png")
        _type("platform fat-tree --radix 4 --pods 4 -o", out / "tree.xml")
        _type(f"platform show {out}/tree.xml --plot", folder / "platform.png")


@styled
def draw_floors(path: Path) -> None:
    """The packages by floor, as the import contract has them: each knows only what is below it."""
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:layers"]["layers"].split("\n")
    named = [[name.strip() for name in layer.split("|")] for layer in layers if layer.strip()]
    floors = [[name for name in names if name != "__main__"] for names in named]
    figure, axes = plt.subplots(figsize=(8, 0.33 * len(floors)), dpi=120, layout="constrained")
    for height, rooms in enumerate(reversed(floors)):
        wide = 1 / len(rooms)
        for at, room in enumerate(rooms):
            axes.barh(height, wide - 0.01, 0.82, at * wide, color=PALE, edgecolor=BLUE, linewidth=0.8)
            axes.text((at + 0.5) * wide, height, room, ha="center", va="center", color=DARK)
        said = next((ROOMS[room] for room in rooms if room in ROOMS), "")
        axes.text(1.02, height, said, va="center", color=DARK, fontsize="small")
    axes.set(xlim=(0, 1.6), ylim=(-0.6, len(floors) - 0.4))
    axes.set_axis_off()
    save(figure, path)
    plt.close(figure)


def _type(command: str, path: Path) -> None:
    app(args=[*command.split(), str(path)], prog_name="decision", standalone_mode=False)


if __name__ == "__main__":
    make(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs/pictures"))
