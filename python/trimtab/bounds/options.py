"""Settings of the bounds, each with its help: the command line is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trimtab.course import RIVAL_KINDS, Settings
from trimtab.options import DRAWN_RANGES, Drawn, option, out_of_range, read
from trimtab.policy import split_names
from trimtab.train.lessons import Prices
from trimtab.train.options import CANDIDATES_MAX, FLOWS_MAX

#: All fixed settings: every algorithm for these applications, Copa also as policies have had it so far and
#: with other values of its first knob, and Mortise.
POOL = (
    "cubic;bbr;bbr3;copa;copa:mvfst;copa:mvfst,min_rtt_window=30;copa:mvfst,delta=0.1;"
    "copa:mvfst,delta=0.02;vegas;ledbat;vivace;westwood;illinois;newreno;mortise"
)
#: What harm to others is measured by.
CUBIC = "cubic"
#: The least of each number, and the most where there is one.
RANGES: dict[str, tuple[float, float | None]] = {
    "paths": (2, None),
    "futures": (2, 64),
    "seed": (0, None),
    "period_ms": (1, 3_600_000),
    "periods": (2, None),
    **DRAWN_RANGES,
    "most": (1, CANDIDATES_MAX),
    "horizon": (1, None),
    "fitted": (2, None),
    "particles": (0, 1024),
    "loss_budget": (0.0, 1.0),
    "loss_price": (0.0, 100.0),
    "harm_price": (0.0, 100.0),
}
SPLITS = ("train", "validate", "test")
#: The most rivals on a path.
RIVALS_MAX = 64


@dataclass(frozen=True)
class Bounding(Drawn):
    """What could be gained by choosing among algorithms, on the same connections for everyone."""

    out: Path = option(Path("out/bounds"), "folder for what was simulated, the result as JSON and as a table")
    seed: int = option(0, "the first connection; the others follow it")
    paths: int = option(200, "connections, each over a path of its own")
    futures: int = option(9, "times at which each path is tried; one is the truth, the others tell of it")
    pool: str = option(POOL, "the fixed settings to compare with, with ; between")
    algorithms: str = option(
        "copa:mvfst;copa:mvfst,delta=0.1;copa:mvfst,delta=0.02;copa;cubic",
        "what is chosen from, with ; between",
    )
    most: int = option(6, "candidates: the most that a set may have")
    traffic: str = option("web,web-burst,download", "applications: web, web-burst, download")
    flows: str = option(
        "1,1,2,4", "connections that share a path, all with the same choice, drawn from this list"
    )
    rivals: str = option("0", "flows of others on the path, drawn from this list, e.g. 0,0,1,2,4,8")
    rival_kinds: str = option(",".join(RIVAL_KINDS), "what they are, drawn from this list")
    loss_budget: float = option(0.05, "share of packets that may be lost for nothing")
    loss_price: float = option(5.0, "cost of each share of packets lost beyond it, as ln(completion time)")
    harm_price: float = option(
        1.0,
        "cost of each share of the rivals' throughput taken beyond what CUBIC takes, as ln(completion time)",
    )
    horizon: int = option(6, "bounds: periods for which each choice is tried")
    fitted: int = option(400, "bounds: connections over links to learn on, by which costs are foretold")
    particles: int = option(
        32, "bounds: worlds of each connection's digital twin, which chooses, too; 0: no twin"
    )
    split: str = option("validate", "links and conditions: train, validate, test")
    period_ms: int = option(12_000, "the selection period in ms (Floo, appendix F)")
    periods: int = option(15, "selection periods of a connection (three minutes, Floo, section 5.1)")

    def prices(self) -> Prices:
        """Give what loss and harm cost."""
        return Prices(self.loss_budget, self.loss_price, self.harm_price)

    def names(self) -> tuple[str, ...]:
        """List what is chosen from."""
        return split_names(self.algorithms)

    def all_names(self) -> tuple[str, ...]:
        """List all that a fixed setting may be, with what is chosen from, and CUBIC, by which harm goes."""
        return tuple(dict.fromkeys([*split_names(self.pool), *self.names(), CUBIC]))

    def course(
        self, algorithms: tuple[str, ...], split: str | None = None, objective: str = "mean"
    ) -> Settings:
        """Give the settings of connections that choose from some algorithms."""
        return Settings(
            algorithms=algorithms,
            period_ms=self.period_ms,
            periods=self.periods,
            split=split or self.split,
            conditions=self.conditions,
            generated=self.generated,
            traces=self.traces,
            kinds=tuple(self.kinds.split(",")),
            traffic=tuple(self.traffic.split(",")),
            flows=tuple(int(count) for count in self.flows.split(",")),
            rivals=tuple(int(count) for count in self.rivals.split(",")),
            rival_kinds=tuple(self.rival_kinds.split(",")),
            objective=objective,
        )


def parse(arguments: list[str], command: str) -> Bounding:
    """Read the command line; ends the program where it makes no sense."""
    return read(Bounding, arguments, problem, {"split": SPLITS}, command=command)


def problem(bounding: Bounding) -> str | None:
    """Say what cannot be, before hours are spent on it; none when nothing is wrong."""
    if not all(count.isdigit() and 1 <= int(count) <= FLOWS_MAX for count in bounding.flows.split(",")):
        return f"--flows is {bounding.flows}; it must be numbers from 1 to {FLOWS_MAX} with commas between"
    if not all(count.isdigit() and int(count) <= RIVALS_MAX for count in bounding.rivals.split(",")):
        return f"--rivals is {bounding.rivals}; it must be numbers from 0 to {RIVALS_MAX} with commas between"
    names = bounding.names()
    if not 2 <= len(names) <= CANDIDATES_MAX or len(set(names)) < len(names):
        return f"--algorithms is {bounding.algorithms}; it must be 2 to {CANDIDATES_MAX} different ones"
    return out_of_range(bounding, RANGES)
