"""What crates/py offers."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Compared:
    def runs(self) -> dict[str, list[Any]]: ...
    def requests(self) -> dict[str, list[Any]]: ...
    def series(self) -> dict[str, list[Any]]: ...
    def summary(self) -> dict[str, list[Any]]: ...
    def json(self) -> str: ...
    def html(self) -> str: ...
    def svg(self, kind: str) -> str: ...
    def plot(self, kind: str, file: str | PathLike[str]) -> None: ...
    def write(self, folder: str | PathLike[str]) -> None: ...

def compared(
    *,
    app: Sequence[str],
    cc: Sequence[str],
    traces: Sequence[str],
    transport: str | None,
    workload: str | PathLike[str] | None,
    qoe: str | None,
    rtt: Sequence[str],
    buffer: Sequence[str],
    loss: Sequence[str],
    jitter: Sequence[str],
    mark: str | None,
    flows: Sequence[int],
    duration: str | None,
    seeds: int | None,
    first_seed: int | None,
    share_min: str | None,
    thin: int | None,
    scenario: str | PathLike[str] | None,
    jobs: int | None,
    details: bool,
    progress: bool,
    call: str,
) -> Compared: ...

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
        rivals: Sequence[int],
        rival_kinds: Sequence[str],
        start: int | None,
        full_switch: bool,
        objective: str,
    ) -> None: ...
    @property
    def links(self) -> list[str]: ...
    @property
    def features(self) -> list[str]: ...
    @staticmethod
    def antelope_features() -> list[str]: ...
    def describe(self, seed: int) -> str: ...

class Episodes:
    def __init__(self, course: Course, seeds: Sequence[int], starts: Sequence[int] | None = None) -> None: ...
    @staticmethod
    def visits(course: Course, seeds: Sequence[int], visit: int) -> Episodes: ...
    def __len__(self) -> int: ...
    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None: ...
    def states(self) -> list[float]: ...
    def measured(self) -> tuple[list[float], list[bool]]: ...
    def rewards(self) -> list[list[float]]: ...
    def current(self) -> list[int]: ...
    def step(
        self, actions: Sequence[int]
    ) -> tuple[list[float], list[float], list[float], list[bool], list[float], list[float]]: ...
    def costs(self, periods: int) -> list[list[float]]: ...
    def outcomes(self, periods: int) -> tuple[list[list[float]], list[list[float]], list[list[float]]]: ...
    def completions(self) -> list[list[float]]: ...
    def sizes(self) -> list[int]: ...
    def events(self) -> int: ...

class Arms:
    def __init__(
        self, worths: Sequence[float], covariance: Sequence[float], *, noise: float, drift: float
    ) -> None: ...
    def observe(self, arm: int, reward: float) -> None: ...
    def best(self) -> int: ...
    def draw(self, draw: int) -> int: ...
    def worths(self) -> list[tuple[float, float]]: ...

class Paths:
    def __init__(
        self,
        *,
        traces: Sequence[str],
        transport: str | None,
        rtt: Sequence[str],
        buffer: Sequence[str],
        loss: Sequence[str],
        jitter: Sequence[str],
        mark: str | None,
        duration: str | None,
        scenario: str | PathLike[str] | None,
        next_to: Sequence[str],
        agents: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    def describe(self, number: int) -> str: ...

class Arenas:
    def __init__(
        self,
        paths: Paths,
        numbers: Sequence[int],
        *,
        knob: str,
        action: str,
        low: float,
        high: float,
        start: float | None,
        interval: str,
        observe: Sequence[str],
        history: int,
        reward: str | None,
        steps: int | None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def action_range(self) -> tuple[float, float]: ...
    def reset(self, which: Sequence[int], numbers: Sequence[int], start: float | None = None) -> None: ...
    def step(
        self,
        actions: NDArray[np.float32],
        observations: NDArray[np.float32],
        rewards: NDArray[np.float64],
        measures: NDArray[np.float64],
        done: NDArray[np.uint8],
    ) -> None: ...
    def look(self, observations: NDArray[np.float32], measures: NDArray[np.float64]) -> None: ...
    def play(self, actions: NDArray[np.float32]) -> list[float]: ...
    def fork(self, copies: int) -> Arenas: ...
    def events(self) -> int: ...

def agents_tables() -> dict[str, list[tuple[Any, ...]]]: ...
def constants(
    course: Course, names: Sequence[str], runs: Sequence[tuple[int, int, int]]
) -> list[tuple[list[float], float, float]]: ...
def came_to(episodes: Episodes) -> list[tuple[list[float], float, float]]: ...
def redrawn_outcomes(
    episodes: Episodes, periods: int, futures: int, seed: int
) -> tuple[list[list[float]], list[list[float]], list[list[float]]]: ...

class TwinPrior:
    def __init__(self, course: Course, connections: int) -> None: ...

class Twins:
    def __init__(self, prior: TwinPrior, episodes: Episodes, particles: int, seed: int) -> None: ...
    def observe(self, episodes: Episodes) -> None: ...
    def worlds(self, episodes: Episodes, seed: int) -> Episodes: ...

def schemes() -> str: ...

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
        room_percent: int | None = None,
        span_ms: int = 0,
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

def muses_shown(
    environments: MusesEnvironments,
    seeds: Sequence[int],
    *,
    flows: int,
    length_ms: int,
    trees: bytes,
    by_oracle: bool,
) -> bytes: ...
def muses_outcomes(
    environments: MusesEnvironments,
    seeds: Sequence[int],
    *,
    flows: int,
    length_ms: int,
    algorithm: str | None = None,
    trees: bytes | None = None,
) -> list[tuple[float, float, float]]: ...
