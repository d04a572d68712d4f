"""What a checkpoint was made with: a training goes on only with the same settings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from trimtab.policy import join_names
from trimtab.train.options import Training

#: What the ensemble goes by, which PPO has none of.
ENSEMBLE = ("also", "members", "trees", "leaves", "caution", "margin")
#: Who teaches, which PPO has nobody of. Not said where it is the true future alone: there was no other once.
TAUGHT = {"teacher": "path", "futures": "1"}
#: What lessons do not depend on: choices are priced when the policy is fitted.
FITTED = (*ENSEMBLE, "loss_budget", "loss_price", "harm_price")
#: Settings that lessons of two trainings must have in common to be fitted together.
LABELS = ("algorithms", "horizon", "period_ms", "objective")
#: Settings that change nothing of what was learnt so far.
FREE = ("out", "resume", "episodes", "judge", "final", "first", "against", "ray")


def settings_of(training: Training) -> dict[str, str]:
    """Give the settings that a checkpoint is worth something with only, by their names."""
    said = {
        option.name: str(getattr(training, option.name))
        for option in dataclasses.fields(training)
        if option.name not in FREE
    }
    said |= {"algorithms": join_names(training.names()), "periods": str(training.course().periods)}
    # What the other method alone goes by, and what lessons are kept without.
    others = {"counterfactual": ("reward", *FITTED), "ppo": ("horizon", *ENSEMBLE, *TAUGHT)}
    usual = TAUGHT if all(said[name] == value for name, value in TAUGHT.items()) else ()
    for name in {*others[training.method], *usual}:
        del said[name]
    return said


def write_settings(training: Training) -> str:
    """Write them down, for the checkpoint."""
    return json.dumps(settings_of(training))


def must_exist(path: Path) -> None:
    """Raise ValueError where there is no checkpoint."""
    if not path.exists():
        raise ValueError(f"there is no checkpoint {path} to resume from: leave out --resume")


def must_fit(path: Path, written: str | None, training: Training) -> None:
    """Raise ValueError where the checkpoint is of a training with other settings, or does not say."""
    must_fit_settings(path, written, settings_of(training))


def must_fit_settings(path: Path, written: str | None, now: dict[str, str]) -> None:
    """Raise ValueError where the settings that a checkpoint was written with are not `now`'s."""
    anew = "or leave out --resume and name another --out to train anew"
    if written is None:
        raise ValueError(f"{path} does not say its settings: resume with the version that wrote it, {anew}")
    before: dict[str, str] = json.loads(written)
    others = [
        f"--{name} was {before.get(name)} and is {now.get(name)}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if others:
        raise ValueError(f"{path} has other settings ({'; '.join(others)}): give those that it has, {anew}")


def must_fit_together(path: Path, written: str | None, training: Training) -> None:
    """Raise ValueError where the lessons of another training are of other choices, or do not say of which."""
    before: dict[str, str] = json.loads(written) if written is not None else {}
    now = settings_of(training)
    for name in LABELS:
        if before.get(name) != now[name]:
            raise ValueError(
                f"{path} has --{name} {before.get(name)} and this training {now[name]}: lessons that are "
                "fitted together must have the same choices; name another folder in --also"
            )


def must_not_be_past(path: Path, done: int, wanted: int) -> None:
    """Raise ValueError where the checkpoint has learnt from more connections than are wanted."""
    if done > wanted:
        raise ValueError(
            f"{path} is {done} batches of connections far, --episodes asks for {wanted}: ask for more"
        )
