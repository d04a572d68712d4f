"""Settings of a training, each with its help: the command line is made of them."""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimtab.course import RIVAL_KINDS, Settings
from trimtab.options import DRAWN_RANGES, Drawn, add_options, option, out_of_range
from trimtab.policy import split_names
from trimtab.train.lessons import Prices

#: The least of each number, and the most where there is one. What learns or reads the model takes no others.
RANGES: dict[str, tuple[float, float | None]] = {
    "seed": (0, None),
    "episodes": (0, None),
    "periods": (0, None),
    "parallel": (1, None),
    "period_ms": (1, 3_600_000),
    **DRAWN_RANGES,
    "judge": (1, None),
    "horizon": (1, None),
    "futures": (1, 1024),
    "loss_budget": (0.0, 1.0),
    "loss_price": (0.0, 100.0),
    "harm_price": (0.0, 100.0),
    "trees": (0, 1_000),
    "leaves": (2, 32_767),
    "members": (1, 16),
    "caution": (0.0, 10.0),
    "margin": (0.0, 10.0),
}
#: The most connections that share a path, and what sums up their completion times.
FLOWS_MAX = 64
OBJECTIVES = ("mean", "p90")
#: What PPO learns by.
REWARDS = ("baseline", "paper")
#: Where counterfactual learning tries choices.
TEACHERS = ("path", "twin")
#: The most algorithms that `trimtab` chooses among.
CANDIDATES_MAX = 16


@dataclass(frozen=True)
class Training(Drawn):
    """One training of a policy that selects algorithms (Floo)."""

    method: str = option("ppo", "ppo (Floo, table 7) or counterfactual (each choice tried on a fork)")
    out: Path = option(Path("out/floo"), "folder for the model, its card, checkpoints and logs")
    seed: int = option(1, "seed of everything that is drawn")
    episodes: int = option(0, "connections to learn from; 0: 3000 by ppo, 3000 by counterfactual")
    periods: int = option(0, "selection periods of one; 0: 50 by ppo (Floo, table 7), 18 by counterfactual")
    parallel: int = option(10, "connections at a time (Floo, appendix C: 10)")
    period_ms: int = option(12_000, "the selection period in ms (Floo, appendix F)")
    algorithms: str = option(
        "cubic,bbr,copa,westwood",
        "what to choose from (Floo, section 4.1); with ; between where knobs have commas",
    )
    first: str = option("bbr", "what connections start with once the policy is in use, and its fallback")
    traffic: str = option("web,web-burst", "applications: web, web-burst, download")
    flows: str = option("1", "connections that share a path, all with the same choice, drawn from this list")
    rivals: str = option(
        "0",
        "flows of others on the path, drawn from this list, e.g. 0,0,1,2,4,8; each starts in the first half",
    )
    rival_kinds: str = option(",".join(RIVAL_KINDS), "what they are, drawn from this list")
    loss_budget: float = option(0.05, "share of packets that may be lost for nothing")
    loss_price: float = option(
        5.0, "cost of each share of packets lost beyond it, as ln(completion time): 5 counts 10% more as +65%"
    )
    harm_price: float = option(
        1.0,
        "cost of each share of the rivals' throughput taken beyond what CUBIC takes, as ln(completion time)",
    )
    also: str = option(
        "", "counterfactual: folders of other trainings with the same choices, whose lessons are fitted, too"
    )
    trees: int = option(
        0, "counterfactual: trees of each member of the ensemble; 0: a network of 200 units in their place"
    )
    leaves: int = option(128, "counterfactual: the most leaves of a tree")
    members: int = option(5, "counterfactual: policies in the ensemble, each of a sample of the connections")
    caution: float = option(
        1.0, "counterfactual: standard deviations of the ensemble that are taken off a switch's advantage"
    )
    margin: float = option(0.02, "counterfactual: what a switch costs, as ln(completion time)")
    objective: str = option("mean", "what sums up completion times (Floo, section 5.5.2): mean, p90")
    resume: bool = option(False, "go on from the last checkpoint in the folder")
    judge: int = option(300, "connections to judge the policy by, over links that it has not seen")
    against: str = option("", "other algorithms to compare the policy with, written as --algorithms")
    final: bool = option(
        False,
        "judge on the links of the test, once all is chosen; else on those for validation",
    )
    reward: str = option(
        "baseline",
        "ppo: baseline (completion times compared with those of --first on the same connection), or paper "
        "(Floo, section 3.3; its sum is the same for every policy, so it is there for comparison)",
    )
    horizon: int = option(6, "counterfactual: periods for which each choice is tried")
    teacher: str = option(
        "path",
        "counterfactual: where each choice is tried: path (on the connection's own path) or twin (in worlds "
        "that it may run in, by what was seen)",
    )
    futures: int = option(
        1,
        "counterfactual: futures in which each choice is tried: 1 is the true one, more are drawn anew; with "
        "--teacher twin, the worlds",
    )
    ray: str = option("", "address of a Ray cluster that runs the connections; empty: this machine")

    def count(self) -> int:
        """Count the connections to learn from."""
        return self.episodes or {"ppo": 3_000, "counterfactual": 3_000}[self.method]

    def names(self) -> tuple[str, ...]:
        """List the algorithms."""
        return split_names(self.algorithms)

    def prices(self) -> Prices:
        """Give what loss and harm cost."""
        return Prices(self.loss_budget, self.loss_price, self.harm_price)

    def singles(self) -> tuple[str, ...]:
        """List the algorithms that a policy is compared with: the candidates and those of `against`."""
        others = split_names(self.against) if self.against else ()
        return tuple(dict.fromkeys((*self.names(), *others)))

    def course(self, **changes: Any) -> Settings:
        """Give the settings of the episodes that are learnt from, or of others by `changes`."""
        settings = Settings(
            algorithms=self.names(),
            period_ms=self.period_ms,
            periods=self.periods or {"ppo": 50, "counterfactual": 18}[self.method],
            conditions=self.conditions,
            generated=self.generated,
            traces=self.traces,
            kinds=tuple(self.kinds.split(",")),
            traffic=tuple(self.traffic.split(",")),
            flows=tuple(int(count) for count in self.flows.split(",")),
            rivals=tuple(int(count) for count in self.rivals.split(",")),
            rival_kinds=tuple(self.rival_kinds.split(",")),
            objective=self.objective,
            split="train",
        )
        return dataclasses.replace(settings, **changes)


