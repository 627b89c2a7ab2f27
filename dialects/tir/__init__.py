"""Defines the `tir` dialect, TVM's TensorIR as SSA ops.

Functions hold loops, loops hold blocks, blocks hold loads, scalar expressions and stores. Types are in `types`, scalar
expressions in `expr` (their intrinsics in `intrinsics`), buffers in `buffer`, statements in `stmt`.
"""

from xdsl.ir import Dialect

from ...support.xdsl_patches.fields import read_directly
from .arithmetic import (
    BINARY_OPS,
    AddOp,
    AndOp,
    BinaryOp,
    CompareOp,
    DivOp,
    EqOp,
    FloorDivOp,
    FloorModOp,
    GeOp,
    GtOp,
    LeOp,
    LtOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    NeOp,
    NotOp,
    OrOp,
    SubOp,
)
from .buffer import (
    AccessOp,
    AllocateConstOp,
    AllocateOp,
    AllocBufferOp,
    BufferGetOp,
    BufferOp,
    BufferRegionOp,
    DeclBufferOp,
    LoadOp,
    MatchBufferOp,
    StoreOp,
    buffer_name,
)
from .expr import (
    BroadcastOp,
    CallOp,
    CastOp,
    CommReducerOp,
    ConstOp,
    IfThenElseOp,
    LetOp,
    RampOp,
    SelectOp,
    ShuffleOp,
    VarOp,
    YieldOp,
)
from .stmt import (
    AssertOp,
    AttrOp,
    BlockOp,
    EnvThreadOp,
    EvaluateOp,
    ForOp,
    IfOp,
    InitOp,
    IterVarOp,
    LaunchThreadOp,
    PrefetchOp,
    PrimFuncOp,
    ReadsOp,
    RealizeOp,
    ScopeOp,
    TargetOp,
    WhileOp,
    WritesOp,
)
from .types import (
    BufferType,
    HandleType,
    MetadataAttr,
    NameAttr,
    ReducerType,
    RegionType,
    StringType,
    TargetAttr,
    TokenType,
    dtype_to_type,
    type_to_dtype,
)

TIR = Dialect(
    "tir",
    [
        ConstOp, VarOp, LetOp, *BINARY_OPS, NotOp, SelectOp, IfThenElseOp, YieldOp, CastOp, RampOp, BroadcastOp, ShuffleOp,
        CallOp, CommReducerOp,
        MatchBufferOp, AllocBufferOp, DeclBufferOp, BufferGetOp, BufferRegionOp, LoadOp, StoreOp, AllocateOp, AllocateConstOp,
        PrimFuncOp, ForOp, BlockOp, ReadsOp, WritesOp, InitOp, ScopeOp, IfOp, WhileOp, AssertOp, EvaluateOp, AttrOp,
        IterVarOp, TargetOp, EnvThreadOp, LaunchThreadOp, RealizeOp, PrefetchOp,
    ],
    [BufferType, HandleType, RegionType, ReducerType, StringType, TokenType, TargetAttr, MetadataAttr, NameAttr],
)  # fmt: skip
for _kind in TIR.operations:
    read_directly(_kind)

__all__ = [
    "BINARY_OPS", "TIR", "AccessOp", "AddOp", "AllocBufferOp", "AllocateConstOp", "AllocateOp", "AndOp", "AssertOp", "AttrOp",
    "BinaryOp", "BlockOp", "BroadcastOp", "BufferGetOp", "BufferOp", "BufferRegionOp", "BufferType", "CallOp", "CastOp",
    "CommReducerOp", "CompareOp", "ConstOp", "DeclBufferOp", "DivOp", "EnvThreadOp", "EqOp", "EvaluateOp", "FloorDivOp",
    "FloorModOp", "ForOp", "GeOp", "GtOp", "HandleType", "IfOp", "IfThenElseOp", "InitOp", "IterVarOp", "LaunchThreadOp",
    "LeOp", "LetOp", "LoadOp", "LtOp", "MatchBufferOp", "MaxOp", "MetadataAttr", "MinOp", "ModOp", "MulOp", "NameAttr",
    "NeOp", "NotOp", "OrOp", "PrefetchOp", "PrimFuncOp", "RampOp", "ReadsOp", "RealizeOp", "ReducerType", "RegionType",
    "ScopeOp", "SelectOp", "ShuffleOp", "StoreOp", "StringType", "SubOp", "TargetAttr", "TargetOp", "TokenType", "VarOp",
    "WhileOp", "WritesOp", "YieldOp", "buffer_name", "dtype_to_type", "type_to_dtype",
]  # fmt: skip
