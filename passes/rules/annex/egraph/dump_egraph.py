"""An e-graph as IR, in xDSL's dialect `equivalence`.

One function for each block: what is there anyway are its parameters, what the block needs its results. Each class tells what its
cheapest form costs (`eqsat_cost`) and which of its values that is (`min_cost_index`), so that xDSL's pass `eqsat-extract` takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from xdsl.dialects.builtin import FunctionType, IntAttr, ModuleOp, StringAttr
from xdsl.dialects.equivalence import EQSAT_COST_LABEL, ClassOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface

from .egraph import EGraph
from .extract import Costs, Need


class EGraphDump:
    """Collects the e-graphs of blocks as functions of `module`."""

    def __init__(self) -> None:
        self.module = ModuleOp([])
        self._names: dict[str, int] = {}

    def add(self, block: Block, graph: EGraph, needs: Sequence[Need]) -> None:
        """Adds the e-graph of a block, under the name of the function around it."""
        costs = Costs(graph, set())
        costs.give(value for values in graph.leaves.values() for value in values)
        given = {value for values in graph.leaves.values() for value in values}
        leaves: dict[SSAValue, SSAValue] = {}
        for value in graph.parent:
            if value in given:
                leaves.setdefault(graph.find(value), value)
        body = Block(arg_types=[value.type for value in leaves.values()])
        params: dict[SSAValue, SSAValue] = dict(zip(leaves, body.args, strict=True))
        for leaf, param in zip(leaves.values(), body.args, strict=True):
            param.name_hint = leaf.name_hint
        classes: dict[SSAValue, SSAValue] = {}
        copies: dict[Operation, Operation] = {}
        # The cheapest first: then what eqsat-extract leaves is in an order in which it can run.
        roots = dict.fromkeys([*graph.leaves, *graph.nodes])
        for root in sorted(roots, key=lambda root: costs.best[root][0]):
            ops = graph.nodes.get(root, [])
            copies.update((op, op.clone()) for op in ops)
            members = [*([params[root]] if root in params else []), *(copies[op].results[0] for op in ops)]
            cheapest = costs.ops[root]
            index = 0 if cheapest is None else members.index(copies[cheapest].results[0])
            made = ClassOp(*members, min_cost_index=IntAttr(index))
            made.attributes[EQSAT_COST_LABEL] = IntAttr(costs.best[root][0])
            made.result.name_hint = leaves.get(root, root).name_hint
            body.add_ops([*(copies[op] for op in ops), made])
            classes[root] = made.result
        for op, copy in copies.items():
            copy.operands = [classes[graph.find(operand)] for operand in op.operands]
        results = list(dict.fromkeys(graph.find(value) for need in needs for value in need.values))
        body.add_op(ReturnOp(*(classes[root] for root in results)))
        types = FunctionType.from_lists([arg.type for arg in body.args], [root.type for root in results])
        self.module.body.block.add_op(FuncOp(self._name(block), types, Region(body)))

    def text(self) -> str:
        """Returns the e-graphs that were added, as MLIR."""
        stream = StringIO()
        Printer(stream).print_op(self.module)
        return stream.getvalue() + "\n"

    def _name(self, block: Block) -> str:
        op = block.parent_op()
        name = "block"
        while op is not None:
            trait = op.get_trait(SymbolOpInterface)
            symbol = None if trait is None else trait.get_sym_attr_name(op)
            if isinstance(symbol, StringAttr):
                name = symbol.data
                break
            op = op.parent_op()
        self._names[name] = self._names.get(name, -1) + 1
        return f"{name}_{self._names[name]}" if self._names[name] else name
