"""Writes results as tables in Markdown, into the README between markers."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from .engine import ENGINES, OURS
from .results import Results, Row, geometric_mean
from .setting import SETTINGS, Setting
from .workloads import FAMILIES, WORKLOADS, Workload


def time_text(seconds: float) -> str:
    """Formats seconds with three digits, in the unit that suits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale * 0.9995:
            value = seconds / scale
            return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def limit_text(workload: Workload, row: Row) -> str:
    """Returns our share of the processor's limit: of the peak of multiply-adds, or of copying.

    A working set that fits into the caches is not limited by copying: its row has no copy bandwidth.
    """
    seconds = row.seconds.get(OURS)
    if seconds is None or not row.peak_gflops:
        return ""
    arithmetic = workload.flops / 1e9 / row.peak_gflops
    copying = workload.bytes / 1e9 / row.copy_gbytes if row.copy_gbytes else 0.0
    if not arithmetic and not copying:
        return ""
    return f"{max(arithmetic, copying) / seconds:.0%} {'copy' if copying > arithmetic else 'FMA'}"


def summary(results: Results, setting: Setting) -> str:
    """Returns the geometric mean and the worst of the ratios, by family.

    Where some engine cannot be held to the processor, the ratios without it are added.
    """
    rows = results.of(setting)
    held = any(setting.unequal(name) for row in rows.values() for name in row.seconds)
    columns = ["Geometric mean of ratios", "Worst", "Above 1.25"]
    if held:
        columns += ["Held engines only", "Worst", "Above 1.25"]
    lines = [
        f"| Family | Workloads | {' | '.join(columns)} |",
        f"| --- | ---: |{' ---: | --- | ---: |' * (len(columns) // 3)}",
    ]
    for family in FAMILIES:
        found = {w.name: rows[w.name] for w in WORKLOADS if w.family == family and w.name in rows}
        ratios = {name: row.ratio for name, row in found.items() if row.ratio is not None}
        if ratios:
            cells = _means(ratios)
            if held:
                equal = {name: row.equal(setting).ratio for name, row in found.items()}
                cells += _means({name: ratio for name, ratio in equal.items() if ratio is not None})
            lines.append(f"| {family} | {len(ratios)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _means(ratios: dict[str, float]) -> list[str]:
    if not ratios:
        return ["", "", ""]
    worst = max(ratios, key=lambda name: ratios[name])
    above = sum(ratio > 1.25 for ratio in ratios.values())
    return [f"{geometric_mean(list(ratios.values())):.2f}", f"{ratios[worst]:.2f} ({worst})", str(above)]


def timings(results: Results, setting: Setting, families: Sequence[str] = FAMILIES) -> str:
    """Returns a table of a row per workload: times, the ratio to the best, our share of the limit.

    Where the best engine cannot be held to the processor, the ratio to the best of the others follows in parentheses.
    """
    rows = results.of(setting)
    shown = [w for w in WORKLOADS if w.family in families and w.name in rows]
    engines = [
        name
        for name in ENGINES
        if any(name in (*rows[w.name].seconds, *rows[w.name].earlier, *rows[w.name].problems) for w in shown)
    ]
    lines = [
        f"| Workload | {' | '.join(engines)} | Ratio | Limit |",
        f"| --- |{' ---: |' * len(engines)} ---: | ---: |",
    ]
    for workload in shown:
        row = rows[workload.name]
        best = row.best
        cells: list[str] = []
        for name in engines:
            if name in row.earlier:
                cells.append(f"({time_text(row.earlier[name])})")
            elif name in row.seconds:
                text = time_text(row.seconds[name])
                cells.append(f"**{text}**" if best is not None and name == best[0] else text)
            else:
                cells.append("fails" if name in row.problems else "")
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        if best is not None and setting.unequal(best[0]) and (equal := row.equal(setting).ratio) is not None:
            ratio += f" ({equal:.2f})"
        lines.append(f"| {workload.name} | {' | '.join(cells)} | {ratio} | {limit_text(workload, row)} |")
    return "\n".join(lines)


def problems(results: Results, setting: Setting) -> str:
    """Returns a line for each engine that did not run a workload."""
    rows = results.of(setting)
    return "\n".join(
        f"- {w.name}, {name}: {text}"
        for w in WORKLOADS
        if w.name in rows
        for name, text in rows[w.name].problems.items()
    )


def conditions(results: Results) -> str:
    """Returns when and on which processor it was measured, and the versions of the engines."""
    times = sorted(row.time for rows in results.rows.values() for row in rows.values())
    if not times:
        return ""
    first, last = times[0][:10], times[-1][:10]
    days = first if first == last else f"{first} to {last}"
    found = list(results.of(Setting()).values())
    peak = statistics.median(row.peak_gflops for row in found) if found else 0.0
    copies = [row.copy_gbytes for row in found if row.copy_gbytes]
    copy = statistics.median(copies) if copies else 0.0
    versions = ", ".join(f"{name} {results.versions[name]}" for name in ENGINES if results.versions.get(name))
    return (
        f"Measured {days} on {results.cpu}; one core reaches {peak:.0f} GFLOP/s of float32 multiply-adds in registers and copies "
        f"{copy:.0f} GB/s (medians of all workloads' runs). Engines: {versions}."
    )


def bytes_text(size: int) -> str:
    """Formats bytes in MB or kB."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def costs(results: Results) -> str:
    """Returns a table of a row per model: engines' times to first result and memory; our arena, its bound."""
    shown = [w for w in WORKLOADS if w.name in results.costs]
    if not shown:
        return ""
    engines = [name for name in ENGINES if any(name in results.costs[w.name] for w in shown)]
    lines = [
        f"| Model | {' | '.join('mirstack, cold / warm' if name == OURS else name for name in engines)} |",
        f"| --- |{' ---: |' * len(engines)}",
    ]
    for workload in shown:
        found = results.costs[workload.name]
        cells: list[str] = []
        for name in engines:
            cost = found.get(name)
            text = "" if cost is None else time_text(cost.cold)
            cells.append(text if cost is None or cost.warm is None else f"{text} / {time_text(cost.warm)}")
        lines.append(f"| {workload.name} | {' | '.join(cells)} |")
    lines += [
        "",
        f"| Model | {' | '.join(engines)} | Arena | Lower bound | Ratio |",
        f"| --- |{' ---: |' * len(engines)} ---: | ---: | ---: |",
    ]
    for workload in shown:
        found = results.costs[workload.name]
        cells = [
            f"{bytes_text(found[name].compile_bytes)}, {bytes_text(found[name].run_bytes)}" if name in found else ""
            for name in engines
        ]
        ours = found.get(OURS)
        arena = ours.arena if ours is not None else None
        last = "| | |" if arena is None else f"{bytes_text(arena[0])} | {bytes_text(arena[1])} | {_quotient(*arena)} |"
        lines.append(f"| {workload.name} | {' | '.join(cells)} | {last}")
    return "\n".join(lines)


def _quotient(arena: int, bound: int) -> str:
    return f"{arena / bound:.2f}" if bound else "1.00"


README = Path(__file__).parents[1] / "README.md"


def sections(results: Results) -> dict[str, str]:
    """Returns the text of each marked section by its name; one without results is empty."""
    found = {"conditions": conditions(results), "costs": costs(results)}
    for setting in SETTINGS:
        found[f"summary-{setting.key}"] = summary(results, setting)
        found[f"problems-{setting.key}"] = problems(results, setting)
        for family in FAMILIES:
            found[f"{family}-{setting.key}"] = timings(results, setting, (family,))
    return found


def written(text: str, found: dict[str, str]) -> str:
    """Returns the README with each marked section replaced. Raises ValueError for an unknown marker."""

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        if name not in found:
            raise ValueError(f"the README has a section '{name}' that is not written; there are {', '.join(found)}")
        body = f"{found[name]}\n\n" if found[name] else ""
        return f"<!-- compare: {name} -->\n\n{body}<!-- end -->"

    return re.sub(r"<!-- compare: ([\w-]+) -->\n.*?<!-- end -->", replaced, text, flags=re.DOTALL)


def write(results: Results, path: Path = README) -> None:
    """Refreshes the file."""
    path.write_text(written(path.read_text(encoding="utf-8"), sections(results)), encoding="utf-8")
