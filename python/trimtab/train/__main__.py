"""`python -m trimtab.train floo`: parse, train, judge, and write the model with its card.

The other commands have settings of their own. `candidates`, `bounds`, `memory` and `judge` learn no policy:
they tell what there is to gain, and what a policy gains.
"""

from __future__ import annotations

import importlib
import sys
import time

from safetensors import SafetensorError

from trimtab.policy import Policy
from trimtab.train import card, counterfactual, options
from trimtab.train.evaluate import evaluate, judge_course, next_to_each, regret

#: Commands by the module that runs them.
MODULES = {
    "muses": "trimtab.muses.train",
    "antelope": "trimtab.antelope",
    "candidates": "trimtab.bounds.candidates",
    "bounds": "trimtab.bounds.three",
    "memory": "trimtab.memory.measure",
    "judge": "trimtab.train.judge",
}


def main(arguments: list[str]) -> int:
    """Train as the command line says. Gives the exit code."""
    module = MODULES.get(arguments[0]) if arguments else None
    if module is not None:
        # Some of them need extras, which the others do without.
        return int(importlib.import_module(module).main(arguments[1:]))
    return _floo(arguments)


def _floo(arguments: list[str]) -> int:
    started = time.time()
    settings = options.parse(arguments)
    path = settings.out / "model.safetensors"
    try:
        # What the policy is judged on first: what is wrong with it must not show after hours.
        course = judge_course(settings)
        settings.out.mkdir(parents=True, exist_ok=True)
        if settings.method == "ppo":
            # Its library is an extra, which the other method does without.
            from trimtab.train import ppo  # noqa: PLC0415

            policy: Policy
            policy, progress = ppo.train(settings)
        else:
            policy, progress = counterfactual.train(settings)
    except ModuleNotFoundError as problem:
        extra = {"sklearn": "antelope"}.get(str(problem.name), "ppo")
        return _failed(f"there is no Python module {problem.name}: pip install './python[{extra}]'", 2)
    except (ValueError, OSError) as problem:
        return _failed(problem, 2)
    try:
        checksum = policy.save(path)
    except (OSError, SafetensorError) as problem:
        return _failed(
            f"cannot write {path}: {problem}; mend that and give the same command with --resume", 1
        )
    which = "of the test" if settings.final else "for validation"
    print(f"judging on {settings.judge} connections over links {which}")
    try:
        opened = card.opened(settings.out, checksum) if settings.final else []
        judged = evaluate(policy, settings, course)
        text = card.write(
            settings,
            policy,
            judged,
            checksum=checksum,
            progress=progress,
            arguments=arguments,
            opened=opened,
            rivals=next_to_each(policy, settings),
        )
        if settings.method == "counterfactual":
            text += card.of_regret(regret(policy, settings, course))
        (settings.out / "card.md").write_text(text, encoding="utf-8")
    except Exception as problem:  # Whatever it is, the training was not in vain.
        return _failed(f"the model is saved as {path}, but has no card: {problem}", 1)
    print(text)
    print(f"the model is {path}; {time.time() - started:.0f} s in all")
    return 0


def _failed(problem: object, code: int) -> int:
    print(f"error: {problem}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
