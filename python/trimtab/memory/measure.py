"""What a memory per destination is worth: `./dev train memory`.

Connections follow one another on the same paths. Each runs one algorithm from its beginning to its end.
Which one, the destination's arms say. They learn from the connections before it: from what a policy would
see of the path, and from completion times.

What is expected of the arms is learnt on the links to learn on; the table is of other links.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from trimtab.memory.learnt import learn
from trimtab.memory.options import Visits, problem
from trimtab.memory.visits import Floats, see
from trimtab.memory.ways import compare, preferred, table
from trimtab.options import read
from trimtab.policy import Array, Policy, join_names

#: Visits to a path by which the second bound chooses: the same path, another future.
REDRAWN = 8
#: Visits to a path to learn on.
FITTED = 2


def _of(policy: Policy, settings: Visits) -> Callable[[Floats], NDArray[np.int64]]:
    """Choose as the memory of the datapaths does: by what the policy prefers where nothing is switched."""
    course = settings.course("validate", policy.first).course()
    named = [course.features.index(name) for name in policy.features]
    first = policy.algorithms.index(policy.first)

    def prefer(states: Array) -> NDArray[np.int64]:
        best: NDArray[np.int64] = policy.logits(states[:, named]).argmax(axis=1)
        return best

    return lambda states: preferred(states, prefer, first)


def main(arguments: list[str]) -> int:
    """Measure as the command line says. Gives the exit code."""
    settings = read(Visits, arguments, problem, command="memory")
    tty = sys.stderr.isatty()

    def say(what: str) -> None:
        if tty:
            print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)

    split = "test" if settings.final else "validate"
    chooses: Callable[[Floats], NDArray[np.int64]] | None = None
    try:
        if settings.policy is not None:
            policy = Policy.load(settings.policy)
            settings = dataclasses.replace(settings, algorithms=join_names(policy.algorithms))
            chooses = _of(policy, settings)
        fitted = see(settings, "train", settings.fitted, FITTED, say).whole()
        judged = see(settings, split, settings.paths, settings.visits + REDRAWN, say).whole()
    except (ValueError, OSError, SafetensorError) as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 2
    say("")
    if min(len(fitted.rewards), len(judged.rewards)) < 2:
        print("error: fewer than 2 paths had requests in each visit: give more --periods", file=sys.stderr)
        return 2
    learnt = learn(fitted, settings.seed)
    rows = compare(judged, settings.visits, learnt, settings.drift, chooses)
    values = judged.rewards[:, : settings.visits]
    single = settings.names()[int(values.mean(axis=(0, 1)).argmax())]
    names, prior = settings.names(), learnt.prior
    print(f"learnt on {len(fitted.rewards)} paths, in ln of the completion time (noise {prior.noise:.3f})\n")
    print(f"{'arm':30} {'worth':>7} {'spread':>7} {'states are off by':>18}")
    spreads = (np.sqrt(np.diag(covariance)) for covariance in (prior.covariance, learnt.errors))
    for name, worth, spread, off in zip(names, prior.worths, *spreads, strict=True):
        print(f"{name:30} {worth:+7.3f} {spread:7.3f} {off:18.3f}")
    print()
    print(f"{len(values)} paths {'of the test' if settings.final else 'for validation'}\n")
    print(table(rows, single))
    if settings.json is not None:
        figures = {"single": single, "rows": [vars(row) for row in rows], "paths": len(values)}
        try:
            settings.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
        except OSError as wrong:
            print(f"error: cannot write {settings.json}: {wrong}", file=sys.stderr)
            return 1
    return 0
