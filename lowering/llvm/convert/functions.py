"""Functions of the `llvm` dialect."""

from __future__ import annotations

from functools import cache

from xdsl.dialects import llvm
from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, i64
from xdsl.ir import Attribute, Region

from ....dialects.interned import integer, string
from ....support.edit import create_op

C_CONVENTION = llvm.CallingConventionAttr("ccc")


@cache
def linkage_attr(name: str) -> llvm.LinkageAttr:
    """A linkage: `external`, `internal`, …"""
    return llvm.LinkageAttr(name)


OPAQUE_TO_LLVM = frozenset({"fmod", "fmodf"})
"""C functions that LLVM may not replace: of the remainder of what is not infinite it believes that it is a number, also where that is NaN."""


def make_function(
    name: str,
    type_: llvm.LLVMFunctionType,
    linkage: str,
    body: Region | None = None,
    properties: dict[str, Attribute] | None = None,
) -> llvm.FuncOp:
    """A function, declared where it has no body; `properties` are those that others have not."""
    known: dict[str, Attribute] = {
        **(properties or {}),
        "sym_name": string(name),
        "function_type": type_,
        "CConv": C_CONVENTION,
        "linkage": linkage_attr(linkage),
        "visibility_": integer(0, i64),
    }
    if body is None and name in OPAQUE_TO_LLVM:
        known["passthrough"] = ArrayAttr([string("nobuiltin")])
    function = create_op(llvm.FuncOp, (), (), known, UNKNOWN_LOC)
    function.add_region(Region() if body is None else body)
    return function
