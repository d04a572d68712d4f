"""`python -m trimtab.train judge`: what a policy is worth alone and next to rivals of each kind.

Harm is counted in two ways, since either hides something. Of all bytes, rivals on fast paths decide; as the
mean over connections a rival on a slow path, who has little to lose in bytes, counts as much as any.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from trimtab.course import RIVAL_KINDS
from trimtab.options import DRAWN_RANGES, Drawn, option, out_of_range, read
from trimtab.policy import Policy, join_names
from trimtab.train import options
from trimtab.train.card import judged_on, opened, shape
from trimtab.train.evaluate import (
    CUBIC,
    HARMLESS,
    RIVALS,
    SUMMARIES,
    Judged,
    by_policy,
    judge_settings,
    judged,
    run,
    singles,
)
from trimtab.train.options import Training

RANGES: dict[str, tuple[float, float | None]] = {**DRAWN_RANGES, "alone": (1, None), "each": (1, None)}


@dataclass(frozen=True)
class Judging(Drawn):
    """Judge a policy alone and next to 1, 2, 4 or 8 rivals of each kind, by completion times and harm."""

    policy: Path = option(Path("out/floo/model.safetensors"), "the file of the policy")
    traffic: str = option("web,web-burst,download", "applications: web, web-burst, download")
    against: str = option("", "other algorithms to compare it with, with ; between where knobs have commas")
    rival_kinds: str = option(",".join(RIVAL_KINDS), "what rivals are, one kind after another")
    alone: int = option(250, "connections without rivals")
    each: int = option(40, "connections next to rivals of each kind")
    final: bool = option(False, "judge on the links of the test, once all is chosen; else for validation")

    def training(self, policy: Policy) -> Training:
        """Give the settings as the training of such a policy has them."""
        return Training(
            method="counterfactual",
            algorithms=join_names(policy.algorithms),
            first=policy.first,
            period_ms=policy.period_ms,
            traffic=self.traffic,
            against=self.against,
            conditions=self.conditions,
            generated=self.generated,
            traces=self.traces,
            kinds=self.kinds,
            final=self.final,
        )


def problem(judging: Judging) -> str | None:
    """Say what cannot be, before minutes are spent on it; none when nothing is wrong."""
    unknown = [kind for kind in judging.rival_kinds.split(",") if kind not in RIVAL_KINDS]
    if unknown:
        return f"--rival_kinds has {unknown[0]}; it must be some of {', '.join(RIVAL_KINDS)}"
    return out_of_range(judging, RANGES)


def main(arguments: list[str]) -> int:
    """Judge as the command line says. Gives the exit code."""
    judging = read(Judging, arguments, problem, command="judge")
    try:
        policy = Policy.load(judging.policy)
        settings = judging.training(policy)
        wrong = options.problem(settings)
        if wrong is not None:
            raise ValueError(wrong)
        with safe_open(judging.policy, "numpy") as file:
            checksum = file.metadata()["sha256"]
        times = opened(judging.policy.parent, checksum) if judging.final else []
        print(f"{shape(policy)} Its checksum:\n`{checksum}`.\n\n{judged_on(times, '--final')}", flush=True)
        for title, changes, count in cases(judging):
            print(f"\n## {title}\n\n{table(compare(policy, settings, count, changes))}", flush=True)
    except (ValueError, OSError, SafetensorError) as wrong_file:
        print(f"error: {wrong_file}", file=sys.stderr)
        return 2
    return 0


def cases(judging: Judging) -> list[tuple[str, dict[str, Any], int]]:
    """List where it is judged: a title, what is drawn otherwise, and the connections."""
    counts = ", ".join(str(count) for count in RIVALS)
    among = [
        (f"Next to {counts} of {kind}", {"rivals": RIVALS, "rival_kinds": (kind,)}, judging.each)
        for kind in judging.rival_kinds.split(",")
    ]
    return [("Alone", {}, judging.alone), *among]


def compare(policy: Policy, settings: Training, count: int, changes: dict[str, Any]) -> Judged:
    """Run a policy and each algorithm over the same connections.

    Raises ValueError when none of them had a request.
    """
    sum_up = SUMMARIES[settings.objective]
    ran = singles(settings, count, sum_up, **changes)
    if not len(ran[CUBIC].times):
        raise ValueError("none of the connections had a request: judge by more of them")
    course = judge_settings(settings, **changes).course()
    ran["policy"] = run(course, by_policy(policy, course), count, sum_up=sum_up)
    return judged(ran, settings)


def table(found: Judged) -> str:
    """Give the table, with a row for the policy and for everyone that it is compared with."""

    def share(value: float, interval: tuple[float, float]) -> str:
        return f"{value:+.1%} [{interval[0]:+.1%}, {interval[1]:+.1%}]"

    def row(name: str) -> str:
        (interval, _), cells = found.intervals("policy", name), [f"`{name}`"]
        cells.append("" if name == "policy" else share(found.change("policy", name), interval))
        cells.append(f"{found.lost[name].mean():.1%}" if name in found.lost else "")
        if has_rivals and name in found.rivals:
            of_bytes, of_each = found.harm_intervals(name)
            cells += [share(found.harm(name), of_bytes), share(found.harm_of_each(name), of_each)]
        else:
            cells += ["", ""]
        return f"| {' | '.join(cells)} |"

    has_rivals = bool(found.rivals[CUBIC].any())
    names = ["policy", *dict.fromkeys((*found.algorithms, CUBIC)), "static-best"]
    head = "| who | the policy's time vs. its | lost | harm, of all bytes | harm, mean of connections |"
    rows = [head, "|---|---:|---:|---:|---:|", *(row(name) for name in names)]
    if not has_rivals:
        return "\n".join(rows)
    best = found.best_harmless()
    change = share(found.change("policy", best), found.intervals("policy", best)[0])
    return "\n".join(rows) + (
        f"\n\nThe best that takes at most {HARMLESS:.0%} more of the rivals' bytes than CUBIC, of all bytes "
        f"and\nas the mean of connections, is `{best}`: the policy's time is {change} vs. it."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
