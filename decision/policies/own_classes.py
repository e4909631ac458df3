"""Classes of users' policies, from a module or a file."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from decision.model.errors import ConfigError
from decision.model.names import nearest

from .failures import in_words


def find_class(name: str) -> Any:
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
    except (Exception, SystemExit) as error:
        raise ConfigError(f"policy {name}: importing {module} failed: {in_words(error)}") from error


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
    except (Exception, SystemExit) as error:
        raise ConfigError(f"policy {name}: running {path} failed: {in_words(error)}") from error
    return module
