"""How fast the learning environments are, on one core and on all.

Run by `./dev bench py`. With `--pcc-rl FOLDER`, a checkout of Aurora's PCC-RL, it times that simulator, too.
"""

import argparse
import contextlib
import io
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Selection periods that are timed.
PERIODS = 200
#: Steps of a course, all batches together, and courses that are timed in turn.
STEPS, ROUNDS = 12_800, 9
#: Aurora's middle link: 300 packets/s, and 50 ms each way; a queue of 1 + e^3 packets.
AURORA = {"traces": "constant:3.6Mbit/s", "rtt": "100ms", "buffer": "21packets", "interval": "0.5rtt"}
#: The other: the link of `./dev bench`, an action each round trip.
COMMON = {"traces": "constant:12Mbit/s", "rtt": "20ms", "buffer": "1BDP", "interval": "1rtt"}


def periods() -> None:
    """Time a period of each kind of traffic, and print a line for it."""
    import trimtab  # noqa: PLC0415 - after RAYON_NUM_THREADS is set
    from trimtab._native import Episodes  # noqa: PLC0415

    for traffic in ("web", "web-burst", "download"):
        course = trimtab.Settings(traffic=(traffic,), start="bbr", periods=PERIODS).course()
        episodes = Episodes(course, list(range(8)))
        before, start = episodes.events(), now()
        for _ in range(PERIODS // 8):
            episodes.step([1] * 8)
        spent = now() - start
        each = 1e3 * spent / PERIODS
        events = (episodes.events() - before) / spent
        say(f"{traffic:<10} {each:6.2f} ms a period of 12 s, {events / 1e6:.1f} M events/s")


def intervals() -> None:
    """Time steps of Rate-v0, and the same decisions on forks of the same worlds without Python in between."""
    import numpy as np  # noqa: PLC0415

    import trimtab  # noqa: PLC0415

    random = np.random.default_rng(1)
    for link, changes, start in (("12 Mbit/s", COMMON, 10.0), ("Aurora's link", AURORA, 3.0)):
        for batch in (1, 64):
            task = trimtab.Task.rate(duration="1000000s", start=start, **changes)
            env: Any = trimtab.RateEnv(task) if batch == 1 else trimtab.RateVectorEnv(batch, task)
            env.reset(seed=1)
            count = STEPS // batch
            # Every second action takes the one before it back, so that rates stay near the capacity.
            actions = random.uniform(-2, 2, (count, batch, 1)).astype(np.float32)
            actions[1::2] = -actions[::2]
            if batch == 1:
                actions = actions[:, 0]

            def step(fork: Any, actions: Any = actions) -> None:
                for action in actions:
                    fork.step(action)

            def play(fork: Any, actions: Any = actions) -> None:
                fork._batch.native.play(actions)

            compared(f"Rate-v0, {link}, batch {batch:>2}", env, count * batch, step, play)


def compared(
    name: str, env: Any, steps: int, by_python: Callable[[Any], None], by_rust: Callable[[Any], None]
) -> None:
    """Time two ways to run the same course, in turn, and print their speeds and the ratio within rounds."""
    spent: list[tuple[float, float]] = []
    for _ in range(ROUNDS + 1):
        each = []
        for run in (by_python, by_rust):
            fork, start = env.fork(), now()
            run(fork)
            each.append(now() - start)
        spent.append((each[0], each[1]))
    # The first round finds all cold.
    python, rust = (statistics.median(times) for times in zip(*spent[1:], strict=True))
    ratio = statistics.median(rust / python for python, rust in spent[1:])
    say(f"{name}: {steps / python:9,.0f} steps/s, from Rust {steps / rust:9,.0f}, ratio {ratio:.2f}")


def peer(folder: Path) -> None:
    """Time Aurora's own simulator on its middle link (PCC-RL, src/gym/network_sim.py)."""
    import gymnasium  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    # It asks for Gymnasium's ancestor by that name.
    sys.modules |= {"gym": gymnasium, "gym.utils": gymnasium.utils, "gym.envs": gymnasium.envs}
    sys.modules["gym.envs.registration"] = gymnasium.envs.registration
    sys.path[:0] = [str(folder / "src"), str(folder / "src/gym")]
    sys.argv = sys.argv[:1]
    from network_sim import SimulatedNetworkEnv  # type: ignore[import-not-found] # noqa: PLC0415

    env = SimulatedNetworkEnv()
    env.min_bw = env.max_bw = 300
    env.min_lat = env.max_lat = 0.05
    env.min_queue = env.max_queue = 3
    env.min_loss = env.max_loss = 0.0
    # It writes a log of each episode into the working directory.
    env.dump_events_to_file = lambda _: None
    random, steps, start = np.random.default_rng(1), 0, now()
    # It prints a line for each episode.
    with contextlib.redirect_stdout(io.StringIO()):
        while now() - start < 5:
            env.reset()
            done = False
            while not done:
                _, _, done, _ = env.step(random.uniform(-1, 1, 1))
                steps += 1
    say(f"PCC-RL, Aurora's link: {steps / (now() - start):9,.0f} steps/s")


def now() -> float:
    """Give the processor's time where one thread does all, since machines are shared; else the wall's."""
    alone = os.environ["RAYON_NUM_THREADS"] == "1"
    return time.process_time() if alone else time.perf_counter()


def say(line: str) -> None:
    """Print a line with the number of threads before it."""
    print(f"{os.environ['RAYON_NUM_THREADS']:>2} threads, {line}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pcc-rl", type=Path, help="a checkout of Aurora's PCC-RL")
    given = parser.parse_args()
    if "RAYON_NUM_THREADS" in os.environ:
        periods()
        intervals()
        if given.pcc_rl and os.environ["RAYON_NUM_THREADS"] == "1":
            peer(given.pcc_rl)
    else:
        for threads in ("1", str(os.cpu_count())):
            environment = os.environ | {"RAYON_NUM_THREADS": threads}
            subprocess.run([sys.executable, __file__, *sys.argv[1:]], env=environment, check=True)
