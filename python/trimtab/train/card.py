"""The model's card: what it is, what it learnt from, what it is worth, and how to make it again."""

from __future__ import annotations

import datetime
import os
import shlex
from pathlib import Path
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
    opened: list[str],
) -> str:
    """Give the card as Markdown. `opened` says when the test was opened for models of this folder."""
    # Where it was interrupted and went on, the whole of it is what to repeat.
    whole = [argument for argument in arguments if argument != "--resume"]
    command = shlex.join(["python", "-m", "trimtab.train", *whole])
    recorded = f", recordings of {settings.kinds}" if settings.traces is not None else ""
    learnt_by = f"\n| reward | {settings.reward} |" if settings.method == "ppo" else ""
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
| objective | {settings.objective} |{learnt_by}
| links | four fifths of {settings.generated} generated{recorded}; the others are for validation |
| recordings | split by source and session: none of one session is both learnt from and judged on |
| conditions | {settings.conditions}, by the WSP algorithm over Floo's table 4 |
| decisions | {progress["decisions"]} |
| periods simulated | {progress["periods"]}, forks included |
| time | {progress["seconds"] / 3600:.2f} h on {os.cpu_count()} cores |

Of the periods simulated, the first one of each connection is not counted, in which nothing is chosen, nor
are those that scale the states of PPO and those of the evaluation.

## Evaluation

{evaluation(judged, opened, f"{summed} completion time of each", seconds)}
"""


def evaluation(judged: Judged, opened: list[str], what: str, seconds: float) -> str:
    """Say which links a card's evaluation is on, what its numbers are, and give them."""
    return f"""{judged_on(opened)}

On {len(judged.times["policy"])} connections of {seconds:g} s: {what}. What is open at
the end runs on for 60 s at most; a request that is not complete then counts up to there. Changes and
shares are by ratio, averaged over connections, compared with
`{judged.best_single()}`, the best single algorithm. Their 95% intervals are by
resampling connections. `static-best` is the best single algorithm of each connection in hindsight.
`oracle` tries every choice on forks, two periods ahead, before it chooses.

{rows(judged)}"""


def judged_on(opened: list[str]) -> str:
    """Say which links those are."""
    if not opened:
        return """On the links and conditions for validation, which training did not see. The test was not
opened. `--resume --final` judges on it, once all is chosen."""
    times = "once" if len(opened) == 1 else f"{len(opened)} times"
    return f"""On the links and conditions of the test, Wi-Fi among them, which neither training nor
validation saw. For models of this folder it was opened {times}: {", ".join(opened)}."""


def opened(folder: Path, checksum: str) -> list[str]:
    """Write down that the test is opened now for the model of this checksum; gives all times that it was."""
    path = folder / "test-opened.txt"
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{now} for {checksum}\n")
    return path.read_text(encoding="utf-8").splitlines()


def rows(judged: Judged) -> str:
    """Give the table, with a row for everyone who chose."""

    def row(name: str) -> str:
        times = judged.times[name]
        mean, median, p90 = times.mean(), np.median(times), np.percentile(times, 90)
        change = judged.change(name, judged.best_single())
        (least, most), (low, high) = judged.intervals(name)
        changes = f"{change:+.1%} [{least:+.1%}, {most:+.1%}]"
        shares = f"{judged.closed(name):.0%} [{low:.0%}, {high:.0%}]"
        return f"| {name} | {mean:.3f} s | {median:.3f} s | {p90:.3f} s | {changes} | {shares} |"

    order = ["policy", *judged.algorithms, "random", "static-best", "oracle"]
    head = "| who chooses | mean | median | p90 | change | of the gap to the oracle |"
    return "\n".join([head, "|---|---:|---:|---:|---:|---:|", *(row(name) for name in order)])
