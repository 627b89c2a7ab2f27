"""Writes Relay functions as a graph in the language of Graphviz: `mir-opt --dot`.

Operators are nodes, functions are clusters, and in these kernels are clusters, where `fuse-ops` has made them. Constants, names and tuples
have no node: edges go through them.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import relay
from ...dialects.relay.text import global_text, local_text, type_text
from ...passes.relay.fusion.fuse_ops import is_kernel, name_of
from ...support.diagnostics import error_at
from .graph import NO_BOX, PASSED_THROUGH


def dot_text(module: ModuleOp) -> str:
    """Returns the graph of a module's Relay functions. Raises MirError where it has none."""
    functions = [op for op in module.ops if isinstance(op, relay.FuncOp)]
    if not functions:
        raise error_at(module, "--dot writes the graph of Relay functions, and the module has none")
    lines = ["digraph {", "  node [shape=box];"]
    for number, function in enumerate(functions):
        lines += _FunctionGraph(function, number).lines()
    return "\n".join([*lines, "}"]) + "\n"


class _FunctionGraph:
    def __init__(self, function: relay.FuncOp, number: int):
        self.function = function
        self.prefix = f"f{number}_"
        self.nodes: dict[SSAValue | Operation, str] = {}
        """The node of each parameter and op."""
        self.kernels: dict[SSAValue, SSAValue] = {}
        """What a kernel's result is inside of it, and its parameters outside."""

    def lines(self) -> Iterator[str]:
        """Yields the function's cluster, then its edges."""
        function = self.function
        yield f"  subgraph {_quoted(f'cluster_{self.prefix}')} {{"
        yield f"    label={_quoted(global_text(function.sym_name.data))};"
        for value, name in zip(function.params, function.param_names.data, strict=True):
            yield f"    {self._node(value)} [label={_label(local_text(name.data), value)}, style=rounded];"
        ops: list[Operation] = []
        for op in function.body.block.ops:
            if isinstance(op, NO_BOX):
                continue
            if (
                not isinstance(op, relay.CallOp)
                or not isinstance(kernel := op.callee.owner, relay.FnOp)
                or not is_kernel(kernel)
            ):
                ops.append(op)
                yield f"    {self._node(op)} [label={_label(name_of(op), *op.results[:1])}];"
                continue
            yield f"    subgraph {_quoted(f'cluster_{self.prefix}{len(self.nodes)}')} {{"
            yield "      style=filled; fillcolor=lightblue;"
            body = kernel.body.block
            # A kernel is called once: `fuse-ops` makes one for each group.
            self.kernels.update(zip(body.args, op.arguments, strict=True))
            for inner in body.ops:
                if isinstance(inner, relay.ReturnOp):
                    self.kernels[op.result] = inner.value
                elif not isinstance(inner, NO_BOX):
                    ops.append(inner)
                    yield f"      {self._node(inner)} [label={_label(name_of(inner), *inner.results[:1])}];"
            yield "    }"
        end = function.body.block.last_op
        if end is not None:
            ops.append(end)
            yield f'    {self._node(end)} [label="result", style=rounded];'
        yield "  }"
        edges = ((source, self.nodes[op]) for op in ops for value in _operands(op) for source in self._sources(value))
        for source, target in dict.fromkeys(edges):
            yield f"  {source} -> {target};"

    def _node(self, what: SSAValue | Operation) -> str:
        return self.nodes.setdefault(what, f"{self.prefix}{len(self.nodes)}")

    def _sources(self, value: SSAValue) -> Iterator[str]:
        """Yields the nodes that a value comes from."""
        pending, seen = [value], {value}
        while pending:
            current = pending.pop()
            owner = current.owner
            known = self.nodes.get(current if isinstance(owner, Block) else owner)
            if known is not None:
                yield known
                continue
            further = [self.kernels[current]] if current in self.kernels else []
            if isinstance(owner, PASSED_THROUGH):
                further += owner.operands
            pending += [each for each in further if each not in seen]
            seen.update(further)


def _operands(op: Operation) -> Iterator[SSAValue]:
    """Yields what an op and those inside of it take."""
    pending = [op]
    while pending:
        each = pending.pop()
        yield from each.operands
        pending += [inner for region in each.regions for block in region.blocks for inner in block.ops]


def _label(name: str, *values: SSAValue) -> str:
    return _quoted("\n".join([name, *(type_text(value.type) for value in values)]))


def _quoted(text: str) -> str:
    """Returns a text as Graphviz reads it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
