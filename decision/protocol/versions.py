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
``SUBMIT_JOB``) are not supported.
"""

from msgspec import Struct

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
