"""The papers' figures by name: the command ``trimtab reproduce`` as a function, also on a Ray cluster."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from trimtab import _native
from trimtab.cluster import Cluster
from trimtab.progress import Bar

#: The file whose presence says that a figure has run.
RESULT = "result.json"


class Figure(NamedTuple):
    """A figure, and how it is run."""

    name: str
    #: Its folder in that of the results.
    folder: str
    scenarios: str
    quick: bool
    #: The call that goes into the record.
    call: str

    def run(self, out: str, jobs: int | None = None, progress: bool = False) -> str:
        """Run it here unless its result is there; gives its verdict as JSON. Raises ValueError."""
        return _native.reproduced(
            self.name,
            scenarios=self.scenarios,
            out=out,
            quick=self.quick,
            jobs=jobs,
            progress=progress,
            call=self.call,
        )


def reproduce(
    *figures: str,
    quick: bool = False,
    out: str | os.PathLike[str] = "reproduced",
    scenarios: str | os.PathLike[str] = "scenarios",
    jobs: int | None = None,
    progress: bool = False,
    ray: str | Cluster | None = None,
) -> list[dict[str, Any]]:
    """Run figures of the papers and judge their numbers by ours; without a name all that run.

    Each leaves result, verdict and pictures in a folder in `out`. What is there is not run again. Gives the
    verdicts.

    Args:
        figures: Names, e.g. ``mortise/fig12``. ``trimtab reproduce --list`` has all.
        quick: One seed, a minute, and a few points of the grid: shows that a figure runs.
        out: The folder of results.
        scenarios: The folder of scenarios, as in Trimtab's repository.
        jobs: Number of runs at once; default: all cores. Not with `ray`, where a figure takes one.
        progress: Show progress on standard error.
        ray: A Ray cluster, as in :func:`trimtab.compare`. The files have the same bytes.

    Raises:
        ValueError: A name is unknown, or a figure failed. The other figures have run then.
        trimtab.cluster.ClusterError: The cluster cannot be used.

    """
    words = [*map(repr, figures), *(["quick=True"] if quick else [])]
    call = f"trimtab.reproduce({', '.join(words)})"
    chosen = [
        Figure(name, folder, os.fspath(scenarios), quick, call) for name, folder in _native.figures(figures)
    ]
    verdicts, problems = make(chosen, Path(out), jobs, progress, ray)
    if problems:
        raise ValueError("; ".join(problems))
    return [json.loads(verdict) for verdict in verdicts]


def make(
    figures: list[Figure], out: Path, jobs: int | None, progress: bool, ray: str | Cluster | None
) -> tuple[list[str], list[str]]:
    """Make figures; gives the verdicts, and what is wrong with figures that failed, in their order."""
    failed: dict[str, str] = {}
    if ray is not None:
        failed = _bring([f for f in figures if not (out / f.folder / RESULT).exists()], out, progress, ray)
    verdicts = []
    for figure in figures:
        if figure.name in failed:
            continue
        try:
            # What a cluster brought is there, and so not run again.
            verdicts.append(figure.run(os.fspath(out), jobs, progress))
        except ValueError as problem:
            failed[figure.name] = str(problem)
    return verdicts, [failed[figure.name] for figure in figures if figure.name in failed]


def _bring(figures: list[Figure], out: Path, progress: bool, ray: str | Cluster) -> dict[str, str]:
    """Have a cluster make figures, and write their files as they come; gives what is wrong with others."""
    failed = {}
    bar = Bar("figures", len(figures)) if progress else None
    with Cluster.at(ray) as cluster:
        for place, made in cluster.results(_made, [(figure,) for figure in figures]):
            if isinstance(made, str):
                failed[figures[place].name] = made
            else:
                _write(out, made)
            if bar is not None:
                bar.advance(1)
    return failed


def _made(figure: Figure) -> dict[str, bytes] | str:
    """Make a figure on a node; gives its files by their paths, or the problem."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            figure.run(folder, jobs=1)
        except ValueError as problem:
            return str(problem)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _write(out: Path, files: dict[str, bytes]) -> None:
    """Write files, the result last: it says that the others are there."""
    for name in sorted(files, key=lambda name: name.endswith(RESULT)):
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(files[name])
        part.replace(path)
