"""What was simulated so far, a line of JSON each: a command that was stopped goes on with it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from trimtab.train.checkpoint import must_fit_settings


class Store:
    """Rows by their key, in memory and in a file that grows."""

    def __init__(self, path: Path, settings: dict[str, str]) -> None:
        """Read what the file has, if there is one.

        Raises ValueError where it was made with other settings.
        """
        self.path = path
        self.rows: dict[tuple[Any, ...], list[Any]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = self._read(settings) if path.exists() else 0
        self.file: TextIO = path.open("a", encoding="utf-8")
        # A line that was not written to its end is written anew.
        self.file.truncate(whole)
        if not whole:
            self._write(json.dumps(settings))

    def _read(self, settings: dict[str, str]) -> int:
        whole, before = 0, None
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                if before is None:
                    before = line.decode()
                    continue
                *key, value = json.loads(line)
                self.rows[tuple(key)] = value
        if before is not None:
            must_fit_settings(self.path, before, settings)
        return whole

    def _write(self, line: str) -> None:
        self.file.write(line + "\n")

    def add(self, rows: Iterable[tuple[tuple[Any, ...], list[Any]]]) -> None:
        """Keep rows, each with its key, and have them in the file before this returns."""
        for key, value in rows:
            self.rows[key] = value
            self._write(json.dumps([*key, value]))
        self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()
