"""A training of a minute, to show that learning works: `./dev train-smoke`.

The policy learns from what choices would have cost. It must then need less time to complete requests than the
best single algorithm does, on links that it has not seen. No policy that always chooses the same can pass.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from trimtab.train import counterfactual
from trimtab.train.evaluate import Chooser, Floats, always, by_policy, judge_course, run
from trimtab.train.options import Training

#: By ratio of completion times, averaged over connections.
MARGIN = 0.01
#: Periods of a connection, for learning and for judging.
PERIODS = 10


def main() -> int:
    """Train and judge; gives the exit code."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        settings = Training(
            method="counterfactual",
            out=Path(folder),
            episodes=250,
            periods=PERIODS,
            generated=100,
            conditions=200,
            judge=100,
        )
        policy, progress = counterfactual.train(settings)
    course = judge_course(settings, PERIODS)

    def times(choose: Chooser) -> Floats:
        return np.log(run(course, choose, settings.judge, PERIODS).times)

    chosen = times(by_policy(policy, course))
    single = {name: times(always(number)) for number, name in enumerate(policy.algorithms)}
    best = min(single, key=lambda name: float(single[name].mean()))
    less = 1.0 - float(np.exp((chosen - single[best]).mean()))
    print(
        f"after {progress['decisions']} decisions the policy needs {less:.1%} less time than {best}, the "
        f"best single algorithm (at least {MARGIN:.0%} is wanted); {time.perf_counter() - start:.0f} s"
    )
    return 0 if less >= MARGIN else 1


if __name__ == "__main__":
    sys.exit(main())
