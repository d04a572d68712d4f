"""Floo's own way of learning: PPO with the settings of its tables 4 and 7, by the library skrl on JAX.

Where the paper is silent: generalised advantages with lambda 0.95, ten passes over each batch of whole
episodes in four minibatches, an entropy bonus of 0.01.

The reward is not the paper's, ln(last completion time / current one), normalised over each episode
(section 3.3). Its sum over an episode depends on the first and the last period alone. With the mean taken off
it is zero whatever the policy does. Divided by its own deviation, an episode in which the choice hardly
matters counts as much as one in which it matters most. `--reward paper` learns by it, to show that.

Here the reward of a period is ln(completion time under `first` / completion time under the choices), where
`first` runs alone on the same connection with the same losses and requests. From it goes what lost packets
cost beyond the budget, and what rivals get less than next to `first`, by their prices. One constant scales
it for all episodes. The time limit of an episode is no end of the connection: the critic values what would
follow.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

import flax.linen as nn
import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from skrl.agents.jax.ppo import PPO
from skrl.models.jax import CategoricalMixin, DeterministicMixin, Model
from tensorboard.summary import Writer

from trimtab._native import Course, Episodes
from trimtab.envs import INFO, SelectVectorEnv
from trimtab.policy import HIDDEN, SLOPE, Array, Networks, Scaler
from trimtab.train import checkpoint as checkpoints
from trimtab.train.agent import ppo, recorded
from trimtab.train.cluster import ClusterEnv
from trimtab.train.lessons import Prices
from trimtab.train.options import Training

Floats = NDArray[np.float64]

#: Table 7.
ACTOR_RATE, CRITIC_RATE, DISCOUNT, CLIP = 1e-4, 2e-4, 0.99, 0.2
#: The paper does not give it.
ENTROPY = 0.01
#: Connections that, under random choices, give the constants that states and rewards are scaled by.
SCALING = 100
#: Updates between two checkpoints.
CHECKPOINT = 10


class Actor(CategoricalMixin, Model):  # type: ignore[misc]
    """Appendix D: a hidden layer of 200 units, leaky ReLU, softmax."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)

    @nn.compact  # type: ignore[untyped-decorator]
    def __call__(self, inputs: dict[str, Any], role: str) -> tuple[Any, dict[str, Any]]:
        """Give the logits."""
        hidden = nn.leaky_relu(nn.Dense(HIDDEN, name="fc1")(inputs["observations"]), SLOPE)
        return nn.Dense(self.num_actions, name="fc2")(hidden), {}


