"""Options of policies: what there is, and from texts to values.

First what a composed policy is to the kernels: the codes of its slots, and its numbers (`PolicyConfig`). Then the
tables of which ``decision policies`` is made, and of which names and options are read: values of slots,
`NUMERIC_OPTIONS`, and the options that any policy has. Last the reading, with errors that name the option.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from decision.model.errors import ConfigError
from decision.model.hosts import nearest


class Order(IntEnum):
    """In which order jobs are looked at; ties are broken by arrival."""

    # `order.rank_of` compares codes: the groups must stay together.
    FCFS = 0
    LCFS = 1
    SJF = 2
    LJF = 3
    SAF = 4
    LAF = 5
    SQF = 6
    LQF = 7
    F1 = 8
    F2 = 9
    F3 = 10
    F4 = 11
    RANDOM = 12
    HVF = 13
    QOS = 14
    DENSITY = 15
    EDF = 16
    # from here on ranks change with time
    WFP3 = 17
    UNICEP = 18
    MULTIFACTOR = 19


class Backfill(IntEnum):
    """What happens behind a job that does not fit."""

    NONE = 0
    FIRST_FIT = 1
    EASY = 2
    CONSERVATIVE = 3


class Allocation(IntEnum):
    """Which of the free hosts a job gets; never whether it gets them."""

    LOWEST = 0
    CONTIGUOUS = 1
    BEST_FIT = 2
    SCATTERED = 3
    TREE = 4
    SLURM_TREE = 5
    PACK = 6
    HOPS = 7


class Power(IntEnum):
    """When idle hosts are put to sleep."""

    NEVER = 0
    IDLE_TIMEOUT = 1
    KEEP_AWAKE = 2


class StartHosts(IntEnum):
    """Which hosts a job may be given."""

    AWAKE = 0
    BOOKED = 1


class Suspend(IntEnum):
    """Which running jobs give their hosts to a waiting one that does not fit: those with less of it."""

    NEVER = 0
    VALUE = 1
    DENSITY = 2


AUTO = 1.5  # guard=auto: so many times the longest wait under FCFS with EASY may be waited


class PolicyConfig(NamedTuple):
    """A composed policy as numbers; `Memory` has them too."""

    order: int = int(Order.FCFS)
    backfill: int = int(Backfill.NONE)
    allocation: int = int(Allocation.LOWEST)
    power: int = int(Power.NEVER)
    seed: int = 0
    keep_awake: int = 0  # hosts
    start: int = int(StartHosts.AWAKE)
    promises: int = 0  # 1 to remember when EASY first promises each head to start
    backfill_order: int = -1  # the Order of the jobs that EASY looks at behind its head; -1: that of the queue
    suspend: int = int(Suspend.NEVER)
    age_weight: float = 1000.0
    size_weight: float = 1000.0
    max_age: float = 7 * 86400.0  # seconds at which age counts in full
    idle_timeout: float = 300.0  # seconds
    wake_time: float = 0.0  # seconds to wake a host
    doze_time: float = 0.0  # seconds to put a host to sleep
    guard: float = math.inf  # seconds after which a waiting job is guarded; inf where no seconds say it
    guard_times: float = 0.0  # or so many times the longest wait so far under FCFS with EASY; 0: seconds say it
    patience: float = 0.0  # seconds that a job waits before a server is woken for it

    @property
    def is_guarded(self) -> bool:
        """Whether jobs that have waited for long get a reservation."""
        return self.guard < math.inf or self.guard_times > 0


class PolicyLine(NamedTuple):
    """One line of ``decision policies``."""

    name: str
    summary: str
    paper: str = ""


class OptionLine(NamedTuple):
    """One option of a policy, as ``decision policies NAME`` shows it."""

    name: str
    default: str  # "" where it must be given
    unit: str  # "" for names and for numbers without unit
    summary: str
    paper: str = ""


_DEEPSCHEDULING = "Casagrande et al., AINA 2020"
_LAN = "cost after Lan et al., 2023"
_LAUNCHPAD = "Venkataswamy et al., JSSPP 2024"
_SC17 = "Carastan-Santos and de Camargo, SC 2017"
_CLUSTER09 = "Tang et al., Cluster 2009"
_COMPACT = "Krumke et al., TCS 1997"
_TPDS01 = "Mu'alem and Feitelson, TPDS 2001"
TSAFRIR = "Tsafrir, Etsion and Feitelson, TPDS 2007"

ORDER_LINES: dict[str, tuple[Order, PolicyLine]] = {
    line.name: (order, line)
    for order, line in (
        (Order.FCFS, PolicyLine("fcfs", "first come, first served, in strict order")),
        (Order.LCFS, PolicyLine("lcfs", "last come, first served")),
        (Order.SJF, PolicyLine("sjf", "shortest walltime first")),
        (Order.LJF, PolicyLine("ljf", "longest walltime first")),
        (Order.SAF, PolicyLine("saf", "smallest area first, walltime x hosts", "Srinivasan et al., JSSPP 2002")),
        (Order.LAF, PolicyLine("laf", "largest area first, walltime x hosts")),
        (Order.SQF, PolicyLine("sqf", "fewest hosts first")),
        (Order.LQF, PolicyLine("lqf", "most hosts first")),
        (Order.WFP3, PolicyLine("wfp3", "highest (wait / walltime)^3 x hosts first", _CLUSTER09)),
        (Order.UNICEP, PolicyLine("unicep", "highest wait / (log2(hosts) x walltime) first", _CLUSTER09)),
        (Order.F1, PolicyLine("f1", "lowest log10(walltime) x hosts + 870 log10(submission) first", _SC17)),
        (Order.F2, PolicyLine("f2", "lowest sqrt(walltime) x hosts + 25600 log10(submission) first", _SC17)),
        (Order.F3, PolicyLine("f3", "lowest walltime x hosts + 6860000 log10(submission) first", _SC17)),
        (Order.F4, PolicyLine("f4", "lowest walltime x sqrt(hosts) + 530000 log10(submission) first", _SC17)),
        (Order.MULTIFACTOR, PolicyLine("multifactor", "highest weighted age and size first", "Slurm")),
        (Order.HVF, PolicyLine("hvf", "highest value first", _LAUNCHPAD)),
        (Order.QOS, PolicyLine("qos", "highest quality of service first", _LAUNCHPAD)),
        (Order.DENSITY, PolicyLine("density", "highest value per host-second left first")),
        (Order.EDF, PolicyLine("edf", "earliest deadline first", "Liu and Layland, JACM 1973")),
        (Order.RANDOM, PolicyLine("random", "a random rank for each job, by the seed")),
    )
}

BACKFILLS: dict[str, tuple[Backfill, PolicyLine]] = {
    line.name: (backfill, line)
    for backfill, line in (
        (Backfill.NONE, PolicyLine("none", "nothing starts before a job that waits ahead of it")),
        (Backfill.FIRST_FIT, PolicyLine("first-fit", "every job that fits starts, in order")),
        (Backfill.EASY, PolicyLine("easy", "what fits may start unless it delays the first job that waits", _TPDS01)),
        (Backfill.CONSERVATIVE, PolicyLine("conservative", "what fits may start unless it delays any job", _TPDS01)),
    )
}

ALLOCATIONS: dict[str, tuple[Allocation, PolicyLine]] = {
    line.name: (allocation, line)
    for allocation, line in (
        (Allocation.LOWEST, PolicyLine("first-fit", "the free hosts with the lowest ids")),
        (Allocation.CONTIGUOUS, PolicyLine("contiguous", "the lowest run of neighbours, else as first-fit")),
        (
            Allocation.BEST_FIT,
            PolicyLine("best-fit", "the shortest run of neighbours that is enough, else as first-fit"),
        ),
        (Allocation.SCATTERED, PolicyLine("random", "any free hosts, by the seed")),
        (Allocation.TREE, PolicyLine("tree", "of a fat-tree, the free hosts that are fewest hops apart", _LAN)),
        (
            Allocation.SLURM_TREE,
            PolicyLine(
                "slurm-tree", "of a fat-tree, the lowest switch that fits, best fit below it", "Slurm, topology/tree"
            ),
        ),
        (Allocation.PACK, PolicyLine("pack", "the server that is awake with the fewest free hosts first")),
        (
            Allocation.HOPS,
            PolicyLine("hops", "of any network, free hosts that are few hops from one of them", _COMPACT),
        ),
    )
}

POWERS: dict[str, tuple[Power, PolicyLine]] = {
    line.name: (power, line)
    for power, line in (
        (Power.NEVER, PolicyLine("never", "no host ever sleeps")),
        (Power.IDLE_TIMEOUT, PolicyLine("idle-timeout", "hosts idle for idle_timeout seconds sleep; woken in time")),
        (Power.KEEP_AWAKE, PolicyLine("keep-awake", "all idle hosts but keep_awake sleep; woken in time")),
    )
}

_STARTS: dict[str, tuple[StartHosts, PolicyLine]] = {
    line.name: (start, line)
    for start, line in (
        (StartHosts.AWAKE, PolicyLine("awake", "a job gets hosts that are awake, when it starts")),
        (
            StartHosts.BOOKED,
            PolicyLine(
                "bound", "a job gets hosts at once, asleep or not, and starts when the last is awake", _DEEPSCHEDULING
            ),
        ),
    )
}

SUSPENSIONS: dict[str, tuple[Suspend, PolicyLine]] = {
    line.name: (suspend, line)
    for suspend, line in (
        (Suspend.NEVER, PolicyLine("never", "no job that runs gives way to one that waits")),
        (Suspend.VALUE, PolicyLine("value", "jobs of less value are suspended for one that does not fit", _LAUNCHPAD)),
        (Suspend.DENSITY, PolicyLine("density", "likewise, by value per host-second left")),
    )
}

ALIASES = {"filler": "first-fit"}


_SLURM = "Slurm, priority/multifactor"

SLOTS: Mapping[str, tuple[str, Mapping[str, tuple[int, PolicyLine]]]] = {
    "order": ("in which order jobs are looked at", ORDER_LINES),
    "backfill": ("what happens behind a job that does not fit", BACKFILLS),
    "allocation": ("which of the free hosts a job gets", ALLOCATIONS),
    "power": ("when idle hosts sleep", POWERS),
    "start": ("which hosts a job may be given", _STARTS),
    "suspend": ("which running jobs give way to a waiting one", SUSPENSIONS),
}
PRICES_LINE = OptionLine(
    "prices", "none", "", "with allocation=tree: what free hosts are worth, FILE.ckpt of decision train prices"
)


class NumberOption(NamedTuple):
    """A number that composed policies have as an option: its default is that of the field of `PolicyConfig`."""

    name: str
    unit: str
    slot: str  # that reads it,
    readers: tuple[int, ...]  # with one of these values
    summary: str
    paper: str = ""

    @property
    def default(self) -> float:
        """As of `PolicyConfig`; an int where the option is one."""
        return PolicyConfig._field_defaults[self.name]


_WEIGHED, _SLEEPS = (Order.MULTIFACTOR,), (Power.IDLE_TIMEOUT, Power.KEEP_AWAKE)
NUMERIC_OPTIONS = {
    option.name: option
    for option in (
        NumberOption(
            "age_weight",
            "",
            "order",
            _WEIGHED,
            "with order=multifactor: of a job's wait, as a share of max_age",
            _SLURM,
        ),
        NumberOption(
            "size_weight",
            "",
            "order",
            _WEIGHED,
            "with order=multifactor: of a job's hosts, as a share of all hosts",
            _SLURM,
        ),
        NumberOption("max_age", "s", "order", _WEIGHED, "with order=multifactor: wait that counts in full", _SLURM),
        NumberOption(
            "idle_timeout",
            "s",
            "power",
            (Power.IDLE_TIMEOUT,),
            "with power=idle-timeout: a host that is idle for so long sleeps",
        ),
        NumberOption(
            "keep_awake", "hosts", "power", (Power.KEEP_AWAKE,), "with power=keep-awake: idle hosts that stay awake"
        ),
        NumberOption(
            "wake_time",
            "s",
            "power",
            _SLEEPS,
            "with power=...: what a host takes to wake, where the platform does not say it",
        ),
        NumberOption(
            "patience",
            "s",
            "start",
            (StartHosts.BOOKED,),
            "with start=bound: no server is woken for a job that has waited for less",
        ),
    )
}


_BACKFILL_ORDER = OptionLine(
    "backfill_order", "that of the queue", "", "with backfill=easy: an order, of the jobs behind the first that waits"
)


def composed_options(order: str, backfill: str) -> list[OptionLine]:
    """The options of the composed policy with these slots."""
    chosen = {"order": order, "backfill": backfill, "allocation": "first-fit", "power": "never", "start": "awake"}
    chosen["suspend"] = "never"
    slots = [
        OptionLine(slot, chosen[slot], "", f"{summary}: {', '.join(values)}")
        for slot, (summary, values) in SLOTS.items()
    ]
    numbers = [OptionLine(o.name, f"{o.default:g}", o.unit, o.summary, o.paper) for o in NUMERIC_OPTIONS.values()]
    return [*slots, _BACKFILL_ORDER, PRICES_LINE, *numbers]


SHORTHANDS = {"easy++": "easy,backfill_order=sjf,estimate=last2,correction=increments"}


def canonical(name: str) -> str:
    """The name behind an alias."""
    return ALIASES.get(name, name)


def split_name(name: str) -> tuple[str, str] | None:
    """Order and backfilling of a preset's name: ``sjf+easy``, ``sjf`` (strict) or ``easy`` (fcfs). None for others."""
    parts = [canonical(part) for part in name.split("+")]
    if len(parts) == 2 and parts[0] in ORDER_LINES and parts[1] in BACKFILLS:
        return parts[0], parts[1]
    if len(parts) == 1 and parts[0] in ORDER_LINES:
        return parts[0], "none"
    if len(parts) == 1 and parts[0] in BACKFILLS:
        return "fcfs", parts[0]
    return None


def composed_names() -> list[str]:
    """All names that `split_name` knows."""
    backfills = [name for name in (*BACKFILLS, *ALIASES) if name != "none"]
    return [*ORDER_LINES, *backfills, *(f"{order}+{backfill}" for order in ORDER_LINES for backfill in backfills)]


PRESETS = [
    *(line for _, line in ORDER_LINES.values()),
    *(line for name, (_, line) in BACKFILLS.items() if name != "none"),
    *(PolicyLine(alias, f"another name of {name}") for alias, name in ALIASES.items()),
    *(PolicyLine(name, f"another name of {spec}", TSAFRIR) for name, spec in SHORTHANDS.items()),
]
PARTS = [
    PolicyLine("ORDER+BACKFILL", "any order with any backfilling: sjf+easy, wfp3+conservative"),
    *(line._replace(name=f"...,allocation={name}") for name, (_, line) in ALLOCATIONS.items()),
    *(line._replace(name=f"...,power={name}") for name, (_, line) in POWERS.items()),
    *(line._replace(name=f"...,start={name}") for name, (_, line) in _STARTS.items()),
    *(line._replace(name=f"...,suspend={name}") for name, (_, line) in SUSPENSIONS.items()),
]

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def refuse_unknown(policy: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse options that a policy does not have.

    Raises:
        ConfigError: naming the option and the valid ones.
    """
    valid = list(known)
    for name in given:
        if name == "seed" and name not in valid:
            raise ConfigError(f"policy {policy} has no option 'seed': it takes the seed of the run", field="seed")
        if name not in valid:
            options = f"its options are {', '.join(valid)}" if valid else "it has none"
            raise ConfigError(f"policy {policy} has no option {name!r}{nearest(name, valid)} ({options})")


def read_value(policy: str, name: str, value: Any, kind: type) -> Any:
    """Make an option's value an int, a float, a bool or a str.

    Raises:
        ConfigError: naming the option and its value.
    """
    try:
        return _TRUTH[value.lower()] if kind is bool and isinstance(value, str) else kind(value)
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"policy {policy}: option {name}={value!r} must be {_KINDS[kind]}") from None


def make_with_options(policy: str, make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Call a class or function with options as keyword arguments, converted as its annotations say.

    Raises:
        ConfigError: if it has no such parameter or a value does not fit, or one without default is missing.
    """
    # The class is the declaration: names, defaults and types are those of its constructor, so that a user's policy
    # declares nothing twice.
    parameters = inspect.signature(make, eval_str=True).parameters
    refuse_unknown(policy, options, parameters)
    missing = [n for n, p in parameters.items() if p.default is p.empty and p.kind not in _OPEN and n not in options]
    if missing:
        raise ConfigError(f"policy {policy} needs the option {missing[0]}")
    values = {}
    for name, value in options.items():
        kind = parameters[name].annotation
        values[name] = read_value(policy, name, value, kind) if kind in (int, float, bool) else value
    return make(**values)


def options_of(make: Callable[..., Any]) -> list[OptionLine]:
    """The parameters of a class or function, as options."""
    return [
        OptionLine(name, "" if p.default is p.empty else str(p.default), "", _KINDS.get(p.annotation, ""))
        for name, p in inspect.signature(make, eval_str=True).parameters.items()
        if p.kind not in _OPEN
    ]


_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

# The catalogue's lines besides composed policies: other classes, and the options that any policy has.

CLASS_LINES = [
    PolicyLine("kamelot", "fcfs, conservative over hosts instead of their number, as OAR does it", "OAR 3"),
    PolicyLine("window", "jobs are collected for a period and placed together on a fat-tree", "Lan et al., 2023"),
]
CLASS_OPTIONS = {
    "kamelot": [
        OptionLine("security_time", "60", "s", "each walltime counts as so much longer", "SCHEDULER_JOB_SECURITY_TIME"),
        OptionLine("reaction", "0", "s", "from an event to the decision; what happens meanwhile shares the decision"),
    ],
    "window": [
        OptionLine("period", "60", "s", "from one window to the next", "Lan et al."),
        OptionLine("jobs", "5", "", "on more than one host, at most in a window; 0 for all", "Lan et al.'s program"),
        OptionLine(
            "strategy", "dcas", "", "which hosts a job may get: scas, dcas or free; with exact scas", "Lan et al."
        ),
        OptionLine("solver", "sa", "", "sequential, sa, nsa or exact", "Lan et al."),
        OptionLine("steps", "500", "", "moves of the search, also with solver=exact and strategy=free", "Lan et al."),
        OptionLine("limit", "1", "s", "with solver=exact, strategy=scas: for a window, about; the best found counts"),
        OptionLine("undo", "true", "", "with solver=sa and nsa: undo rejected moves; false as Lan et al.'s program"),
        OptionLine(
            "repair",
            "best",
            "",
            "with solver=nsa: FILE.ckpt chooses where jobs go back; best needs no network",
            "Lan et al.",
        ),
        OptionLine(
            "prices", "none", "", "with solver=sequential,strategy=free: FILE.ckpt says what free hosts are worth"
        ),
    ],
}


OUTLOOK_LINES = (
    OptionLine(
        "estimate",
        "walltime",
        "",
        "run time that a job is expected to have: walltime, last2, regression, given, quantiles",
    ),
    OptionLine(
        "correction",
        "walltime",
        "",
        "with estimate=...: what is expected of a job that outlives it: walltime, increments, doubling",
        TSAFRIR,
    ),
    OptionLine("shadow", "0.5", "", "with estimate=quantiles: chance that a running job ends by when it should"),
    OptionLine("fill", "0.8", "", "with estimate=quantiles: chance that a waiting job takes no more than expected"),
)
GUARD_LINE = OptionLine(
    "guard", "never", "s", "a job that has waited for so long gets a reservation that nothing delays; or auto, or 1.5x"
)
SUPPLY_LINES = (
    OptionLine("late", "reject", "", "jobs that cannot end before their deadline any more: reject or keep"),
    OptionLine("beyond", "suspend", "", "jobs that run beyond the supply of power: suspend, grid or battery to run on"),
    OptionLine("battery", "none", "host-h", "with beyond=battery: what it can hold; it is empty at first"),
    OptionLine("battery_charge", "inf", "hosts", "power that it takes at most, of what the supply has to spare"),
    OptionLine("battery_discharge", "inf", "hosts", "power that it gives at most, to jobs beyond the supply"),
    OptionLine("battery_efficiency", "1", "", "share of what it takes that it gives back"),
    OptionLine("failed", "run", "", "jobs whose hosts become unavailable: run on, kill, or resubmit to begin again"),
    OptionLine("checkpoint_every", "0", "s", "with failed=resubmit: how often jobs are saved, and begin there again"),
    OptionLine("checkpoint", "0", "s", "to save a job that is cut; what is left takes so much longer"),
    OptionLine("restart", "0", "s", "for what is left of a job to go on; it takes so much longer"),
    OptionLine("cap", "none", "W", "power that is never passed, or a file of it by time"),
)
