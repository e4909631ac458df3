"""``decision workload to-swf``: a workload of Batsim as a log."""

import typer

from ..options import WalltimeName
from .options import (
    DailyOption,
    FileArgument,
    FromOption,
    JobsOption,
    LoadOption,
    MaxNodesOption,
    OutputOption,
    ShiftOption,
    SpeedOption,
    ToOption,
    WalltimeOption,
    given_options,
    read_filters,
)


def to_swf(
    context: typer.Context,
    file: FileArgument,
    output: OutputOption,
    jobs: JobsOption = None,
    begin: FromOption = None,
    end: ToOption = None,
    max_nodes: MaxNodesOption = None,
    daily: DailyOption = False,
    walltime: WalltimeOption = WalltimeName.REQUESTED,
    load: LoadOption = None,
    shift: ShiftOption = False,
    speed: SpeedOption = None,
) -> None:
    """Turn one of Batsim's workloads into a log in the Standard Workload Format.

    Run times of jobs that compute are those on hosts of --speed. Names of
    jobs, users, groups, executables and queues that are no numbers get some;
    the header says which.

    Examples:

      decision workload to-swf week.json -o week.swf

      decision workload to-swf flops.json -o week.swf --speed 141.24Gf
    """
    from decision.drivers.conversion import Conversion, convert

    from .tables import print_converted

    asked = Conversion(
        source=file,
        format="json",
        target=output,
        to_swf=True,
        filters=read_filters(jobs, begin, end, max_nodes, walltime, load, shift, speed),
        daily=daily,
        options=given_options(context),
    )
    print_converted(convert(asked))
