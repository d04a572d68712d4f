"""Settings as fields of a data class, each with its help: the command line is made of them."""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import field
from pathlib import Path
from typing import Any


def option(default: Any, about: str) -> Any:
    """Make a field of a data class that is an option, with what `--help` says of it."""
    return field(default=default, metadata={"help": about})


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
