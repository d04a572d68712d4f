"""A training of a minute, to show that learning works: `./dev train-smoke`.

The policy learns from what choices would have cost, and must then need at least a tenth less time to complete
requests than choosing at random does, on links that it has not seen.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from trimtab.train import counterfactual
from trimtab.train.evaluate import judge_course, run
from trimtab.train.options import Training

#: By ratio of completion times, averaged over connections.
MARGIN = 0.10
#: Periods of a connection, for learning and for judging.
PERIODS = 10


def main() -> int:
    """Train and judge; gives the exit code."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        settings = Training(
            method="counterfactual",
            out=Path(folder),
            episodes=150,
            periods=PERIODS,
            generated=48,
            conditions=200,
            judge=80,
        )
        policy, progress = counterfactual.train(settings)
    course = judge_course(settings, PERIODS)
    random = np.random.default_rng(settings.seed)
    count = len(policy.algorithms)
    by_policy = run(course, lambda _, states: policy.choose(states).tolist(), settings.judge, PERIODS)
    by_chance = run(
        course, lambda e, _: random.integers(count, size=len(e)).tolist(), settings.judge, PERIODS
    )
    less = 1.0 - float(np.exp((np.log(by_policy) - np.log(by_chance)).mean()))
    print(
        f"after {progress['decisions']} decisions the policy needs {less:.1%} less time than random choices "
        f"(at least {MARGIN:.0%} are wanted); {time.perf_counter() - start:.0f} s"
    )
    return 0 if less >= MARGIN else 1


if __name__ == "__main__":
    sys.exit(main())
