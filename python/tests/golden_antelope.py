"""Write the model and what scikit-learn foretells by it that Rust is held to.

`.venv/bin/python python/tests/golden_antelope.py` in the repository's root writes both files anew.
"""

import dataclasses
from pathlib import Path

import numpy as np

from trimtab._native import Course
from trimtab.antelope.boosted import Boosted, fit
from trimtab.tensors import save_file

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "fuzz/seeds/antelope/small"
GOLDEN = ROOT / "crates/steer/tests/data/antelope.safetensors"
ROWS = 200


def main() -> None:
    """Fit models to noise about two functions, and write what the library says of other inputs."""
    random = np.random.default_rng(8)
    inputs = random.random((600, len(Course.antelope_features())), np.float32)
    rewards = np.stack([inputs[:, 4] * (1 - inputs[:, 5]), 0.6 * inputs[:, 0] + 0.2 * inputs[:, 6]], axis=1)
    rewards = 2.0 * rewards + 0.1 * random.standard_normal(rewards.shape)
    models = fit(inputs, rewards, seed=1)
    model = Boosted.of(
        models,
        inputs,
        features=tuple(Course.antelope_features()),
        algorithms=("cubic", "bbr"),
        period_ms=2_000,
        first="bbr",
    )
    model.save(MODEL)
    # Fuzzing takes seeds of 4 kB at most.
    few = {name: getattr(model, name)[:, :3] for name in ("asked", "thresholds", "leaves")}
    dataclasses.replace(model, **few).save(MODEL.with_name("three-trees"))
    asked = random.random((ROWS, inputs.shape[1]), np.float32)
    foretold = np.stack([model.predict(asked) for model in models], axis=1)
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    save_file({"inputs": asked, "rewards": foretold}, GOLDEN, {"of": "fuzz/seeds/antelope/small"})


if __name__ == "__main__":
    main()
