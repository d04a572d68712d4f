"""The worker of `--cc python:FILE`: it holds the controllers of one thread, by number.

It is started as `python3 -c THIS FILE CLASS NAMES`, reads requests from standard input, and writes
answers to what was standard output. `worker.rs` is the other side, and says what the frames are.
"""

import collections
import copy
import importlib.util
import inspect
import json
import os
import random
import signal
import struct
import sys
import traceback

NEW, COPY, DROP, INTERVAL, ACK, LOSS, TIMEOUT, KNOB = range(8)
EVENTS = {INTERVAL: "on_interval", ACK: "on_ack", LOSS: "on_loss", TIMEOUT: "on_timeout"}
REQUEST = struct.Struct("<BIH")
ANSWER = struct.Struct("<BddI")
WINDOW, RATE, FAILED = 1, 2, 4
NAN = float("nan")


class Wrong(Exception):
    """What the user wrote cannot be used; its text says what to do."""


def load(path, wanted):
    """The class of a file: the one that is wanted, or the only one with a method that is called."""
    path = os.path.abspath(path)
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise Wrong(f"{path} is no Python file: give one that ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    own = {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and value.__module__ == spec.name
        and any(callable(getattr(value, method, None)) for method in EVENTS.values())
    }
    if wanted:
        if wanted not in own:
            there = ", ".join(own) or "none"
            raise Wrong(
                f"no class {wanted} with on_interval or on_ack in the file; there are: {there}"
            )
        return own[wanted]
    if len(own) != 1:
        there = ", ".join(own) or "none"
        raise Wrong(
            "the file needs one class with a method on_interval or on_ack, or its name after the "
            f"file, as in python:mine.py:Mine; there are: {there}"
        )
    return next(iter(own.values()))


def knobs_of(cls):
    """The knobs of a class: name, default, minimum, maximum, unit and about of each."""
    knobs = []
    for name, knob in dict(getattr(cls, "knobs", {})).items():
        try:
            default, low, high, unit, about = (*knob, *("1", "")[len(knob) - 3 :])
            knobs.append([name, float(default), float(low), float(high), str(unit), str(about)])
        except (TypeError, ValueError):
            raise Wrong(
                f"knob {name!r} is {knob!r}: give (default, minimum, maximum), and a unit and what "
                "it trades after them"
            ) from None
    return knobs


def describe(cls):
    """What the other side has to know of the class."""
    about = inspect.getdoc(cls) or "a Python class"
    return {
        "name": cls.__name__,
        "about": about.strip().splitlines()[0],
        "interval": str(getattr(cls, "interval", "1rtt")),
        "manages_recovery": bool(getattr(cls, "manages_recovery", False)),
        "events": [event for event, name in EVENTS.items() if callable(getattr(cls, name, None))],
        "knobs": knobs_of(cls),
    }


def answer_of(method, value):
    """The bits, the window and the rate of what a method returned."""
    if value is None:
        return 0, NAN, NAN
    if not isinstance(value, dict) or value.keys() - {"window_bytes", "rate_mbps"}:
        raise Wrong(
            f"{method} returned {value!r}: return None, or a dict with window_bytes, rate_mbps, or "
            "both"
        )
    window, rate = value.get("window_bytes"), value.get("rate_mbps")
    try:
        return (
            (WINDOW if window is not None else 0) | (RATE if rate is not None else 0),
            NAN if window is None else float(window),
            NAN if rate is None else float(rate),
        )
    except (TypeError, ValueError):
        raise Wrong(f"{method} returned {value!r}: give numbers") from None


class Worker:
    """The controllers of a thread."""

    def __init__(self, cls, names):
        self.cls = cls
        self.knobs = knobs_of(cls)
        self.controllers = {}
        self.config = collections.namedtuple("Config", [*names["config"], "random"])
        self.seen = {
            INTERVAL: collections.namedtuple("Observation", names["interval"]),
            ACK: collections.namedtuple("Ack", names["ack"]),
            LOSS: collections.namedtuple("Loss", names["loss"]),
            TIMEOUT: collections.namedtuple("Timeout", names["timeout"]),
        }

    def create(self, number, values):
        """A controller for a new connection. The seed comes as its two halves."""
        *limits, high, low = values
        seed = int(high) << 32 | int(low)
        controller = self.cls.__new__(self.cls)
        for name, default, *_ in self.knobs:
            setattr(controller, name, default)
        if self.cls.__init__ is not object.__init__:
            controller.__init__(self.config(*limits, seed, random.Random(seed)))
        self.controllers[number] = controller

    def do(self, what, number, values):
        """Carries out a request. The bits, the window and the rate of the answer."""
        if what in EVENTS:
            method = EVENTS[what]
            seen = self.seen[what](*values)
            value = getattr(self.controllers[number], method)(seen)
            return answer_of(f"{self.cls.__name__}.{method}", value)
        if what == NEW:
            self.create(number, values)
        elif what == COPY:
            self.controllers[int(values[0])] = copy.deepcopy(self.controllers[number])
        elif what == KNOB:
            setattr(self.controllers[number], self.knobs[int(values[0])][0], values[1])
        return 0, NAN, NAN


def reason():
    """Why the user's code failed: the exception, and where. Our own frames are left out."""
    kind, error, trace = sys.exc_info()
    if kind is Wrong:
        return str(error)
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename != "<string>"]
    where = "".join(traceback.format_list(frames))
    what = "".join(traceback.format_exception_only(kind, error)).strip()
    return f"{what}; mend the class where the traceback points\n{where}".rstrip()


def main():
    """Speaks until the other side has gone."""
    # Ctrl-C ends it as it ends the other side, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # What the user prints is no answer, and what the user's code reads is no request.
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def say(bits, window, rate, text=""):
        encoded = text.encode()
        answers.write(ANSWER.pack(bits, window, rate, len(encoded)) + encoded)
        answers.flush()

    path, wanted, names = sys.argv[1:4]
    try:
        cls = load(path, wanted)
        say(0, NAN, NAN, json.dumps(describe(cls)))
    except BaseException:  # A file may also leave by sys.exit().
        say(FAILED, NAN, NAN, reason())
        return
    worker = Worker(cls, json.loads(names))
    while head := requests.read(REQUEST.size):
        what, number, count = REQUEST.unpack(head)
        values = struct.unpack(f"<{count}d", requests.read(8 * count))
        if what == DROP:
            worker.controllers.pop(number, None)
            continue
        try:
            say(*worker.do(what, number, values))
        except BaseException:  # As above.
            say(FAILED, NAN, NAN, reason())


main()
