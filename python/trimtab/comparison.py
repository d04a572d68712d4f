"""Comparisons of congestion controls: the command ``trimtab compare`` as a function.

It runs the command's simulator, on all cores, and gives the same numbers to the last bit::

    import pandas, polars, trimtab

    runs = trimtab.compare(
        app="vod", cc=["cubic", "bbr", "mortise"], traces="cellular:seed=1", seeds=5
    )
    pandas.DataFrame(runs).groupby("cc")["qoe_mean"].mean()
    polars.DataFrame(runs.summary)
    runs.plot("cdf", "cdf.pdf")

``docs/reference/tables.md`` describes every column.
"""

from __future__ import annotations

import functools
import json
import operator
import os
from collections.abc import Iterable
from typing import Any

from trimtab import _native
from trimtab.cluster import Cluster
from trimtab.progress import Bar

#: Keywords of `compare` that take several texts, that take one, and that do not decide what runs.
AXES = ("app", "cc", "traces", "rtt", "buffer", "loss", "jitter")
SINGLE = ("transport", "qoe", "mark", "duration", "share_min")
EFFORT = ("jobs", "details", "progress")
#: Shares of a comparison for each CPU of a cluster: few enough that what each costs by itself does not count,
#: and many enough that none is waited for long.
SHARES = 8

# One value of an axis of the grid, or several; with its unit where it has one, e.g. "20ms".
Texts = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Table(dict[str, list[Any]]):
    """A table by columns: a dictionary of lists of the same length.

    ``pandas.DataFrame(table)``, ``polars.DataFrame(table)`` and ``pyarrow.table(table)`` take it.
    Missing values are ``None``. A column without any value is left out.
    """

    @property
    def height(self) -> int:
        """The number of rows."""
        return len(next(iter(self.values()), []))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.height} rows: {', '.join(self)}>"


