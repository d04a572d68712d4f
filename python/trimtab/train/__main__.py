"""`python -m trimtab.train floo`: parse, train, judge, and write the model with its card."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from trimtab.train import card, counterfactual, options
from trimtab.train.evaluate import evaluate


def main(arguments: list[str]) -> int:
    """Train as the command line says. Gives the exit code."""
    started = time.time()
    settings = options.parse(arguments)
    try:
        if settings.method == "ppo":
            # Its library is an extra, which the other method does without.
            from trimtab.train import ppo  # noqa: PLC0415

            policy, progress = ppo.train(settings)
        else:
            policy, progress = counterfactual.train(settings)
    except ValueError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    path = settings.out / "model.safetensors"
    checksum = policy.save(path)
    print(f"judging on {settings.judge} connections over links that it has not seen")
    judged = evaluate(policy, settings)
    text = card.write(settings, policy, judged, checksum=checksum, progress=progress, arguments=arguments)
    Path(settings.out / "card.md").write_text(text, encoding="utf-8")
    print(text)
    print(f"the model is {path}; {time.time() - started:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
