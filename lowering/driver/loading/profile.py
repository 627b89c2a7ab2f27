"""Defines `Profile`, the times of a program's kernels over some calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ....support.diagnostics import Diagnostic, MirError
from ....support.notebook import table_html
from ....support.text import counted
from ...runtime.profile import CHUNK, CallRecord, LogFullError, record_calls
from ...tir.signature import Size, evaluate
from ..machine_limits import MachineLimits, machine_limits
from ..profile_facts import KernelWork, ProfileFacts
from .trace_events import TraceEvent, write_trace

OUTSIDE = "outside of kernels"
"""The row of the rest of a call: Python, memory, the functions around the kernels."""

UNCOUNTED = 2
"""Calls before those that count: memory and caches are cold."""

_SHOWN_PLACES = 4

_HEAD = ("kernel", "calls", "µs", "share", "MFLOP", "MB", "GFLOP/s", "GB/s", "of peak", "of memory", "rule", "lines")


@dataclass(frozen=True)
class Row:
    """A kernel in a profile; times and amounts are means over the calls of the program that count.

    `symbol` is its name in machine code, `share` that of the program's time. `flops` are operations on any dtype and `float32_flops` those
    on float32, both None where the kernel's work depends on data, as `bytes`; `places` are those of its operators in the source, and `rule`
    names what scheduled it.
    """

    kernel: str
    symbol: str
    calls: float
    seconds: float
    share: float
    flops: float | None = None
    float32_flops: float | None = None
    bytes: float | None = None
    places: tuple[str, ...] = ()
    rule: str = ""

    @property
    def gflops(self) -> float | None:
        """Returns 10⁹ operations a second."""
        return _rate(self.flops, self.seconds)

    @property
    def gbytes(self) -> float | None:
        """Returns 10⁹ bytes a second."""
        return _rate(self.bytes, self.seconds)


@dataclass(frozen=True)
class Profile:
    """The times of a program's kernels, the longest first; the last row is what is outside of them.

    The faster half of the calls counts. `str()` is a table, `to_json()` plain data, `write_trace(path)` writes all calls for Perfetto.
    """

    name: str
    seconds: float
    """Of a call, the mean of those that count."""
    rows: tuple[Row, ...]
    limits: MachineLimits
    records: tuple[CallRecord, ...]
    facts: ProfileFacts

    @property
    def calls(self) -> int:
        """Returns the number of calls that were recorded."""
        return len(self.records)

    def of_peak(self, row: Row) -> float | None:
        """Returns the share of the machine's float32 operations that a kernel reaches; None for other dtypes."""
        rate = _rate(row.float32_flops, row.seconds)
        return None if not rate else rate / self.limits.gflops

    def of_bandwidth(self, row: Row) -> float | None:
        """Returns the share of the memory's bandwidth; more than 1 where caches hold what the kernel moves."""
        return None if not row.gbytes else row.gbytes / self.limits.gbytes

    def __repr__(self) -> str:
        kernels = counted(len(self.rows) - 1, "kernel")
        return f"Profile({self.name}: {self.seconds * 1e3:.4g} ms a call, {kernels}, {counted(self.calls, 'call')})"

    def __str__(self) -> str:
        cells = [_HEAD, *self._lines()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        texts = (0, len(_HEAD) - 2, len(_HEAD) - 1)
        lines = (
            "  ".join(
                cell.ljust(width) if place in texts else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        )
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        return table_html(self._title(), _HEAD, self._lines())

    def _title(self) -> str:
        limits = self.limits
        return (
            f"{self.name}: {self.seconds * 1e3:.4g} ms a call, mean of the faster half of {counted(self.calls, 'call')}; "
            f"this machine: {limits.gflops:.4g} GFLOP/s of float32, {limits.gbytes:.4g} GB/s of memory "
            f"on {counted(limits.threads, 'thread')}"
        )

    def _lines(self) -> list[tuple[str, ...]]:
        """Returns the table's lines below its head."""
        total = sum(row.seconds for row in self.rows)
        last = ("total", "", _number(total * 1e6), f"{total / self.seconds:.1%}", *[""] * 8)
        return [*map(self._cells, self.rows), last]

    def _cells(self, row: Row) -> tuple[str, ...]:
        if not row.symbol:
            return (row.kernel, "", _number(row.seconds * 1e6), f"{row.share:.1%}", *[""] * 8)
        return (
            row.kernel,
            f"{row.calls:g}",
            _number(row.seconds * 1e6),
            f"{row.share:.1%}",
            _number(row.flops, 1e6),
            _number(row.bytes, 1e6),
            _number(row.gflops),
            _number(row.gbytes),
            _share(self.of_peak(row)),
            _share(self.of_bandwidth(row)),
            row.rule or "-",
            short_places(row.places) or "-",
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the profile as `json` can write it: the rows with their rates, and the machine's limits."""
        rows = [
            {
                **asdict(row),
                "gflops": row.gflops,
                "gbytes": row.gbytes,
                "of_peak": self.of_peak(row),
                "of_bandwidth": self.of_bandwidth(row),
            }
            for row in self.rows
        ]
        return {
            "name": self.name,
            "seconds": self.seconds,
            "calls": self.calls,
            "limits": asdict(self.limits),
            "rows": rows,
        }

    def write_trace(self, path: str | PathLike[str]) -> None:
        """Writes the calls as a trace for Perfetto: a track for each thread.

        Raises OSError where the file cannot be written.
        """
        write_trace(Path(path), self.name, list(self._trace()))

    def _trace(self) -> list[TraceEvent]:
        names = _names([site.kernel for site in self.facts.sites])
        tracks: dict[int, int] = {}
        found: list[TraceEvent] = []
        first = self.records[0].start
        for record in self.records:
            found.append(TraceEvent(f"call of {self.name}", 0, record.start - first, record.end - record.start))
            for event in record.events:
                if event.site != CHUNK:
                    # The thread that calls is the first track.
                    tracks.setdefault(event.thread, 0)
            running = [event for event in record.events if event.site != CHUNK]
            for event in record.events:
                track = tracks.setdefault(event.thread, len(tracks) or 1)
                start, length = event.start - first, event.end - event.start
                if event.site == CHUNK:
                    kernel = next((each for each in running if each.start <= event.start <= each.end), None)
                    name = "chunk" if kernel is None else f"{names[self.facts.sites[kernel.site].kernel]} (chunk)"
                    found.append(TraceEvent(name, track, start, length))
                else:
                    site = self.facts.sites[event.site]
                    about = {"symbol": site.kernel, "lines": ", ".join(site.places)}
                    about |= {name: size for name, size in zip(site.symbols, event.sizes, strict=True)}
                    found.append(TraceEvent(names[site.kernel], track, start, length, about))
        return found


def profile_calls(
    name: str, run: Callable[[], object], facts: ProfileFacts, calls: int, threads: int | None
) -> Profile:
    """Calls a program so many times, after `UNCOUNTED` calls that do not count.

    Raises MirError for a program that runs too many kernels in a call, and what a call raises.
    """
    try:
        records = record_calls(run, UNCOUNTED, calls)
    except LogFullError:
        raise MirError(
            Diagnostic(f"a call of {name} runs too many kernels to be recorded").with_note(
                "1 GiB of records is not enough for one call: profile a smaller input"
            )
        ) from None
    return _profile(name, facts, tuple(records), machine_limits(threads or 1))


def _profile(name: str, facts: ProfileFacts, records: tuple[CallRecord, ...], limits: MachineLimits) -> Profile:
    # Those in which the system ran something else would tell more of it than of the kernels.
    counting = sorted(records, key=lambda record: record.end - record.start)[: (len(records) + 1) // 2]
    calls = len(counting)
    seconds = sum(record.end - record.start for record in counting) / calls / 1e9
    totals: dict[str, _Total] = {}
    for record in counting:
        for event in record.events:
            if event.site != CHUNK:
                site = facts.sites[event.site]
                total = totals.setdefault(site.kernel, _Total())
                total.count(
                    facts, site.kernel, event.end - event.start, dict(zip(site.symbols, event.sizes, strict=True))
                )
                total.places |= dict.fromkeys(site.places)
    names = _names(list(totals))
    rows = [
        Row(
            names[symbol],
            symbol,
            total.calls / calls,
            total.nanoseconds / calls / 1e9,
            total.nanoseconds / calls / 1e9 / seconds,
            *total.mean(calls),
            tuple(total.places),
            facts.work[symbol].rule if symbol in facts.work else "",
        )
        for symbol, total in totals.items()
    ]
    rows.sort(key=lambda row: -row.seconds)
    rest = seconds - sum(row.seconds for row in rows)
    return Profile(name, seconds, (*rows, Row(OUTSIDE, "", 0, rest, rest / seconds)), limits, records, facts)


class _Total:
    """The sums over the calls of one kernel."""

    def __init__(self) -> None:
        self.calls = 0
        self.nanoseconds = 0
        self.amounts: tuple[float | None, float | None, float | None] = (0.0, 0.0, 0.0)
        """Operations, those on float32, bytes."""
        self.places: dict[str, None] = {}

    def count(self, facts: ProfileFacts, kernel: str, nanoseconds: int, sizes: dict[str, int]) -> None:
        """Adds a call of these sizes."""
        self.calls += 1
        self.nanoseconds += nanoseconds
        work = facts.work.get(kernel)
        known = KernelWork() if work is None else work
        operations, float32, moved = self.amounts
        self.amounts = (
            _increased(operations, known.operations, sizes),
            _increased(float32, known.float32, sizes),
            _increased(moved, known.bytes, sizes),
        )

    def mean(self, calls: int) -> tuple[float | None, float | None, float | None]:
        """Returns the amounts of one of so many calls."""
        operations, float32, moved = self.amounts
        return _part(operations, calls), _part(float32, calls), _part(moved, calls)


def _increased(amount: float | None, size: Size | None, sizes: dict[str, int]) -> float | None:
    """Returns an amount plus a size; None where the size has a part that the kernel does not take."""
    if amount is None or size is None:
        return None
    try:
        return amount + evaluate(size, sizes)
    except (KeyError, MirError):
        return None


def _part(amount: float | None, calls: int) -> float | None:
    return None if amount is None else amount / calls


_HASH = re.compile(r"\.[0-9a-f]{12}$")


def _names(symbols: Sequence[str]) -> dict[str, str]:
    """Returns short names of kernels by symbol, without the part that comes of the cache's key."""
    taken: dict[str, int] = {}
    names: dict[str, str] = {}
    for symbol in dict.fromkeys(symbols):
        short = _HASH.sub("", symbol)
        taken[short] = taken.get(short, 0) + 1
        names[symbol] = short if taken[short] == 1 else f"{short}_{taken[short] - 1}"
    return names


def short_places(places: Sequence[str]) -> str:
    """Returns places as `net.mir:2, 3`: lines of a file together, columns left out, no more than a few."""
    lines: dict[str, dict[str, None]] = {}
    for place in places:
        found = re.fullmatch(r"(.*):(\d+):\d+", place)
        file, what = (found[1], found[2]) if found else place.split(": ", 1) if ": " in place else (place, "")
        lines.setdefault(Path(file).name, {})[what] = None
    shown: list[str] = []
    for file, numbers in lines.items():
        ordered = sorted(numbers, key=lambda text: (not text.isdigit(), int(text) if text.isdigit() else 0))
        text = ", ".join(ordered[:_SHOWN_PLACES]) + (", …" if len(ordered) > _SHOWN_PLACES else "")
        shown.append(f"{file}:{text}" if text else file)
    return " ".join(shown)


def _rate(amount: float | None, seconds: float) -> float | None:
    return None if amount is None or seconds <= 0 else amount / seconds / 1e9


def _number(value: float | None, unit: float = 1.0) -> str:
    if value is None:
        return "-"
    value /= unit
    return f"{value:.0f}" if value >= 100 or value == 0 else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
