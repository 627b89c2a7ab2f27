"""The files of a workload: text, weights, inputs, and translations for engines that read files."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from .graph import Array, Graph
from .workloads import Workload


class Material:
    """Made once in the folder; the graph is only made for an engine, or a file, that needs it."""

    def __init__(self, workload: Workload, folder: Path):
        self.workload = workload
        self.source = folder / f"{workload.name}.mir"
        if not self.source.exists():
            workload.write(folder)

    @cached_property
    def graph(self) -> Graph:
        """The program as a flat list of operators."""
        import mirstack

        from .graph import graph_of

        return graph_of(mirstack.load(self.source))

    @cached_property
    def inputs(self) -> list[Array]:
        """Draws random inputs, the same in every process."""
        path = self.file(".inputs.npz")
        if not self.is_fresh(path):
            np.savez(path, *self.workload.inputs([(value.shape, value.dtype) for value in self.graph.inputs]))
        with np.load(path, allow_pickle=False) as saved:
            return [saved[f"arr_{k}"] for k in range(len(saved.files))]

    def file(self, suffix: str) -> Path:
        """Returns the path of a file that is made of the source."""
        return self.source.with_suffix(suffix)

    def is_fresh(self, path: Path) -> bool:
        """Tells whether the file exists and is newer than the source."""
        return path.exists() and path.stat().st_mtime >= self.source.stat().st_mtime
