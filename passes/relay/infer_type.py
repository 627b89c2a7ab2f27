"""`infer-type`: the type of every value of a module's Relay functions, from those of parameters and constants.

Text is typed when it is read; this pass is for modules made or changed otherwise. It does as TVM's InferType.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.relay.infer import infer_types


@dataclass(frozen=True)
class InferType(ModulePass):
    """Find the types of Relay values; what parameters, lets and results are declared to be is taken as given."""

    name = "infer-type"

    fresh: bool = False
    """Also find anew the types of lets and of functions' results, which may have been changed from what they were."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        infer_types(op, fresh=self.fresh)
