"""The versions of Batsim's protocol that we speak, and all that differs between them.

Nothing outside this package knows which version it talks to. Between 3.1.0 (2019) and 4.2.1 (2025) the JSON
protocol kept its events, their fields and their meaning, except for this:

======================================  =====================  ==========================================
what                                    3.1.0                  4.0.0, 4.1.0, 4.2.0, 4.2.1
======================================  =====================  ==========================================
``config.sched-config``                 absent                 the text of ``--sched-cfg``
``config.profile-reuse-enabled``        absent                 whether ``--enable-profile-reuse`` was given
``zone_properties`` of a resource       absent                 the properties of the host's SimGrid zone
``profiles`` in SIMULATION_BEGINS       all                    those that a job uses
profile whose last job has ended        kept                   forgotten, unless profile reuse is enabled
KILL_JOB, SET_JOB_METADATA and the      taken                  Batsim has forgotten the job and stops
like for a job that ended in an
earlier message
======================================  =====================  ==========================================

What holds in all of them, and differs from the documentation: REGISTER_JOB needs ``subtime``; EXECUTE_JOB
takes at most one of ``mapping``, ``storage_mapping`` and ``additional_io_job``; CHANGE_JOB_STATE cannot set
COMPLETED_FAILED; ``job_progress`` names a profile by ``profile_name``; numbers come with six decimals.

4.0.0 to 4.2.1 cannot be distinguished on the wire, 3.1.0 can. Older versions (``resources_data``,
``SUBMIT_JOB``) are not supported. Batsim 5 has other events in another encoding: it will need a codec of its
own, chosen by `Version.encoding`, that gives the same messages.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from decision.model.errors import ConfigError


class Version(Struct, frozen=True, kw_only=True):
    """A version of the protocol: the releases of Batsim that speak it, and its peculiarities."""

    name: str
    releases: tuple[str, ...]
    encoding: str = "json"
    config_lacks: frozenset[str] = frozenset()
    resource_lacks: frozenset[str] = frozenset()
    forgets_ended_jobs: bool = True  # a command about a job that has ended stops Batsim


V3 = Version(
    name="3.1",
    releases=("3.1.0",),
    config_lacks=frozenset({"sched-config", "profile-reuse-enabled"}),
    resource_lacks=frozenset({"zone_properties"}),
    forgets_ended_jobs=False,
)
V4 = Version(name="4", releases=("4.0.0", "4.1.0", "4.2.0", "4.2.1"))
PROTOCOL_VERSIONS = (V3, V4)
NEWEST = V4


def version_named(name: str) -> Version:
    """The version that a release of Batsim speaks; `name` is ``"4.2.1"``, ``"4.2"`` or ``"4"``.

    Raises:
        ConfigError: if no known release has this name.
    """
    for version in PROTOCOL_VERSIONS:
        if any(release == name or release.startswith(name + ".") for release in version.releases):
            return version
    known = ", ".join(release for version in PROTOCOL_VERSIONS for release in version.releases)
    raise ConfigError(f"Batsim {name!r}: this version of the protocol is not supported; known are {known}")


class _Events(Struct):
    events: tuple[Raw, ...]


class _Config(Struct, rename="kebab"):
    sched_config: str | UnsetType = UNSET
    profile_reuse_enabled: bool | UnsetType = UNSET


class _Data(Struct):
    config: _Config


class _Begins(Struct):
    data: _Data


def detect(begins: bytes) -> Version:
    """The version of the Batsim that sent this message, one that was read and begins with SIMULATION_BEGINS."""
    first = msgspec.json.decode(begins, type=_Events).events[0]
    config = msgspec.json.decode(first, type=_Begins).data.config
    return V3 if config == _Config() else V4


def leave_out(version: Version, begins: dict[str, Any]) -> None:
    """Remove from the data of SIMULATION_BEGINS, as JSON, what this version does not send."""
    for key in version.config_lacks:
        begins["config"].pop(key)
    for resource in begins["compute_resources"] + begins["storage_resources"]:
        for key in version.resource_lacks:
            resource.pop(key)


def hint(data: bytes) -> str:
    """A guess about bytes that are not a message of a supported version."""
    if b'"event_type"' in data or not data.lstrip().startswith(b"{"):
        return " (is the peer Batsim 5 or newer, or not a Batsim?)"
    if b'"resources_data"' in data:
        return " (is the peer older than Batsim 3.1?)"
    return ""
