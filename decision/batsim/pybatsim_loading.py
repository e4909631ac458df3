"""Finds and makes a scheduler written for pybatsim, by module or file, and says what is wrong where there is none."""

import contextlib
import difflib
import importlib
import importlib.util
import inspect
import json
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from decision.model.errors import ConfigError

PYBATSIM_PREFIX = "pybatsim:"

_INSTALL = "pip install --no-deps pybatsim==3.2.1, then pip install docopt 'procset<2' 'sortedcontainers<3'"


def load_scheduler(spec: str, options: Mapping[str, Any]) -> Any:
    """Make the pybatsim scheduler that `spec` names; see `PybatsimAgent` for arguments and errors."""
    where, colon, name = spec.removeprefix(PYBATSIM_PREFIX).rpartition(":")
    if not (colon and where and name):
        raise ConfigError(f"policy {spec!r}: write {PYBATSIM_PREFIX}module:Class or {PYBATSIM_PREFIX}./file.py:Class")
    _require_pybatsim(spec)
    module = _load_file(spec, Path(where)) if where.endswith(".py") else _load_module(spec, where)
    return _make(spec, _find(spec, module, name), dict(options))


def _require_pybatsim(spec: str) -> None:
    try:
        importlib.import_module("batsim.batsim")
    except ImportError as error:
        raise ConfigError(f"policy {spec!r} needs pybatsim 3.2.1 ({error}): {_INSTALL}") from error


def _load_module(spec: str, name: str) -> ModuleType:
    with _blaming_user(spec, f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise
            advice = _nearest(name, _siblings(name)) or f"install it or name its file, {PYBATSIM_PREFIX}./file.py:Class"
            raise ConfigError(f"policy {spec!r}: module {error.name!r} not found; {advice}") from error


def _load_file(spec: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"policy {spec!r}: file {str(path)!r} not found")
    description = importlib.util.spec_from_file_location(f"pybatsim_scheduler_{path.stem}", path)
    assert description is not None and description.loader is not None  # it ends in .py
    module = importlib.util.module_from_spec(description)
    sys.modules[description.name] = module
    with _blaming_user(spec, f"importing {path}"), _neighbours(path):
        description.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _neighbours(path: Path) -> Iterator[None]:
    """Let a file import the modules of its folder, as pybatsim's launcher does."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _find(spec: str, module: ModuleType, name: str) -> Any:
    found = getattr(module, name, None)
    if found is None:
        classes = [n for n, _ in inspect.getmembers(module, callable) if not n.startswith("_")]
        advice = _nearest(name, classes) or "look for the class in that module"
        raise ConfigError(f"policy {spec!r}: {module.__name__} has no {name!r}; {advice}")
    return found


def _make(spec: str, recipe: Any, options: dict[str, Any]) -> Any:
    """Make a scheduler of a class, or of a function of the second interface, as pybatsim's launcher does."""
    base = importlib.import_module("batsim.batsim").BatsimScheduler
    second = importlib.import_module("batsim.sched")
    if isinstance(recipe, FunctionType):
        recipe = second.as_scheduler()(recipe)
    if not (isinstance(recipe, type) and issubclass(recipe, (base, second.Scheduler))):
        raise ConfigError(f"policy {spec!r} does not derive from pybatsim's batsim.batsim.BatsimScheduler")
    with _blaming_user(spec, f"making it with options {json.dumps(options, default=str)}"):
        scheduler = recipe(options)
        return scheduler if isinstance(scheduler, base) else scheduler()


@contextlib.contextmanager
def _blaming_user(spec: str, doing: str) -> Iterator[None]:
    try:
        yield
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"policy {spec!r}: {doing} failed: {error_origin(error)}") from error


def error_origin(error: BaseException) -> str:
    """The error and its place in the source, in one line."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    return f"{what} (in {frame.name}, {Path(frame.filename).name}:{frame.lineno})"


def _siblings(name: str) -> list[str]:
    parent, _, _ = name.rpartition(".")
    path = getattr(sys.modules.get(parent), "__path__", None)
    return [f"{parent}.{module.name}" for module in pkgutil.iter_modules(path)] if path else []


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def json_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of which texts that are JSON are its values."""
    return {name: _read_option(value) for name, value in options.items()}


def _read_option(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def open_batsim(scheduler: Any, mailbox: Any) -> Any:
    """Make pybatsim's Batsim around a mailbox; its constructor answers the message that waits there."""
    module: Any = importlib.import_module("batsim.batsim")
    network = module.NetworkHandler
    module.NetworkHandler = lambda endpoint, timeout: mailbox
    try:
        return module.Batsim(scheduler, network_endpoint="", timeout=None)
    finally:
        module.NetworkHandler = network
