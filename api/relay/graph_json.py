"""A program of kernels as JSON, in the form of TVM's graph runtime.

nodes           an input or a constant ("null"), or a call of a kernel ("tvm_op") with its inputs [node, output, 0]
arg_nodes       the nodes that are inputs or constants
heads           the outputs
node_row_ptr    where the outputs of each node begin among all
attrs           dtype, shape and number of the storage of each output
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.relay import ir
from ...dialects.relay.operator import OperatorOp
from ...lowering.driver.loading.arguments import flatten_tree
from ...lowering.driver.program import Tensor, Tree, tree_of
from ...support.diagnostics import MirError, error_at

Entry = list[int]


def graph_json(module: ModuleOp, mod_name: str) -> str:
    """Returns the graph of `main`, whose operators are in kernels. Raises MirError for another program."""
    main = next(op for op in module.ops if isinstance(op, ir.FuncOp) and op.sym_name.data == "main")
    return _Graph(main, mod_name).text()


class _Graph:
    def __init__(self, main: ir.FuncOp, mod_name: str):
        self._prefix = f"tvmgen_{mod_name}_"
        self._nodes: list[dict[str, Any]] = []
        self._tensors: list[Sequence[Tensor]] = []
        self._entries: dict[SSAValue, list[Entry]] = {}
        self._kernels: dict[SSAValue, str] = {}
        self._names: dict[str, int] = {}
        self._constants = 0
        self._heads: list[Entry] = []
        for name, param in zip(main.param_names.data, main.params, strict=True):
            self._entries[param] = self._leaf(name.data, param.type, main)
        for op in main.body.block.ops:
            self._visit(op)

    def _visit(self, op: Operation) -> None:
        match op:
            case ir.ReturnOp():
                self._heads = self._entries[op.value]
            case ir.LetOp() if op.value in self._kernels:
                self._kernels[op.result] = self._kernels[op.value]
            case ir.LetOp():
                self._entries[op.result] = self._entries[op.value]
            case ir.ConstantOp():
                self._entries[op.result] = self._leaf(f"p{self._constants}", op.result.type, op)
                self._constants += 1
            case ir.TupleOp():
                self._entries[op.result] = self._inputs(op.fields)
            case ir.TupleGetItemOp() if isinstance(tree := tree_of(op.tuple_value.type), tuple):
                index = op.index.value.data
                sizes = [len(flatten_tree(field)) for field in tree[: index + 1]]
                start = sum(sizes[:-1])
                self._entries[op.result] = self._entries[op.tuple_value][start : start + sizes[-1]]
            case ir.FnOp() if "Primitive" in op.attrs.data:
                names = [inner.OPERATOR.name for inner in op.body.block.ops if isinstance(inner, OperatorOp)]
                self._kernels[op.result] = _identifier("_".join(["fused", *names]))[:80]
            case ir.CallOp() if op.callee in self._kernels:
                self._entries[op.result] = self._call(self._kernels[op.callee], op.arguments, op)
            case OperatorOp():
                self._entries[op.result] = self._call(_identifier(op.OPERATOR.name), op.args, op)
            case _:
                raise _no_graph(op)

    def _inputs(self, values: Sequence[SSAValue]) -> list[Entry]:
        return [entry for value in values for entry in self._entries[value]]

    def _leaf(self, name: str, type: Attribute, where: Operation) -> list[Entry]:
        entries: list[Entry] = []
        tensors = _tensors(type, where)
        for index, tensor in enumerate(tensors):
            self._nodes.append({"op": "null", "name": name if len(tensors) == 1 else f"{name}.{index}", "inputs": []})
            self._tensors.append([tensor])
            entries.append([len(self._nodes) - 1, 0, 0])
        return entries

    def _call(self, name: str, values: Sequence[SSAValue], op: Operation) -> list[Entry]:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        name = self._prefix + (f"{name}_{count}" if count else name)
        inputs, tensors = self._inputs(values), _tensors(op.results[0].type, op)
        numbers = {"num_inputs": str(len(inputs)), "num_outputs": str(len(tensors))}
        attrs = {"func_name": name, "flatten_data": "0", **numbers}
        self._nodes.append({"op": "tvm_op", "name": name, "attrs": attrs, "inputs": inputs})
        self._tensors.append(tensors)
        return [[len(self._nodes) - 1, index, 0] for index in range(len(tensors))]

    def text(self) -> str:
        """Returns the JSON."""
        rows = [0]
        for tensors in self._tensors:
            rows.append(rows[-1] + len(tensors))
        flat = [tensor for tensors in self._tensors for tensor in tensors]
        graph = {
            "nodes": self._nodes,
            "arg_nodes": [index for index, node in enumerate(self._nodes) if node["op"] == "null"],
            "heads": self._heads,
            "attrs": {
                "dltype": ["list_str", [tensor.dtype for tensor in flat]],
                "shape": ["list_shape", [[-1 if dim == DYNAMIC_INDEX else dim for dim in t.shape] for t in flat]],
                "storage_id": ["list_int", list(range(len(flat)))],
                "device_index": ["list_int", [1] * len(flat)],
            },
            "node_row_ptr": rows,
        }
        return json.dumps(graph, indent=2)


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _tensors(type: Attribute, where: Operation) -> list[Tensor]:
    """Returns the tensors of a type. Raises MirError for a type that holds anything else."""
    tree: Tree | None = tree_of(type)
    if tree is None:
        raise _no_graph(where)
    return list(flatten_tree(tree))


def _no_graph(op: Operation) -> MirError:
    return error_at(
        op,
        f"the program is not a graph of kernels: it holds '{op.name}'",
        "it runs all the same; only its form as JSON is missing",
    )


__all__ = ["graph_json"]
