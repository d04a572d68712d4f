"""How far a long command is: a line that is written over in a terminal, and now and then one elsewhere."""

from __future__ import annotations

import sys
import time

#: Seconds between two lines where nobody looks.
EVERY_S = 60.0
WIDTH = 30


class Bar:
    """A bar for a number of steps that is known before."""

    def __init__(self, what: str, of: int, done: int = 0) -> None:
        self.what, self.of, self.done, self.began_with = what, of, done, done
        self.start = self.last = time.monotonic()

    def advance(self, steps: int) -> None:
        """Say that so many more steps are done."""
        self.done += steps
        now, is_seen = time.monotonic(), sys.stderr.isatty()
        if not is_seen and now - self.last < EVERY_S and self.done < self.of:
            return
        self.last = now
        rate = (now - self.start) / max(1, self.done - self.began_with)
        left = rate * (self.of - self.done)
        filled = WIDTH * self.done // max(1, self.of)
        drawn = "#" * filled + "." * (WIDTH - filled)
        bar = f"{self.what} [{drawn}] {self.done} of {self.of}, {left:.0f} s left"
        end = "\r" if is_seen and self.done < self.of else "\n"
        print(bar, end=end, file=sys.stderr, flush=True)
