"""Types of Relay in Python, with TVM's names, and their conversion to the dialect's types.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.ty import Any as Any
from mirstack.api.relay.ty import FuncType as FuncType
from mirstack.api.relay.ty import GlobalTypeVar as GlobalTypeVar
from mirstack.api.relay.ty import IncompleteType as IncompleteType
from mirstack.api.relay.ty import RefType as RefType
from mirstack.api.relay.ty import RelayRefType as RelayRefType
from mirstack.api.relay.ty import ShapeVar as ShapeVar
from mirstack.api.relay.ty import TensorType as TensorType
from mirstack.api.relay.ty import TupleType as TupleType
from mirstack.api.relay.ty import Type as Type
from mirstack.api.relay.ty import TypeCall as TypeCall
from mirstack.api.relay.ty import TypeKind as TypeKind
from mirstack.api.relay.ty import TypeVar as TypeVar
from mirstack.api.relay.ty import checked_shape as checked_shape
from mirstack.api.relay.ty import dimension_key as dimension_key
from mirstack.api.relay.ty import from_attribute as from_attribute
from mirstack.api.relay.ty import instantiation as instantiation
from mirstack.api.relay.ty import is_expression as is_expression
from mirstack.api.relay.ty import is_symbolic as is_symbolic
from mirstack.api.relay.ty import scalar_type as scalar_type
from mirstack.api.relay.ty import to_attribute as to_attribute
