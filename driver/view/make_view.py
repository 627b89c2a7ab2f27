"""Compiles a program and gathers what its page shows."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ...lowering.driver.loading.profile import Profile
from ...lowering.driver.machine_limits import MachineLimits, machine_limits
from ...lowering.pipeline import Options
from ...lowering.relay.functions.lower_relay_to_llvm import watching_frames
from ...passes.relay.functional.bind_shapes import Shapes
from ...support.diagnostics import Sources
from ...support.target import processors
from .cost import Kernel, add_times, kernels_of
from .graph import Graph, explain, graphs_of, name_kernels
from .memory import frames_of
from .page import View
from .recording import Recording, record


def make_view(
    title: str, module: ModuleOp, entry: str | None, options: Options, shapes: Shapes, profile: Profile | None = None
) -> View:
    """Compiles the entry of a module, which is used up. Raises MirError for what cannot be compiled.

    `profile` has the times of the program's kernels, where it was run.
    """
    recording = Recording("", options)
    graphs: list[Graph] = []
    kernels: list[Kernel] = []

    def name(module: ModuleOp) -> None:
        name_kernels(graphs, module)
        kernels.extend(kernels_of(module, recording.options))

    recording.watches = {
        "fuse-ops": [lambda module: graphs.extend(graphs_of(module))],
        "lower-relay-to-te": [name],
    }
    with watching_frames() as frames:
        record(recording, module, entry, shapes)
    explain(graphs, recording.remarks)
    for kernel in kernels:
        inside = [op for graph in graphs for box in graph.boxes if box.kernel == kernel.name for op in box.ops]
        kernel.ops = inside or kernel.ops
    if profile is not None:
        add_times(kernels, profile)
    limits = _limits(options) if profile is None else profile.limits
    return View(title, recording, Sources.current(), graphs, list(frames_of(frames)), kernels, limits)


def _limits(options: Options) -> MachineLimits | None:
    """Returns what this machine can do at most; None where the code is for another one."""
    return None if options.cpu else machine_limits(options.threads or processors())
