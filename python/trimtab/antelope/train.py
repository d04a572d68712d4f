"""`python -m trimtab.train antelope`: collect, fit, choose the period, judge, write it and its card."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from trimtab._native import Course
from trimtab.antelope import options
from trimtab.antelope.boosted import Boosted, Chooser, fit
from trimtab.antelope.card import write
from trimtab.antelope.collect import Lessons, collect
from trimtab.antelope.options import SECONDS, Boosting
from trimtab.train.card import opened
from trimtab.train.checkpoint import must_fit_settings
from trimtab.train.evaluate import PERIODS, Judged, always, baselines, judge_course, judged, run
from trimtab.train.options import Training

#: Shares of the rounds after which the models are fitted anew, to drive the rounds that follow. Up to the
#: first, all choices are random.
REFITS = (0.5, 0.75)
#: Rounds between two checkpoints.
CHECKPOINT = 4
#: Settings that change nothing of what was collected.
FREE = ("out", "resume", "judge", "final", "validate", "periods_ms", "connections")
#: The period of Floo, in which everyone else is judged.
FLOO_MS = 12_000


@dataclass
class Tried:
    """What a period came to."""

    model: Boosted
    lessons: int
    worth: tuple[float, float, float]
    """Mean reward in the validation decisions: of what the model prefers, a random choice, the best one."""
    change: float
    """Completion time in the validation connections vs. `first` alone, by ratio: -0.1 is a tenth less."""


def main(arguments: list[str]) -> int:
    """Train as the command line says. Gives the exit code."""
    started = time.time()
    settings = options.parse(arguments)
    path = settings.out / "model.safetensors"
    try:
        # What the model is judged on first: what is wrong with it must not show after all the rest.
        judged_on = judge_course(settings.training(FLOO_MS))
        settings.out.mkdir(parents=True, exist_ok=True)
        tried = {period: try_period(settings, period) for period in settings.periods()}
        model = min(tried.values(), key=lambda t: t.change).model
        checksum = model.save(path)
        which = "of the test" if settings.final else "for validation, by which the period is chosen"
        print(f"judging on {settings.judge} connections over links {which}", flush=True)
        times = opened(settings.out, checksum) if settings.final else []
        judged = judge(model, settings, judged_on)
        seconds = time.time() - started
        text = write(
            settings,
            model,
            tried,
            judged,
            checksum=checksum,
            seconds=seconds,
            arguments=arguments,
            opened=times,
        )
        (settings.out / "card.md").write_text(text, encoding="utf-8")
    except (ValueError, OSError, SafetensorError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print(text)
    print(f"the model is {path}; {time.time() - started:.0f} s in all")
    return 0


def try_period(settings: Boosting, period_ms: int) -> Tried:
    """Collect and fit with this selection period, and see what the models are worth on links kept back."""
    training = settings.training(period_ms)
    lessons = gather(settings, training)
    model = _fitted(lessons, settings, training)
    kept_back = training.course(split="validate").course()
    random = np.random.default_rng((settings.seed, period_ms, 1))
    worth = worth_of(model, collect(kept_back, training, settings.validate, random))
    course = training.course(split="validate", start=training.first).course()
    by_model = run(course, Chooser(model), settings.validate, training.periods).times
    alone = training.names().index(training.first)
    by_first = run(course, always(alone), settings.validate, training.periods).times
    change = float(np.exp((np.log(by_model) - np.log(by_first)).mean()) - 1.0)
    print(
        f"{period_ms} ms: {len(lessons.inputs)} decisions; on links kept back the reward is {worth[0]:.4f}, "
        f"at random {worth[1]:.4f}, at best {worth[2]:.4f}; completion times {change:+.2%} vs. "
        f"{training.first}",
        flush=True,
    )
    return Tried(model, len(lessons.inputs), worth, change)


def worth_of(model: Boosted, seen: Lessons) -> tuple[float, float, float]:
    """Give the mean reward of what the model prefers, of a random choice, and of the best one."""
    preferred = np.arange(len(seen.inputs)), model.rewards(seen.inputs).argmax(axis=1)
    by_model, at_best = seen.rewards[preferred], seen.rewards.max(axis=1)
    return float(by_model.mean()), float(seen.rewards.mean()), float(at_best.mean())


def gather(settings: Boosting, training: Training) -> Lessons:
    """Collect the lessons of one period; goes on from its checkpoint where that is wanted and there."""
    course = training.course(split="train").course()
    rounds = max(1, round(settings.connections / settings.parallel))
    path = settings.out / f"lessons-{training.period_ms}ms.npz"
    parts, model = _resumed(path, settings), None
    refits = [round(share * rounds) for share in REFITS]
    for number in range(rounds):
        if number in refits and number > 0:
            # By the rounds before alone: an interrupted training goes on as it would have.
            model = _fitted(Lessons.join(parts[:number]), settings, training)
        if number < len(parts):
            continue
        random = np.random.default_rng((settings.seed, training.period_ms, 0, number))
        parts.append(collect(course, training, settings.parallel, random, model))
        if (number + 1) % CHECKPOINT == 0 or number + 1 == rounds:
            _save(path, parts, settings)
            decisions = sum(len(part.inputs) for part in parts)
            print(
                f"{training.period_ms} ms: round {number + 1} of {rounds}, {decisions} decisions", flush=True
            )
    return Lessons.join(parts[:rounds])


def judge(model: Boosted, settings: Boosting, course: Course) -> Judged:
    """Judge the model, and everyone else in Floo's periods, on the same connections."""
    training = settings.training(FLOO_MS)
    own = judge_course(settings.training(model.period_ms), SECONDS * 1000 // model.period_ms)
    assert SECONDS * 1000 == PERIODS * FLOO_MS
    ran = baselines(training, course)
    ran["policy"] = run(own, Chooser(model), settings.judge, SECONDS * 1000 // model.period_ms)
    return judged(ran, training)


def _fitted(lessons: Lessons, settings: Boosting, training: Training) -> Boosted:
    models = fit(lessons.inputs, lessons.rewards, settings.seed)
    return Boosted.of(
        models,
        lessons.inputs,
        features=tuple(Course.antelope_features()),
        algorithms=training.names(),
        period_ms=training.period_ms,
        first=training.first,
    )


def _said(settings: Boosting) -> str:
    names = [name for name in settings.__dataclass_fields__ if name not in FREE]
    return json.dumps({name: str(getattr(settings, name)) for name in names})


def _save(path: Path, parts: list[Lessons], settings: Boosting) -> None:
    # Whole or not at all: a training may be stopped at any time.
    half = path.with_suffix(".part.npz")
    lengths = np.asarray([len(part.inputs) for part in parts])
    whole = Lessons.join(parts)
    said = np.asarray(_said(settings))
    np.savez(half, inputs=whole.inputs, rewards=whole.rewards, lengths=lengths, settings=said)
    half.replace(path)


def _resumed(path: Path, settings: Boosting) -> list[Lessons]:
    if not settings.resume or not path.exists():
        return []
    with np.load(path) as saved:
        must_fit_settings(path, str(saved["settings"]), json.loads(_said(settings)))
        ends = np.cumsum(saved["lengths"])[:-1]
        inputs, rewards = np.split(saved["inputs"], ends), np.split(saved["rewards"], ends)
    print(f"goes on from {path}, {len(inputs)} rounds", flush=True)
    return [Lessons(*both) for both in zip(inputs, rewards, strict=True)]
