"""How policies do on the networks of Table III, none of which were learnt on, and the card that shows it."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from trimtab._native import MusesRollouts, muses_outcomes
from trimtab.muses import lstm
from trimtab.muses.drive import NONE, Policy, drive, environments, oracle, taught
from trimtab.muses.options import Stages
from trimtab.muses.trees import Trees

#: The columns of Table III, and steady Wi-Fi on a channel that others use too.
SETTINGS = ("steady-wifi", "fluctuating-wifi", "lte", "shared-wifi")
#: The baselines.
BASELINES = ("cubic", "bbr", "copa", "vegas")
#: Utilisation (0 to 1), 95th percentile of the queueing delay in seconds, loss (0 to 1).
Outcomes = list[tuple[float, float, float]]


def judge(stages: Stages, teacher: lstm.Teacher, models: dict[str, Trees]) -> dict[str, dict[str, Outcomes]]:
    """Run everything over the same networks for the same time; gives outcomes by setting and name."""
    random = np.random.default_rng((stages.seed, 4))
    seeds = [int(seed) for seed in random.integers(2**62, size=stages.judge)]
    length = stages.judged * 10
    found: dict[str, dict[str, Outcomes]] = {}
    for setting in SETTINGS:
        world = environments(stages, setting, stages.part, stages.judged)

        def driven(policy: Policy, world: Any = world) -> Outcomes:
            rollouts = MusesRollouts(world, seeds, 1, length_ms=length)
            drive(rollouts, policy, 1, stages.judged)
            return rollouts.outcomes()

        row = {"oracle": driven(oracle), "lstm": driven(taught(teacher, len(seeds), 1))}
        for name, model in models.items():
            row[name] = muses_outcomes(world, seeds, flows=1, length_ms=length, trees=model.pack())
        for name in BASELINES:
            row[name] = muses_outcomes(world, seeds, flows=1, length_ms=length, algorithm=name)
        found[setting] = row
    return found


def closeness(stages: Stages, teacher: lstm.Teacher, other: lstm.Teacher) -> dict[str, float]:
    """Say how often another LSTM does what this one would in its place, while it drives."""
    random = np.random.default_rng((stages.seed, 8))
    seeds = [int(seed) for seed in random.integers(2**62, size=stages.judge)]
    rollouts = MusesRollouts(environments(stages, "global", stages.part), seeds, 1, stages.decisions)
    drives, wanted = taught(other, len(seeds), 1), taught(teacher, len(seeds), 1)
    done: list[Any] = []

    def policy(states: Any, which: Any, best: Any) -> Any:
        done.append(drives(states, which, best))
        return done[-1]

    flows = drive(rollouts, policy, 1, stages.decisions, asked=wanted)
    said = flows.actions
    did = np.full_like(said, NONE)
    did[:, : len(done)] = np.stack(done, axis=1)[:, : said.shape[1]]
    counts = said != NONE
    said, did = said[counts], did[counts]
    f1 = f1_score(said, did, average="macro", zero_division=0.0)
    return {"agreement": float((said == did).mean()), "f1": float(f1), "states": float(len(said))}


def table(judged: dict[str, dict[str, Outcomes]]) -> str:
    """Write means over the networks, with the standard error of the first two columns."""
    lines = [
        "| networks | policy | utilisation | p95 queueing delay | loss |",
        "|---|---|---:|---:|---:|",
    ]
    for setting, row in judged.items():
        for name, outcomes in row.items():
            values = np.array(outcomes)
            mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))
            lines.append(
                f"| {setting} | {name} | {mean[0]:.1%} ± {error[0]:.1%} "
                f"| {1000 * mean[1]:.0f} ± {1000 * error[1]:.0f} ms | {mean[2]:.2%} |"
            )
    return "\n".join(lines)


def card(
    stages: Stages,
    judged: dict[str, dict[str, Outcomes]],
    *,
    learnt: dict[str, float] | None,
    distilled: dict[str, Any] | None,
    whole: dict[str, float],
    checksum: str,
    arguments: list[str],
) -> str:
    """Write what the models are, how they came to be and what they do."""
    parts = [
        "# Muses\n",
        f"Made by `python -m trimtab.train muses {' '.join(arguments)}` on {platform.machine()}.\n",
        f"LSTM: 2 layers of {stages.hidden} units, sha256 {checksum}.\n",
    ]
    parts.append(
        f"`muses.safetensors` is the same with weights of eight bits: driving over networks of Table II it "
        f"does what the other would do in {whole['agreement']:.1%} of {whole['states']:.0f} states "
        f"(F1 {whole['f1']:.3f}).\n"
    )
    if learnt is not None:
        parts.append(
            f"Stage 1: {learnt['iterations']:.0f} iterations, {learnt['flows']:.0f} flows, "
            f"{learnt['seconds']:.0f} s; at the end the loss was {learnt['loss']:.4f}, and "
            f"{learnt['right']:.1%} of the labels right.\n"
        )
    if distilled is not None:
        k, score = max(distilled["silhouettes"].items(), key=lambda pair: pair[1])
        many, one = distilled["bytes"]
        parts.append(
            f"Stage 2: {distilled['flows']} flows, {k} clusters (silhouette {score:.3f}); the selected "
            f"centre is among the two nearest for {distilled['top2']:.1%} of the {distilled['held']} flows "
            f"that nothing was fitted to. The trees' file has {many} bytes, that of the global tree {one}. "
            f"On those flows, where a tree's cluster has any:\n"
        )
        lines = [
            "| tree | flows | nodes | agrees with the LSTM | F1 | settings |",
            "|---|---:|---:|---:|---:|---|",
        ]
        rows = [*enumerate(distilled["clusters"]), ("global", distilled["treeg"])]
        for name, row in rows:
            lines.append(
                f"| {name} | {row.get('flows', distilled['flows'])} | {row['nodes']} "
                f"| {_said(row['agreement'], '.1%')} | {_said(row['f1'], '.2f')} | {row['search']} |"
            )
        parts.append("\n".join(lines) + "\n")
    parts.append(
        f"Over {stages.judge} networks of each setting of Table III, of those for {stages.part} and none "
        f"learnt on, flows of {stages.judged / 100:.0f} s, mean and standard error:\n"
    )
    parts.append(table(judged) + "\n")
    return "\n".join(parts)


def _said(value: float | None, how: str) -> str:
    return "\N{EN DASH}" if value is None else format(value, how)
