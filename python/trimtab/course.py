"""What episodes are drawn from: links, network conditions, applications, algorithms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trimtab._native import Course

#: Kinds of recordings that policies learn on. Without Wi-Fi: Floo is judged on it unseen (section 5.1).
LEARNT_KINDS = ("broadband", "cellular-3g", "cellular-5g", "cellular-lte", "rail")


#: Kinds of rivals.
RIVAL_KINDS = ("cubic", "bbr", "bbr3", "copa", "web", "download")


@dataclass(frozen=True)
class Settings:
    """A course of study. Equal settings and seeds give equal episodes on every machine."""

    algorithms: tuple[str, ...] = ("cubic", "bbr", "copa", "westwood")
    """The algorithms to choose from, as `trimtab cc list` names them. Floo, section 4.1."""
    period_ms: int = 12_000
    """The selection period: how long a choice lasts. Floo, appendix F."""
    periods: int = 50
    """Periods of an episode; the first runs before anything is chosen. Floo, table 7: ten minutes."""
    split: str = "train"
    """The part of the links and conditions: "train" to learn on, "validate" to choose by, or "test". They
    have none in common. Recordings are split by traces/split.toml."""
    conditions: int = 1_000
    """Points of the space-filling design over table 4's ranges."""
    generated: int = 128
    """Generated links: cellular-like, constant and stepping ones."""
    wifi: int = 0
    """Generated Wi-Fi-like links, for judging only."""
    traces: Path | None = None
    """A folder of recordings, a folder of Mahimahi traces for each kind."""
    kinds: tuple[str, ...] = LEARNT_KINDS
    """The kinds to take from it."""
    traffic: tuple[str, ...] = ("web", "web-burst")
    """The applications: web, web-burst (no pauses between clicks), download."""
    flows: tuple[int, ...] = (1,)
    """How many connections share the path, drawn for each episode."""
    rivals: tuple[int, ...] = (0,)
    """How many flows of others share it, too, drawn for each episode. Each starts in its first half."""
    rival_kinds: tuple[str, ...] = RIVAL_KINDS
    """What each of them is, drawn: bulk data by cubic, bbr, bbr3 or copa; web or download by CUBIC."""
    start: str | None = None
    """The algorithm of the first period; none draws one."""
    full_switch: bool = True
    """Whether what is known of the path goes over to the new algorithm."""
    objective: str = "mean"
    """What sums up the completion times of a period: mean, or p90 (Floo, section 5.5.2)."""

    def course(self) -> Course:
        """Generate and read the links and lay out the conditions.

        Raises ValueError when a name is unknown or a recording cannot be read.
        """
        if self.start is not None and self.start not in self.algorithms:
            raise ValueError(f"start {self.start!r} is none of the algorithms {', '.join(self.algorithms)}")
        return Course(
            algorithms=self.algorithms,
            period_ms=self.period_ms,
            periods=self.periods,
            split=self.split,
            conditions=self.conditions,
            generated=self.generated,
            wifi=self.wifi,
            traces=self.traces,
            kinds=self.kinds,
            traffic=self.traffic,
            flows=self.flows,
            rivals=self.rivals,
            rival_kinds=self.rival_kinds,
            start=None if self.start is None else self.algorithms.index(self.start),
            full_switch=self.full_switch,
            objective=self.objective,
        )
