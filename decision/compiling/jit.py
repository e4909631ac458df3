"""Numba kernels of this package: one decorator, one cache on disk.

Design
------
A *kernel* is compiled as part of the *roots* that reach it (`whole_program` says how). A root is what is called from
outside: an `Entry`, by its address, or a kernel that Python calls, tests included. Only roots have machine code, and
only they are kept on disk, in a file for each combination of arguments and kind of processor.

The roots are few: `engine.kernels.server.engine`, and `network.flows` beside it; the loops that ask policies
(`simulation.simulate_episode`, `_play_part` and `play_episode` of `rl.envs.batch`,
`rl.schedulers.policy.next_choice`); the entries of policies (`DECIDE`), of what few of them do (`SLOT`, searches for
windows), of schedulers (BEGIN to FOLLOW), and of Batsim's messages (`batsim.follower`). They reach each other by
address alone.

A root contains the kernels that it reaches, in whatever module. So its file lies under ``MODULE/STAMP``, where the
stamp is a hash of the module and of all modules of this package that it imports, directly or not: a warm second process
compiles nothing, a change recompiles only what depends on it, and several checkouts share what they have in common. Of
processes that start cold at once, one compiles a root, and the others wait for it. Folders that no process has used for
a month are removed.

Numba's settings for other code stay as they are (rejected: setting ``numba.config.CACHE_DIR``, which moves the user's
cache, too). `NUMBA_CACHE_DIR` moves our cache, too. Where the folder cannot be written, each process compiles, and the
user is told.

A wheel may carry roots in ``decision/compiled`` (``scripts/wheel --with-kernels``), for processors of `BASELINE`. They
are looked up first, under the same stamps: another numba, Python or source finds nothing there, and compiles.
"""

import atexit
import contextlib
import fcntl
import functools
import hashlib
import importlib
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import llvmlite.binding as llvm

from decision.model.errors import heeding_nothing, log, warn_once

from .machine import Machine, function_at, load_machine, numba_folder
from .sources import IMPORTED_FROM, stamp

if TYPE_CHECKING:
    from .whole_program import Dispatcher

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parents[1]
_SHIPPED = _PACKAGE / "compiled"  # the roots that a wheel carries, as in the cache
BASELINE = "x86-64-v3", "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"  # LLVM's words for what they run on
_UNUSED = 30 * 86400.0  # seconds after which a folder of machine code is removed


def _is_set(name: str) -> bool:
    """A setting of numba's that is on or off, as the environment has it."""
    return os.environ.get(name, "0").strip() not in ("", "0")


_IS_OFF, _BOUNDS_ARE_CHECKED = _is_set("NUMBA_DISABLE_JIT"), _is_set("NUMBA_BOUNDSCHECK")


@functools.cache
def cache_directory() -> Path:
    """The folder of the kernels' machine code."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(base) if base else home / "decision"


def is_warm(compiled: Callable[..., Any]) -> bool:
    """Whether a kernel has been compiled from the present sources before, on this machine."""
    pattern = f"{compiled.__name__}-*-{{}}-*.root"
    return any(any(place.glob(pattern.format(kind))) for place, kind in _places(compiled.__module__))


_helpers: list[subprocess.Popen[bytes]] = []


def compile_ahead(*roots: Any) -> None:
    """Let another process begin to compile what is not on disk of these, the last one first.

    This process goes on, and compiles what it needs first: it waits only for what the other one has begun. So roots
    that a run needs are given in the order in which it needs them: entries, and kernels that Python calls with
    arguments of the types that they are annotated with.
    """
    cold = {f"{root.__module__}:{root.__name__}": root for root in roots if not is_warm(root)}
    _expected.update(cold)
    # The first is compiled here at once; what a script defines itself cannot be imported by another process.
    names = [name for name in [*cold][1:] if not name.startswith("__main__:")]
    if not names or _IS_OFF or len(os.sched_getaffinity(0)) < 2 or why_not_kept():
        return
    path = os.pathsep.join([IMPORTED_FROM, *filter(None, [os.environ.get("PYTHONPATH")])])
    script = f"from {__name__} import compile_named; compile_named()"
    command = [sys.executable, "-c", script, *reversed(names)]
    with contextlib.suppress(OSError):
        quiet: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        child = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, process_group=0, **quiet)
        _helpers.append(child)


@atexit.register
def end_helpers() -> None:
    """End the processes of `compile_ahead`: nobody needs what they still compile."""
    for child in _helpers:
        child.kill()


def compile_named() -> None:
    """What the process of `compile_ahead` does: compile what its arguments name, ``module:name``."""
    for name in sys.argv[1:]:
        module, _, attribute = name.partition(":")
        root = getattr(importlib.import_module(module), attribute)
        if isinstance(root, Kernel):
            root.prepare()
        else:
            _ = root.address


on_compiling: list[Callable[[int, int], None]] = []
"""What to call when this process begins to compile a root: how many of those that are expected are compiled, and how
many they are, 0 where nobody has announced any. How long one takes is not known before: seconds, or minutes."""

_expected: dict[str, Any] = {}  # what was cold when `compile_ahead` heard of it
_begun: list[float] = []  # when what is compiled now was begun, of `time.monotonic`


def compiling_for() -> float:
    """Seconds since this process began what it compiles now; 0 if it compiles nothing."""
    return max((time.monotonic() - began for began in [*_begun]), default=0.0)


def _tell(function: Callable[..., Any]) -> None:
    """Say how far it is, before a root is compiled; those that nobody announced, beside others, are not worth a line.

    Also that nothing can be kept.
    """
    warn_if_not_kept()
    if _expected and f"{function.__module__}:{function.__name__}" not in _expected:
        return
    done = sum(map(is_warm, _expected.values()))
    for tell in on_compiling:
        tell(done, max(len(_expected), done + 1) if _expected else 0)


def warn_if_not_kept() -> None:
    """Warn, once, that machine code cannot be kept; workers leave that to the process that started them."""
    processes = sys.modules.get("multiprocessing.process")
    if (processes is None or processes.parent_process() is None) and (reason := why_not_kept()):
        variable = "NUMBA_CACHE_DIR" if os.environ.get("NUMBA_CACHE_DIR") else "XDG_CACHE_HOME"
        warn_once(
            f"machine code cannot be kept in {cache_directory()} ({reason}), so that each command compiles again; "
            f"set {variable} to a folder that can be written"
        )


def is_shipped() -> bool:
    """Whether machine code for this processor came with the package."""
    return _SHIPPED.is_dir() and _runs_baseline()


@contextlib.contextmanager
def _compiling(name: str) -> Iterator[None]:
    began = time.monotonic()
    _begun.append(began)
    try:
        log.info("compiling %s", name)
        with heeding_nothing():
            yield
        log.info("compiled %s in %.1f s", name, time.monotonic() - began)
    finally:
        _begun.remove(began)


def kernel(function: F) -> F:
    """Compile `function` in nopython mode with what calls it; numpy's rules for division, so that it never raises."""
    return _compiled(function)


def inlined(function: F) -> F:
    """As `kernel`, and made part of each caller: for the parts of one loop, of which each call would cost a tenth."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    if _IS_OFF:
        return function
    return cast(F, Kernel(function, Roots(function), {"error_model": "numpy", "nogil": True, **options}))


_VECTORS = "_has_vectors"


def without_vectors(function: F) -> F:
    """Decorator of a function that becomes a root: LLVM goes through it once, and looks for no loops to vectorise.

    For code of branches and short loops, such as a simulation's: it is no slower so, and LLVM takes half the time.
    """
    setattr(function, _VECTORS, False)
    return function


class Kernel:
    """A function that is compiled as part of the roots that reach it, and as a root itself where Python calls it.

    What numba knows of it is made when it is first needed: a process makes hundreds of kernels, and calls a few.

    Args:
        function: to be compiled.
        roots: where its machine code is kept.
        options: numba's.
    """

    def __init__(self, function: Callable[..., Any], roots: "Roots", options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._roots, self._options = function, roots, options
        self._environments: list[Any] = []  # of what calls Python

    @functools.cached_property
    def dispatcher(self) -> "Dispatcher":
        """What numba knows of it."""
        from .whole_program import Dispatcher

        vectors = getattr(self.py_func, _VECTORS, True)
        return Dispatcher(self.py_func, self._roots, {"boundscheck": _BOUNDS_ARE_CHECKED, **self._options}, vectors)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher.numba_type

    def __call__(self, *args: Any) -> Any:
        return self.dispatcher(*args)

    @property
    def signatures(self) -> list[tuple[Any, ...]]:
        """The types of arguments of each root that Python calls in this process."""
        return [*self.dispatcher.roots]

    def prepare(self) -> None:
        """Compile it for Python, or find what is kept, for the types that its annotations say.

        They are int, float, bool, or what has numba's type at hand, as bundles and their arrays have; or a NamedTuple
        of these.
        """
        self.dispatcher.prepare()

    def address(self, arguments: tuple[Any, ...], result: Any) -> int:
        """Where kernels call the function; types are int, float, classes of bundles and hints of arrays."""
        with _LOADING:
            # what names a type in the same way in each process
            kinds = tuple(
                getattr(kind, "_described", None) or getattr(kind, "__metadata__", (kind,))[0]
                for kind in (*arguments, result)
            )
            machine = self._roots.find(kinds, lambda: self.dispatcher.compiled(arguments, result))
            load_machine(machine)
            if machine.constants:  # it calls Python, as solvers do
                from .whole_program import environments_of

                self._environments += environments_of(machine)
        return function_at(machine.symbol)


_LOADING = threading.RLock()


class Roots:
    """The roots of one kernel, on disk: a file for each combination of arguments' types and kind of processor."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def find(self, args: Sequence[Any], make: Callable[[], Machine]) -> Machine:
        """What is kept for arguments of these types, or else what `make` makes; one process makes it, others wait."""
        function = self._function
        what = repr(args).encode() + function.__code__.co_code
        # What a kernel takes from around it is compiled in as constants.
        if function.__closure__:
            from numba.core.serialize import dumps

            what += dumps([cell.cell_contents for cell in function.__closure__])
        name = f"{function.__name__}-{function.__code__.co_firstlineno}-{{}}-{_short(what)}.root"
        files = [place / name.format(processor) for place, processor in _places(function.__module__)]
        for file in files:
            if (kept := _read(file)) is not None:
                return kept
        file = files[-1]
        # Another process may have made it while this one waited.
        with _alone(file):
            kept = _read(file)
            if kept is None:
                _tell(function)
                with _compiling(function.__qualname__):
                    kept = make()
                _write(file, kept)
            return kept


def _places(module: str) -> list[tuple[Path, str]]:
    """Where roots of a module may be, and for what processor: with the package, and in the user's own cache."""
    local = _folder(module), _processor()
    shipped = _SHIPPED / module / _stamp(module)
    return [(shipped, _baseline()), local] if is_shipped() else [local]


@functools.cache
def _baseline() -> str:
    """As `_processor`, of the kind that wheels carry roots for."""
    return _short(repr((llvm.get_process_triple(), *BASELINE)).encode())


@functools.cache
def _runs_baseline() -> bool:
    has = llvm.get_host_cpu_features()
    return all(has.get(feature.lstrip("+"), False) for feature in BASELINE[1].split(","))


@functools.cache
def _processor() -> str:
    """A short name for the kind of processor that code is made for: this one, or what numba's settings say."""
    name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES") or llvm.get_host_cpu_features().flatten()
    changed = [os.environ[variable] for variable in ("NUMBA_ENABLE_AVX", "NUMBA_OPT") if variable in os.environ]
    return _short(repr((llvm.get_process_triple(), name, features, *changed)).encode())


def _short(what: bytes) -> str:
    return hashlib.sha256(what).hexdigest()[:12]


def _read(file: Path) -> Machine | None:
    """None where there is none, or none that is whole."""
    with contextlib.suppress(Exception):  # a torn pickle raises anything
        machine: Machine = pickle.loads(file.read_bytes())
        return machine
    return None


def _write(file: Path, machine: Machine) -> None:
    # Beside and renamed: who reads finds all of it or none.
    beside = file.with_suffix(f".{os.getpid()}")
    try:
        beside.write_bytes(pickle.dumps(machine))
        beside.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        if not why_not_kept():  # which has been said
            warn_once(f"machine code cannot be kept in {cache_directory()} ({error.strerror}); free space there")


@contextlib.contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Wait until no other process makes this file."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            if not file.parent.exists():
                _remove_unused()
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = file.with_suffix(".lock")
            fcntl.flock(held.enter_context(lock.open("w")), fcntl.LOCK_EX)
            held.callback(lock.unlink, missing_ok=True)
        yield


@functools.cache
def _stamp(module: str) -> str:
    return stamp(module, f"{_numba_version()} {sys.version_info[:2]} {_BOUNDS_ARE_CHECKED}", cache_directory())


@functools.cache
def _numba_version() -> str:
    """Names the numba that is installed, which is not imported for it."""
    return _short(numba_folder().joinpath("_version.py").read_bytes())


@functools.cache
def _folder(module: str) -> Path:
    folder = cache_directory() / module / _stamp(module)
    with contextlib.suppress(OSError):
        os.utime(folder)  # in use
    return folder


@functools.cache
def why_not_kept() -> str:
    """Why nothing can be written to the cache; "" if it can."""
    try:
        cache_directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache_directory()):
            return ""
    except FileExistsError:
        return "a file of that name is in its place"
    except OSError as error:
        return error.strerror or type(error).__name__


def _remove_unused() -> None:
    """Remove machine code of sources that have not been used for long, and of earlier layouts of this cache."""
    oldest = time.time() - _UNUSED
    for folder in [*cache_directory().glob("*/*/"), *cache_directory().glob("*/")]:
        with contextlib.suppress(OSError):
            if re.fullmatch("[0-9a-f]{16}", folder.name) and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder)
