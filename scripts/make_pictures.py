#!/usr/bin/env python3
"""Make the pictures of README and site: the same sources give the same pictures.

usage: make_pictures.py [FOLDER]    (default: docs/pictures; takes some minutes)
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import decision
from decision.analysis.plots.advice import draw_picture
from decision.cli.app import app
from decision.formats.files import write_files

LOG = "lublin_10000"


def make(folder: Path) -> None:
    """Draw them into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name:
        out = Path(name)
        advice = decision.advise(LOG, folder=out / "advice")
        write_files({folder / f"{which}.png": [draw_picture(which, advice, ".png")] for which in ("plane", "classes")})
        _type("run -p taurus -w taurus_week_flops --policy easy,power=idle-timeout --energy --plot -o", out / "run")
        (out / "run/schedule.png").replace(folder / "schedule.png")
        _type(f"workload describe {LOG} --plot", folder / "workload.png")
        _type("platform fat-tree --radix 4 --pods 4 -o", out / "tree.xml")
        _type(f"platform show {out}/tree.xml --plot", folder / "platform.png")


def _type(command: str, path: Path) -> None:
    app(args=[*command.split(), str(path)], prog_name="decision", standalone_mode=False)


if __name__ == "__main__":
    make(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs/pictures"))
