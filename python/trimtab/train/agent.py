"""What all trainings by PPO have in common: the agent of the library skrl on JAX, and the steps that it gets.

Where the papers are silent: generalised advantages with lambda 0.95, ten passes over each batch in four
minibatches.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
from skrl import logger
from skrl.agents.jax.ppo import PPO, PPO_CFG
from skrl.memories.jax import RandomMemory
from skrl.utils import set_seed

GAE_LAMBDA, PASSES, MINIBATCHES = 0.95, 10, 4


def ppo(
    kind: type[PPO],
    models: tuple[Any, Any],
    spaces: tuple[gym.Space[Any], gym.Space[Any]],
    *,
    rollouts: int,
    envs: int,
    seed: int,
    **settings: Any,
) -> PPO:
    """Make an agent with these classes of policy and value.

    It learns after `rollouts` steps of each of `envs` environments.
    """
    logger.setLevel("ERROR")
    set_seed(seed)
    device = jax.devices("cpu")[0]
    given = {"observation_space": spaces[0], "action_space": spaces[1], "device": device}
    own = {role: model(**given) for role, model in zip(("policy", "value"), models, strict=True)}
    for role, model in own.items():
        model.init_state_dict(role=role)
    config = PPO_CFG(
        rollouts=rollouts,
        learning_epochs=PASSES,
        mini_batches=MINIBATCHES,
        gae_lambda=GAE_LAMBDA,
        value_clip=0.0,
        value_loss_scale=1.0,
        **settings,
    )
    config.experiment.write_interval = 0
    config.experiment.checkpoint_interval = 0
    memory = RandomMemory(memory_size=rollouts, num_envs=envs, device=device)
    agent = kind(models=own, memory=memory, cfg=config, **given)
    agent.init()
    agent.enable_training_mode(True)
    return agent


def recorded(agent: PPO, transition: tuple[Any, Any, Any, Any, Any], step: int, steps: int) -> None:
    """Tell the agent of a step: observations, actions, rewards, the next observations, and which time is up.

    No connection ends: the critic values what follows the last state of an update.
    """
    seen, actions, rewards, after, truncated = transition
    agent.record_transition(
        observations=seen,
        states=None,
        actions=actions,
        rewards=jnp.asarray(rewards, jnp.float32).reshape(-1, 1),
        next_observations=after,
        next_states=None,
        terminated=jnp.zeros((len(seen), 1), jnp.int8),
        truncated=jnp.asarray(truncated, jnp.int8).reshape(-1, 1),
        infos={},
        timestep=step,
        timesteps=steps,
    )
    agent.post_interaction(timestep=step, timesteps=steps)
