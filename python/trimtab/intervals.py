"""Gymnasium environments for congestion control itself: an agent sets a rate or a window.

`Rate-v0` is Aurora's task (Jay et al., ICML 2019), `Window-v0` that of Orca's learner (Abbasloo et al.,
SIGCOMM 2020). What an action means, what is seen and what it is worth can be chosen: `trimtab.Task`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import gymnasium as gym
import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from trimtab._native import Arenas, Paths
from trimtab.envs import SEEDS
from trimtab.task import MEASURES, Task

Floats = NDArray[np.float32]


class Batch:
    """Episodes with the arrays that they fill: what all forms of the environments have in common.

    Arrays have a row for each agent, those of one episode next to each other.
    """

    def __init__(self, knob: str, task: Task, paths: Paths, numbers: list[int], agents: int = 1) -> None:
        self.task, self.count, self.agents = task, len(numbers), agents
        self.native: Arenas = task.arenas(knob, paths, numbers)
        self.width = len(task.measures()) * task.history
        self._shapes()

    def look(self) -> tuple[Floats, NDArray[np.float64]]:
        """Give what each agent observes, and the measures of each."""
        seen, measures = self._empty()
        self.native.look(seen, measures)
        return seen, measures

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Floats, NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
        """Run an interval: give observations, rewards, which episodes are over, and the measures."""
        seen, measures = self._empty()
        rewards = np.empty(self.rows)
        done = np.empty(self.count, np.uint8)
        self.native.step(np.ascontiguousarray(actions, np.float32), seen, rewards, measures, done)
        if callable(self.task.reward):
            rewards = np.asarray(self.task.reward(info_of(measures)), np.float64)
        return seen, rewards, done.view(np.bool_), measures

    def fork(self, copies: int = 1) -> Batch:
        """Give so many copies of each episode, which go on as the original would."""
        fork = copy.copy(self)
        fork.native = self.native.fork(copies)
        fork.count = self.count * copies
        fork._shapes()
        return fork

    def _shapes(self) -> None:
        rows = self.count * self.agents
        self.rows, self.seen, self.measured = rows, (rows, self.width), (len(MEASURES), rows)

    def _empty(self) -> tuple[Floats, NDArray[np.float64]]:
        return np.empty(self.seen, np.float32), np.empty(self.measured)


def info_of(measures: NDArray[np.float64]) -> dict[str, Any]:
    """Give the measures of all agents by name, an array for each."""
    return dict(zip(MEASURES, measures, strict=True))


def spaces(batch: Batch) -> tuple[gym.Space[Any], gym.Space[Any]]:
    """Give what one agent observes, and what it does."""
    ends = np.asarray([MEASURES[name][1] for name in batch.task.measures()] * batch.task.history, np.float32)
    low, high = batch.native.action_range()
    return gym.spaces.Box(ends[:, 0], ends[:, 1]), gym.spaces.Box(low, high, (1,), np.float32)


class IntervalEnv(gym.Env[Floats, Floats]):
    """One flow over one path of the grid. `reset` begins a connection; `step` sets the knob for an interval.

    `info` has every measure of `trimtab.task.MEASURES`, after `reset` also the `episode`. A connection has no
    end of its own: an episode whose time or steps are up is truncated.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium declares it so
    #: What the agent turns, and the task where none is given.
    knob: str
    default: Task

    def __init__(self, task: Task | None = None, render_mode: str | None = None, **changes: Any) -> None:
        if render_mode is not None:
            raise ValueError("there is nothing to render")
        self.render_mode = None
        self.task = (task or self.default).changed(**changes)
        self.paths = self.task.paths()
        self._batch = Batch(self.knob, self.task, self.paths, [0])
        self.observation_space, self.action_space = spaces(self._batch)
        self._begun = False

    def reset(
        self, *, seed: int | np.integer[Any] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin a connection, and run to its first acknowledgement.

        `options={"episode": 7}` asks for a certain episode: of one path, the link of that seed in `compare`.
        `options={"start": 5.0}` sets what the knob begins with.
        """
        super().reset(seed=None if seed is None else int(seed))
        options = options or {}
        number = options.get("episode")
        number = int(self.np_random.integers(SEEDS)) if number is None else int(number)
        self._batch.native.reset([0], [number], options.get("start"))
        self._begun = True
        seen, measures = self._batch.look()
        return seen[0], self._info(measures) | {"episode": number}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Turn the knob and run an interval."""
        if not self._begun:
            raise RuntimeError("reset the environment first")
        seen, rewards, done, measures = self._batch.step(np.asarray(action))
        return seen[0], rewards.item(), False, bool(done[0]), self._info(measures)

    def fork(self) -> Self:
        """Give a copy that goes on as this one would. Other actions tell what they would have come to."""
        fork = copy.copy(self)
        fork._batch = self._batch.fork()
        # The next connections are the same, too. Nothing is drawn before the first reset.
        if self._np_random is not None:
            fork._np_random = copy.deepcopy(self._np_random)
        return fork

    def play(self, actions: Any) -> float:
        """Take a course of actions without a look in between. Gives the sum of its rewards, by name.

        What lies beyond the end of the episode earns nothing.
        """
        if not self.task.named:
            raise ValueError("play() knows rewards by name only: step through it, and sum your own")
        if not self._begun:
            raise RuntimeError("reset the environment first")
        return self._batch.native.play(np.ascontiguousarray(actions, np.float32).reshape(-1))[0]

    @staticmethod
    def _info(measures: NDArray[np.float64]) -> dict[str, Any]:
        return dict(zip(MEASURES, measures[:, 0].tolist(), strict=True))


class IntervalVectorEnv(gym.vector.VectorEnv[Floats, Floats, NDArray[Any]]):
    """Flows over paths of their own that step together, on all cores and without Python's lock.

    One whose time is up begins anew in the same step; its last observation is in `info["final_obs"]`.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - as above
    knob: str
    default: Task

    def __init__(self, num_envs: int = 1, task: Task | None = None, **changes: Any) -> None:
        self.num_envs = num_envs
        self.task = (task or self.default).changed(**changes)
        self.paths = self.task.paths()
        self._batch = Batch(self.knob, self.task, self.paths, [0] * num_envs)
        self._spaces()
        self._begun = False
        #: A generator for each connection, where each was given a seed of its own.
        self._own: list[np.random.Generator] | None = None

    def _spaces(self) -> None:
        self.single_observation_space, self.single_action_space = spaces(self._batch)
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, self.num_envs)
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | np.integer[Any] | Sequence[int | np.integer[Any] | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin all connections. Seeds are as of `SelectVectorEnv`, options as of the single environment.

        Raises ValueError when a list of seeds is not as long as there are connections.
        """
        if seed is None or isinstance(seed, (int, np.integer)):
            super().reset(seed=None if seed is None else int(seed))
            self._own = self._own if seed is None else None
        else:
            if len(seed) != self.num_envs:
                raise ValueError(
                    f"there are {self.num_envs} connections and {len(seed)} seeds: give one each"
                )
            self._own = [np_random(None if one is None else int(one))[0] for one in seed]
        options = options or {}
        all_of_them = list(range(self.num_envs))
        given = options.get("episode")
        numbers = self._draw(all_of_them) if given is None else [int(given)] * self.num_envs
        self._batch.native.reset(all_of_them, numbers, options.get("start"))
        self._begun = True
        seen, measures = self._batch.look()
        return seen, info_of(measures) | {"episode": np.asarray(numbers)}

    def step(
        self, actions: Any
    ) -> tuple[Floats, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Turn the knob of each connection and run an interval."""
        if not self._begun:
            raise RuntimeError("reset the environment first")
        seen, rewards, done, measures = self._batch.step(np.asarray(actions))
        info = info_of(measures)
        if done.any():
            which = np.flatnonzero(done).tolist()
            final: NDArray[Any] = np.full(self.num_envs, None, dtype=object)
            for i in which:
                final[i] = seen[i]
            info |= {"final_obs": final, "_final_obs": done}
            self._batch.native.reset(which, self._draw(which))
            seen, _ = self._batch.look()
        return seen, rewards, np.zeros(self.num_envs, np.bool_), done, info

    def fork(self, copies: int = 1) -> Self:
        """Give so many copies of each connection, those of the first one first."""
        fork = copy.copy(self)
        fork._batch = self._batch.fork(copies)
        fork.num_envs = self.num_envs * copies
        fork._spaces()
        if self._np_random is not None:
            fork._np_random = copy.deepcopy(self._np_random)
        if self._own is not None:
            fork._own = [copy.deepcopy(own) for own in self._own for _ in range(copies)]
        return fork

    def _draw(self, which: Sequence[int]) -> list[int]:
        if self._own is not None:
            return [int(self._own[i].integers(SEEDS)) for i in which]
        return [int(n) for n in self.np_random.integers(SEEDS, size=len(which))]


class RateEnv(IntervalEnv):
    """An agent that sets a pacing rate: `trimtab/Rate-v0`."""

    knob, default = "rate", Task.rate()


class WindowEnv(IntervalEnv):
    """An agent that sets a congestion window: `trimtab/Window-v0`."""

    knob, default = "window", Task.window()


class RateVectorEnv(IntervalVectorEnv):
    """Many agents, each with a pacing rate and a link of its own."""

    knob, default = "rate", Task.rate()


class WindowVectorEnv(IntervalVectorEnv):
    """Many agents, each with a congestion window and a link of its own."""

    knob, default = "window", Task.window()
