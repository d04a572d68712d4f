"""The model's card: what it is, what it learnt from, what it is worth, and how to make it again."""

from __future__ import annotations

import datetime
import os
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from trimtab.policy import Policy
from trimtab.train.evaluate import HARMLESS, PERIODS, RIVALS, Judged
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
    rivals: dict[str, Judged] | None = None,
) -> str:
    """Give the card as Markdown. `opened` says when the test was opened for models of this folder.

    `rivals` is how it did next to each kind of them.
    """
    # Where it was interrupted and went on, the whole of it is what to repeat.
    whole = [argument for argument in arguments if argument != "--resume"]
    command = shlex.join(["python", "-m", "trimtab.train", *whole])
    recorded = f", recordings of {settings.kinds}" if settings.traces is not None else ""
    learnt_by = f"\n| reward | {settings.reward} |" if settings.method == "ppo" else ""
    summed = {"mean": "the mean", "p90": "the 90th percentile of the"}[settings.objective]
    seconds = PERIODS * settings.period_ms / 1000
    return f"""# Model card: Floo by {settings.method}

Chooses among {", ".join(policy.algorithms)} every {policy.period_ms / 1000:g} s; starts with
{policy.first}, and falls back to it where a state is unlike what it learnt from.
{shape(policy)} Its checksum:
`{checksum}`.

## Training

| what | value |
|---|---|
| command | `{command}` |
| seed | {settings.seed} |
| connections | {settings.count()} of {settings.course().periods} periods: {settings.traffic} |
| on one path | {settings.flows} |
| rivals | {settings.rivals}: {settings.rival_kinds} |
| price of loss | {settings.loss_price:g} for each share beyond {settings.loss_budget:.0%} |
| price of harm | {settings.harm_price:g} for each share taken beyond what CUBIC takes |
| objective | {settings.objective} |{learnt_by}
| links | four fifths of {settings.generated} generated{recorded}; the others are for validation |
| recordings | split by traces/split.toml: none of one session is both learnt from and judged on |
| conditions | {settings.conditions}, by the WSP algorithm over Floo's table 4 |
| decisions | {progress["decisions"]} |
| periods simulated | {progress["periods"]}, forks included |
| time | {progress["seconds"] / 3600:.2f} h on {os.cpu_count()} cores |

Of the periods simulated, the first one of each connection is not counted, in which nothing is chosen, nor
are those that scale the states of PPO and those of the evaluation.

## Evaluation

{evaluation(judged, opened, f"{summed} completion time of each", seconds)}
{_next_to(rivals or {})}"""


def shape(policy: Policy) -> str:
    """Say what the policy is made of, and when it switches."""
    if policy.caution is None:
        return policy.shape()
    return f"""{policy.shape()} It switches where the advantage, less {policy.caution:g} standard deviations,
is above {policy.margin:g} of ln(completion time)."""


def _next_to(rivals: dict[str, Judged]) -> str:
    """Say how the policy does next to rivals of each kind."""
    if not rivals:
        return ""

    def row(kind: str, judged: Judged) -> str:
        cells = [kind]
        for other in (judged.best_single(), judged.best_harmless()):
            (least, most), _ = judged.intervals("policy", other)
            change = judged.change("policy", other)
            cells += [f"`{other}`", f"{change:+.1%} [{least:+.1%}, {most:+.1%}]"]
        lost = judged.lost["policy"].mean()
        cells += [f"{judged.harm('policy'):+.1%}", f"{lost:.1%}"]
        return f"| {' | '.join(cells)} |"

    counts = ", ".join(str(count) for count in RIVALS)
    rows = "\n".join(row(kind, judged) for kind, judged in rivals.items())
    return f"""
Next to rivals, {counts} of one kind at a time: completion times vs. the best single algorithm, and
vs. the best of those that take at most {HARMLESS:.0%} of the rivals' bytes more than CUBIC does, of all
bytes and on average over connections. `./dev train judge` has the intervals of the harm.

| rivals | best single | policy vs. it | best that does no more harm | policy vs. it | harm | lost |
|---|---|---:|---|---:|---:|---:|
{rows}
"""


def evaluation(judged: Judged, opened: list[str], what: str, seconds: float) -> str:
    """Say which links a card's evaluation is on, what its numbers are, and give them."""
    return f"""{judged_on(opened)}

On {len(judged.times["policy"])} connections of {seconds:g} s: {what}. What is open at
the end runs on for 60 s at most; a request that is not complete then counts up to there. Changes and
shares are by ratio, averaged over connections, compared with
`{judged.best_single()}`, the best single algorithm. Their 95% intervals are by
resampling connections. `static-best` is the best single algorithm of each connection in hindsight.
`oracle` tries every choice on forks, two periods ahead, before it chooses. `lost` is the mean share
of packets lost, `harm` what rivals receive less than next to CUBIC; both are of the periods after the
first.

{rows(judged)}"""


def judged_on(opened: list[str], how: str = "--resume --final") -> str:
    """Say which links those are, and how to open the test."""
    if not opened:
        return f"""On the links and conditions for validation, which training did not see. The test was not
opened. `{how}` judges on it, once all is chosen."""
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


def of_regret(regret: tuple[float, float, float]) -> str:
    """Give the sentence of a policy's regret, with its interval."""
    mean, low, high = regret
    return (
        f"\nA choice of the policy is worse than the best one by {mean:.4f} [{low:.4f}, {high:.4f}], "
        "the mean of\nln(waiting time) with the prices of loss and harm over the horizon that it learnt by.\n"
    )


def rows(judged: Judged) -> str:
    """Give the table, with a row for everyone who chose."""

    def row(name: str) -> str:
        times = judged.times[name]
        mean, median, p90 = times.mean(), np.median(times), np.percentile(times, 90)
        change = judged.change(name, judged.best_single())
        (least, most), (low, high) = judged.intervals(name)
        changes = f"{change:+.1%} [{least:+.1%}, {most:+.1%}]"
        shares = f"{judged.closed(name):.0%} [{low:.0%}, {high:.0%}]"
        others = ""
        if name in judged.lost:
            others = f"{judged.lost[name].mean():.1%} | {judged.harm(name):+.1%}"
        else:
            others = " | "
        return f"| {name} | {mean:.3f} s | {median:.3f} s | {p90:.3f} s | {changes} | {shares} | {others} |"

    order = ["policy", *judged.algorithms, "random", "static-best", "oracle"]
    head = "| who chooses | mean | median | p90 | change | of the gap to the oracle | lost | harm |"
    return "\n".join([head, "|---|---:|---:|---:|---:|---:|---:|---:|", *(row(name) for name in order)])
