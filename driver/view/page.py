"""Writes what was recorded as one page: HTML, style, script, and data that the script unpacks.

The data is JSON, deflated, in base64, so that nothing of a program is read as HTML; the page's policy lets the browser run its one script
(by its hash) and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from xdsl.ir import Operation

from ...dialects import relay
from ...lowering.driver.machine_limits import MachineLimits
from ...passes.pass_info import explanation
from ...passes.relay.fusion.fuse_ops import FuseOps, name_of
from ...support.diagnostics import Diagnostic, Sources
from .cost import Kernel
from .graph import Box, Graph
from .layout import place
from .memory import FrameView
from .recording import Recording
from .tables import Tables
from .texts import shortened

FOLDER = Path(__file__).parent / "page"
SCRIPTS = ("core", "steps", "graph", "memory", "roofline", "search", "start")
"""The files of the script, in order."""


@dataclass
class View:
    """All that a page shows."""

    title: str
    recording: Recording
    sources: Sources
    graphs: list[Graph] = field(default_factory=list[Graph])
    frames: list[FrameView] = field(default_factory=list[FrameView])
    kernels: list[Kernel] = field(default_factory=list[Kernel])
    limits: MachineLimits | None = None


def page(view: View) -> str:
    """Returns the page as HTML."""
    packed = base64.b64encode(zlib.compress(json.dumps(_data(view), separators=(",", ":")).encode(), 9)).decode()
    script = '"use strict";\n' + "\n".join((FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    return (
        (FOLDER / "page.html")
        .read_text(encoding="utf-8")
        .format(
            title=escape(view.title),
            style=(FOLDER / "page.css").read_text(encoding="utf-8"),
            script=script,
            script_hash=f"sha256-{digest}",
            data=packed,
        )
    )


def _data(view: View) -> dict[str, Any]:
    tables = view.recording.tables
    graphs = [_graph(graph, tables) for graph in view.graphs]
    frames = [_frame(frame, tables) for frame in view.frames]
    kernels = [_kernel(kernel, tables) for kernel in view.kernels]
    # What fuse-ops said is shown between boxes.
    between = f"{explanation(FuseOps.name)}: "
    remarks = [_remark(each, tables) for each in view.recording.remarks if not each.message.startswith(between)]
    files: dict[str, int] = {}
    places = [[files.setdefault(each.file, len(files)), each.line, each.column, each.node] for each in tables.places]
    return {
        "title": view.title,
        "graphs": graphs,
        "memory": frames,
        "kernels": kernels,
        "remarks": remarks,
        "limits": None if view.limits is None else vars(view.limits),
        # Texts of files that were read to be compiled; others that a location may name are not opened.
        "files": [{"name": name, "lines": _lines_of(name, view.sources)} for name in files],
        "places": places,
        "sets": list(tables.sets),
        "lines": list(tables.lines),
        "parts": [[part.name, part.level, _deltas(part.lines), part.sets] for part in tables.parts],
        "steps": [[step.name, step.summary, step.parts] for step in view.recording.steps],
    }


def _lines_of(name: str, sources: Sources) -> list[str]:
    return [short for line in sources.texts.get(name, ()) for short in shortened(line)]


def _deltas(numbers: Sequence[int]) -> list[int]:
    """Returns the steps from each number to the next: mostly 1, which compresses well."""
    return [after - before for before, after in pairwise((0, *numbers))]


def _remark(remark: Diagnostic, tables: Tables) -> list[Any]:
    notes = [[note.message, tables.set_at(note.location)] for note in remark.notes]
    return [remark.message, tables.set_at(remark.location), notes]


def _kernel(kernel: Kernel, tables: Tables) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "calls": kernel.calls,
        "flops": kernel.flops,
        "bytes": kernel.bytes,
        "seconds": kernel.seconds,
        "rule": kernel.rule,
        "set": tables.set_of(kernel.ops),
    }


def _frame(frame: FrameView, tables: Tables) -> dict[str, Any]:
    tensors = [
        {
            "label": each.label,
            "set": tables.set_at(each.op.location),
            "offset": each.offset,
            "bytes": each.bytes,
            "start": each.start,
            "end": each.end,
        }
        for each in frame.tensors
    ]
    return {"name": frame.name, "size": frame.size, "bound": frame.bound, "tensors": tensors}


LINE, CHARACTER = 15, 7
"""About how high a line of a box is, and how wide a character."""
MOST_LABEL = 36
"""Characters that a box shows of a line."""


def _graph(graph: Graph, tables: Tables) -> dict[str, Any]:
    labels = [_labels(box) for box in graph.boxes]
    sizes = [(16 + CHARACTER * max(map(len, each)), 10 + LINE * len(each)) for each in labels]
    layout = place(sizes, [(edge.source, edge.target) for edge in graph.edges])
    boxes = [
        {
            "x": x,
            "y": y,
            "width": width,
            "height": height,
            "kind": box.kind,
            "title": box.title,
            "type": box.type,
            "kernel": box.kernel,
            "set": tables.set_of(box.ops),
            "labels": shown,
            "ops": [[_op_name(op), tables.set_at(op.location)] for op in box.ops if _op_name(op)],
        }
        for box, (x, y), (width, height), shown in zip(graph.boxes, layout.corners, sizes, labels, strict=True)
    ]
    edges = [
        {
            "source": edge.source,
            "target": edge.target,
            "type": edge.type,
            "points": points,
            "reasons": [_remark(remark, tables) for remark in edge.reasons],
        }
        for edge, points in zip(graph.edges, layout.lines, strict=True)
    ]
    return {"name": graph.name, "width": layout.width, "height": layout.height, "boxes": boxes, "edges": edges}


def _op_name(op: Operation) -> str:
    """Returns an operator's name; nothing of the call of a kernel."""
    return "" if isinstance(op, relay.CallOp) else name_of(op)


def _labels(box: Box) -> list[str]:
    """Returns the lines in a box: its operators and its type, each with the number of repeats."""
    names = box.title.split(" · ") if box.kind == "kernel" else [box.title]
    shown = [*_counted(names), *([box.type] if box.type else [])]
    return [each if len(each) <= MOST_LABEL else f"{each[: MOST_LABEL - 1]}…" for each in shown]


def _counted(names: Iterable[str]) -> list[str]:
    found: list[tuple[str, int]] = []
    for name in names:
        if found and found[-1][0] == name:
            found[-1] = name, found[-1][1] + 1
        else:
            found.append((name, 1))
    return [name if count == 1 else f"{name} ×{count}" for name, count in found]
