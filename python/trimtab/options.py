"""Settings as fields of a data class, each with its help: the command line is made of them."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from trimtab.course import LEARNT_KINDS

T = TypeVar("T")


def option(default: Any, about: str) -> Any:
    """Make a field of a data class that is an option, with what `--help` says of it."""
    return dataclasses.field(default=default, metadata={"help": about})


def add_options(
    parser: argparse.ArgumentParser,
    settings: type,
    choices: dict[str, tuple[str, ...]] | None = None,
    silent: tuple[Any, ...] = (None,),
) -> None:
    """Add an option for each field of a data class; defaults in `silent` say nothing to a person."""
    for each in dataclasses.fields(settings):
        name, about, default = f"--{each.name}", each.metadata["help"], each.default
        if isinstance(default, bool):
            parser.add_argument(name, action="store_true", help=about)
            continue
        kind = Path if "Path" in str(each.type) else type(default)
        shown = about if default in silent else f"{about} [{default}]"
        allowed = (choices or {}).get(each.name)
        parser.add_argument(name, type=kind, default=default, choices=allowed, help=shown)


def read(
    settings: type[T],
    arguments: list[str],
    problem: Callable[[T], str | None],
    choices: dict[str, tuple[str, ...]] | None = None,
    *,
    command: str,
) -> T:
    """Read the command line of a learner; ends the program where it makes no sense."""
    parser = argparse.ArgumentParser(prog=f"python -m trimtab.train {command}", description=settings.__doc__)
    add_options(parser, settings, choices)
    given = settings(**vars(parser.parse_args(arguments)))
    wrong = problem(given)
    if wrong is not None:
        parser.error(wrong)
    return given


@dataclass(frozen=True)
class Drawn:
    """What links and conditions are drawn from. Commands have these options in common."""

    conditions: int = option(1_000, "network conditions in the space-filling design")
    generated: int = option(128, "generated links; a fifth of them is for validation")
    traces: Path | None = option(None, "folder of recordings: a folder of Mahimahi traces for each kind")
    kinds: str = option(",".join(LEARNT_KINDS), "the kinds to take from it")


#: The least of its numbers, and the most where there is one.
DRAWN_RANGES: dict[str, tuple[float, float | None]] = {"conditions": (1, None), "generated": (0, None)}


def out_of_range(settings: object, ranges: Mapping[str, tuple[float, float | None]]) -> str | None:
    """Name the first setting below its least or above its most; none when all are within."""
    for name, (least, most) in ranges.items():
        value = getattr(settings, name)
        if value < least or (most is not None and value > most):
            allowed = f"at least {_written(least)}"
            if most is not None:
                allowed = f"{_written(least)} to {_written(most)}"
            return f"--{name} is {value}; it must be {allowed}"
    return None


def _written(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"
