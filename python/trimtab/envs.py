"""Gymnasium environments: each selection period, choose the algorithm of one connection.

The observation is the monitor's state (Floo, table 2) and which candidate runs, the action the number of an
algorithm, the reward ln(last completion time / current one) (Floo, section 3.3), and an episode one
connection over one path.
The rewards of an episode cancel, so a training by them sets others in their place: `trimtab.train.ppo`.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from trimtab._native import Course, Episodes
from trimtab.course import Settings

#: Seeds of episodes are below this.
SEEDS = 2**63
#: What a step's `info` has.
INFO = ("completion_s", "waited_s", "lost", "rivals_mb")


def _spaces(course: Course, settings: Settings) -> tuple[gym.Space[NDArray[np.float32]], gym.spaces.Discrete]:
    size = len(course.features)
    # Most features lie between 0 and 1, none is bounded.
    box: gym.Space[Any] = gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)
    return box, gym.spaces.Discrete(len(settings.algorithms))


def _plain(seed: int | np.integer[Any] | None) -> int | None:
    """Make Python's integer of any: Gymnasium takes no other."""
    return None if seed is None else int(seed)


def _course(settings: Settings | None, course: Course | None) -> tuple[Settings, Course]:
    settings = settings or Settings()
    return settings, course or settings.course()


class SelectEnv(gym.Env[NDArray[np.float32], np.int64]):
    """One connection. `reset` draws a path and a client; `step` chooses and runs one period.

    Each step's `info` has `completion_s`, the completion time of the period's requests (0 if none
    completed), `waited_s`, the time that all requests spent waiting, `lost`, the share of packets lost, and
    `rivals_mb`, what rivals received.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium declares it so

    def __init__(
        self, settings: Settings | None = None, course: Course | None = None, render_mode: str | None = None
    ) -> None:
        if render_mode is not None:
            raise ValueError("there is nothing to render")
        self.render_mode = None
        self.settings, self.course = _course(settings, course)
        self.observation_space, self.action_space = _spaces(self.course, self.settings)
        self._episode: Episodes | None = None

    def reset(
        self, *, seed: int | np.integer[Any] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin a connection and run its first period. `options={"episode": 7}` asks for a certain one."""
        super().reset(seed=_plain(seed))
        number = (options or {}).get("episode")
        number = int(self.np_random.integers(SEEDS)) if number is None else int(number)
        self._episode = Episodes(self.course, [number])
        return self._state(), {"episode": number}

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Choose the algorithm `action` for the next period and run it."""
        if self._episode is None:
            raise RuntimeError("reset the environment first")
        rewards, *measured, done, lost, rivals = self._episode.step([int(action)])
        info = {name: values[0] for name, values in zip(INFO, (*measured, lost, rivals), strict=True)}
        # The connection could go on: its time is up.
        return self._state(), rewards[0], False, done[0], info

    def _state(self) -> NDArray[np.float32]:
        assert self._episode is not None
        return np.asarray(self._episode.states(), np.float32)


class SelectVectorEnv(gym.vector.VectorEnv[NDArray[np.float32], NDArray[np.int64], NDArray[Any]]):
    """Connections that step together on all cores, without Python's lock.

    A connection whose time is up begins anew in the same step; its last state is in `info["final_obs"]`.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - as above

    def __init__(
        self, num_envs: int = 1, settings: Settings | None = None, course: Course | None = None
    ) -> None:
        self.num_envs = num_envs
        self.settings, self.course = _course(settings, course)
        self.single_observation_space, self.single_action_space = _spaces(self.course, self.settings)
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, num_envs)
        self._episodes: Episodes | None = None
        #: A generator for each connection, where each was given a seed of its own.
        self._own: list[np.random.Generator] | None = None

    def reset(
        self,
        *,
        seed: int | np.integer[Any] | Sequence[int | np.integer[Any] | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin all connections.

        One seed is for all of them together. Of a list, each connection has its own (none: a random one), and
        is then the same as that of a `SelectEnv` with this seed.
        Raises ValueError when the list is not as long as there are connections.
        """
        if seed is None or isinstance(seed, Integral):
            super().reset(seed=_plain(seed))  # type: ignore[arg-type]
            self._own = self._own if seed is None else None
        else:
            seeds = list(seed)  # type: ignore[arg-type]
            if len(seeds) != self.num_envs:
                raise ValueError(
                    f"there are {self.num_envs} connections and {len(seeds)} seeds: give one each"
                )
            self._own = [np_random(_plain(one))[0] for one in seeds]
        numbers = self._draw(range(self.num_envs))
        self._begin(numbers)
        return self._states(), {"episode": np.asarray(numbers)}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[
        NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Choose an algorithm for each connection and run a period."""
        if self._episodes is None:
            raise RuntimeError("reset the environment first")
        rewards, *measured, done, lost, rivals = self._episodes.step([int(a) for a in actions])
        states = self._states()
        truncated = np.asarray(done)
        values = (*measured, lost, rivals)
        info: dict[str, Any] = {name: np.asarray(of) for name, of in zip(INFO, values, strict=True)}
        if truncated.any():
            which = np.flatnonzero(truncated).tolist()
            final: NDArray[Any] = np.full(self.num_envs, None, dtype=object)
            for i in which:
                final[i] = states[i]
            info |= {"final_obs": final, "_final_obs": truncated}
            self._episodes.reset(which, self._draw(which))
            states = self._states()
        return states, np.asarray(rewards), np.zeros(self.num_envs, np.bool_), truncated, info

    def _begin(self, numbers: list[int]) -> None:
        self._episodes = Episodes(self.course, numbers)

    def _draw(self, which: Sequence[int]) -> list[int]:
        if self._own is not None:
            return [int(self._own[i].integers(SEEDS)) for i in which]
        return [int(n) for n in self.np_random.integers(SEEDS, size=len(which))]

    def _states(self) -> NDArray[np.float32]:
        assert self._episodes is not None
        return np.asarray(self._episodes.states(), np.float32).reshape(self.num_envs, -1)
