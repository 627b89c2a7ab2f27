"""`infer-type`: infers the types of a module's Relay functions from those of parameters and constants.

Text is typed when it is read; this pass is for modules made or changed otherwise. It does as TVM's InferType.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.infer import infer_types
from ....dialects.relay.text import is_known
from ....support.walk import walk_ops


@dataclass(frozen=True)
class InferType(ModulePass):
    """Find the types of Relay values; declared types of parameters, lets and results are taken as given."""

    name = "infer-type"

    fresh: bool = False
    """Also recompute the types of lets and of functions' results, which may have changed."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        infer_types(op, fresh=self.fresh)


def ensure_types(module: ModuleOp) -> None:
    """Infers types if some value of a Relay function has none. Raises MirError for values that do not fit."""
    if _has_unknown_types(module):
        infer_types(module)


def _has_unknown_types(module: ModuleOp) -> bool:
    known: set[int] = set()  # By identity: a hash visits all fields of a tuple.

    def is_typed(types: Iterable[Attribute]) -> bool:
        for type in types:
            if id(type) not in known:
                if not is_known(type):
                    return False
                known.add(id(type))
        return True

    for function in module.ops:
        if not isinstance(function, ir.FuncOp):
            continue
        if not is_typed([*(param.type for param in function.params), function.ret_type]):
            return True
        if not all(is_typed(op.result_types) for op in walk_ops(function) if op.results):
            return True
    return False
