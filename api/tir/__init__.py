"""TIR in Python: expressions and statements, functions, schedules, functions on scalar expressions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...dialects.te.producer import ProducerRealize, ProducerStore
    from ...dialects.te.tensor import Read as ProducerLoad
    from ...dialects.te.tensor import Reduce
    from ...dialects.te.tensor import Tensor as DataProducer
    from ...dialects.tir.node import ir_builder as ir_builder
    from ...dialects.tir.node.buffer import (
        Broadcast,
        Buffer,
        BufferLoad,
        BufferRegion,
        Let,
        MatchBufferRegion,
        Ramp,
        Shuffle,
    )
    from ...dialects.tir.node.buffer import decl_buffer as decl_buffer
    from ...dialects.tir.node.expr import (
        Call,
        CommReducer,
        FloatImm,
        IntImm,
        IterVar,
        PointerType,
        PrimType,
        Range,
        SizeVar,
        StringImm,
        Var,
    )  # fmt: skip
    from ...dialects.tir.node.expr import Expr as PrimExpr
    from ...dialects.tir.node.operations import (
        EQ,
        GE,
        GT,
        LE,
        LT,
        NE,
        Add,
        And,
        Cast,
        Div,
        FloorDiv,
        FloorMod,
        Max,
        Min,
        Mod,
        Mul,
        Not,
        Or,
        Select,
        Sub,
    )  # fmt: skip
    from ...dialects.tir.node.stmt import (
        Allocate,
        AllocateConst,
        AssertStmt,
        AttrStmt,
        Block,
        BlockRealize,
        BufferRealize,
        BufferStore,
        DeclBuffer,
        Evaluate,
        For,
        ForKind,
        IfThenElse,
        LetStmt,
        Prefetch,
        SeqStmt,
        Stmt,
        While,
    )  # fmt: skip
    from ...dialects.tir.node.stmt import stmt_list as stmt_list
    from ...dialects.tir.node.stmt import stmt_seq as stmt_seq
    from ...passes.schedule.engine.tensor_intrinsics import TensorIntrin
    from ..ir.prim_func import PrimFunc
    from . import analysis as analysis
    from . import op as op
    from . import schedule as schedule
    from . import stmt_functor as stmt_functor
    from . import transform as transform
    from .data_layout import BijectiveLayout, Layout, bijective_layout, layout
    from .op import logaddexp, ret, trace
    from .schedule import (
        BlockDependenceInfo,
        BlockRV,
        BlockScope,
        ExprRV,
        IndexMap,
        Instruction,
        LoopRV,
        Schedule,
        ScheduleError,
        ScheduleState,
        StmtSRef,
        Trace,
    )  # fmt: skip

_NODES = "...dialects.tir.node"

# Where each name lives, imported when it is first asked for.
_LAZY = {
    "Any": "..relay.ty",
    **dict.fromkeys(
        (
            "Broadcast", "Buffer", "BufferLoad", "BufferRegion", "Let", "MatchBufferRegion", "Ramp", "Shuffle", "decl_buffer",
        ),
        f"{_NODES}.buffer",
    ),
    **dict.fromkeys(
        (
            "Call", "CommReducer", "FloatImm", "IntImm", "IterVar", "PointerType", "PrimType", "Range", "SizeVar", "StringImm",
            "Var",
        ),
        f"{_NODES}.expr",
    ),
    **dict.fromkeys(
        (
            "EQ", "GE", "GT", "LE", "LT", "NE", "Add", "And", "Cast", "Div", "FloorDiv", "FloorMod", "Max", "Min", "Mod", "Mul",
            "Not", "Or", "Select", "Sub",
        ),
        f"{_NODES}.operations",
    ),
    **dict.fromkeys(
        (
            "Allocate", "AllocateConst", "AssertStmt", "AttrStmt", "Block", "BlockRealize", "BufferRealize", "BufferStore",
            "DeclBuffer", "Evaluate", "For", "ForKind", "IfThenElse", "LetStmt", "Prefetch", "SeqStmt", "Stmt", "While",
            "stmt_list", "stmt_seq",
        ),
        f"{_NODES}.stmt",
    ),
    **dict.fromkeys(
        (
            "BlockDependenceInfo", "BlockRV", "BlockScope", "ExprRV", "IndexMap", "Instruction", "LoopRV", "Schedule", "ScheduleError", "ScheduleState",
            "StmtSRef", "Trace",
        ),
        ".schedule",
    ),
    **dict.fromkeys(("BijectiveLayout", "Layout", "bijective_layout", "layout"), ".data_layout"),
    "PrimFunc": "..ir.prim_func",
    **dict.fromkeys(("ProducerRealize", "ProducerStore"), "...dialects.te.producer"),
    **dict.fromkeys(("logaddexp", "ret", "trace"), ".op"),
    "TensorIntrin": "...passes.schedule.engine.tensor_intrinsics",
}  # fmt: skip

_MODULES = {
    **dict.fromkeys(("analysis", "op", "schedule", "stmt_functor", "transform"), "."),
    **dict.fromkeys(("buffer", "expr", "ir_builder", "stmt"), f"{_NODES}."),
}
"""Modules of this package, and of the nodes, by their name."""

__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "Allocate",
    "AllocateConst",
    "And",
    "AssertStmt",
    "AttrStmt",
    "BijectiveLayout",
    "Block",
    "BlockDependenceInfo",
    "BlockRV",
    "BlockRealize",
    "BlockScope",
    "Broadcast",
    "Buffer",
    "BufferLoad",
    "BufferRealize",
    "BufferRegion",
    "BufferStore",
    "Call",
    "Cast",
    "CommReducer",
    "DataProducer",
    "DeclBuffer",
    "Div",
    "Evaluate",
    "ExprRV",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "For",
    "ForKind",
    "IfThenElse",
    "IndexMap",
    "Instruction",
    "IntImm",
    "IterVar",
    "Layout",
    "Let",
    "LetStmt",
    "LoopRV",
    "MatchBufferRegion",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "PointerType",
    "Prefetch",
    "PrimExpr",
    "PrimFunc",
    "PrimType",
    "ProducerLoad",
    "ProducerRealize",
    "ProducerStore",
    "Ramp",
    "Range",
    "Reduce",
    "Schedule",
    "ScheduleError",
    "ScheduleState",
    "Select",
    "SeqStmt",
    "Shuffle",
    "SizeVar",
    "Stmt",
    "StmtSRef",
    "StringImm",
    "Sub",
    "TensorIntrin",
    "Trace",
    "Var",
    "While",
    "analysis",
    "bijective_layout",
    "decl_buffer",
    "layout",
    "logaddexp",
    "op",
    "ret",
    "schedule",
    "stmt_functor",
    "stmt_list",
    "stmt_seq",
    "trace",
    "transform",
]  # fmt: skip


_OF_TENSORS = {"DataProducer": "Tensor", "ProducerLoad": "Read", "Reduce": "Reduce"}
"""Classes of tensors' elements, by the names that they have here."""


def __getattr__(name: str) -> object:
    if name in _OF_TENSORS:
        return getattr(import_module("...dialects.te.tensor", __package__), _OF_TENSORS[name])
    if name in _LAZY:
        found: object = getattr(import_module(_LAZY[name], __package__), name)
        globals()[name] = found
        return found
    if name == "PrimExpr":
        return import_module(f"{_NODES}.expr", __package__).Expr
    if name in _MODULES:
        return import_module(f"{_MODULES[name]}{name}", __package__)
    # The functions on scalar expressions are those of `te`, imported when one is asked for.
    return getattr(import_module(".op", __package__), name)


def __dir__() -> list[str]:
    from . import op

    return sorted({*__all__, *_LAZY, *_MODULES, *_OF_TENSORS, *dir(op)})
