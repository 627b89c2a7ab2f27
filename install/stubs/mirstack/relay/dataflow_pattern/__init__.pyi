"""Patterns of expressions: `is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))`; TVM's names.

`patterns` defines the patterns, `matcher` matches them, `rewriting` replaces or outlines the matches.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.dataflow_pattern import DataFlowPattern as DataFlowPattern
from mirstack.api.relay.dataflow_pattern.patterns import AltPattern as AltPattern
from mirstack.api.relay.dataflow_pattern.patterns import AttrPattern as AttrPattern
from mirstack.api.relay.dataflow_pattern.patterns import CallPattern as CallPattern
from mirstack.api.relay.dataflow_pattern.patterns import ConstantPattern as ConstantPattern
from mirstack.api.relay.dataflow_pattern.patterns import DFPattern as DFPattern
from mirstack.api.relay.dataflow_pattern.patterns import DataTypePattern as DataTypePattern
from mirstack.api.relay.dataflow_pattern.patterns import DominatorPattern as DominatorPattern
from mirstack.api.relay.dataflow_pattern.patterns import ExprPattern as ExprPattern
from mirstack.api.relay.dataflow_pattern.patterns import FunctionPattern as FunctionPattern
from mirstack.api.relay.dataflow_pattern.patterns import IfPattern as IfPattern
from mirstack.api.relay.dataflow_pattern.patterns import LetPattern as LetPattern
from mirstack.api.relay.dataflow_pattern.patterns import ShapePattern as ShapePattern
from mirstack.api.relay.dataflow_pattern.patterns import TupleGetItemPattern as TupleGetItemPattern
from mirstack.api.relay.dataflow_pattern.patterns import TuplePattern as TuplePattern
from mirstack.api.relay.dataflow_pattern.patterns import TypePattern as TypePattern
from mirstack.api.relay.dataflow_pattern.patterns import VarPattern as VarPattern
from mirstack.api.relay.dataflow_pattern.patterns import WildcardPattern as WildcardPattern
from mirstack.api.relay.dataflow_pattern.patterns import dominates as dominates
from mirstack.api.relay.dataflow_pattern.patterns import has_attr as has_attr
from mirstack.api.relay.dataflow_pattern.patterns import has_dtype as has_dtype
from mirstack.api.relay.dataflow_pattern.patterns import has_shape as has_shape
from mirstack.api.relay.dataflow_pattern.patterns import has_type as has_type
from mirstack.api.relay.dataflow_pattern.patterns import is_constant as is_constant
from mirstack.api.relay.dataflow_pattern.patterns import is_expr as is_expr
from mirstack.api.relay.dataflow_pattern.patterns import is_if as is_if
from mirstack.api.relay.dataflow_pattern.patterns import is_let as is_let
from mirstack.api.relay.dataflow_pattern.patterns import is_op as is_op
from mirstack.api.relay.dataflow_pattern.patterns import is_tuple as is_tuple
from mirstack.api.relay.dataflow_pattern.patterns import is_tuple_get_item as is_tuple_get_item
from mirstack.api.relay.dataflow_pattern.patterns import is_var as is_var
from mirstack.api.relay.dataflow_pattern.patterns import match as match
from mirstack.api.relay.dataflow_pattern.patterns import wildcard as wildcard
from mirstack.api.relay.dataflow_pattern.rewriting import DFPatternCallback as DFPatternCallback
from mirstack.api.relay.dataflow_pattern.rewriting import partition as partition
from mirstack.api.relay.dataflow_pattern.rewriting import rewrite as rewrite
