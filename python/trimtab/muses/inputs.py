"""What a tree is asked with: the signals, and what follows from them (crates/cc/src/muses/inputs.rs)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIGNALS = 7
INPUTS = 16
SRTT, QDELAY, MIN_RTT, SRATE, DRATE, _LOSS, CWND = range(SIGNALS)
#: The signals of which averages are kept, and the weight of each as a power of one half.
AVERAGED = (DRATE, DRATE, CWND, QDELAY)
SHIFTS = np.array([3, 6, 3, 3])
#: Averages are kept 64-fold.
PARTS_BITS = 6

States = NDArray[np.int16]


class Past:
    """What so many flows keep of their states before; a row for each."""

    def __init__(self, flows: int) -> None:
        self.averages = np.zeros((flows, len(AVERAGED)), np.int64)
        self.is_set = np.zeros(flows, np.bool_)

    def see(self, states: States, flows: NDArray[np.int64]) -> States:
        """Take the next state of each of these flows; gives what a tree is asked with."""
        wide = states.astype(np.int64)
        here = wide[:, AVERAGED] << PARTS_BITS
        before = np.where(self.is_set[flows, None], self.averages[flows], here)
        averages = before + ((here - before) >> SHIFTS)
        self.averages[flows], self.is_set[flows] = averages, True
        drate_8, drate_64, cwnd_8, qdelay_8 = (averages >> PARTS_BITS).T
        srtt, qdelay, min_rtt, srate, drate, _loss, cwnd = wide.T
        derived = [
            cwnd - drate - min_rtt,
            cwnd - drate - srtt,
            srate - drate,
            drate - drate_8,
            drate - drate_64,
            cwnd - cwnd_8,
            qdelay - qdelay_8,
            cwnd - drate_8 - min_rtt,
            qdelay + (drate >> 1),
        ]
        return np.concatenate([states, np.stack(derived, axis=1).astype(np.int16)], axis=1)


def inputs(states: States) -> States:
    """Give the inputs of all states of flows: a row for each flow, a column for each interval."""
    past, flows = Past(len(states)), np.arange(len(states))
    return np.stack([past.see(states[:, at], flows) for at in range(states.shape[1])], axis=1)
