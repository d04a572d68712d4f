"""What an agent does in `trimtab/Rate-v0` and `trimtab/Window-v0`: over which paths, what it turns and sees.

The tables of measures, rewards and actions are Rust's (`crates/envs/src/agents`): a further one is a line
there, and this module takes it as it is.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trimtab._native import Arenas, Paths, agents_tables
from trimtab.comparison import Texts, texts

#: A reward of one's own: by what `info` has of the interval. Of a batch these are arrays, one number for each
#: episode, and so is what it gives.
Reward = Callable[[Mapping[str, Any]], Any]

#: The link and the length of episodes where nothing names them.
LINK, DURATION = "constant:12Mbit/s", "30s"

_TABLES: dict[str, list[tuple[Any, ...]]] = agents_tables()

#: What can be seen of an interval: its meaning, and the range that observations of it lie in.
MEASURES: dict[str, tuple[str, tuple[float, float]]] = {
    name: (about, ends) for name, about, ends in _TABLES["measures"]
}
#: What systems of the literature observe.
OBSERVATIONS: dict[str, tuple[str, ...]] = {
    name: tuple(measures) for name, measures, _ in _TABLES["observations"]
}
#: Rewards by name: formula and source.
REWARDS: dict[str, tuple[str, str]] = {name: (about, source) for name, about, source in _TABLES["rewards"]}
#: What an action can mean: its effect on the knob and the source.
ACTIONS: dict[str, tuple[str, str]] = {name: (about, source) for name, about, source in _TABLES["actions"]}


@dataclass(frozen=True)
class Task:
    """What an agent does. Equal tasks and seeds give equal episodes on every machine.

    The first ten fields are the paths, and mean what they mean for :func:`trimtab.compare`. Of several values
    each episode draws a path of the grid.
    """

    traces: Texts = ()
    """Files in Mahimahi's format, globs, or generated ones, e.g. ``cellular:seed=1``; default: 12 Mbit/s."""
    rtt: Texts = ()
    """Base round-trip times, e.g. ``["20ms", "80ms"]``; default: 20 ms."""
    buffer: Texts = ()
    """Sizes of the bottleneck's buffer, e.g. ``1BDP``; default: 150 kB."""
    loss: Texts = ()
    """Random loss, e.g. ``0.1%``; default: none."""
    jitter: Texts = ()
    """Maximum extra delay per data packet, e.g. ``5ms``; default: none."""
    mark: str | None = None
    """When the bottleneck marks packets (ECN)."""
    transport: str | None = None
    """``quic``, ``noq`` or ``tcp``; default: ``quic``."""
    duration: str | None = None
    """How long an episode lasts at most; default: 30 s."""
    scenario: str | os.PathLike[str] | None = None
    """A scenario file with paths, designs or rivals; the fields above replace its parts."""
    next_to: Texts = ()
    """Schemes that compete with the agent, one endless flow each, e.g. ``["cubic", "bbr"]``."""
    action: str = "aurora"
    """What an action means: a name of ``ACTIONS``."""
    low: float = 0.1
    """The least that the knob can be set to: Mbit/s, or packets of 1500 bytes."""
    high: float = 1_000.0
    """The most."""
    start: float | None = None
    """What it begins with; none: ten packets in a round trip."""
    interval: str = "1rtt"
    """How long an action lasts: round trips, a time as ``30ms``, or ``ack``: to the next acknowledgement."""
    observe: str | tuple[str, ...] = "aurora"
    """What is seen of an interval: names of ``MEASURES``, or one of ``OBSERVATIONS``."""
    history: int = 10
    """How many intervals are seen, the oldest first."""
    reward: str | Reward = "aurora"
    """What an interval is worth: a name of ``REWARDS``, or a function of what ``info`` has."""
    steps: int | None = None
    """The most steps of an episode; none: as many as its duration allows."""

    @classmethod
    def rate(cls, **changes: Any) -> Task:
        """Aurora's: a pacing rate of 0.1 to 1000 Mbit/s, and these changes."""
        return cls(**changes)

    @classmethod
    def window(cls, **changes: Any) -> Task:
        """Orca's: a window of 2 to 10000 packets, by its observations and reward, and these changes."""
        orca: dict[str, Any] = {
            "action": "orca",
            "low": 2.0,
            "high": 10_000.0,
            "observe": "orca",
            "reward": "orca",
        }
        return cls(**(orca | changes))

    def changed(self, **changes: Any) -> Task:
        """Give a copy with other values of some fields."""
        return dataclasses.replace(self, **changes)

    def measures(self) -> tuple[str, ...]:
        """Name what is seen of an interval."""
        if isinstance(self.observe, str):
            return OBSERVATIONS.get(self.observe, (self.observe,))
        return tuple(self.observe)

    def paths(self, agents: int = 1) -> Paths:
        """Read the traces and lay out the grid.

        Raises ValueError when a value is wrong or a trace cannot be read.
        """
        bare = self.scenario is None
        return Paths(
            traces=texts("traces", self.traces) or ([LINK] if bare else []),
            transport=self.transport,
            rtt=texts("rtt", self.rtt),
            buffer=texts("buffer", self.buffer),
            loss=texts("loss", self.loss),
            jitter=texts("jitter", self.jitter),
            mark=self.mark,
            duration=self.duration or (DURATION if bare else None),
            scenario=self.scenario,
            next_to=texts("next_to", self.next_to),
            agents=agents,
        )

    def arenas(self, knob: str, paths: Paths, numbers: list[int]) -> Arenas:
        """Begin episodes of these numbers.

        Raises ValueError when a name is in no table or the values do not fit together.
        """
        return Arenas(
            paths,
            numbers,
            knob=knob,
            action=self.action,
            low=self.low,
            high=self.high,
            start=self.start,
            interval=self.interval,
            observe=self.measures(),
            history=self.history,
            reward=cast(str, self.reward) if self.named else None,
            steps=self.steps,
        )

    @property
    def named(self) -> bool:
        """Whether the reward is one of the table."""
        return isinstance(self.reward, str)
