"""What is learned, with which network and how: frozen structs, presets in TOML, and changes last."""

import re
import tomllib
import typing
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import msgspec

from decision.learned.base import convert_settings
from decision.learned.registry import find_scheduler, records
from decision.model.errors import ConfigError, InputError
from decision.model.names import nearest

from .algorithm_settings import ALGORITHM, BcConfig, CmaEsConfig, CrrConfig, NetworkConfig, PpoConfig, SacConfig

LearnConfig = (
    PpoConfig | CmaEsConfig | BcConfig | CrrConfig | SacConfig
)  # the field `algorithm` says which; one more for each algorithm to come


class TrainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of a training run but its inputs.

    Raises:
        ConfigError: if there is no such scheduler, or the sections do not fit it.
    """

    scheduler: str = "dbf"  # name of a `decision.learned` record
    env: Any = msgspec.field(default_factory=dict)  # its Settings, or a dict of some of them
    network: NetworkConfig | None = NetworkConfig()  # None where it has no network
    learn: LearnConfig = PpoConfig()
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0

    def __post_init__(self) -> None:
        record = find_scheduler(self.scheduler)
        if isinstance(self.env, dict):
            msgspec.structs.force_setattr(self, "env", convert_settings(record, self.env))
        elif not isinstance(self.env, record.Settings):
            raise ConfigError(f"env: must be a table of settings, found {type(self.env).__name__}")
        if not record.networks:
            msgspec.structs.force_setattr(self, "network", None)
        if self.algorithm not in record.algorithms:
            fitting = " or ".join(record.algorithms)
            raise ConfigError(f"learn.algorithm is {self.algorithm}: {self.scheduler} is learned with {fitting}")

    @property
    def algorithm(self) -> str:
        """How it is learned."""
        return str(self.learn.__struct_config__.tag)

    @property
    def settings(self) -> dict[str, Any]:
        """Of the environment, by name."""
        return dict(msgspec.to_builtins(self.env))

    @property
    def sections(self) -> tuple[str, ...]:
        """Those that say how it is learned; the last one has the steps."""
        return ("learn",) if self.network is None else ("network", "learn")

    @property
    def steps(self) -> int:
        """In all."""
        return self.learn.steps


def preset_names() -> list[str]:
    """Names of the presets of all schedulers."""
    return sorted(_preset_files())


def load_config(preset: str, changes: Iterable[str] = (), **more: Any) -> TrainConfig:
    """A preset with changes.

    Args:
        preset: a preset's name, or a TOML file ``mine.toml``.
        changes: ``section.key=value``, like ``learn.lr=1e-4``, in order; ``learn.method=evolution``, ``ppo``, ``bc``,
            ``crr`` or ``sac`` first, with which the section learn begins with that one's defaults.
        more: top-level values, last: ``seed=3``.

    Raises:
        ConfigError: if there is no such preset or key, or a value does not fit.
        InputError: if the file cannot be used.
    """
    tree = _read_preset(preset)
    record = find_scheduler(str(tree.get("scheduler", "dbf")))
    learn = tree.setdefault("learn", {})
    if isinstance(learn, dict):
        learn.setdefault(ALGORITHM, record.algorithms[0])
    for change in sorted(changes, key=lambda change: not change.startswith(_METHOD)):  # it replaces the section
        _apply(tree, change)
    return _convert(tree | more, preset)


def alternatives(change: str) -> list[str]:
    """The changes that ``key=a,b`` stands for: ``key=a`` and ``key=b``; a comma within brackets parts nothing."""
    key, equals, values = change.partition("=")
    return [f"{key}{equals}{value.strip()}" for value in _OUTSIDE.split(values)]


def all_settings(config: TrainConfig) -> dict[str, str]:
    """Each of a config's settings, ``learn.lr`` and the like, in words."""
    flat = _flat(msgspec.to_builtins(config))
    return {name: str(value) for name, value in flat.items() if name not in ("scheduler", "seed")}


def changed_settings(one: TrainConfig, other: TrainConfig) -> list[str]:
    """Keys whose values differ, as ``learn.lr: 0.0003 and 0.0001``."""
    first, second = _flat(msgspec.to_builtins(one)), _flat(msgspec.to_builtins(other))
    return [f"{key}: {value} and {second.get(key)}" for key, value in first.items() if value != second.get(key)]


