"""The model's card: what it is, what it learnt from, what it is worth, and how to make it again."""

from __future__ import annotations

import os
import shlex
from typing import Any

import numpy as np

from trimtab.policy import Policy
from trimtab.train.evaluate import PERIODS, Judged
from trimtab.train.options import Training


def write(
    settings: Training,
    policy: Policy,
    judged: Judged,
    *,
    checksum: str,
    progress: dict[str, Any],
    arguments: list[str],
) -> str:
    """Give the card as Markdown."""
    # Where it was interrupted and went on, the whole of it is what to repeat.
    whole = [argument for argument in arguments if argument != "--resume"]
    command = shlex.join(["python", "-m", "trimtab.train", *whole])
    recorded = f", recordings of {settings.kinds}" if settings.traces is not None else ""
    best = judged.best_single()
    summed = {"mean": "the mean", "p90": "the 90th percentile of the"}[settings.objective]
    seconds = PERIODS * settings.period_ms / 1000
    return f"""# Model card: Floo by {settings.method}

Chooses among {", ".join(policy.algorithms)} every {policy.period_ms / 1000:g} s; starts with
{policy.first}, and falls back to it where a state is unlike what it learnt from. One hidden layer of
{policy.w1.shape[0]} units, leaky ReLU, softmax; {len(policy.features)} features. Its checksum:
`{checksum}`.

## Training

| what | value |
|---|---|
| command | `{command}` |
| seed | {settings.seed} |
| connections | {settings.count()} of {settings.course().periods} periods: {settings.traffic} |
| on one path | {settings.flows} |
| objective | {settings.objective} |
| links | {settings.generated} generated{recorded} |
| conditions | {settings.conditions}, by the WSP algorithm over Floo's table 4 |
| decisions | {progress["decisions"]} |
| periods simulated | {progress["periods"]}, forks included |
| time | {progress["seconds"] / 3600:.2f} h on {os.cpu_count()} cores |

Of the periods simulated, the first one of each connection is not counted, in which nothing is chosen, nor
are those that scale the states of PPO and those of the evaluation.

## Evaluation

On {len(judged.times["policy"])} connections of {seconds:g} s over links and conditions that training did
not see, Wi-Fi among them: {summed} completion time of each. What is open at the end runs on for 60 s at most;
a request that is not complete then counts up to there. Changes and shares are by ratio, averaged over
connections, beside `{best}`, the best single algorithm. `static-best` is the best single algorithm of each
connection in hindsight; `oracle` tries every choice on forks, two periods ahead, before it chooses.

| who chooses | mean | median | p90 | change | of the gap to the oracle |
|---|---:|---:|---:|---:|---:|
{rows(judged)}
"""


def rows(judged: Judged) -> str:
    """Give a row of the table for everyone who chose."""

    def row(name: str) -> str:
        times = judged.times[name]
        mean, median, p90 = times.mean(), np.median(times), np.percentile(times, 90)
        change = judged.change(name, judged.best_single())
        numbers = f"{mean:.3f} s | {median:.3f} s | {p90:.3f} s | {change:+.1%} | {judged.closed(name):.0%}"
        return f"| {name} | {numbers} |"

    order = ["policy", *judged.algorithms, "random", "static-best", "oracle"]
    return "\n".join(row(name) for name in order)
