"""What trees are asked with is what the Rust side asks with: its tests have the same numbers."""

import numpy as np

from trimtab.muses.inputs import INPUTS, SIGNALS, Past, inputs

FIRST = [4000, 100, 3900, 5100, 5000, 3, 3500]
SECOND = [4000, 60, 3900, 5100, 5256, 0, 3501]


def test_differences_and_averages() -> None:
    past = Past(3)
    rows = [np.array([state, state], np.int16) for state in (FIRST, SECOND)]
    first, second = (past.see(states, np.array([2, 0]))[0] for states in rows)
    assert first.tolist() == [*FIRST, -5400, -5500, 100, 0, 0, 0, 0, -5400, 2600]
    assert second[SIGNALS:].tolist() == [-5655, -5755, -156, 224, 252, 1, -35, -5431, 2688]


def test_whole_flows_are_the_same() -> None:
    found = inputs(np.array([[FIRST, SECOND], [SECOND, FIRST]], np.int16))
    assert found.shape == (2, 2, INPUTS)
    assert found[0, 1, SIGNALS:].tolist() == [-5655, -5755, -156, 224, 252, 1, -35, -5431, 2688]
    assert found[1, 0, SIGNALS + 3 : INPUTS - 2].tolist() == [0, 0, 0, 0]
