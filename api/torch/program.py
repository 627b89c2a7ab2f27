"""Compiles graphs of core ATen operators: whole, or in parts some of which torch runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, is_
from typing import Any

from ...frontends.torch.importer import Fixed, import_graph, refused_nodes
from ...frontends.torch.tensors import to_numpy, to_torch
from ...support.diagnostics import MirError
from .input_views import copy_input_views
from .parts import Part, Parts, parts_of

_VERSION = attrgetter("_version")

CONSTANT_CHANGES = 2
"""How often a parameter or buffer that was written to is compiled in again."""

_PARTS = "leaves operators to torch, and compiles the parts between them"
_WHOLE = "runs the whole graph by torch"

SHOWN_REASONS = 10
"""Of more operators that torch runs, the warning tells the number."""


def compiled_graph(module: Any, bound: Mapping[int, Any], options: Mapping[str, Any]) -> Callable[..., list[Any]]:
    """Returns a compiled graph, or one in parts where it has operators that cannot be imported.

    Torch runs these, and a warning lists them.
    """
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    # While a graph is compiled torch takes each tensor for one without data; constants have data.
    with unset_fake_temporarily():
        views = copy_input_views(module)
        if views:
            return _in_parts(module, bound, options, views)
        program = Program(module, bound, options)
        try:
            program.read()
        except MirError:
            return _in_parts(module, bound, options, ())
        program.compile()
        return program


def _in_parts(
    module: Any, bound: Mapping[int, Any], options: Mapping[str, Any], views: Sequence[Any]
) -> Callable[..., list[Any]]:
    """Compiles the parts of a graph without operators that cannot be imported and torch's views.

    Torch runs all of a graph where such an operator looks at the memory of a computed tensor, whose layout here may be another.
    """
    reasons = {node: reason for node, reason in refused_nodes(module, "graph", bound).items() if node not in views}
    if any(_reads_memory(node) for node in reasons):
        _warn(reasons, _WHOLE)
        return lambda *inputs: list(module(*inputs))
    places = {node: place for place, node in enumerate(n for n in module.graph.nodes if n.op == "placeholder")}
    found: list[tuple[Part, Callable[..., Sequence[Any]]]] = []
    for part in parts_of(module, {*reasons, *views}):
        run: Callable[..., Sequence[Any]] = part.module
        if part.is_compiled:
            own = {k: bound[places[node]] for k, node in enumerate(part.inputs) if places.get(node, -1) in bound}
            run = Program(part.module, own, options)
            run.read()
            run.compile()
        found.append((part, run))
    if reasons:
        _warn(reasons, _PARTS)
    return Parts(module, found)


def _reads_memory(node: Any) -> bool:
    """Returns whether a node takes a view by distances in the memory of a tensor that the graph computes."""
    return getattr(node.target, "_opname", "") == "as_strided" and node.args[0].op != "placeholder"


def _warn(refused: Mapping[Any, str], consequence: str) -> None:
    """Warns that torch runs these nodes, and why."""
    reasons = list(dict.fromkeys(refused.values()))
    shown = reasons[:SHOWN_REASONS]
    if len(reasons) > len(shown):
        shown.append(f"{len(reasons) - len(shown)} more")
    warnings.warn(f"the backend mirstack {consequence}: {'; '.join(shown)}", stacklevel=2)


class Program:
    """A compiled graph, called with Dynamo's tensors and numbers; it returns a list of them."""

    def __init__(self, module: Any, bound: Mapping[int, Any], options: Mapping[str, Any]):
        self.module, self.options = module, options
        self.places = list(bound)
        self.tensors = [bound[place] for place in self.places]
        self.changes = [0] * len(self.places)

    def read(self) -> None:
        """Imports the graph with the bound tensors as they are.

        Raises MirError with all nodes that cannot be imported.
        """
        self.versions = [_version(tensor) for tensor in self.tensors]
        self.tracked = [tensor for tensor in self.tensors if not tensor.is_inference()]
        self.tracked_versions = list(map(_VERSION, self.tracked))
        graph = import_graph(self.module, "graph", dict(zip(self.places, self.tensors, strict=True)))
        self.imported, self.parameters, self.results = graph.module, graph.parameters, graph.results

    def compile(self) -> None:
        """Compiles what was imported."""
        from ..compile import compile

        self.program = None if self.imported is None else compile(self.imported, **self.options)
        self.imported = None

    def __call__(self, *inputs: Any) -> list[Any]:
        """Runs the graph. Compiles it again where a parameter was replaced or written to."""
        if self.places:
            self._check(inputs)
        if self.program is None:
            return [each.value for each in self.results]
        found = self.program(*[_to_argument(inputs[place]) for place in self.parameters])
        # The places of results are 0, 1, …: the only one is at 0.
        arrays = found if isinstance(found, tuple) else (found,)
        return [each.value if isinstance(each, Fixed) else to_torch(arrays[each]) for each in self.results]

    def _check(self, inputs: Sequence[Any]) -> None:
        """Compiles again where a bound tensor was replaced or written to."""
        # Models have hundreds of parameters: no Python code runs for each.
        same = all(map(is_, map(inputs.__getitem__, self.places), self.tensors))
        if not same or list(map(_VERSION, self.tracked)) != self.tracked_versions:
            self._rebind(inputs)

    def _rebind(self, inputs: Sequence[Any]) -> None:
        """Compiles again with the tensors as they are now.

        One that changes often becomes a parameter of the program.
        """
        kept: dict[int, Any] = {}
        changes: list[int] = []
        for place, tensor, version, changed in zip(self.places, self.tensors, self.versions, self.changes, strict=True):
            given = inputs[place]
            now = changed + (given is not tensor or _version(given) != version)
            # A complex tensor cannot be a parameter.
            if now <= CONSTANT_CHANGES or given.is_complex():
                kept[place] = given
                changes.append(now)
        self.places, self.tensors, self.changes = list(kept), list(kept.values()), changes
        self.read()
        self.compile()


def _version(tensor: Any) -> int:
    """Counts the writes to a tensor; of tensors made in inference mode torch knows none."""
    return 0 if tensor.is_inference() else tensor._version


def _to_argument(value: Any) -> Any:
    """Returns a tensor as an array; a number as it is."""
    return to_numpy(value) if hasattr(value, "dtype") else value
