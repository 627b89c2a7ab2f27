"""Draws the results: a row per workload, a mark per engine at its ratio to the best of the others."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from .engine import ENGINES, OURS
from .results import Results
from .setting import Setting
from .workloads import FAMILIES, WORKLOADS

COLORS = {
    "mirstack": "#d62728", "onnxruntime": "#1f77b4", "openvino": "#2ca02c", "torch": "#ff7f0e", "jax": "#9467bd",
    "tvm": "#8c564b", "iree": "#7f7f7f",
}  # fmt: skip
FARTHEST = 20.0
"""What is slower is drawn at the edge."""


def draw(results: Results, setting: Setting, path: Path) -> None:
    """Writes the picture of the results at a setting. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from PIL import Image  # What matplotlib writes PNG with.

    rows = results.of(setting)
    shown = [w for family in FAMILIES for w in WORKLOADS if w.family == family and w.name in rows and rows[w.name].best]
    figure: Any
    axes: Any
    figure, axes = pyplot.subplots(figsize=(10, 1.2 + 0.135 * len(shown)))
    for name in reversed(ENGINES):
        places: list[tuple[float, int]] = []
        for line, workload in enumerate(shown):
            row = rows[workload.name]
            seconds = {**row.earlier, **row.seconds}.get(name)
            if seconds is not None and row.best is not None:
                places.append((min(seconds / row.best[1], FARTHEST), line))
        if places:
            ours = name == OURS
            axes.scatter(
                *zip(*places, strict=True), s=26 if ours else 9, color=COLORS[name], label=name, zorder=3 if ours else 2,
                marker="D" if ours else "o",
            )  # fmt: skip
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.axvline(1.25, color="black", linewidth=0.5, linestyle=":")
    axes.set_xscale("log")
    axes.set_xlim(0.3, FARTHEST * 1.08)
    axes.set_xticks([0.5, 1, 1.25, 2, 5, 10, 20], ["0.5", "1", "1.25", "2", "5", "10", "≥ 20"])
    axes.set_yticks(range(len(shown)), [w.name for w in shown], fontsize=6)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    for line in range(1, len(shown)):
        if shown[line].family != shown[line - 1].family:
            axes.axhline(line - 0.5, color="#bbbbbb", linewidth=0.8)
    axes.grid(axis="x", linewidth=0.3)
    axes.set_xlabel(
        f"time, the best other engine's being 1; {setting.threads} thread{'s' if setting.threads > 1 else ''}"
    )
    axes.legend(loc="lower right", fontsize=7)
    figure.tight_layout()
    drawn = BytesIO()
    figure.savefig(drawn, dpi=90)
    pyplot.close(figure)
    # Few colors make a small file.
    Image.open(drawn).convert("RGB").quantize(32).save(path, optimize=True)