def parse(arguments: list[str]) -> Training:
    """Read the command line; ends the program where it makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m trimtab.train", description=__doc__)
    commands = parser.add_subparsers(required=True)
    floo = commands.add_parser(
        "floo", help="select the algorithm of a running connection", description=Training.__doc__
    )
    # Their options are their own: trimtab.{muses,antelope,bounds,memory}.options and trimtab.train.judge.
    commands.add_parser("muses", help="multiply the window of a connection every 10 ms", add_help=False)
    commands.add_parser("antelope", help="foretell what each algorithm is worth, and select", add_help=False)
    commands.add_parser("candidates", help="search for the set of algorithms to choose from", add_help=False)
    commands.add_parser("bounds", help="bound what choosing among some algorithms can gain", add_help=False)
    commands.add_parser("judge", help="judge a policy alone and next to rivals of each kind", add_help=False)
    commands.add_parser("memory", help="measure what a memory per destination is worth", add_help=False)
    add_options(
        floo,
        Training,
        {"method": ("ppo", "counterfactual"), "reward": REWARDS, "teacher": TEACHERS},
        silent=(None, "", 0),
    )
    training = Training(**vars(parser.parse_args(arguments)))
    wrong = problem(training)
    if wrong is not None:
        floo.error(wrong)
    return training


def problem(training: Training) -> str | None:
    """Say what cannot be, before a training spends hours on it; none when nothing is wrong."""
    wrong = out_of_range(training, RANGES) or _listed_problem(training)
    if wrong is not None:
        return wrong
    names = training.names()
    for name in training.singles():
        # A knob by itself: the list has commas between its knobs and none of what separates names.
        if "=" in name and ":" not in name:
            return f"{name} is a knob and no algorithm: end each name with ;, as in 'copa:mvfst,{name};'"
    if training.periods == 1:
        return "--periods is 1; it must be at least 2, for the first runs before anything is chosen"
    if not 2 <= len(names) <= CANDIDATES_MAX or len(set(names)) < len(names):
        return f"--algorithms is {training.algorithms}; it must be 2 to {CANDIDATES_MAX} different ones"
    if training.first not in names:
        return f"--first is {training.first}; it must be one of --algorithms: {', '.join(names)}"
    return None


def _listed_problem(training: Training) -> str | None:
    if not all(count.isdigit() and 1 <= int(count) <= FLOWS_MAX for count in training.flows.split(",")):
        return f"--flows is {training.flows}; it must be numbers from 1 to {FLOWS_MAX} with commas between"
    if not all(count.isdigit() and int(count) <= FLOWS_MAX for count in training.rivals.split(",")):
        return f"--rivals is {training.rivals}; it must be numbers from 0 to {FLOWS_MAX} with commas between"
    if training.objective not in OBJECTIVES:
        return f"--objective is {training.objective}; it must be one of {', '.join(OBJECTIVES)}"
    return None