class Comparison(Table):
    """The runs of a comparison as a table, one row each, with its other tables and figures."""

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
        """The JSON that ``--json`` writes: runs, summary, paired changes, and how to repeat it."""
        record: dict[str, Any] = json.loads(self.json())
        return record

    def json(self) -> str:
        """Give the text of the `record`."""
        return self._native.json()

    def table(self) -> str:
        """Give the table that the command prints."""
        return self._native.table()

    def html(self) -> str:
        """Give the report that ``--html`` writes. It shows more with ``details=True``."""
        return self._native.html()

    def svg(self, kind: str) -> str:
        """Draw a figure of the first application, of a kind as in :meth:`plot`."""
        return self._native.svg(kind)

    def plot(self, kind: str, file: str | os.PathLike[str]) -> None:
        """Draw a figure of the first application into an ``.svg``, ``.pdf`` or ``.png`` file.

        The kinds are those of ``--plot``: ``qoe``, ``changes``, ``cdf``, ``tradeoff``,
        ``ellipses``, ``series``, ``axis``, ``period``, ``switches`` and ``completion``. ``cdf`` and
        ``series`` need ``details=True``.

        Raises:
            ValueError: There is no figure of this kind, or the file has another ending.
            OSError: The file cannot be written. The old one stays as it was.

        """
        self._native.plot(kind, file)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write what ``--out`` writes: tables as Parquet, and figures as SVG, PDF and PNG.

        Raises:
            OSError: The folder cannot be written to, e.g. since the disk is full. The tables appear
                together or not at all, and before the figures.

        """
        self._native.write(folder)


def schemes() -> list[dict[str, Any]]:
    """List every scheme that ``compare(cc=...)`` takes, as ``trimtab cc list --json`` does.

    Each has a name, a kind (algorithm, learnt, steering, experiment or bound), what it does, its
    source, presets, and knobs with unit, range and default.
    """
    listed: list[dict[str, Any]] = json.loads(_native.schemes())
    return listed


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
    flows: int | Iterable[int] = (),
    duration: str | None = None,
    seeds: int | None = None,
    first_seed: int | None = None,
    share_min: str | None = None,
    thin: int | None = None,
    scenario: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    details: bool = False,
    progress: bool = False,
    ray: str | Cluster | None = None,
) -> Comparison:
    """Compare congestion controls by the QoE of an application's users, on the simulator.

    Keywords are the flags of ``trimtab compare``. Several values make an axis of the grid: every
    combination runs. An empty list counts as not given. Without keywords it runs the demo. Ctrl-C
    ends it after the runs that have begun.

    Args:
        app: Applications: ``download``, ``vod``, ``live``, ``web`` or ``bulk``.
        cc: Congestion controls, e.g. ``cubic``, ``copa:delta=0.1`` or ``mortise``.
        traces: Files in Mahimahi's format, globs, or generated traces, e.g. ``constant:12Mbit/s``
            or ``cellular:seed=1``.
        transport: ``quic``, ``noq`` or ``tcp``; default: ``quic``.
        workload: A file of requests that downloads replay.
        qoe: The QoE model, or a formula in T, D and L.
        rtt: Base round-trip times, e.g. ``20ms`` or ``step:20ms@20s,150ms@20s``.
        buffer: Sizes of the bottleneck's buffer, e.g. ``150KB`` or ``2BDP``.
        loss: Random loss, e.g. ``0.1%``.
        jitter: Maximum extra delay per data packet, e.g. ``5ms``.
        mark: When the bottleneck marks packets (ECN), e.g. ``10%`` or ``20packets``.
        flows: Number of flows of each congestion control that share the link.
        duration: Duration of each run, e.g. ``30s``.
        seeds: Number of seeds of each combination.
        first_seed: The first of the seeds.
        share_min: Leave out combinations with less capacity per flow, e.g. ``1Mbit/s``.
        thin: Run only so many combinations, spread evenly.
        scenario: A scenario file; the keywords above replace its parts.
        jobs: Number of runs at once; default: all cores.
        details: Keep every request and the time series, for ``requests``, ``series`` and their
            figures.
        progress: Show a progress bar on standard error, if that is a terminal.
        ray: Address of a Ray cluster that does the runs, ``auto`` for the one of ``RAY_ADDRESS`` or
            of this machine, or a :class:`trimtab.cluster.Cluster`. The result has the same bytes. It
            goes without ``jobs`` and ``details``.

    Raises:
        ValueError: A value is wrong, or values do not fit together. The message tells the remedy.
        TypeError: A value has no unit, or is of another type.
        KeyboardInterrupt: Ctrl-C ended it.
        trimtab.cluster.ClusterError: The cluster cannot be used.

    """
    given = {key: value for key, value in locals().items() if key != "ray"}
    words = [f"{key}={_repr(value)}" for key, value in given.items() if _is_given(value)]
    call = f"trimtab.compare({', '.join(words)})"
    plan = planned(**{key: value for key, value in given.items() if key not in EFFORT})
    if ray is not None:
        if jobs is not None or details:
            raise ValueError("jobs and details are for one machine: leave them out with ray")
        return on_cluster(plan, ray, progress, call)
    jobs = None if jobs is None else _count("jobs", jobs, 1, 2**16 - 1)
    return Comparison(plan.compare(jobs, details, progress, call))


def planned(**given: Any) -> _native.Planned:
    """Read and check the keywords of `compare` that decide what runs. Raises as it does."""
    flows = given.get("flows", ())
    first_seed = given.get("first_seed")

    def count(keyword: str) -> int | None:
        return None if given.get(keyword) is None else _count(keyword, given[keyword])

    several: dict[str, Any] = {keyword: texts(keyword, given.get(keyword, ())) for keyword in AXES}
    single: dict[str, Any] = {keyword: _optional(keyword, given.get(keyword)) for keyword in SINGLE}
    return _native.planned(
        **several,
        **single,
        workload=given.get("workload"),
        flows=[_count("flows", each) for each in (flows if isinstance(flows, Iterable) else [flows])],
        seeds=count("seeds"),
        first_seed=None if first_seed is None else _count("first_seed", first_seed, most=2**64 - 1),
        thin=count("thin"),
        scenario=given.get("scenario"),
    )


def on_cluster(plan: _native.Planned, ray: str | Cluster, progress: bool, call: str) -> Comparison:
    """Have a cluster do the runs, in shares that follow each other. `call` goes into the record."""
    scenario, runs = plan.scenario(), plan.runs()
    with Cluster.at(ray) as cluster:
        size = max(1, runs // (SHARES * cluster.cpus))
        shares = [(scenario, first, size) for first in range(0, runs, size)]
        bar = Bar("shares of the runs", len(shares)) if progress else None
        return Comparison(plan.join(cluster.map(share, shares, bar), call))


def share(scenario: str, first: int, count: int) -> str:
    """Do some runs of a scenario, on a node."""
    return _read(scenario).share(first, count)


@functools.lru_cache(maxsize=1)
def _read(scenario: str) -> _native.Planned:
    """Read the traces of a scenario once for all shares."""
    return _native.Planned(scenario)


def _is_given(value: object) -> bool:
    return value is not None and value is not False and not (isinstance(value, tuple) and not value)


def _repr(value: object) -> str:
    return repr(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _text(keyword: str, value: object) -> str:
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    raise TypeError(
        f"{keyword}={value!r} is no text: write it with its unit where it has one, e.g. '20ms' or '0.1%'"
    )


def _optional(keyword: str, value: str | None) -> str | None:
    return None if value is None else _text(keyword, value)


def texts(keyword: str, values: Texts) -> list[str]:
    """Give one value or several as a list of texts. Raises TypeError for what is no text."""
    if isinstance(values, str | os.PathLike) or not isinstance(values, Iterable):
        return [_text(keyword, values)]
    return [_text(keyword, value) for value in values]


def _count(keyword: str, value: int, least: int = 0, most: int = 2**32 - 1) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{keyword}={value!r} is no whole number") from None
    if not least <= count <= most:
        raise ValueError(f"{keyword}={value!r} is out of range: give {least} to {most}")
    return count
