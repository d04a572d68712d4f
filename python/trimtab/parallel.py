"""Several agents that share one link, as a PettingZoo environment: the extra `pettingzoo`.

All act at the same time, and an interval is as long for all: several round trips are those of the agent whose
packets take longest.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import gymnasium as gym
import numpy as np
from gymnasium.utils.seeding import np_random
from pettingzoo import ParallelEnv

from trimtab.envs import SEEDS
from trimtab.intervals import Batch, Floats, spaces
from trimtab.task import MEASURES, Task

Each = dict[str, Any]


class LinkParallelEnv(ParallelEnv[str, Floats, Floats]):  # type: ignore[misc]
    """`agents` flows over one link, each set by an agent of its own. What a step gives is by agent.

    A reward of one's own gets the measures of all agents as arrays, so that it may be shared among them.
    """

    metadata: dict[str, Any] = {"name": "trimtab_link_v0", "render_modes": []}  # noqa: RUF012 - as PettingZoo has it

    def __init__(self, agents: int = 2, knob: str = "rate", task: Task | None = None, **changes: Any) -> None:
        default = Task.window() if knob == "window" else Task.rate()
        self.task = (task or default).changed(**changes)
        self.paths = self.task.paths(agents)
        self.possible_agents = [f"agent_{i}" for i in range(agents)]
        self.agents: list[str] = []
        self._batch = Batch(knob, self.task, self.paths, [0], agents)
        self._seen, self._does = spaces(self._batch)
        self._random, _ = np_random()

    def observation_space(self, agent: str) -> gym.Space[Any]:
        """Give what an agent observes."""
        return self._seen

    def action_space(self, agent: str) -> gym.Space[Any]:
        """Give what an agent does."""
        return self._does

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Each, Each]:
        """Begin all connections. Options are those of `trimtab/Rate-v0`."""
        if seed is not None:
            self._random, _ = np_random(seed)
        options = options or {}
        number = options.get("episode")
        number = int(self._random.integers(SEEDS)) if number is None else int(number)
        self._batch.native.reset([0], [number], options.get("start"))
        self.agents = list(self.possible_agents)
        seen, measures = self._batch.look()
        infos = self._infos(measures)
        return self._each(seen), {agent: info | {"episode": number} for agent, info in infos.items()}

    def step(self, actions: Each) -> tuple[Each, Each, Each, Each, Each]:
        """Turn each knob and run an interval."""
        if not self.agents:
            raise RuntimeError("reset the environment first")
        turned = np.asarray([np.asarray(actions[agent]).item() for agent in self.possible_agents])
        seen, rewards, done, measures = self._batch.step(turned)
        over = bool(done[0])
        if over:
            self.agents = []
        never, all_of_them = (dict.fromkeys(self.possible_agents, flag) for flag in (False, over))
        return (
            self._each(seen),
            self._each(rewards.tolist()),
            never,
            all_of_them,
            self._infos(measures),
        )

    def fork(self) -> Self:
        """Give a copy that goes on as this one would."""
        fork = copy.copy(self)
        fork._batch = self._batch.fork()
        fork._random = copy.deepcopy(self._random)
        fork.agents = list(self.agents)
        return fork

    def _each(self, rows: Any) -> Each:
        return dict(zip(self.possible_agents, rows, strict=True))

    def _infos(self, measures: Any) -> Each:
        return self._each(dict(zip(MEASURES, column, strict=True)) for column in measures.T.tolist())
