"""Stage 1: the LSTM drives, the oracle labels, the LSTM learns (Muses, section III-C; Ross et al., 2011)."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tensorboard.summary import Writer

from trimtab._native import MusesRollouts
from trimtab.muses import lstm
from trimtab.muses.drive import NONE, SHARING, WIRED, Flows, drive, environments, oracle, taught
from trimtab.muses.options import Stages

#: The stop rule: the loss of an iteration differs from the mean of this many before by less than this part,
#: for so many iterations (Muses, section III-C; the paper prints the part as "5-e3").
BEFORE = 10
PART = 5e-3
PATIENCE = 100
#: One LSTM in so many iterations stays, for the learning curve.
KEEP = 4
#: Settings of the oracle.
LABELS = ("oracle", "alpha", "even_at")
#: Settings that change nothing of what was learnt so far.
FREE = (
    "out",
    "resume",
    "rounds",
    "stage",
    "flows",
    "passes",
    "inputs",
    "criterion",
    "part",
    "leaves",
    "clusters",
    "grid",
    "judge",
    "judged",
)


def train(stages: Stages) -> tuple[lstm.Teacher, dict[str, float]]:
    """Run the loop, or go on with it. Raises ValueError where it cannot."""
    start = time.perf_counter()
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(_schedule(stages)))
    worlds = [environments(stages, setting, "train") for setting in ("global", WIRED)]
    random = np.random.default_rng(stages.seed)
    kept: list[Flows] = []
    losses: list[float] = []
    if stages.resume:
        teacher, state, kept, losses, spent, right = _load(stages, optimiser)
        random = np.random.default_rng((stages.seed, len(losses)))
        print(f"goes on after iteration {len(losses)}")
    elif stages.start is not None:
        teacher = lstm.Teacher.load(stages.start / "lstm.safetensors").widened(stages.seed, stages.hidden)
        state, spent, right = optimiser.init(teacher.params), 0.0, 0.0
        kept = _earlier(stages)
    else:
        blank = np.zeros(lstm.SIGNALS, np.float32)
        teacher = lstm.Teacher(lstm.init(stages.seed, stages.hidden), blank, blank + 1)
        state, spent, right = optimiser.init(teacher.params), 0.0, 0.0
    step = lstm.trainer(optimiser)
    writer = Writer(str(stages.out / "logs"))
    for iteration in range(len(losses), stages.rounds):
        if has_settled(losses):
            print(f"the loss has settled for {PATIENCE} iterations")
            break
        # The oracle drives some of the first networks, so that the first labels are not all of a standstill.
        by_oracle = 0.5**iteration if stages.start is None else 0.0
        fresh = _gather(stages, worlds, teacher, iteration, by_oracle=by_oracle)
        kept.append(fresh)
        if len(kept) == 1:
            seen = _seen(fresh)
            if stages.start is None:
                teacher.mean, teacher.scale = seen.mean(axis=0), np.maximum(seen.std(axis=0), 1.0)
        if iteration == 0:
            teacher = teacher.turned(_seen(fresh))
        teacher.params, state, loss, right = _learn(stages, teacher, state, step, kept=kept, random=random)
        losses.append(loss)
        seconds = spent + time.perf_counter() - start
        agreed = (fresh.actions == fresh.best)[fresh.best != NONE].mean()
        for name, value in {"loss": loss, "right": right, "agreed": agreed, "seconds": seconds}.items():
            writer.add_scalar(name, float(value), iteration)
        print(
            f"iteration {iteration + 1}: loss {loss:.4f}, {right:.1%} of all labels right, "
            f"{agreed:.1%} while driving; {seconds:.0f} s",
            flush=True,
        )
        _save(stages, teacher, state, fresh, losses=losses, seconds=seconds, right=right)
    writer.close()
    progress = {
        "iterations": len(losses),
        "seconds": spent + time.perf_counter() - start,
        "flows": sum(len(f.states) for f in kept),
        "loss": losses[-1],
        "right": right,
    }
    return teacher, progress


def has_settled(losses: list[float]) -> bool:
    """Say whether the loss no longer changes, by the paper's rule."""
    if len(losses) < PATIENCE + BEFORE:
        return False
    for i in range(len(losses) - PATIENCE, len(losses)):
        before = float(np.mean(losses[i - BEFORE : i]))
        if abs(losses[i] / before - 1.0) >= PART:
            return False
    return True


