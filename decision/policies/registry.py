"""From a policy's name to a policy.

A specification is a name followed by options, all separated by commas: ``easy``, ``sjf+easy,allocation=contiguous``,
``fcfs,power=idle-timeout,idle_timeout=600``, ``pkg.mod:Class,depth=3``, ``./mine.py:Class``. The name is, in this
order: of a form that somebody registered a loader for, a preset, ``kamelot``, a name or form of what the packages above
this one ship (``dbf``, ``*.ckpt``, ``pybatsim:*``), ``module:Class``, ``./file.py:Class``, or the name of an entry
point of an installed package.

Design
------
What is learned, and what speaks Batsim's messages, lies in packages above this one, which it must not import. It knows
their `PolicySource` by name only, as an entry point is known, and imports it when a name is none of our own: so a
shipped policy is always found, and a heuristic never loads what learning needs. Rejected: entry points for our
own packages, which a checkout that is not installed does not have; registration when the package above is imported,
because then ``dbf`` exists only for those who have imported it.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from decision.model.errors import ConfigError
from decision.model.hosts import nearest
from decision.policies.wrappers.guard import GuardedPolicy
from decision.policies.wrappers.prediction import EstimatedPolicy
from decision.policies.wrappers.supply import SuppliedPolicy

from .composed import BACKFILL_ORDER, OPTIONS, ComposedPolicy
from .guard import OPTION, read_guard
from .kamelot import Kamelot
from .loading import Loader, MessageAgent, PolicySource, find_class, in_words, shipped_sources
from .options import (
    BACKFILLS,
    CLASS_LINES,
    CLASS_OPTIONS,
    GUARD_LINE,
    ORDER_LINES,
    OUTLOOK_LINES,
    PARTS,
    PRESETS,
    SHORTHANDS,
    SUPPLY_LINES,
    OptionLine,
    PolicyLine,
    canonical,
    composed_names,
    composed_options,
    make_with_options,
    options_of,
    refuse_unknown,
    split_name,
)
from .policy import Policy
from .traits import (
    ESTIMATE,
    OUTLOOK_OPTIONS,
    SUPPLY_OPTIONS,
    PolicySpec,
    read_outlook,
    read_spec,
    read_supply,
    traits_of,
)
from .window import Window

_ENTRY_POINTS = "decision.policies"
_REGISTERED: list[PolicySource] = []
_CLASSES: dict[str, type] = {"kamelot": Kamelot, "window": Window}


def register_loader(pattern: str, loader: Loader) -> None:
    """Let `loader` make the policies whose names match `pattern`, like ``*.onnx``, from name and options."""
    _REGISTERED.insert(0, PolicySource((pattern,), loader, tuple))


def find_policy(spec: str | PolicySpec, options: Mapping[str, Any] | None = None) -> Policy:
    """The policy that a user names.

    Args:
        spec: name and options, as above; or parsed already.
        options: more options, as texts or values, of a `spec` that is a text.

    Raises:
        ConfigError: if there is no such policy or it refuses the options.

    Examples:
        >>> import decision as d
        >>> d.simulate("toy", "toy", d.find_policy("sjf+easy", {"allocation": "contiguous"})).summary().jobs
        5
    """
    name, settings = _parsed(spec, options)
    source, slots = _source_of(name), split_name(name)
    if source is not None and source.answers_messages:
        _refuse_for_messages(name, settings)
        if source.guarded is None or OPTION not in settings:
            raise ConfigError(f"policy {name} answers Batsim's messages only: it works in whole runs, not here")
    # Wrappers from the outside in, each of which takes its options out: the supply, which rejects and suspends whatever
    # the rest decides; the guard; predicted run times; the policy itself.
    supply = read_supply(name, settings)
    if supply is not None:
        return SuppliedPolicy(find_policy(PolicySpec(name, settings)), supply, name)
    is_asked, outlook = ESTIMATE in settings, read_outlook(name, settings)
    # A composed policy guards its own starts, in one pass over its queue. Not so where it decides by predictions, since
    # a guard's reservations go by walltimes, nor where EASY looks at candidates in an order of their own: then the
    # guard stands around it.
    guards_itself = source is None and slots is not None and outlook is None and BACKFILL_ORDER not in settings
    guard = read_guard(name, settings.pop(OPTION)) if OPTION in settings and not guards_itself else None
    plain = _find_plain(name, settings, source, slots)
    if guard is not None and isinstance(plain, ComposedPolicy):
        plain.refuse_guard()
    expects, policy = outlook if is_asked else traits_of(plain).expects, plain
    if expects is not None:
        if isinstance(plain, ComposedPolicy):
            plain.keep_promises()
        policy = EstimatedPolicy(plain, expects, name)
    return policy if guard is None else GuardedPolicy(policy, guard, name)


def _parsed(spec: str | PolicySpec, options: Mapping[str, Any] | None) -> PolicySpec:
    """A record that the caller may take options out of."""
    if isinstance(spec, PolicySpec):
        return spec._replace(options=dict(spec.options))
    return read_spec(spec, options)


def _find_plain(
    name: str, settings: dict[str, Any], source: PolicySource | None, slots: tuple[str, str] | None
) -> Policy:
    """The policy without what any policy can have."""
    if source is not None:
        return (source.guarded or source.load)(name, settings)
    if slots is not None:
        refuse_unknown(name, settings, (*OPTIONS, *OUTLOOK_OPTIONS, *SUPPLY_OPTIONS))
        # Refuse an option that replaces what the name of a composed policy says: ``conservative,backfill=easy``.
        for part in map(canonical, name.split("+")):
            for slot, values in (("order", ORDER_LINES), ("backfill", BACKFILLS)):
                if part in values and canonical(str(settings.get(slot, part))) != part:
                    both = f"the name says {slot}={part}, and the option {slot}={settings[slot]}"
                    raise ConfigError(f"policy {name}: {both}; keep one of them")
        return ComposedPolicy(**({"order": slots[0], "backfill": slots[1]} | settings))
    return make_policy(name, _class_of(name), settings)


def without_estimate(spec: str) -> str:
    """The specification of the same policy by walltimes."""
    name, settings = read_spec(spec)
    kept = [f"{key}={value}" for key, value in settings.items() if key not in OUTLOOK_OPTIONS]
    return ",".join((name, *kept))


def find_agent(spec: str | PolicySpec, options: Mapping[str, Any] | None = None) -> MessageAgent | None:
    """The scheduler that a user names, where it answers Batsim's messages itself; None for others, and under a guard.

    Raises:
        ConfigError: if it cannot be made.
    """
    name, settings = _parsed(spec, options)
    source = _source_of(name)
    if source is None or not source.answers_messages:
        return None
    _refuse_for_messages(name, settings)
    if OPTION in settings and source.guarded is None:
        raise ConfigError(f"policy {name} answers Batsim's messages itself, and cannot have the option {OPTION}")
    return None if OPTION in settings else source.load(name, settings)


def _refuse_for_messages(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse what a scheduler that answers messages cannot have around it."""
    for option in (*OUTLOOK_OPTIONS, *SUPPLY_OPTIONS):
        if option in settings:
            raise ConfigError(f"policy {name} answers Batsim's messages itself, and cannot have the option {option}")


