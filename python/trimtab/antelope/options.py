"""Settings of a training, each with its help: the command line is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trimtab.options import Drawn, option, out_of_range, read
from trimtab.train import options as floo
from trimtab.train.options import Training

#: Every connection lasts as long (Floo, section 5.1), whatever the period.
SECONDS = 180
#: The least periods of a connection: something must run before the first decision, and be judged after it.
PERIODS_MIN = 2


@dataclass(frozen=True)
class Boosting(Drawn):
    """One training of models that foretell what each algorithm would be worth (Antelope)."""

    out: Path = option(Path("out/antelope"), "folder for the model, its card and checkpoints")
    seed: int = option(1, "seed of everything that is drawn")
    connections: int = option(1_200, "connections of three minutes to learn from, for each period")
    parallel: int = option(50, "connections at a time")
    periods_ms: str = option(
        "500,1000,2000,4000,12000", "selection periods to try, in ms; the validation connections decide"
    )
    algorithms: str = option(
        "cubic;bbr;copa:mvfst,min_rtt_window=30;westwood;vegas",
        "what to choose from; with ; between where knobs have commas",
    )
    first: str = option(
        "copa:mvfst,min_rtt_window=30",
        "what connections start with where nothing is known of their destination, and the fallback",
    )
    traffic: str = option("web,web-burst", "applications: web, web-burst, download")
    flows: str = option("1", "connections that share a path, all with the same choice, drawn from this list")
    resume: bool = option(False, "go on from the checkpoints in the folder")
    validate: int = option(100, "connections to choose the period by, over links kept back from learning")
    judge: int = option(300, "connections to judge the model by, over links that it has not seen")
    final: bool = option(False, "judge on the test links, once all is chosen; else on those for validation")

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
            final=self.final,
        )


def parse(arguments: list[str]) -> Boosting:
    """Read the command line; ends the program where it makes no sense."""
    return read(Boosting, arguments, problem, command="antelope")


def problem(boosting: Boosting) -> str | None:
    """Say what cannot be, before a training spends its time on it; none when nothing is wrong."""
    texts = boosting.periods_ms.split(",")
    most = SECONDS * 1000 // PERIODS_MIN
    if not all(text.isdigit() and 1 <= int(text) <= most for text in texts) or len(set(texts)) < len(texts):
        return f"--periods_ms is {boosting.periods_ms}; it must be different numbers from 1 to {most}"
    wrong = out_of_range(boosting, {"connections": (1, None), "validate": (1, None)})
    if wrong is not None:
        return wrong
    if boosting.generated < 5:
        return f"--generated is {boosting.generated}; it must be at least 5, for a fifth is for validation"
    return floo.problem(boosting.training(boosting.periods()[0]))