def config_of_format_1(tree: dict[str, Any]) -> dict[str, Any]:
    """A config as checkpoints of format 1 have it, in the present form; what is damaged stays as it is.

    Then there was one section ``env`` for all schedulers, and a section for each algorithm.
    """
    record = find_scheduler(str(tree.get("scheduler")))
    sections = {name: value for name in ("env", "learn", "evolve") if isinstance(value := tree.get(name), dict)}
    evolves = record.algorithms[0] == "cma-es"
    learn, env = dict(sections.get("evolve" if evolves else "learn", {})), dict(sections.get("env", {}))
    known = record.Settings.__struct_fields__
    env |= {name: learn.pop(name) for name in known if name in learn and name not in env}
    upgraded = {name: value for name, value in tree.items() if name not in ("env", "learn", "evolve")}
    return upgraded | {
        "env": {name: value for name, value in env.items() if name in known},
        "learn": {ALGORITHM: record.algorithms[0], **learn},
    }


def config_of_format_2(tree: dict[str, Any]) -> dict[str, Any]:
    """A config as checkpoints of format 2 have it, in the present form: with what was not yet a setting."""
    record, env = find_scheduler(str(tree.get("scheduler"))), tree.get("env")
    return tree | {"env": {**record.former_settings, **env}} if isinstance(env, dict) else tree


def _preset_files() -> dict[str, Any]:
    """The file of each preset by name: schedulers of this package name one that ships, others a file of their own."""
    folder = files("decision.learn") / "presets"
    presets = [preset for record in records().values() for preset in record.presets]
    paths = [folder / f"{preset}.toml" if isinstance(preset, str) else preset for preset in presets]
    return {path.name.removesuffix(".toml"): path for path in paths}


def _read_preset(name: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        return _parse(name, _read_text(Path(name)))
    known = _preset_files()
    if name not in known:
        raise ConfigError(f"there is no preset {name!r}{nearest(name, known)} (there are {', '.join(sorted(known))})")
    return _parse(name, known[name].read_text())


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); check the path") from None


def _parse(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: {error}; write it as TOML") from None


def _apply(tree: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if change.startswith(_METHOD):
        if text not in _METHODS:
            raise ConfigError(f"{change!r}: there is no such way of learning (there are {', '.join(_METHODS)})")
        if tree["learn"].get(ALGORITHM) != _METHODS[text]:
            tree["learn"] = {ALGORITHM: _METHODS[text]}
        return
    section, dot, name = key.partition(".")
    if not (equals and dot and section and name):
        raise ConfigError(f"{change!r}: write it as section.key=value, like learn.lr=1e-4", field="changes")
    kind = _SECTIONS.get(section) or _LEARN.get(str(tree["learn"].get(ALGORITHM)), PpoConfig)
    valid = [f"{section}.{field}" for field in (*kind.__struct_fields__, *([ALGORITHM] if section == "learn" else ()))]
    if section != "env" and key not in valid:
        raise ConfigError(f"{change!r}: there is no {key}{nearest(key, valid)}", field="changes")
    tree.setdefault(section, {})[name] = _value(text)


_LEARN: dict[str, Any] = {str(kind.__struct_config__.tag): kind for kind in typing.get_args(LearnConfig)}
_METHODS = {"evolution": "cma-es", **{name: name for name in ("ppo", "bc", "crr", "sac")}}
_OUTSIDE = re.compile(r",(?![^\[]*\])")  # a comma that is in no list
_METHOD = "learn.method="  # another algorithm, with its own defaults
_SECTIONS: dict[str, Any] = {"network": NetworkConfig, "env": TrainConfig}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text.replace('_', '')}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _convert(tree: Mapping[str, Any], where: str) -> TrainConfig:
    try:
        config = msgspec.convert(tree, TrainConfig)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        raise ConfigError(f"{where}: {place.rstrip('`') or 'the file'}: {message[0].lower()}{message[1:]}") from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}", field=error.field) from None
    if "network" in tree and config.network is None:
        raise ConfigError(f"{where}: {config.scheduler} has no section network: how it is learned is in learn")
    find_scheduler(config.scheduler).check(config.env, f"{where}: ")
    check_network(config, where)
    return config


def check_network(config: TrainConfig, where: str) -> None:
    """Refuse a network that does not fit the scheduler. Raises ConfigError."""
    network, fitting = config.network, find_scheduler(config.scheduler).networks
    if network is None:
        return
    if network.kind not in fitting:
        kinds = " or ".join(fitting)
        raise ConfigError(f"{where}: network.kind is {network.kind}: {config.scheduler} is learned with {kinds}")
    if network.kind == "jobs" and len(network.hidden) != 1:
        raise ConfigError(f"{where}: network.hidden is {list(network.hidden)}: the network jobs has one width")
    if network.kind == "gru" and len(network.hidden) != 2:
        found = f"network.hidden is {list(network.hidden)}"
        raise ConfigError(f"{where}: {found}: the network gru has two widths, of its GRUs and of the layer after them")
    if network.kind in ("cnn", "image") and len(network.hidden) != 2:
        found = f"network.hidden is {list(network.hidden)}"
        raise ConfigError(f"{where}: {found}: the network {network.kind} has two convolutions")


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat
