"""``decision workload ...``: one module per command."""

import typer

from . import preset
from .describe import describe
from .from_json import from_json
from .from_oar import from_oar
from .from_swf import from_swf
from .lublin import lublin
from .predict import predict
from .to_swf import to_swf

app = typer.Typer(no_args_is_help=True, help="Make, convert and describe workloads.")
app.command("from-swf")(from_swf)
app.command("from-oar")(from_oar)
app.command("from-json")(from_json)
app.command("to-swf")(to_swf)
app.command()(describe)
app.command()(lublin)
app.command()(predict)
app.add_typer(preset.app, name="preset", help="Make the workloads of papers.")
