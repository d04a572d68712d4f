"""`python -m trimtab.cluster compare` and `reproduce`: the commands of `trimtab`, on a Ray cluster.

Their flags are those of the command. Training has `--ray` itself: `python -m trimtab.train floo --ray auto`.
"""

from __future__ import annotations

import argparse
import inspect
import shlex
import sys
from pathlib import Path

from trimtab import _native, comparison, reproduction
from trimtab.cluster import Cluster

#: Keywords of `compare` that are whole numbers, and those that have no flag here.
COUNTS = ("flows", "seeds", "first_seed", "thin")
WITHOUT = (*comparison.EFFORT, "ray")


def main(arguments: list[str]) -> int:
    """Do what the command line says. Gives the exit code."""
    whole = parser()
    given = whole.parse_args(arguments)
    # The record has the command for one machine.
    call = shlex.join(["trimtab", *_without_own(arguments)])
    try:
        if given.command == "compare":
            _compare(given, call)
        else:
            return _reproduce(given, call)
    except (ValueError, TypeError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0


def _compare(given: argparse.Namespace, call: str) -> None:
    grid = {name: value for name in _keywords() if (value := getattr(given, name)) is not None}
    plan = comparison.planned(**grid)
    with Cluster(given.ray, send=given.send) as cluster:
        runs = comparison.on_cluster(plan, cluster, not given.quiet, call)
    if given.html:
        Path(given.html).write_text(runs.html())
    if given.json == "-":
        print(runs.json())
    elif given.json:
        Path(given.json).write_text(f"{runs.json()}\n")
    if given.json != "-":
        print(runs.table(), end="")


def _reproduce(given: argparse.Namespace, call: str) -> int:
    figures = [
        reproduction.Figure(name, folder, given.scenarios, given.quick, call)
        for name, folder in _native.figures(given.figures)
    ]
    with Cluster(given.ray, send=given.send) as cluster:
        verdicts, problems = reproduction.make(figures, Path(given.out), None, not given.quiet, cluster)
    print(_native.verdicts(verdicts), end="")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 2 if problems else 0


def _keywords() -> list[str]:
    return [name for name in inspect.signature(comparison.compare).parameters if name not in WITHOUT]


def _without_own(arguments: list[str]) -> list[str]:
    """Leave out the flags of this command alone."""
    kept, words = [], iter(arguments)
    for word in words:
        if word == "--ray":
            next(words, None)
        elif word != "--send" and not word.startswith("--ray="):
            kept.append(word)
    return kept


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    whole = argparse.ArgumentParser(
        prog="python -m trimtab.cluster", description=(__doc__ or "").split("\n")[0]
    )
    commands = whole.add_subparsers(required=True, dest="command")
    compare = commands.add_parser("compare", help="compare congestion controls", allow_abbrev=False)
    defaults = inspect.signature(comparison.compare).parameters
    for name in _keywords():
        flag, kind = f"--{name.replace('_', '-')}", int if name in COUNTS else str
        if name == "traces":
            compare.add_argument(flag, action="extend", nargs="+")
        elif defaults[name].default == ():
            compare.add_argument(flag, action="append", type=kind)
        else:
            compare.add_argument(flag, type=kind)
    compare.add_argument("--json", metavar="FILE", help="write the results as JSON; - for standard output")
    compare.add_argument("--html", metavar="FILE", help="write a report as one HTML file")
    reproduce = commands.add_parser("reproduce", help="run figures of the papers", allow_abbrev=False)
    reproduce.add_argument("figures", nargs="*", metavar="FIGURE", help="default: all that run")
    reproduce.add_argument("--quick", action="store_true", help="show only that a figure runs")
    reproduce.add_argument("--out", default="reproduced", metavar="DIR", help="the folder of results")
    reproduce.add_argument("--scenarios", default="scenarios", metavar="DIR", help="the folder of scenarios")
    for command in (compare, reproduce):
        command.add_argument("--ray", default="auto", metavar="ADDRESS", help="HOST:PORT of the cluster")
        command.add_argument("--send", action="store_true", help="copy the working directory to the nodes")
        command.add_argument("--quiet", "-q", action="store_true", help="no progress")
    return whole


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
