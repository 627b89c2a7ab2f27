"""`mirstack.ir`: modules, operators, structural equality, passes and instruments, shaped as `tvm.ir`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.ir.affine_type import TensorAffineType as TensorAffineType
from mirstack.api.ir.affine_type import TupleAffineType as TupleAffineType
from mirstack.api.ir.attrs import Attrs as Attrs
from mirstack.api.ir.attrs import DictAttrs as DictAttrs
from mirstack.api.ir.base import BaseExpr as BaseExpr
from mirstack.api.ir.base import BaseFunc as BaseFunc
from mirstack.api.ir.base import CallingConv as CallingConv
from mirstack.api.ir.base import make_node as make_node
from mirstack.api.ir.container import Array as Array
from mirstack.api.ir.container import Map as Map
from mirstack.api.ir.env_func import EnvFunc as EnvFunc
from mirstack.api.ir.global_info import DummyGlobalInfo as DummyGlobalInfo
from mirstack.api.ir.global_info import GlobalInfo as GlobalInfo
from mirstack.api.ir.global_info import VDevice as VDevice
from mirstack.api.ir.json_nodes import load_json as load_json
from mirstack.api.ir.json_nodes import save_json as save_json
from mirstack.api.ir.module import IRModule as IRModule
from mirstack.api.ir.node import Node as Node
from mirstack.api.ir.node import SequentialSpan as SequentialSpan
from mirstack.api.ir.node import SourceName as SourceName
from mirstack.api.ir.node import Span as Span
from mirstack.api.ir.op import Op as Op
from mirstack.api.ir.op_attrs import register_op_attr as register_op_attr
from mirstack.api.ir.prim_func import PrimFunc as PrimFunc
from mirstack.api.ir.structural import assert_structural_equal as assert_structural_equal
from mirstack.api.ir.structural import get_first_structural_mismatch as get_first_structural_mismatch
from mirstack.api.ir.structural import structural_equal as structural_equal
from mirstack.api.ir.structural import structural_hash as structural_hash
from mirstack.api.ir.type_relation import TypeConstraint as TypeConstraint
from mirstack.api.ir.type_relation import TypeRelation as TypeRelation
from mirstack.api.relay.adt import Constructor as Constructor
from mirstack.api.relay.adt import TypeData as TypeData
from mirstack.api.relay.expr import GlobalVar as GlobalVar
from mirstack.api.relay.expr import RelayExpr as RelayExpr
from mirstack.api.relay.ty import FuncType as FuncType
from mirstack.api.relay.ty import GlobalTypeVar as GlobalTypeVar
from mirstack.api.relay.ty import IncompleteType as IncompleteType
from mirstack.api.relay.ty import RefType as _RefType
from mirstack.api.relay.ty import TensorType as TensorType
from mirstack.api.relay.ty import TupleType as TupleType
from mirstack.api.relay.ty import Type as Type
from mirstack.api.relay.ty import TypeCall as TypeCall
from mirstack.api.relay.ty import TypeKind as TypeKind
from mirstack.api.relay.ty import TypeVar as TypeVar
from mirstack.dialects.tir.node.expr import Expr as _Expr
from mirstack.dialects.tir.node.expr import PointerType as PointerType
from mirstack.dialects.tir.node.expr import PrimType as PrimType
from mirstack.dialects.tir.node.expr import Range as Range
from mirstack.ir import container as container
from mirstack.ir import instrument as instrument
from mirstack.ir import op as op
from mirstack.ir import transform as transform

PrimExpr = _Expr
RelayRefType = _RefType
