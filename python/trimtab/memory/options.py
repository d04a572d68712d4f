"""Settings of the measurement, each with its help: the command line is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trimtab.course import Settings
from trimtab.options import DRAWN_RANGES, Drawn, option, out_of_range
from trimtab.policy import split_names

RANGES: dict[str, tuple[float, float | None]] = {
    "paths": (2, None),
    "fitted": (10, None),
    "visits": (1, None),
    "periods": (1, None),
    "period_ms": (1, 3_600_000),
    **DRAWN_RANGES,
    "seed": (0, None),
    "drift": (0.0, 1.0),
}


@dataclass(frozen=True)
class Visits(Drawn):
    """Successive connections on the same paths, each begun with what the ones before it taught."""

    algorithms: str = option("cubic;bbr;bbr3;copa:mvfst", "the arms; with ; between where knobs have commas")
    traffic: str = option("web,web-burst", "applications: web, web-burst, download")
    flows: str = option("1", "connections that share a path, all with the same choice, drawn from this list")
    paths: int = option(100, "paths to judge by")
    fitted: int = option(300, "paths to learn the prior on, with 2 connections each")
    visits: int = option(20, "connections on each path")
    periods: int = option(5, "length of a connection, in periods")
    period_ms: int = option(12_000, "the period in ms")
    drift: float = option(0.01, "share of the prior's covariance that comes back with each connection")
    policy: Path | None = option(
        None, "a policy's file, to begin with what it prefers; its choices are the arms"
    )
    seed: int = option(1, "seed of the paths and of the draws")
    final: bool = option(False, "judge on the links of the test, once all is chosen; else for validation")
    json: Path | None = option(None, "file for the figures")

    def names(self) -> tuple[str, ...]:
        """List the arms."""
        return split_names(self.algorithms)

    def course(self, split: str, start: str) -> Settings:
        """Give the settings of connections that begin with `start`."""
        return Settings(
            algorithms=self.names(),
            period_ms=self.period_ms,
            periods=self.periods,
            split=split,
            conditions=self.conditions,
            generated=self.generated,
            traces=self.traces,
            kinds=tuple(self.kinds.split(",")),
            traffic=tuple(self.traffic.split(",")),
            flows=tuple(int(count) for count in self.flows.split(",")),
            start=start,
        )


def problem(settings: Visits) -> str | None:
    """Say what cannot be; none when nothing is wrong."""
    if len(settings.names()) < 2 or len(set(settings.names())) < len(settings.names()):
        return f"--algorithms is {settings.algorithms}; it must be 2 or more different ones"
    if not all(count.isdigit() and int(count) >= 1 for count in settings.flows.split(",")):
        return f"--flows is {settings.flows}; it must be numbers from 1 on with commas between"
    return out_of_range(settings, RANGES)
