"""Aurora's way of learning (Jay et al., ICML 2019, section 4): PPO on `trimtab/Rate-v0`, or on `Window-v0`.

Its networks have layers of 32 and 16 units, tanh (its `stable_solve.py`). Where its defaults are another
library's, those of `trimtab.train.agent` stand. Rewards are divided by the root of their mean square, so that
one rate of learning suits every reward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from skrl.agents.jax.ppo import PPO
from skrl.models.jax import DeterministicMixin, GaussianMixin, Model

from trimtab.intervals import Floats, IntervalVectorEnv
from trimtab.train.agent import ppo, recorded

LAYERS, DISCOUNT = (32, 16), 0.99


def _tower(inputs: dict[str, Any], outputs: int) -> Any:
    hidden = inputs["observations"]
    for units in LAYERS:
        hidden = nn.tanh(nn.Dense(units)(hidden))
    return nn.Dense(outputs)(hidden)


class Actor(GaussianMixin, Model):  # type: ignore[misc]
    """A mean for each observation, and one deviation."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self, clip_actions=True)

    @nn.compact  # type: ignore[untyped-decorator]
    def __call__(self, inputs: dict[str, Any], role: str) -> tuple[Any, dict[str, Any]]:
        """Give the mean, and the logarithm of the deviation."""
        spread = self.param("log_std", lambda _: jnp.zeros(self.num_actions))
        return _tower(inputs, self.num_actions), {"log_std": spread}


class Critic(DeterministicMixin, Model):  # type: ignore[misc]
    """The value of an observation."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)

    @nn.compact  # type: ignore[untyped-decorator]
    def __call__(self, inputs: dict[str, Any], role: str) -> tuple[Any, dict[str, Any]]:
        """Give the value."""
        return _tower(inputs, 1), {}


#: From observations, a row for each connection, to the most likely actions.
Policy = Callable[[Floats], Floats]


def learn(
    env: IntervalVectorEnv, updates: int, *, rollouts: int = 100, rate: float = 1e-3, seed: int = 0
) -> tuple[Policy, list[float]]:
    """Learn on an environment: `updates` times after `rollouts` steps of each connection, at this rate.

    Gives the policy, and the mean reward of the steps before each update.
    """
    spaces = (env.single_observation_space, env.single_action_space)
    agent = ppo(
        PPO,
        (Actor, Critic),
        spaces,
        rollouts=rollouts,
        envs=env.num_envs,
        seed=seed,
        discount_factor=DISCOUNT,
        learning_rate=(rate, rate),
        ratio_clip=0.2,
        entropy_loss_scale=0.0,
    )
    states, _ = env.reset(seed=seed)
    squares, earned = 1e-9, []
    for _ in range(updates):
        total = 0.0
        for step in range(rollouts):
            seen = jnp.asarray(states)
            actions, _ = agent.act(seen, None, timestep=step, timesteps=rollouts)
            states, rewards, _, truncated, info = env.step(np.asarray(actions))
            total += rewards.mean()
            squares = max(squares, float(np.square(rewards).mean()))
            after = states
            if truncated.any():
                after = states.copy()
                after[truncated] = np.stack(list(info["final_obs"][truncated]))
            scaled = rewards / np.sqrt(squares)
            recorded(agent, (seen, actions, scaled, jnp.asarray(after), truncated), step, rollouts)
        earned.append(float(total) / rollouts)
    agent.enable_training_mode(False)

    def policy(states: Floats) -> Floats:
        _, outputs = agent.policy.act({"observations": jnp.asarray(states)}, role="policy")
        return np.asarray(outputs["mean_actions"])

    return policy, earned
