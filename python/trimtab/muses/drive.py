"""Flows over many networks at a time, driven by a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab._native import MusesEnvironments, MusesRollouts
from trimtab.muses import lstm
from trimtab.muses.options import Stages

SIGNALS = 7
#: The label of an interval that was not reached.
NONE = -1
#: What the native half says of a network where nothing decides any more.
DONE = 255
#: Flows on a link that several share: one of these numbers.
SHARING = (2, 3, 4, 6, 10, 16)
#: The links that they share are half the time these, of constant rate.
WIRED = "wired"

States = NDArray[np.int16]
Actions = NDArray[np.int64]
#: States, one of each network, the flow that each is of, and the best actions; gives actions, or factors.
Policy = Callable[[States, Actions, Actions], Actions]


@dataclass
class Flows:
    """What the flows of networks saw and did: a row for each flow, a column for each interval."""

    states: States
    actions: NDArray[np.int8]
    best: NDArray[np.int8]


def environments(stages: Stages, setting: str, part: str, decisions: int | None = None) -> MusesEnvironments:
    """Give the networks of a setting, for flows of so many decisions.

    Raises ValueError where recordings cannot be had.
    """
    kinds = stages.kinds.split(",")
    if setting == "lte":
        kinds = [kind for kind in kinds if "lte" in kind] or kinds
    return MusesEnvironments(
        setting=setting,
        part=part,
        length_ms=(decisions or stages.decisions) * 10 + 2_000,
        traces=stages.traces,
        kinds=kinds,
        generated=stages.generated,
        delay_max_ms=stages.delay_max_ms or None,
        alpha_percent=round(stages.alpha * 100),
        ahead=stages.oracle == "ahead",
        even_at_mbps=stages.even_at or None,
    )


def drive(
    rollouts: MusesRollouts, policy: Policy, flows: int, decisions: int, *, asked: Policy | None = None
) -> Flows:
    """Let the policy drive until every network is done; `decisions` is how many each flow may have.

    The actions that are kept are its own, or those of another policy that is asked in the same states.
    """
    count = len(rollouts)
    shape = (count, flows, decisions)
    states = np.zeros((*shape, SIGNALS), np.int16)
    actions = np.full(shape, NONE, np.int8)
    best = np.full(shape, NONE, np.int8)
    at = np.zeros((count, flows), np.int64)
    rows = np.arange(count)
    while True:
        which = np.frombuffer(rollouts.flows(), np.uint8).astype(np.int64)
        going = which != DONE
        if not going.any():
            break
        which = np.where(going, which, 0)
        seen = np.frombuffer(rollouts.states(), "<i2").reshape(count, SIGNALS)
        wanted = np.frombuffer(rollouts.best(), np.uint8).astype(np.int64)
        chosen = policy(seen, which, wanted)
        said = chosen if asked is None else asked(seen, which, wanted)
        here = at[rows, which]
        kept = going & (here < decisions)
        place = (rows[kept], which[kept], here[kept])
        states[place], actions[place], best[place] = seen[kept], said[kept], wanted[kept]
        at[rows[kept], which[kept]] += 1
        rollouts.act(chosen.astype("<u2").tobytes())
    flat = count * flows
    return Flows(states.reshape(flat, decisions, SIGNALS), actions.reshape(flat, -1), best.reshape(flat, -1))


def oracle(_states: States, _flows: Actions, best: Actions) -> Actions:
    """Do what is best."""
    return best


def taught(teacher: lstm.Teacher, networks: int, flows: int) -> Policy:
    """Let the LSTM decide, with a memory for each flow."""
    hidden = teacher.params["head.weight"].shape[1]
    memory = lstm.blank(teacher.params, networks * flows).reshape(lstm.LAYERS, 2, networks, flows, hidden)

    def policy(states: States, which: Actions, _best: Actions) -> Actions:
        nonlocal memory
        memory, chosen = lstm.choose_of_many(teacher.params, memory, which, teacher.see(states))
        return np.asarray(chosen, np.int64)

    return policy
