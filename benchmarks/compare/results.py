"""Keeps the measurements in a JSON file, so that tables can be remade and parts measured again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from math import exp, log
from pathlib import Path

from .engine import OURS
from .setting import Setting


@dataclass
class Row:
    """A workload at a setting: seconds of a call by engine, and what stood in the way of the others."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Of the engines that were measured interleaved: only these may be compared."""
    problems: dict[str, str] = field(default_factory=dict[str, str])
    peak_gflops: float = 0.0
    """Of multiply-adds in registers, all threads together, interleaved with the engines."""
    copy_gbytes: float = 0.0
    """Of copying, interleaved with the engines; 0 where the working set fits into the caches."""
    time: str = ""
    """When, as ISO 8601 in UTC."""
    earlier: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds of engines that were left out of this run, from an earlier one."""

    @property
    def best(self) -> tuple[str, float] | None:
        """The quickest engine but ours, and its seconds."""
        others = {name: seconds for name, seconds in self.seconds.items() if name != OURS}
        return min(others.items(), key=lambda item: item[1]) if others else None

    @property
    def ratio(self) -> float | None:
        """Returns our seconds over the best engine's."""
        best = self.best
        return self.seconds[OURS] / best[1] if best is not None and OURS in self.seconds else None

    def equal(self, setting: Setting) -> Row:
        """Returns the row of the engines that count on the same processor as ours (`Setting.unequal`)."""
        return replace(self, seconds={name: s for name, s in self.seconds.items() if not setting.unequal(name)})


@dataclass
class Cost:
    """A program's costs in a process of its own: seconds from reading to the first result, memory."""

    cold: float
    warm: float | None
    """With what an earlier process left in the engine's cache; None where it has none."""
    compile_bytes: int
    """The most that the process took while it compiled, beyond what it took before."""
    run_bytes: int
    """The most that it took after that, beyond the same."""
    arena: tuple[int, int] | None = None
    """Bytes of the arena, and its lower bound: what lives at one time."""
    time: str = ""
    """When, as ISO 8601 in UTC."""


@dataclass
class Results:
    """By setting (`Setting.key`), then workload; costs by workload, then engine."""

    cpu: str = ""
    versions: dict[str, str] = field(default_factory=dict[str, str])
    rows: dict[str, dict[str, Row]] = field(default_factory=dict[str, dict[str, Row]])
    costs: dict[str, dict[str, Cost]] = field(default_factory=dict[str, dict[str, Cost]])

    def put(self, setting: Setting, workload: str, row: Row) -> None:
        """Keeps a row; what engines had that were not measured this time is kept as `earlier`."""
        rows = self.rows.setdefault(setting.key, {})
        old = rows.get(workload)
        if old is not None:
            now = {*row.seconds, *row.problems}
            row.earlier = {name: s for name, s in {**old.earlier, **old.seconds}.items() if name not in now}
            row.problems |= {name: text for name, text in old.problems.items() if name not in now}
        rows[workload] = row

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def of(self, setting: Setting) -> dict[str, Row]:
        """Returns the rows of a setting by workload."""
        return self.rows.get(setting.key, {})

    @staticmethod
    def load(path: Path) -> Results:
        """Reads the results in a file; empty ones where there is none."""
        if not path.exists():
            return Results()
        data = json.loads(path.read_text(encoding="utf-8"))
        return Results(
            data["cpu"],
            data["versions"],
            {key: {name: Row(**row) for name, row in rows.items()} for key, rows in data["rows"].items()},
            {name: {e: _cost(cost) for e, cost in costs.items()} for name, costs in data["costs"].items()},
        )


def _cost(data: dict[str, object]) -> Cost:
    cost = Cost(**data)  # pyright: ignore[reportArgumentType]
    cost.arena = None if cost.arena is None else (cost.arena[0], cost.arena[1])  # JSON has lists only.
    return cost


def geometric_mean(values: list[float]) -> float:
    """Returns the mean of ratios. Raises ValueError for none, or for one that is not above 0."""
    if not values:
        raise ValueError("there is no mean of nothing")
    return exp(sum(map(log, values)) / len(values))
