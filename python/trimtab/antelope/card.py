"""The model's card: what it is, what it learnt from, what it is worth, and how to make it again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Protocol

from trimtab.antelope.boosted import DEPTH, GAMMA, RATE, TREES, Boosted
from trimtab.antelope.options import SECONDS, Boosting
from trimtab.train.card import evaluation
from trimtab.train.evaluate import Judged


class Outcome(Protocol):
    """What a period came to (`trimtab.antelope.train.Tried`)."""

    lessons: int
    worth: tuple[float, float, float]
    change: float


def write(
    settings: Boosting,
    model: Boosted,
    tried: Mapping[int, Outcome],
    judged: Judged,
    *,
    checksum: str,
    seconds: float,
    arguments: list[str],
    opened: list[str],
) -> str:
    """Give the card as Markdown."""
    # Where it was interrupted and went on, the whole of it is what to repeat.
    whole = [argument for argument in arguments if argument != "--resume"]
    command = shlex.join(["python", "-m", "trimtab.train", "antelope", *whole])
    recorded = f", recordings of {settings.kinds}" if settings.traces is not None else ""
    return f"""# Model card: Antelope

Foretells for each of {", ".join(model.algorithms)} what the next {model.period_ms / 1000:g} s
under it would be worth, and chooses the best; starts with {model.first}, and falls back to it where
the inputs are unlike what it learnt from. {TREES} boosted regression trees of depth {DEPTH} for each,
learning rate {RATE:g}, gamma {GAMMA:g}, over {len(model.features)} features. Its checksum:
`{checksum}`.

## Training

| what | value |
|---|---|
| command | `{command}` |
| seed | {settings.seed} |
| connections | {settings.connections} of {SECONDS} s for each period: {settings.traffic} |
| on one path | {settings.flows} |
| labels | the reward of each algorithm in the next period, all of them run on forks of the same world |
| links | four fifths of {settings.generated} generated{recorded}; the others are for validation |
| conditions | {settings.conditions}, by the WSP algorithm over Floo's table 4; others for validation |
| time | {seconds / 3600:.2f} h on {os.cpu_count()} cores, evaluation included |

Half of the connections choose at random, the rest by the models fitted so far, with excursions.

The selection period is the one with the shortest completion times on {settings.validate} connections over
the links for validation, vs. `{model.first}` alone. The mean reward there is that of what the model
prefers, of a random choice and of the best one:

| period | decisions learnt from | reward by the model | at random | at best | completion time |
|---:|---:|---:|---:|---:|---:|
{_periods(tried)}

## Evaluation

{evaluation(judged, opened, "the mean completion time of each", SECONDS)}

`random` and `oracle` choose every 12 s, as Floo does.
"""


def _periods(tried: Mapping[int, Outcome]) -> str:
    def row(period_ms: int, outcome: Outcome) -> str:
        by_model, at_random, at_best = outcome.worth
        numbers = f"{by_model:.4f} | {at_random:.4f} | {at_best:.4f} | {outcome.change:+.1%}"
        return f"| {period_ms / 1000:g} s | {outcome.lessons} | {numbers} |"

    return "\n".join(row(*item) for item in tried.items())