def _gather(
    stages: Stages, worlds: list[Any], teacher: lstm.Teacher, iteration: int, *, by_oracle: float
) -> Flows:
    """Drive one flow over each of `parallel` networks, or as many flows that share fewer."""
    random = np.random.default_rng((stages.seed, iteration, 1))
    shared = random.random() < stages.sharing
    flows = int(random.choice(SHARING)) if shared else 1
    world = worlds[int(random.integers(len(worlds))) if shared else 0]
    networks = max(1, stages.parallel // flows)
    seeds = [int(seed) for seed in random.integers(2**62, size=networks)]
    rollouts = MusesRollouts(world, seeds, flows, stages.decisions * flows)
    learner = taught(teacher, networks, flows)
    shown = random.random(networks) < by_oracle

    def policy(states: Any, which: Any, best: Any) -> Any:
        return np.where(shown, oracle(states, which, best), learner(states, which, best))

    return drive(rollouts, policy, flows, stages.decisions)


def _learn(
    stages: Stages,
    teacher: lstm.Teacher,
    state: Any,
    step: Any,
    *,
    kept: list[Flows],
    random: np.random.Generator,
) -> tuple[lstm.Params, Any, float, float]:
    """Run the epochs of an iteration over the newest flows and a sample of those before."""
    states = np.concatenate([f.states for f in kept])
    labels = np.concatenate([f.best for f in kept])
    newest = len(states) - len(kept[-1].states)
    params, losses, rights = teacher.params, [], []
    for _ in range(stages.epochs):
        older = random.permutation(newest)[: max(0, stages.sample - (len(states) - newest))]
        order = random.permutation(np.concatenate([older, np.arange(newest, len(states))]))
        for first in range(0, len(order), stages.batch):
            # The last batch is filled up: one shape is compiled once.
            rows = np.resize(order[first : first + stages.batch], stages.batch)
            seen = teacher.see(states[rows]).transpose(1, 0, 2)
            wanted = labels[rows].T.astype(np.int32)
            carry = lstm.blank(params, stages.batch)
            for at in range(0, stages.decisions, stages.window):
                part = slice(at, at + stages.window)
                params, state, carry, loss, right = step(params, state, carry, seen[part], wanted[part])
                losses.append(loss)
                rights.append(right)
    return params, state, float(jnp.stack(losses).mean()), float(jnp.stack(rights).mean())


def _settings(stages: Stages) -> dict[str, str]:
    said = {o.name: str(getattr(stages, o.name)) for o in dataclasses.fields(stages) if o.name not in FREE}
    return dict(sorted(said.items()))


def _save(
    stages: Stages,
    teacher: lstm.Teacher,
    state: Any,
    fresh: Flows,
    *,
    losses: list[float],
    seconds: float,
    right: float,
) -> None:
    """Write the flows of this iteration, then the checkpoint that counts on them; each whole or not."""
    folder = stages.out / "checkpoint"
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / f"flows-{len(losses):05}.npz", **dataclasses.asdict(fresh))
    leaves = {f"state{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
    params = {f"params.{name}": np.asarray(value) for name, value in teacher.params.items()}
    about = json.dumps({"losses": losses, "seconds": seconds, "right": right, "settings": _settings(stages)})
    _write(
        folder / "checkpoint.npz",
        **leaves,
        **params,
        mean=teacher.mean,
        scale=teacher.scale,
        turn=teacher.turn,
        about=np.array(about),
    )
    teacher.save(stages.out / "lstm.safetensors")
    if len(losses) % KEEP == 0:
        teacher.save(folder / f"lstm-{len(losses):05}.safetensors")


def _write(path: Path, **arrays: Any) -> None:
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)
    part.replace(path)


def _load(stages: Stages, optimiser: Any) -> tuple[lstm.Teacher, Any, list[Flows], list[float], float, float]:
    path = stages.out / "checkpoint" / "checkpoint.npz"
    if not path.exists():
        raise ValueError(f"there is no checkpoint {path} to resume from: leave out --resume")
    with np.load(path) as file:
        about = json.loads(str(file["about"]))
        now = _settings(stages)
        others = [
            f"--{k} was {v} and is {now.get(k)}" for k, v in about["settings"].items() if now.get(k) != v
        ]
        if others:
            raise ValueError(f"{path} has other settings ({'; '.join(others)}): give those that it has")
        if "right" not in about:
            raise ValueError(f"{path} is of an earlier version: leave out --resume")
        params = {k[7:]: jnp.asarray(file[k]) for k in file.files if k.startswith("params.")}
        blank, shape = jax.tree.flatten(optimiser.init(params))
        leaves = [jnp.asarray(file[f"state{i}"]) for i in range(len(blank))]
        teacher = lstm.Teacher(params, file["mean"], file["scale"], file["turn"])
    kept = [] if stages.start is None else _earlier(stages)
    kept += _flows(path.parent)[: len(about["losses"])]
    state = jax.tree.unflatten(shape, leaves)
    return teacher, state, kept, about["losses"], float(about["seconds"]), float(about["right"])


def _seen(flows: Flows) -> Any:
    """Give the states in which something was decided."""
    return flows.states[flows.best != NONE].astype(np.float32)


def _earlier(stages: Stages) -> list[Flows]:
    """Read the flows of the run to start from; none where another oracle labelled them."""
    folder = Path(stages.start or ".") / "checkpoint"
    with np.load(folder / "checkpoint.npz") as file:
        before, now = json.loads(str(file["about"]))["settings"], _settings(stages)
    return _flows(folder) if all(before.get(name) == now[name] for name in LABELS) else []


def _flows(folder: Path) -> list[Flows]:
    """Read the flows of each iteration that a checkpoint's folder has."""
    kept = []
    for path in sorted(folder.glob("flows-?????.npz")):
        with np.load(path) as flows:
            kept.append(Flows(flows["states"], flows["actions"], flows["best"]))
    return kept


def _schedule(stages: Stages) -> Any:
    """Let the rate fall to nothing over the steps of all iterations: the end is then no accident."""
    batches = -(-max(stages.sample, stages.parallel) // stages.batch) * (stages.decisions // stages.window)
    return optax.linear_schedule(stages.rate, 0.0, stages.rounds * stages.epochs * batches)
