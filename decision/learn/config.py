"""What is learned, with which network and how: frozen structs, presets in TOML, and ``--set`` last."""

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from decision.model.errors import ConfigError, InputError
from decision.policies.settings import nearest

Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Weight = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class Scheduler(NamedTuple):
    """What can be learned."""

    preset: str  # that it is learned with by default
    settings: tuple[str, ...]  # fields of EnvConfig that its environment has
    networks: tuple[str, ...]  # kinds that fit its observations and choices; none: it has none, and evolves
    draws: bool = False  # whether it draws if it goes forward (`decision.learn.deploy.Actor`)

    @property
    def sections(self) -> tuple[str, ...]:
        """Of a config, which say how it is learned; the last one has the steps."""
        return ("network", "learn") if self.networks else ("evolve",)


SCHEDULERS = {
    "dbf": Scheduler(
        preset="dbf-compact",
        settings=("head", "tail", "cluster", "jobs", "online", "idle_weight", "queue_weight", "waiting_weight"),
        networks=("jobs", "mlp"),
        draws=True,
    ),
    "rlscheduler": Scheduler("rlscheduler", settings=("head", "jobs", "online"), networks=("priority", "mlp")),
    "inspector": Scheduler("inspector", settings=("base", "jobs", "online"), networks=("mlp",)),
    "ranking": Scheduler("ranking", settings=("jobs",), networks=()),
}


class EnvConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The environment, which has those of these that SCHEDULERS says; `decision.envs` says what each means."""

    head: Annotated[int, msgspec.Meta(ge=0)] = 16  # jobs of the window from the queue's head
    tail: Annotated[int, msgspec.Meta(ge=0)] = 4  # and from its tail
    cluster: Literal["cores", "pools"] = "cores"  # how the cluster is seen: each core, or pools that fit any size
    base: Literal["sjf", "f1"] = "sjf"  # the order that is inspected
    jobs: Count = 1000  # placed jobs that end an episode
    online: bool = True  # whether other jobs arrive after those
    idle_weight: Share = 1 / 3  # w1 of the reward
    queue_weight: Share = 1 / 3  # w2
    waiting_weight: Share = 1 / 3  # w3


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An actor and a critic; `decision.learn.networks` has the kinds."""

    kind: Literal["mlp", "jobs", "priority"] = "jobs"
    hidden: tuple[Count, ...] = (32,)  # widths of the layers of mlp and priority; the one width of jobs


class PpoConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347); `decision.learn.ppo` follows it."""

    steps: Count = 2_000_000  # environment steps in all
    envs: Count = 64  # environments side by side
    rollout: Count = 128  # steps of each environment between two updates
    epochs: Count = 4  # times that an update goes over a rollout
    minibatch: Count = 1024  # steps
    lr: Positive = 3e-4  # Adam's
    lr_schedule: Literal["constant", "linear"] = "linear"  # linear: to 0 at the last step
    discount: Share = 0.99
    gae_lambda: Share = 0.95
    clip: Positive = 0.2
    value_clip: Weight = 0.0  # how far a value may move from the rollout's within an update; 0: as far as it will
    value_weight: Weight = 0.5
    entropy: Weight = 0.01
    max_gradient: Positive = 0.5  # norm
    target_kl: Weight = 0.0  # an update ends when it has moved the policy further than this; 0: never
    normalise_advantages: bool = True
    reward_scale: Positive = 1.0
    overlap: bool = True  # collect the next rollout, with the policy from before the update, while the update runs
    threads: Annotated[int, msgspec.Meta(ge=0)] = 0  # that torch computes with; 0: one per core, half with overlap
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 where it multiplies on a GPU


class EvolutionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Evolution by whole schedules, as `decision.learn.ranking` has it."""

    steps: Count = 150_000_000  # jobs that are placed in all
    population: Annotated[int, msgspec.Meta(ge=4)] = 20  # candidates of a generation
    sequences: Count = 24  # of jobs, that each candidate schedules
    spread: Positive = 0.3  # standard deviation of the first candidates
    slowdown_first: Weight = 1.5  # weight of the bounded slowdown, the waiting time's being 1, in the first generation
    slowdown_last: Weight = 0.85  # and in the last, linear between
    threads: Annotated[int, msgspec.Meta(ge=0)] = 0  # that schedule; 0: one per core


class TrainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of a training run but its inputs."""

    scheduler: Literal["dbf", "rlscheduler", "inspector", "ranking"] = "dbf"  # one of SCHEDULERS
    env: EnvConfig = EnvConfig()
    network: NetworkConfig = NetworkConfig()
    learn: PpoConfig = PpoConfig()
    evolve: EvolutionConfig = EvolutionConfig()
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0

    @property
    def settings(self) -> dict[str, Any]:
        """Of the environment, by name."""
        return {name: getattr(self.env, name) for name in SCHEDULERS[self.scheduler].settings}

    @property
    def sections(self) -> tuple[str, ...]:
        """Those that say how it is learned; the last one has the steps."""
        return SCHEDULERS[self.scheduler].sections

    @property
    def steps(self) -> int:
        """In all."""
        return int(getattr(self, self.sections[-1]).steps)


def preset_names() -> list[str]:
    """Names of the presets that the package carries."""
    return sorted(p.name.removesuffix(".toml") for p in _presets().iterdir() if p.name.endswith(".toml"))


def load_config(preset: str, changes: Iterable[str] = (), **more: Any) -> TrainConfig:
    """A preset with changes.

    Args:
        preset: a preset's name, or a TOML file ``mine.toml``.
        changes: ``section.key=value``, like ``learn.lr=1e-4``, in order.
        more: top-level values, last: ``seed=3``.

    Raises:
        ConfigError: if there is no such preset or key, or a value does not fit.
        InputError: if the file cannot be used.
    """
    tree = _read_preset(preset)
    for change in changes:
        _apply(tree, change)
    return _convert(tree | more, preset)


def differences(one: TrainConfig, other: TrainConfig) -> list[str]:
    """Keys whose values differ, as ``learn.lr: 0.0003 and 0.0001``."""
    first, second = _flat(msgspec.to_builtins(one)), _flat(msgspec.to_builtins(other))
    return [f"{key}: {value} and {second[key]}" for key, value in first.items() if value != second[key]]


def _presets() -> Any:
    return files("decision.learn") / "presets"


def _read_preset(name: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        return _parse(name, _read_text(Path(name)))
    known = preset_names()
    if name not in known:
        raise ConfigError(f"there is no preset {name!r}{nearest(name, known)} (there are {', '.join(known)})")
    return _parse(name, (_presets() / f"{name}.toml").read_text())


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
    section, dot, name = key.partition(".")
    if not (equals and dot and section and name):
        raise ConfigError(f"--set {change!r}: write it as section.key=value, like learn.lr=1e-4")
    valid = _flat(msgspec.to_builtins(TrainConfig()))
    if key not in valid:
        raise ConfigError(f"--set {change!r}: there is no {key}{nearest(key, valid)}")
    tree.setdefault(section, {})[name] = _value(text)


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
    _check_sections(tree, config, where)
    _check_env(tree.get("env", {}), config, where)
    _check_network(config, where)
    return config


def _check_sections(given: Mapping[str, Any], config: TrainConfig, where: str) -> None:
    for section in ("network", "learn", "evolve"):
        if section in given and section not in config.sections:
            has = " and ".join(config.sections)
            raise ConfigError(f"{where}: {config.scheduler} has no section {section}: how it is learned is in {has}")


def _check_env(given: Mapping[str, Any], config: TrainConfig, where: str) -> None:
    settings = config.settings
    for name in given:
        if name not in settings:
            has = f"{config.scheduler} has {', '.join(settings)}"
            raise ConfigError(f"{where}: there is no env.{name}{nearest(name, settings)} ({has})")
    slots = {f"env.{name}": settings[name] for name in ("head", "tail") if name in settings}
    if slots and not any(slots.values()):
        are = "are both" if len(slots) > 1 else "is"
        raise ConfigError(f"{where}: {' and '.join(slots)} {are} 0: the window needs a job")


def _check_network(config: TrainConfig, where: str) -> None:
    network, fitting = config.network, SCHEDULERS[config.scheduler].networks
    if not fitting:
        return
    if network.kind not in fitting:
        kinds = " or ".join(fitting)
        raise ConfigError(f"{where}: network.kind is {network.kind}: {config.scheduler} is learned with {kinds}")
    if network.kind == "jobs" and len(network.hidden) != 1:
        raise ConfigError(f"{where}: network.hidden is {list(network.hidden)}: the network jobs has one width")


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat
