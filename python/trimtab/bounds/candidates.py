"""`python -m trimtab.train candidates`: simulate each algorithm on each path, and search for the best set."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from typing import Any

from trimtab.bounds.constants import simulate
from trimtab.bounds.options import Bounding, parse
from trimtab.bounds.search import gain_of, greedy, ranked
from trimtab.policy import join_names


def percents(change: tuple[float, float, float]) -> str:
    """Write a change with its interval."""
    middle, low, high = change
    return f"{middle:+.1%} [{low:+.1%}, {high:+.1%}]"


def search(bounding: Bounding) -> dict[str, Any]:
    """Simulate what is missing and search. Gives what the JSON has."""
    table = simulate(bounding, bounding.all_names())
    steps = greedy(table, bounding.most)
    given, seen = gain_of(table, bounding.names())
    return {
        "paths": len(table.paths),
        "futures": bounding.futures,
        "fixed": [dataclasses.asdict(fixed) for fixed in ranked(table)],
        "sets": [
            {
                "names": [table.names[i] for i in step.members],
                "known": step.known,
                "unseen": step.unseen,
                "hindsight": step.hindsight,
            }
            for step in steps
        ],
        "given": {"names": list(bounding.names()), "known": given, "hindsight": seen},
    }


def report(found: dict[str, Any], arguments: list[str]) -> str:
    """Give the tables as Markdown."""
    best = found["fixed"][0]["name"]
    lines = [
        f"`{shlex.join(['python', '-m', 'trimtab.train', 'candidates', *arguments])}`",
        "",
        f"Mean completion times on {found['paths']} paths, each at {found['futures']} times, by ratio vs. "
        f"`{best}`, the best fixed setting of all, with the prices of loss and of harm to rivals. "
        "Intervals (95%) are by resampling paths. *Path known*: the one of the set that is best at the other "
        "times of the path. *Sets of other paths*: the same with the sets that the search finds on the other "
        "half of the paths. *Hindsight*: the best one of each time.",
        "",
        "| fixed setting | change | of the time alone | harm |",
        "|---|---:|---:|---:|",
        *(
            f"| `{each['name']}` | {each['change']:+.1%} | {each['time']:+.1%} | {each['harm']:.1%} |"
            for each in found["fixed"]
        ),
        "",
        "| set | path known | sets of other paths | hindsight |",
        "|---|---:|---:|---:|",
    ]
    for each in found["sets"]:
        changes = " | ".join(percents(tuple(each[key])) for key in ("known", "unseen", "hindsight"))
        lines.append(f"| `{join_names(tuple(each['names']))}` | {changes} |")
    given = found["given"]
    lines.append(
        f"| `{join_names(tuple(given['names']))}` (--algorithms) | {percents(given['known'])} | | "
        f"{percents(given['hindsight'])} |"
    )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Search as the command line says. Gives the exit code."""
    bounding = parse(arguments, "candidates")
    try:
        found = search(bounding)
        text = report(found, arguments)
        (bounding.out / "candidates.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (bounding.out / "candidates.md").write_text(text + "\n", encoding="utf-8")
    except (ValueError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print(text)
    return 0
