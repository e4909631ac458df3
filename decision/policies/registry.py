"""From a policy's name to a policy.

A specification is a name followed by options, all separated by commas: ``easy``, ``sjf+easy,allocation=contiguous``,
``fcfs,power=idle-timeout,idle_timeout=600``, ``pkg.mod:Class,depth=3``, ``./mine.py:Class``. The name is, in this
order: of a form that somebody registered a loader for (``*.ckpt``), a preset, ``kamelot``, ``module:Class``,
``./file.py:Class``, or the name of an entry point of an installed package.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from decision.model.errors import ConfigError

from .base import Policy
from .composed import OPTIONS, ComposedPolicy
from .kamelot import Kamelot
from .presets import preset_names, split_name
from .settings import make_with_options, nearest, refuse_unknown

ENTRY_POINTS = "decision.policies"

Loader = Callable[[str, Mapping[str, Any]], Policy]
_LOADERS: dict[str, Loader] = {}
_CLASSES: dict[str, type] = {"kamelot": Kamelot}


def register_loader(pattern: str, loader: Loader) -> None:
    """Let `loader` make the policies whose names match `pattern`, like ``*.ckpt``, from name and options."""
    _LOADERS[pattern] = loader


def find_policy(spec: str, options: Mapping[str, Any] | None = None) -> Policy:
    """The policy that a user names.

    Args:
        spec: name and options, as above.
        options: more options, as texts or values.

    Raises:
        ConfigError: if there is no such policy or it refuses the options.
    """
    name, settings = _split(spec, options or {})
    for pattern, loader in _LOADERS.items():
        if fnmatchcase(name, pattern):
            return loader(name, settings)
    slots = split_name(name)
    if slots is not None:
        refuse_unknown(name, settings, OPTIONS)
        return ComposedPolicy(**({"order": slots[0], "backfill": slots[1]} | settings))
    if name in _CLASSES:
        return _instance(name, _CLASSES[name], settings)
    if ":" in name:
        return _instance(name, _find_class(name), settings)
    return _from_entry_point(name, settings)


def _split(spec: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    name, *pairs = spec.split(",")
    settings = dict(options)
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"policy {spec!r}: {pair!r} is no option; write it as name=value")
        if key in settings:
            raise ConfigError(f"policy {spec!r}: option {key} is given twice")
        settings[key] = value
    return name, settings


def _find_class(name: str) -> Any:
    place, _, attribute = name.rpartition(":")
    module = _load_file(name, Path(place)) if place.endswith(".py") else _load_module(name, place)
    made = getattr(module, attribute, None)
    if made is None:
        known = [n for n, value in vars(module).items() if hasattr(value, "decide")]
        raise ConfigError(f"policy {name}: {place} has no {attribute!r}{nearest(attribute, known)}{_listed(known)}")
    return made


def _listed(known: list[str]) -> str:
    return f" (it has {', '.join(known)})" if known else " (nor any class with a method decide)"


def _load_module(name: str, module: str) -> ModuleType:
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"policy {name}: {module!r} is neither a module nor a file that ends in .py")
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise ConfigError(f"policy {name}: importing {module} failed: {_in_words(error)}") from error


def _load_file(name: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"policy {name}: there is no file {path}")
    module_name = f"_policy_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"policy {name}: {path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickles look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"policy {name}: running {path} failed: {_in_words(error)}") from error
    return module


def _in_words(error: Exception) -> str:
    where = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}{where}"


def _from_entry_point(name: str, settings: Mapping[str, Any]) -> Policy:
    installed = entry_points(group=ENTRY_POINTS)
    if name not in installed.names:
        known = [*preset_names(), *_CLASSES, *sorted(installed.names)]
        raise ConfigError(
            f"there is no policy {name!r}{nearest(name, known)} (decision policies lists them; yours is "
            f"module:Class or ./file.py:Class)"
        )
    return _instance(name, installed[name].load(), settings)


def _instance(name: str, make: Any, settings: Mapping[str, Any]) -> Policy:
    """Make the policy and see that it has what a policy must have."""
    if not callable(make):
        raise ConfigError(f"policy {name}: that is no class, but {make!r}")
    try:
        policy = make_with_options(name, make, settings)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"policy {name}: making it failed: {_in_words(error)}") from error
    for method in ("reset", "decide"):
        if not callable(getattr(policy, method, None)):
            raise ConfigError(f"policy {name} has no method {method}; see decision.policies.Policy")
    return policy
