"""Settings of a network, and of each algorithm that learns."""

from typing import Annotated, ClassVar, Literal

import msgspec

from decision.model.errors import ConfigError

_STEPPED = 16  # environments that are worth a thread
_SMALL = 64  # widest layer of a network that one thread computes
ALGORITHM = "algorithm"  # field of section ``learn`` that says which config it is
Count = Annotated[int, msgspec.Meta(ge=1, le=2**62)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Threads = Annotated[int, msgspec.Meta(ge=0, le=1024)]
Weight = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Widths = Annotated[tuple[Annotated[int, msgspec.Meta(ge=1, le=8192)], ...], msgspec.Meta(max_length=16)]


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An actor and a critic; `decision.learn.networks` has the kinds."""

    kind: Literal["mlp", "jobs", "priority", "fcn", "cnn", "gru", "image"] = "jobs"
    hidden: Widths = (
        32,
    )  # of layers; the one width of jobs; channels of cnn's or image's two; units of gru, of a layer
    encoder: Literal["separate", "shared"] = "separate"  # whether critics read an image with the actor's layers

    def __post_init__(self) -> None:
        if self.encoder == "shared" and self.kind != "image":
            raise ConfigError(f"network.encoder is shared: that needs network.kind=image, and it is {self.kind}")


class PpoConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="ppo", tag_field=ALGORITHM):
    """Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347); `decision.learn.ppo` follows it."""

    learner: ClassVar[str] = "learner:PpoLearner"  # in this package: its class method `make` gives an `Algorithm`
    validated_every: ClassVar[int] = 250_000  # steps: validations take a few per cent of the time
    replays: ClassVar[bool] = False  # whether it learns from recorded choices

    steps: Count = 2_000_000  # environment steps in all
    envs: Count = 64  # environments side by side
    rollout: Count = 128  # steps of each environment between two updates
    epochs: Count = 4  # times that an update goes over a rollout
    minibatch: Count = 1024  # steps
    lr: Positive = 3e-4  # Adam's
    critic_lr: Weight = 0.0  # of the layers that the critic has to itself; 0: as lr
    lr_schedule: Literal["constant", "linear", "exponential"] = "linear"  # linear: to 0 at the last step
    lr_last: Positive = 1e-6  # exponential: to this
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
    threads: Threads = 0  # that torch computes with; 0: one for a small network, else one per core, half with overlap
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: float32, multiplied on a GPU as TF32
    compile: Literal["auto", "on", "off"] = "auto"  # whether torch compiles the network, on a CPU; auto: no

    @property
    def timed(self) -> str:
        """What depends on how far the training is of all its steps; empty where nothing does."""
        return "" if self.lr_schedule == "constant" else "the learning rate"

    def rate_at(self, done: float) -> float:
        """Adam's, when this share of all steps is done."""
        if self.lr_schedule == "exponential":
            return self.lr * (self.lr_last / self.lr) ** done
        return self.lr * (1 - done if self.lr_schedule == "linear" else 1)

    def stepping_threads(self, cores: int) -> int:
        """Threads that step the environments: as many as there are cores, of which an update beside them has one.

        Some microseconds are an environment's step, and some ten it takes to wake a thread for it.
        """
        free = cores // 2 if self.overlap else cores
        return 1 if self.threads == 1 else max(1, min(free, self.envs // _STEPPED))

    def torch_threads(self, cores: int, network: NetworkConfig | None) -> int:
        """Threads that torch computes with.

        Operations of small networks take microseconds. Two threads that wait for each other at each of them gain
        nothing on two quiet cores, and next to one busy process they are a quarter as fast as one.
        """
        small = network is not None and max(network.hidden, default=0) <= _SMALL
        return self.threads or (1 if small else max(1, cores // 2 if self.overlap else cores))


class CmaEsConfig(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="cma-es", tag_field=ALGORITHM
):
    """Evolution by whole schedules or episodes (Hansen, arXiv 1604.00772); `decision.learn.evolution` follows it."""

    learner: ClassVar[str] = "evolution_learner:EvolutionLearner"
    validated_every: ClassVar[int] = 250_000  # steps
    replays: ClassVar[bool] = False

    steps: Count = 150_000_000  # jobs that are placed in all
    population: Annotated[int, msgspec.Meta(ge=4)] = 20  # candidates of a generation
    sequences: Count = 24  # of jobs, that each candidate schedules
    spread: Positive = 0.3  # standard deviation of the first candidates
    threads: Threads = 0  # that schedule; 0: one per core

    @property
    def timed(self) -> str:
        """What depends on how far the training is of all its steps."""
        return "what is minimised"

    def torch_threads(self, cores: int, network: NetworkConfig | None) -> int:
        """Threads that torch computes with: it has nothing to compute."""
        return 1


class _GradientConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What algorithms share that learn from single transitions."""

    batch: Count = 256  # transitions of an update
    lr: Positive = 3e-4  # Adam's
    max_gradient: Positive = 40.0  # norm
    threads: Threads = 0  # that torch computes with; 0: one for a small network, else one per core
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: float32, multiplied on a GPU as TF32

    timed: ClassVar[str] = ""
    replays: ClassVar[bool] = True

    def torch_threads(self, cores: int, network: NetworkConfig | None) -> int:
        """Threads that torch computes with."""
        return self.threads or (1 if network is not None and max(network.hidden, default=0) <= _SMALL else cores)


class _CriticConfig(_GradientConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What algorithms share that learn values of actions."""

    discount: Share = 0.99
    critics: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2  # the lowest of their values counts
    target_rate: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.005  # by which the networks of targets follow
    popart: Share = 1e-4  # by which the scale of values follows; 0: it stays 1
    reward_scale: Positive = 1.0


class BcConfig(_GradientConfig, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="bc", tag_field=ALGORITHM):
    """Behaviour cloning: the likelihood of recorded choices (`decision.learn.bc`)."""

    learner: ClassVar[str] = "data_learner:BcLearner"
    validated_every: ClassVar[int] = 5_000  # updates

    steps: Count = 20_000  # updates in all


class CrrConfig(_CriticConfig, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="crr", tag_field=ALGORITHM):
    """Critic-regularised regression (Wang et al., NeurIPS 2020, arXiv 2006.15134); `decision.learn.crr` follows it."""

    learner: ClassVar[str] = "data_learner:CrrLearner"
    validated_every: ClassVar[int] = 5_000  # updates

    steps: Count = 20_000  # updates in all
    filter: Literal["binary", "none"] = "binary"  # which choices are cloned: those better than the policy's mean; all


class SacConfig(_CriticConfig, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="sac", tag_field=ALGORITHM):
    """Soft actor-critic for discrete actions (Christodoulou 2019, arXiv 1910.07207), as `decision.learn.sac` has it."""

    learner: ClassVar[str] = "sac_learner:SacLearner"
    validated_every: ClassVar[int] = 50_000  # steps

    steps: Count = 200_000  # environment steps in all
    envs: Count = 16  # environments side by side
    updates: Positive = 0.25  # for each environment step
    warmup: Count = 2_000  # environment steps before the first update
    buffer: Count = 100_000  # newest transitions that are learned from, besides the recorded ones
    offline: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0  # updates by crr before, from recorded choices
    temperature: Weight = 0.0  # weight of entropy; 0: it is tuned
    entropy: Share = 0.3  # which share of the most that the valid actions allow it is tuned to
    epsilon: Share = 0.99  # share of random choices at first; with `offline` there are none: the policy explores
    epsilon_last: Share = 0.1  # and from `epsilon_steps` on
    epsilon_steps: Count = 50_000

    def epsilon_at(self, step: int) -> float:
        """The share of random choices at an environment step."""
        if self.offline:
            return 0.0
        return self.epsilon + min(step / self.epsilon_steps, 1.0) * (self.epsilon_last - self.epsilon)
