"""Running every algorithm on successive visits to the same paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab._native import Episodes
from trimtab.memory.options import Visits

#: Paths at a time.
BATCH = 50

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """What connections came to, by path, visit and arm. A visit without requests has nan."""

    rewards: Floats
    """-ln of the mean completion time in seconds."""
    sizes: Floats
    """ln of the mean size of a response in bytes, which a server knows."""
    states: Floats
    """What a policy sees of them in the end, along a fourth axis."""

    def where(self, paths: NDArray[np.bool_]) -> Seen:
        """Give some paths of these."""
        return Seen(self.rewards[paths], self.sizes[paths], self.states[paths])

    def whole(self) -> Seen:
        """Give the paths whose visits all had requests."""
        missing = np.isnan(self.rewards).any(axis=(1, 2))
        return self.where(np.asarray(~missing))


def see(settings: Visits, split: str, paths: int, visits: int, say: Callable[[str], None]) -> Seen:
    """Run every arm on every visit to every path."""
    shape = (paths, visits, len(settings.names()))
    features = len(settings.course(split, settings.names()[0]).course().features)
    seen = Seen(np.full(shape, np.nan), np.full(shape, np.nan), np.zeros((*shape, features)))
    for arm, name in enumerate(settings.names()):
        course = settings.course(split, name).course()
        for visit in range(visits):
            say(f"{split}: {name}, visit {visit + 1} of {visits}")
            for begin in range(0, paths, BATCH):
                numbers = range(begin, min(begin + BATCH, paths))
                seeds = [settings.seed * 1_000_003 + number for number in numbers]
                episodes = Episodes.visits(course, seeds, visit)
                for _ in range(settings.periods - 1):
                    episodes.step([arm] * len(seeds))
                bytes_of = episodes.sizes()
                states = np.asarray(episodes.states(), np.float64).reshape(len(seeds), -1)
                seen.states[numbers.start : numbers.stop, visit, arm] = states
                for number, times, size in zip(numbers, episodes.completions(), bytes_of, strict=True):
                    if times:
                        seen.rewards[number, visit, arm] = -np.log(np.mean(times))
                        seen.sizes[number, visit, arm] = np.log(max(size, 1) / len(times))
    return seen
