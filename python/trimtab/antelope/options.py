"""Settings of a training, each with its help: the command line is made of them."""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trimtab.course import LEARNT_KINDS
from trimtab.train import options as floo
from trimtab.train.options import Training

#: Every connection lasts as long (Floo, section 5.1), whatever the period.
SECONDS = 180
#: The least periods of a connection: something must run before the first decision, and be judged after it.
PERIODS_MIN = 2


def _option(default: Any, about: str) -> Any:
    return field(default=default, metadata={"help": about})


@dataclass(frozen=True)
class Boosting:
    """One training of models that foretell what each algorithm would be worth (Antelope)."""

    out: Path = _option(Path("out/antelope"), "folder for the model, its card and checkpoints")
    seed: int = _option(1, "seed of everything that is drawn")
    connections: int = _option(1_200, "connections of three minutes to learn from, for each period")
    parallel: int = _option(50, "connections at a time")
    periods_ms: str = _option(
        "500,1000,2000,4000,12000", "selection periods to try, in ms; the validation connections decide"
    )
    algorithms: str = _option(
        "cubic;bbr;copa:mvfst,min_rtt_window=30;westwood;vegas",
        "what to choose from; with ; between where knobs have commas",
    )
    first: str = _option(
        "copa:mvfst,min_rtt_window=30",
        "what connections start with where nothing is known of their destination, and the fallback",
    )
    traffic: str = _option("web,web-burst", "applications: web, web-burst, download")
    flows: str = _option("1", "connections that share a path, all with the same choice, drawn from this list")
    conditions: int = _option(1_000, "network conditions in the space-filling design")
    generated: int = _option(128, "generated links; a fifth of them is for validation")
    traces: Path | None = _option(None, "folder of recordings: a folder of Mahimahi traces for each kind")
    kinds: str = _option(",".join(LEARNT_KINDS), "the kinds to take from it")
    resume: bool = _option(False, "go on from the checkpoints in the folder")
    validate: int = _option(100, "connections to choose the period by, over links kept back from learning")
    judge: int = _option(300, "connections to judge the model by, over links that nothing was chosen by")

    def periods(self) -> list[int]:
        """List the periods to try, in ms."""
        return [int(text) for text in self.periods_ms.split(",")]

    def training(self, period_ms: int) -> Training:
        """Give the settings as Floo's training has them, for this period."""
        return Training(
            method="counterfactual",
            out=self.out,
            seed=self.seed,
            episodes=self.connections,
            periods=SECONDS * 1000 // period_ms,
            parallel=self.parallel,
            period_ms=period_ms,
            algorithms=self.algorithms,
            first=self.first,
            traffic=self.traffic,
            flows=self.flows,
            conditions=self.conditions,
            generated=self.generated,
            traces=self.traces,
            kinds=self.kinds,
            judge=self.judge,
        )


def parse(arguments: list[str]) -> Boosting:
    """Read the command line; ends the program where it makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m trimtab.train antelope", description=Boosting.__doc__)
    for option in dataclasses.fields(Boosting):
        name, about, default = f"--{option.name}", option.metadata["help"], option.default
        if isinstance(default, bool):
            parser.add_argument(name, action="store_true", help=about)
            continue
        kind = Path if "Path" in str(option.type) else type(default)
        shown = about if default is None else f"{about} [{default}]"
        parser.add_argument(name, type=kind, default=default, help=shown)
    boosting = Boosting(**vars(parser.parse_args(arguments)))
    wrong = problem(boosting)
    if wrong is not None:
        parser.error(wrong)
    return boosting


def problem(boosting: Boosting) -> str | None:
    """Say what cannot be, before a training spends its time on it; none when nothing is wrong."""
    texts = boosting.periods_ms.split(",")
    most = SECONDS * 1000 // PERIODS_MIN
    if not all(text.isdigit() and 1 <= int(text) <= most for text in texts) or len(set(texts)) < len(texts):
        return f"--periods_ms is {boosting.periods_ms}; it must be different numbers from 1 to {most}"
    for name in ("connections", "validate"):
        if getattr(boosting, name) < 1:
            return f"--{name} is {getattr(boosting, name)}; it must be at least 1"
    if boosting.generated < 5:
        return f"--generated is {boosting.generated}; it must be at least 5, for a fifth is for validation"
    return floo.problem(boosting.training(boosting.periods()[0]))
