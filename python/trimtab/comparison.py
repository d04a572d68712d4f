"""Comparisons of congestion controls: what the command ``trimtab compare`` does, as a function.

The simulator runs on all cores in Rust, so the numbers are those of the command's JSON, to the last bit::

    import pandas, polars, trimtab

    runs = trimtab.compare(app="vod", cc=["cubic", "bbr", "mortise"], traces="cellular:seed=1", seeds=5)
    pandas.DataFrame(runs).groupby("cc")["qoe_mean"].mean()
    polars.DataFrame(runs.summary)
    runs.plot("cdf", "cdf.pdf")

``docs/reference/tables.md`` describes every column.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from trimtab import _native

# One value of an axis of the grid, or several; with its unit where it has one, as "20ms".
Texts = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Table(dict[str, list[Any]]):
    """A table by columns: a dictionary of lists of the same length.

    ``pandas.DataFrame(table)``, ``polars.DataFrame(table)`` and ``pyarrow.table(table)`` take it as it is.
    Missing values are ``None``. A column without any value is left out.
    """

    @property
    def height(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.values()), []))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.height} rows: {', '.join(self)}>"


class Comparison(Table):
    """The runs of a comparison as a table, one row each, and what else it gave."""

    def __init__(self, native: _native.Compared) -> None:
        super().__init__(native.runs())
        self._native = native

    @property
    def summary(self) -> Table:
        """One row per scheme and application, with 95 % intervals."""
        return Table(self._native.summary())

    @property
    def requests(self) -> Table:
        """One row per request or chunk; empty without ``details=True``."""
        return Table(self._native.requests())

    @property
    def series(self) -> Table:
        """One row per run and bin of time; empty without ``details=True``."""
        return Table(self._native.series())

    @property
    def record(self) -> dict[str, Any]:
        """What ``--json`` writes: all of the above but details, paired changes, and how to repeat it."""
        record: dict[str, Any] = json.loads(self._native.json())
        return record

    def html(self) -> str:
        """Give the report that ``--html`` writes, which shows more with ``details=True``."""
        return self._native.html()

    def svg(self, kind: str) -> str:
        """Draw a figure of the first application, of a kind as in :meth:`plot`."""
        return self._native.svg(kind)

    def plot(self, kind: str, file: str | os.PathLike[str]) -> None:
        """Draw a figure of the first application into a file that ends in ``.svg``, ``.pdf`` or ``.png``.

        The kinds are those of ``--plot``: ``qoe``, ``changes``, ``cdf``, ``tradeoff``, ``series``, ``axis``,
        ``period``, ``switches`` and ``completion``. ``cdf`` and ``series`` need ``details=True``.
        """
        self._native.plot(kind, file)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write what ``--out`` writes: the tables as Parquet, and every figure as SVG, PDF and PNG."""
        self._native.write(folder)


def compare(
    *,
    app: Texts = (),
    cc: Texts = (),
    traces: Texts = (),
    transport: str | None = None,
    workload: str | os.PathLike[str] | None = None,
    qoe: str | None = None,
    rtt: Texts = (),
    buffer: Texts = (),
    loss: Texts = (),
    jitter: Texts = (),
    mark: str | None = None,
    flows: int | Sequence[int] = (),
    duration: str | None = None,
    seeds: int | None = None,
    first_seed: int | None = None,
    share_min: str | None = None,
    thin: int | None = None,
    scenario: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    details: bool = False,
    progress: bool = False,
) -> Comparison:
    """Compare congestion controls by what users of an application experience, on the simulator.

    Keywords are the flags of ``trimtab compare``. One that takes several values is an axis of the grid: every
    combination is run. Without any keyword it is the demo. Ctrl-C ends it; runs that have begun end first.

    Args:
        app: What the users do: ``download``, ``vod``, ``live``, ``web`` or ``bulk``.
        cc: Congestion controls, as ``cubic``, ``copa:delta=0.1`` or ``mortise``.
        traces: Files in Mahimahi's format, globs, or ``constant:12Mbit/s``, ``cellular:seed=1`` and the like.
        transport: ``quic``, which is the default, or ``tcp``.
        workload: A file of requests that downloads replay.
        qoe: The QoE model, or a formula in T, D and L.
        rtt: Base round-trip times, as ``20ms``.
        buffer: Sizes of the bottleneck's buffer, as ``150KB`` or ``2BDP``.
        loss: Random loss, as ``0.1%``.
        jitter: The most that each data packet is late, as ``5ms``.
        mark: Which packets the bottleneck marks, as ``20packets``.
        flows: Flows of each congestion control that share the link.
        duration: How long each run lasts, as ``30s``.
        seeds: How many seeds each combination is run with.
        first_seed: The first of the seeds.
        share_min: Leave out combinations with less than this for each flow, as ``1Mbit/s``.
        thin: Run so many combinations, spread evenly.
        scenario: A scenario file; the keywords above replace what it says.
        jobs: Runs at once; default: all cores.
        details: Keep every request and the courses over time, for ``requests``, ``series`` and their figures.
        progress: Show a progress bar on standard error, where that is a terminal.

    Raises:
        ValueError: A value is wrong, or values do not fit together. The message says what to write instead.
        TypeError: A value has no unit, or is of another type.

    """
    given = {key: value for key, value in locals().items() if value is not None and value != ()}
    words = [f"{key}={value!r}" for key, value in given.items() if value is not False]
    native = _native.compared(
        app=_texts("app", app),
        cc=_texts("cc", cc),
        traces=_texts("traces", traces),
        transport=_text("transport", transport),
        workload=workload,
        qoe=_text("qoe", qoe),
        rtt=_texts("rtt", rtt),
        buffer=_texts("buffer", buffer),
        loss=_texts("loss", loss),
        jitter=_texts("jitter", jitter),
        mark=_text("mark", mark),
        flows=[flows] if isinstance(flows, int) else list(flows),
        duration=_text("duration", duration),
        seeds=seeds,
        first_seed=first_seed,
        share_min=_text("share_min", share_min),
        thin=thin,
        scenario=scenario,
        jobs=jobs,
        details=details,
        progress=progress,
        call=f"trimtab.compare({', '.join(words)})",
    )
    return Comparison(native)


def _text(keyword: str, value: str | os.PathLike[str] | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    raise TypeError(
        f"{keyword}={value!r} is no text: write it with its unit where it has one, as '20ms' or '0.1%'"
    )


def _texts(keyword: str, values: Texts) -> list[str]:
    several = (
        [values] if isinstance(values, str | os.PathLike) or not isinstance(values, Sequence) else values
    )
    return [text for value in several if (text := _text(keyword, value)) is not None]
