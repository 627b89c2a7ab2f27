"""Compiles a program and gathers what its page shows."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ...lowering.pipeline import Options
from ...lowering.relay.functions.lower_relay_to_llvm import watching_frames
from ...passes.relay.functional.bind_shapes import Shapes
from ...support.diagnostics import Sources
from .cost import Cost, arithmetic, kernels_of
from .graph import Graph, explain, graphs_of, name_kernels
from .memory import frames_of
from .page import View
from .recording import Recording, record


def make_view(title: str, module: ModuleOp, entry: str | None, options: Options, shapes: Shapes) -> View:
    """Compiles the entry of a module, which is used up. Raises MirError for what cannot be compiled."""
    recording = Recording("", options)
    graphs: list[Graph] = []
    kernels: list[Cost] = []
    operations: dict[str, int] = {}

    def name(module: ModuleOp) -> None:
        name_kernels(graphs, module)
        kernels.extend(kernels_of(module))

    recording.watches = {
        "fuse-ops": [lambda module: graphs.extend(graphs_of(module))],
        "lower-relay-to-te": [name],
        "lower-te-to-tir": [lambda module: operations.update(arithmetic(module))],
    }
    with watching_frames() as frames:
        record(recording, module, entry, shapes)
    explain(graphs, recording.remarks)
    for kernel in kernels:
        kernel.flops = operations.get(kernel.name, 0)
        inside = [op for graph in graphs for box in graph.boxes if box.kernel == kernel.name for op in box.ops]
        kernel.ops = inside or kernel.ops
    return View(title, recording, Sources.current(), graphs, list(frames_of(frames)), kernels)
