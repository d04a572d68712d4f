"""Says what each choice comes to: in the true future, in others of the same path, or in worlds of a twin."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab._native import Course, Episodes, TwinPrior, Twins, redrawn_outcomes
from trimtab.train.options import Training

#: Connections by which it is measured how alike states of the same path are.
MEASURED = 60

#: Costs in seconds, shares of packets lost, and harm: of each a row for each connection.
Tried = tuple[list[list[float]], list[list[float]], list[list[float]]]


class Teacher:
    """Tries each choice at the decisions of a batch of connections."""

    def __init__(self, settings: Training, course: Course) -> None:
        self.horizon, self.futures = settings.horizon, settings.futures
        self.prior = TwinPrior(course, MEASURED) if settings.teacher == "twin" else None
        self.twins: Twins | None = None
        self.seed = 0

    def begin(self, episodes: Episodes, seeds: Sequence[int]) -> None:
        """Take in the first period of a batch."""
        # Small enough to be multiplied.
        self.seed = seeds[0] % 2**32 if seeds else 0
        if self.prior is not None:
            self.twins = Twins(self.prior, episodes, self.futures, self.seed)

    def observe(self, episodes: Episodes) -> None:
        """Take in another one."""
        if self.twins is not None:
            self.twins.observe(episodes)

    def outcomes(self, episodes: Episodes, decision: int) -> list[Tried]:
        """Try every choice, in each future."""
        if self.twins is not None:
            worlds = self.twins.worlds(episodes, decision).outcomes(self.horizon)
            # The worlds of a twin come one after another.
            every = self.futures
            return [(worlds[0][i::every], worlds[1][i::every], worlds[2][i::every]) for i in range(every)]
        if self.futures == 1:
            return [episodes.outcomes(self.horizon)]
        # What is drawn for the first connection differs from decision to decision, and from batch to batch.
        first = (self.seed + decision) * self.futures
        return [redrawn_outcomes(episodes, self.horizon, 1, first + i) for i in range(self.futures)]