def list_policies() -> list[PolicyLine]:
    """One line for each policy, and for each part that policies are composed of.

    Examples:
        >>> import decision as d
        >>> "easy" in [line.name for line in d.list_policies()]
        True
    """
    lines = [line for source in (*_REGISTERED, *shipped_sources()) for line in source.lines()]
    return [*PRESETS, *CLASS_LINES, *lines, *PARTS]


def list_options(name: str) -> list[OptionLine]:
    """The options of a policy, with the defaults that they have if a user names none.

    Raises:
        ConfigError: if there is no such policy.
    """
    if name in SHORTHANDS:
        name, chosen = read_spec(name)
        return [line._replace(default=chosen.get(line.name, line.default)) for line in list_options(name)]
    slots = split_name(name)
    source = _source_of(name)
    if source is not None:  # those of pybatsim's schedulers are their own
        if source.answers_messages:
            return [GUARD_LINE] if source.guarded else []
        return [*source.options(name), *OUTLOOK_LINES, *SUPPLY_LINES, GUARD_LINE]
    if slots is not None:
        return [*composed_options(*slots), *OUTLOOK_LINES, *SUPPLY_LINES, GUARD_LINE]
    return [*(CLASS_OPTIONS.get(name) or options_of(_class_of(name))), *OUTLOOK_LINES, *SUPPLY_LINES, GUARD_LINE]


def _source_of(name: str) -> PolicySource | None:
    """The source of a name that is neither a preset's nor a class's."""
    # What the user registered comes first, so that it can replace what is shipped.
    for source in _REGISTERED:
        if _has(source, name):
            return source
    if split_name(name) is not None or name in _CLASSES:
        return None
    return next((source for source in shipped_sources() if _has(source, name)), None)


def _has(source: PolicySource, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in source.names)


def _class_of(name: str) -> Any:
    """The class of a policy that is none of composed slots."""
    if name in _CLASSES:
        return _CLASSES[name]
    if ":" in name:
        return find_class(name)
    from importlib.metadata import entry_points  # 10 ms of a start

    installed = entry_points(group=_ENTRY_POINTS)
    if name not in installed.names:
        shipped = [each for source in (*_REGISTERED, *shipped_sources()) for each in source.names if "*" not in each]
        known = [*composed_names(), *SHORTHANDS, *_CLASSES, *shipped, *sorted(installed.names)]
        raise ConfigError(
            f"there is no policy {name!r}{nearest(name, known)} (decision policies lists them; yours is "
            f"module:Class or ./file.py:Class)"
        )
    return installed[name].load()


def shown_name(spec: str) -> str:
    """What a policy is called where it is compared: as its class says with ``name``, with its options; else `spec`."""
    name, comma, options = spec.partition(",")
    if ":" not in name or _source_of(name) is not None:
        return spec
    return f"{own_name(_class_of(name)) or name}{comma}{options}"


def own_name(policy: Any) -> str:
    """The attribute ``name`` of a policy, or of a class of policies; empty where it has none that is a text."""
    name = getattr(policy, "name", None)
    return name.strip() if isinstance(name, str) else ""


def told_apart(names: Iterable[str]) -> list[str]:
    """Names with a number behind those that were there before: ``mine``, ``mine 2``."""
    found: list[str] = []
    for name in names:
        number = 2
        shown = name
        while shown in found:
            shown, number = f"{name} {number}", number + 1
        found.append(shown)
    return found


def named_policies(specs: Iterable[str]) -> dict[str, str]:
    """Specifications by the name of each where they are compared. Raises ConfigError if a class is not there."""
    every = list(dict.fromkeys(specs))
    return dict(zip(told_apart(map(shown_name, every)), every, strict=True))


def make_policy(name: str, make: Any, settings: Mapping[str, Any]) -> Policy:
    """Make the policy, and check that it has what a policy must have."""
    if not callable(make):
        raise ConfigError(f"policy {name}: that is not a class but {make!r}")
    try:
        policy = make_with_options(name, make, settings)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"policy {name}: making it failed: {in_words(error)}") from error
    for method in ("reset", "decide"):
        if not callable(getattr(policy, method, None)):
            raise ConfigError(f"policy {name} has no method {method}; see decision.policies.Policy")
    return policy
