"""How fast the learning environments are: milliseconds a period, on one core and on all.

Run by `./dev bench py`.
"""

import os
import subprocess
import sys
import time

#: Selection periods that are timed.
PERIODS = 200


def measure() -> None:
    """Time each kind of traffic, and print a line for it."""
    import trimtab  # noqa: PLC0415 - after RAYON_NUM_THREADS is set
    from trimtab._native import Episodes  # noqa: PLC0415

    threads = os.environ.get("RAYON_NUM_THREADS", "all")
    for traffic in ("web", "web-burst", "download"):
        course = trimtab.Settings(traffic=(traffic,), start="bbr", periods=PERIODS).course()
        episodes = Episodes(course, list(range(8)))
        before, start = episodes.events(), time.perf_counter()
        for _ in range(PERIODS // 8):
            episodes.step([1] * 8)
        spent = time.perf_counter() - start
        each = 1e3 * spent / PERIODS
        events = (episodes.events() - before) / spent
        speed = f"{each:6.2f} ms a period of 12 s, {events / 1e6:.1f} M events/s"
        print(f"{threads:>2} threads, {traffic:<10} {speed}")


if __name__ == "__main__":
    if "RAYON_NUM_THREADS" in os.environ:
        measure()
    else:
        for count in ("1", str(os.cpu_count())):
            subprocess.run(
                [sys.executable, __file__], env=os.environ | {"RAYON_NUM_THREADS": count}, check=True
            )
