"""All stages in about a minute, to show that they work: `./dev train-muses-smoke`.

The LSTM and the trees must then keep the queue of steady Wi-Fi networks that they have not seen at less than
half of CUBIC's, and still use most of what it uses.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from trimtab.muses import dagger, extract, judge, options

#: Least utilisation, as a share of CUBIC's, and most delay.
UTILISATION = 0.4
DELAY = 0.5


def main() -> int:
    """Run the stages and judge; gives the exit code."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        stages = options.Stages(
            out=Path(folder),
            hidden=24,
            rounds=10,
            parallel=48,
            decisions=300,
            window=50,
            epochs=4,
            sample=240,
            rate=4e-3,
            sharing=0.0,
            flows=144,
            leaves=100,
            clusters="2-6",
            grid=1,
            generated=16,
            judge=8,
            judged=1_200,
        )
        teacher, _ = dagger.train(stages)
        many, one, _ = extract.extract(stages, teacher)
        judged = judge.judge(stages, teacher, {"muses": many, "treeg": one})
    print(judge.table(judged))
    steady = {name: np.array(outcomes).mean(axis=0) for name, outcomes in judged["steady-wifi"].items()}
    failed = 0
    for name in ("lstm", "muses"):
        used, delay = steady[name][:2] / steady["cubic"][:2]
        good = used >= UTILISATION and delay <= DELAY
        failed += not good
        print(
            f"{'passed' if good else 'FAILED'}: {name} has {used:.2f} of CUBIC's utilisation (at least "
            f"{UTILISATION}) with {delay:.2f} of its delay (at most {DELAY})"
        )
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
