"""What crates/py offers."""

from collections.abc import Sequence
from os import PathLike

class Course:
    def __init__(
        self,
        *,
        algorithms: Sequence[str],
        period_ms: int,
        periods: int,
        split: str,
        conditions: int,
        generated: int,
        wifi: int,
        traces: str | PathLike[str] | None,
        kinds: Sequence[str],
        traffic: Sequence[str],
        flows: Sequence[int],
        start: int | None,
        full_switch: bool,
        objective: str,
    ) -> None: ...
    @property
    def links(self) -> list[str]: ...
    @property
    def features(self) -> list[str]: ...
    def describe(self, seed: int) -> str: ...

class Episodes:
    def __init__(self, course: Course, seeds: Sequence[int]) -> None: ...
    def __len__(self) -> int: ...
    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None: ...
    def states(self) -> list[float]: ...
    def current(self) -> list[int]: ...
    def step(self, actions: Sequence[int]) -> tuple[list[float], list[float], list[float], list[bool]]: ...
    def costs(self, periods: int) -> list[list[float]]: ...
    def completions(self) -> list[list[float]]: ...
    def events(self) -> int: ...

class MusesEnvironments:
    def __init__(
        self,
        *,
        setting: str,
        part: str,
        length_ms: int,
        traces: str | PathLike[str] | None,
        kinds: Sequence[str],
        generated: int,
        delay_max_ms: int | None,
        alpha_percent: int,
        ahead: bool,
        even_at_mbps: float | None,
    ) -> None: ...
    @staticmethod
    def signals() -> list[str]: ...
    def describe(self, seed: int) -> str: ...

class MusesRollouts:
    def __init__(
        self,
        environments: MusesEnvironments,
        seeds: Sequence[int],
        flows: int,
        decisions: int | None = None,
        *,
        length_ms: int | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def states(self) -> bytes: ...
    def flows(self) -> bytes: ...
    def best(self) -> bytes: ...
    def act(self, actions: bytes) -> None: ...
    def outcomes(self) -> list[tuple[float, float, float]]: ...
    def delivered(self) -> list[list[int]]: ...

def muses_outcomes(
    environments: MusesEnvironments,
    seeds: Sequence[int],
    *,
    flows: int,
    length_ms: int,
    algorithm: str | None = None,
    trees: bytes | None = None,
) -> list[tuple[float, float, float]]: ...
