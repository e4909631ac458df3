"""The commands that read a log, an export or a workload and write Batsim's JSON: one set of options for all."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from ..options import WalltimeName
from .options import (
    BandwidthOption,
    CommRatioOption,
    DailyOption,
    EstimatesOption,
    FileArgument,
    FromOption,
    JobsOption,
    LoadOption,
    MaxNodesOption,
    OutputOption,
    ProfileOption,
    SeedOption,
    ShiftOption,
    SpeedOption,
    ToOption,
    WalltimeOption,
    given_options,
    read_filters,
    read_tasks,
)

if TYPE_CHECKING:
    from decision.drivers.conversion import Source


def conversion(source: "Source", text: str) -> Callable[..., None]:
    """A command that converts files of the format `source`; `text` is its help."""

    def command(
        context: typer.Context,
        file: FileArgument,
        output: OutputOption,
        jobs: JobsOption = None,
        begin: FromOption = None,
        end: ToOption = None,
        max_nodes: MaxNodesOption = None,
        daily: DailyOption = False,
        walltime: WalltimeOption = WalltimeName.REQUESTED,
        estimates: EstimatesOption = None,
        seed: SeedOption = 0,
        load: LoadOption = None,
        shift: ShiftOption = False,
        profile: ProfileOption = None,
        speed: SpeedOption = None,
        comm_ratio: CommRatioOption = None,
        bandwidth: BandwidthOption = None,
    ) -> None:
        from decision.drivers.conversion import Conversion, convert

        from .tables import print_converted

        asked = Conversion(
            source=file,
            format=source,
            target=output,
            filters=read_filters(jobs, begin, end, max_nodes, walltime, load, shift, speed),
            tasks=read_tasks(profile, speed, comm_ratio, bandwidth),
            estimates=estimates,
            seed=seed,
            daily=daily,
            options=given_options(context),
        )
        print_converted(convert(asked))

    command.__doc__ = text
    return command
