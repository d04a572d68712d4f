"""Antelope's selection: `python -m trimtab.train antelope --help`.

Read first: ``collect.py`` for what is learnt from, then ``boosted.py`` for the models and ``train.py``.
"""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> int:
    """Train as the command line says. Gives the exit code."""
    try:
        from trimtab.antelope import train  # noqa: PLC0415 - its library is an extra
    except ModuleNotFoundError as problem:
        needed = f"there is no Python module {problem.name}: pip install './python[antelope]'"
        print(f"error: {needed}", file=sys.stderr)
        return 2
    return train.main(arguments)
