"""Bayesian optimisation, from a library, as a scheme of ``trimtab fleet simulate``.

Reads one JSON object a line and answers each ``choose`` with a point of the unit cube. In a Python with
``bayesian-optimization`` and from the folder ``python/trimtab``::

    trimtab fleet simulate --scenario F --scheme 'Bayesian=python3 bayes.py'

Each context of each aggregate has an optimiser of its own, as the library is meant to be used: a Gaussian
process with Matérn's kernel whose lengths and noise are those that are likeliest, and an upper confidence
bound.
"""

import argparse
import contextlib
import io
import json
import sys
import warnings
from typing import Any, TextIO

try:
    import numpy as np
    from bayes_opt import BayesianOptimization
    from bayes_opt.acquisition import UpperConfidenceBound
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel
except ModuleNotFoundError as missing:
    sys.exit(f"bayes.py: no {missing.name} in this Python; `pip install bayesian-optimization` brings it")


class Scheme:
    """What chooses for one aggregate."""

    def __init__(self, begin: dict[str, Any], kappa: float):
        self._begin = begin
        self._kappa = kappa
        self._contexts: dict[str, BayesianOptimization] = {}

    def _optimizer(self, context: str) -> BayesianOptimization:
        if context not in self._contexts:
            knobs: list[str] = self._begin["knobs"]
            optimizer = BayesianOptimization(
                f=None,
                pbounds=dict.fromkeys(knobs, (0.0, 1.0)),
                acquisition_function=UpperConfidenceBound(kappa=self._kappa),
                random_state=(
                    self._begin["seed"] * 1009 + self._begin["aggregate"] * 31 + len(self._contexts)
                )
                % 2**31,
                allow_duplicate_points=True,
                verbose=0,
            )
            # Rewards are noisy: without a term for that every one of them would be believed.
            kernel = Matern(nu=2.5, length_scale=[0.3] * len(knobs)) + WhiteKernel()
            optimizer.set_gp_params(kernel=kernel, normalize_y=True, n_restarts_optimizer=1)
            self._contexts[context] = optimizer
        return self._contexts[context]

    def choose(self, context: str) -> list[float]:
        """Give the point that promises most."""
        optimizer = self._optimizer(context)
        if not optimizer.space.keys or len(optimizer.space) == 0:
            return [float(x) for x in self._begin["start"]]
        point = optimizer.suggest()
        return [float(point[knob]) for knob in self._begin["knobs"]]

    def learn(self, context: str, point: list[float], reward: float) -> None:
        """Hear of a reward."""
        params = dict(zip(self._begin["knobs"], point, strict=True))
        self._optimizer(context).register(params=params, target=reward)


def serve(lines: TextIO, answers: TextIO, kappa: float) -> None:
    """Answer until there are no more lines."""
    scheme: Scheme | None = None
    for line in lines:
        match json.loads(line):
            case {"begin": begin}:
                scheme = Scheme(begin, kappa)
            case {"choose": context} if scheme:
                print(json.dumps(scheme.choose(context)), file=answers, flush=True)
            case {"learn": {"context": context, "point": point, "reward": reward}} if scheme:
                scheme.learn(context, point, reward)
            case other:
                sys.exit(f"trimtab.bayes: not understood, or before `begin`: {other}")


def main() -> None:
    """Serve standard input and output."""
    parser = argparse.ArgumentParser(prog="python -m trimtab.bayes")
    parser.add_argument("--kappa", type=float, default=2.576, help="standard errors of optimism")
    options = parser.parse_args()
    # The likeliest length lies at its bound where a knob does not matter; nothing is wrong with that.
    warnings.filterwarnings("ignore", module="sklearn")
    np.seterr(all="ignore")
    answers = sys.stdout
    # The library prints where a point comes twice, and among the answers that would be one.
    with contextlib.redirect_stdout(io.StringIO()):
        serve(sys.stdin, answers, options.kappa)


if __name__ == "__main__":
    main()
