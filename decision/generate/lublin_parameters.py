"""Parameters of Lublin and Feitelson's workload model (`decision.generate.lublin`): the published fits, and changes."""

import difflib
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from decision.model.errors import ConfigError

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, Meta(gt=0.0, le=1e6)]
Exponent = Annotated[float, Meta(ge=0.0, le=50.0)]  # a logarithm that does not overflow
Slope = Annotated[float, Meta(ge=-1e6, le=1e6)]


class JobClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One class of jobs: how large they are, how long they run, when they come.

    Sizes are relative to the machine: at 128 hosts the defaults are the published ones.
    """

    serial: Share  # share of jobs on one host
    power_of_two: Share  # share of jobs on more than one host whose number is a power of two
    size_low: Exponent  # log2 of the smallest parallel size
    size_high_below: Exponent = 0.0  # how far the largest size's log2 is below that of the hosts
    size_medium_below: Exponent  # how far the log2 of the size where the density changes is below that of the largest
    size_low_share: Share  # share of the parallel jobs below that size

    short_shape: Positive  # of the gamma of the logarithm of short run times
    short_scale: Positive
    long_shape: Positive  # of that of long ones
    long_scale: Positive
    short_share: Slope  # share of short jobs among the smallest, before it is cut to [0, 1]
    short_share_slope: Slope  # what each host of a job adds to that
    longest: Exponent = 12.0  # logarithm of the longest run time, seconds

    gap_shape: Positive  # of the gamma of the logarithm of times between jobs in rush hours
    gap_scale: Positive
    gap_all_day: Positive  # what the shape is multiplied with to hold for the whole day
    longest_gap: Exponent = 13.0  # logarithm of the longest time between jobs, seconds, before the day's cycle
    cycle_shape: Positive  # of the gamma of arrivals over the half hours of a day that begins at half past five
    cycle_scale: Annotated[float, Meta(ge=0.2, le=1e6)]


WHOLE = JobClass(
    serial=0.244,
    power_of_two=0.576,
    size_low=0.8,
    size_medium_below=2.5,
    size_low_share=0.86,
    short_shape=4.2,
    short_scale=0.94,
    long_shape=312.0,
    long_scale=0.03,
    short_share=0.78,
    short_share_slope=-0.0054,
    gap_shape=10.2303,
    gap_scale=0.4871,
    gap_all_day=1.0225,
    cycle_shape=8.1737,
    cycle_scale=3.9631,
)
BATCH = JobClass(
    serial=0.2927,
    power_of_two=0.6686,
    size_low=1.2,
    size_medium_below=2.0,
    size_low_share=0.875,
    short_shape=6.57,
    short_scale=0.823,
    long_shape=639.1,
    long_scale=0.0156,
    short_share=0.6986,
    short_share_slope=-0.003,
    gap_shape=6.0415,
    gap_scale=0.8531,
    gap_all_day=1.0519,
    cycle_shape=6.1271,
    cycle_scale=5.2740,
)
INTERACTIVE = JobClass(
    serial=0.1541,
    power_of_two=0.625,
    size_low=1.0,
    size_high_below=1.5,
    size_medium_below=2.5,
    size_low_share=0.705,
    short_shape=3.8351,
    short_scale=0.6605,
    long_shape=7.073,
    long_scale=0.6856,
    short_share=0.9156,
    short_share_slope=-0.0118,
    gap_shape=6.5510,
    gap_scale=0.6621,
    gap_all_day=0.9797,
    cycle_shape=8.9186,
    cycle_scale=3.6680,
)
CLASSES: Mapping[str, Mapping[str, JobClass]] = {
    "whole": {"whole": WHOLE},
    "batch": {"batch": BATCH},
    "interactive": {"interactive": INTERACTIVE},
    "both": {"batch": BATCH, "interactive": INTERACTIVE},
}


def with_settings(classes: Mapping[str, JobClass], settings: Mapping[str, str]) -> dict[str, JobClass]:
    """The classes with some parameters changed.

    Args:
        classes: the classes by name.
        settings: values by ``parameter`` (of all classes) or ``class.parameter``.

    Raises:
        ConfigError: for an unknown class or parameter, or a value out of its range.
    """
    changed = dict(classes)
    for key, value in settings.items():
        owner, dot, parameter = key.rpartition(".")
        if dot and owner not in changed:
            advice = f"choose from {', '.join(changed)}"
            raise ConfigError(f"{key}: unknown class {owner!r}; {advice}", field="settings")
        for name in [owner] if dot else list(changed):
            changed[name] = _with_setting(changed[name], key, parameter, value)
    return changed


def _with_setting(old: JobClass, key: str, parameter: str, value: str) -> JobClass:
    if parameter not in JobClass.__struct_fields__:
        near = difflib.get_close_matches(parameter, JobClass.__struct_fields__, 1)
        advice = f", perhaps {near[0]!r} is meant" if near else ""
        raise ConfigError(f"{key}: unknown parameter{advice}", field="settings")
    try:
        return msgspec.convert({**msgspec.structs.asdict(old), parameter: value}, JobClass, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{key}={value}: {str(error).partition(' - at ')[0]}", field="settings") from None