class Critic(DeterministicMixin, Model):  # type: ignore[misc]
    """Appendix D: a hidden layer of 200 units, leaky ReLU, one linear unit."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)

    @nn.compact  # type: ignore[untyped-decorator]
    def __call__(self, inputs: dict[str, Any], role: str) -> tuple[Any, dict[str, Any]]:
        """Give the value."""
        hidden = nn.leaky_relu(nn.Dense(HIDDEN, name="fc1")(inputs["observations"]), SLOPE)
        return nn.Dense(1, name="fc2")(hidden), {}


class PaperPPO(PPO):  # type: ignore[misc]
    """PPO whose rewards are normalised episode by episode: each update has whole episodes."""

    def update(self, *, timestep: int, timesteps: int) -> None:
        """Normalise the rewards (Floo, section 3.3), and learn."""
        rewards = self.memory.get_tensor_by_name("rewards")
        self.memory.set_tensor_by_name("rewards", jnp.asarray(normalised(np.asarray(rewards))))
        super().update(timestep=timestep, timesteps=timesteps)


def normalised(rewards: Array) -> Array:
    """Normalise the rewards of each episode, a column of periods, as the paper says."""
    spread = rewards.std(axis=0, keepdims=True)
    return np.asarray((rewards - rewards.mean(axis=0, keepdims=True)) / np.where(spread > 0, spread, 1.0))


def gains(periods: dict[str, Any], first: dict[str, Any], prices: Prices | None = None) -> Floats:
    """Give ln(completion time under `first` / under the choices) of each connection, by what steps say.

    With prices, less what the choices' losses cost, and what rivals get less than under `first`.

    Where nothing completed, the time that requests waited stands for it. Where no request waited under one of
    them, there is nothing to compare: 0.
    """

    def time_of(step: dict[str, Any]) -> Floats:
        completion: Floats = step["completion_s"]
        return np.where(completion > 0, completion, np.asarray(step["waited_s"], np.float64))

    own, other = time_of(periods), time_of(first)
    known = (own > 0) & (other > 0)
    gained = np.log(np.where(known, other, 1.0) / np.where(known, own, 1.0))
    if prices is None:
        return np.asarray(gained, np.float64)
    received, usual = np.asarray(periods["rivals_mb"]), np.asarray(first["rivals_mb"])
    harm = 1.0 - received / np.where(usual > 0, usual, 1.0)
    harm = np.where(usual > 0, np.maximum(harm, 0.0), 0.0)
    return np.asarray(gained - prices.of(np.asarray(periods["lost"]), harm), np.float64)


class Rewards:
    """What each choice of a batch of connections earns, and what states are scaled by."""

    def __init__(self, settings: Training, first: SelectVectorEnv, scaler: Scaler, scale: float) -> None:
        self.settings, self.first, self.scaler, self.scale = settings, first, scaler, scale
        self.always = np.full(first.num_envs, settings.names().index(settings.first), np.int64)

    def reset(self, seed: int) -> None:
        """Begin the same connections."""
        if self.settings.reward == "baseline":
            self.first.reset(seed=seed)

    def of(self, rewards: Floats, info: dict[str, Any]) -> Floats:
        """Give the rewards of a step, by what the environment says of it."""
        if self.settings.reward == "paper":
            return rewards
        *_, info_first = self.first.step(self.always)
        return gains(info, info_first, self.settings.prices()) / self.scale


def train(settings: Training) -> tuple[Networks, dict[str, Any]]:
    """Learn a policy. Gives it, and what the card says of the training.

    Raises ValueError when a setting makes no sense.
    """
    chosen = settings.course()
    course = chosen.course()
    steps = chosen.periods - 1
    updates = max(1, math.ceil(settings.count() / settings.parallel))
    start = time.perf_counter()
    env = _environment(settings, course)
    scaler, scale = scales(course, settings, steps)
    rewards = Rewards(settings, _environment(settings, course), scaler, scale)
    agent = _agent(env, settings, steps)
    settings.out.mkdir(parents=True, exist_ok=True)
    done, before = _resume(agent, settings, updates) if settings.resume else (0, 0.0)
    writer = Writer(str(settings.out / "logs"))
    states, _ = env.reset(seed=settings.seed + done)
    rewards.reset(settings.seed + done)
    for update in range(done, updates):
        states, completion = _episode(agent, env, rewards, states, steps)
        spent = before + time.perf_counter() - start
        writer.add_scalar("completion_s", completion, update)
        writer.add_scalar("seconds", spent, update)
        if (update + 1) % CHECKPOINT == 0 or update + 1 == updates:
            _save(agent, settings, update + 1, spent)
            print(f"update {update + 1} of {updates}: completion time {completion:.3f} s, {spent:.0f} s")
    writer.close()
    decisions = updates * settings.parallel * steps
    periods = decisions * (2 if settings.reward == "baseline" else 1)
    progress = {"seconds": before + time.perf_counter() - start, "decisions": decisions, "periods": periods}
    return _policy(agent, scaler, course, settings), progress


def _environment(settings: Training, course: Course) -> SelectVectorEnv:
    if not settings.ray:
        return SelectVectorEnv(settings.parallel, settings.course(), course)
    return ClusterEnv(settings, course)


def _agent(env: SelectVectorEnv, settings: Training, steps: int) -> PPO:
    return ppo(
        PaperPPO if settings.reward == "paper" else PPO,
        (Actor, Critic),
        (env.single_observation_space, gym.spaces.Discrete(len(settings.names()))),
        rollouts=steps,
        envs=env.num_envs,
        seed=settings.seed,
        discount_factor=DISCOUNT,
        learning_rate=(ACTOR_RATE, CRITIC_RATE),
        ratio_clip=CLIP,
        entropy_loss_scale=ENTROPY,
    )


def _episode(
    agent: PPO, env: SelectVectorEnv, rewards: Rewards, states: Array, steps: int
) -> tuple[Array, float]:
    """Run one episode of every connection, after whose last step the agent learns."""
    scaler = rewards.scaler
    waits = []
    for step in range(steps):
        seen = jnp.asarray(scaler(states))
        actions, _ = agent.act(seen, None, timestep=step, timesteps=steps)
        states, paper, _, truncated, info = env.step(np.asarray(actions).reshape(-1).astype(np.int64))
        earned = rewards.of(paper, info)
        # Of a connection whose time is up, `states` is already that of the next one.
        after = np.stack(info["final_obs"]) if truncated.all() else states
        times: NDArray[np.float64] = info["completion_s"]
        waits.append(times[times > 0].mean() if (times > 0).any() else np.nan)
        recorded(agent, (seen, actions, earned, jnp.asarray(scaler(after)), truncated), step, steps)
    return states, float(np.nanmean(waits))


def scales(course: Course, settings: Training, steps: int) -> tuple[Scaler, float]:
    """Give what states and rewards are scaled by: constants of connections that choose at random."""
    random = np.random.default_rng((settings.seed, SCALING))
    seeds = [int(seed) for seed in random.integers(2**62, size=SCALING)]
    episodes, first = Episodes(course, seeds), Episodes(course, seeds)
    always = [settings.names().index(settings.first)] * SCALING
    seen, earned = [], []
    for _ in range(steps):
        seen.append(np.asarray(episodes.states(), np.float32).reshape(SCALING, -1))
        own = episodes.step(random.integers(len(settings.names()), size=SCALING).tolist())
        if settings.reward == "baseline":
            earned.append(gains(_said(own), _said(first.step(always)), settings.prices()))
    scale = float(np.sqrt(np.mean(np.square(earned)))) if earned else 1.0
    return Scaler.of(np.concatenate(seen)), scale if scale > 0 else 1.0


def _said(step: tuple[Any, ...]) -> dict[str, Any]:
    _, *measured, _, lost, rivals = step
    return {name: np.asarray(of) for name, of in zip(INFO, (*measured, lost, rivals), strict=True)}


def _save(agent: PPO, settings: Training, done: int, seconds: float) -> None:
    about = {"done": done, "seconds": seconds, "settings": checkpoints.write_settings(settings)}
    # Whole or not at all: a training may be stopped at any time.
    part = settings.out / "checkpoint.part.pickle"
    agent.save(str(part))
    part.replace(settings.out / "checkpoint.pickle")
    part = settings.out / "checkpoint.part.json"
    part.write_text(json.dumps(about), encoding="utf-8")
    part.replace(settings.out / "checkpoint.json")


def _resume(agent: PPO, settings: Training, updates: int) -> tuple[int, float]:
    path, said = settings.out / "checkpoint.pickle", settings.out / "checkpoint.json"
    checkpoints.must_exist(path)
    about = json.loads(said.read_text(encoding="utf-8")) if said.exists() else {}
    checkpoints.must_fit(path, about.get("settings"), settings)
    checkpoints.must_not_be_past(path, about["done"], updates)
    agent.load(str(path))
    print(f"goes on after update {about['done']}")
    return int(about["done"]), float(about["seconds"])


def _policy(agent: PPO, scaler: Scaler, course: Course, settings: Training) -> Networks:
    layers = agent.policy.state_dict.params["params"]

    def weights(layer: str) -> Array:
        return np.asarray(layers[layer]["kernel"], np.float32).T

    def bias(layer: str) -> Array:
        return np.asarray(layers[layer]["bias"], np.float32)

    return Networks(
        w1=weights("fc1")[None],
        b1=bias("fc1")[None],
        w2=weights("fc2")[None],
        b2=bias("fc2")[None],
        scaler=scaler,
        features=tuple(course.features),
        algorithms=settings.names(),
        period_ms=settings.period_ms,
        first=settings.first,
    )
