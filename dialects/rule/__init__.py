"""Defines rewrite rules as IR: `lhs => rhs where condition`, over the ops of any dialect.

A `rule.rewrite` is one block: the pattern, then the conditions, then the replacement, all in SSA form. The result of a
pattern op is the value that was matched there, the result of a build op is the new value. A
`rule.set` groups rules and includes other sets.
"""

from xdsl.ir import Dialect

from . import kernel_functions as kernel_functions
from . import relay_functions as relay_functions
from .definition import DefineOperatorOp
from .functions import FUNCTIONS, RuleFunction, named_function
from .ops import (
    ATTR,
    ATTRS,
    OPERATION,
    RUN,
    VALUE,
    AnyOp,
    AttrOp,
    AttrsType,
    AttrType,
    BuildOp,
    ComputeOp,
    ConstantOp,
    DataOp,
    FoldOp,
    LiteralOp,
    MatchOp,
    OperationType,
    ReplaceOp,
    RewriteOp,
    RulesetOp,
    RunType,
    SelectOp,
    ValueType,
    WhereOp,
    rewrites_of,
)

RULE = Dialect(
    "rule",
    [
        RewriteOp, RulesetOp, AnyOp, LiteralOp, MatchOp, AttrOp, DataOp, ComputeOp, WhereOp, BuildOp, ConstantOp, FoldOp,
        SelectOp, ReplaceOp, DefineOperatorOp,
    ],
    [ValueType, RunType, AttrType, AttrsType, OperationType],
)  # fmt: skip

__all__ = [
    "ATTR",
    "ATTRS",
    "FUNCTIONS",
    "OPERATION",
    "RULE",
    "RUN",
    "VALUE",
    "AnyOp",
    "AttrOp",
    "AttrType",
    "AttrsType",
    "BuildOp",
    "ComputeOp",
    "ConstantOp",
    "DataOp",
    "DefineOperatorOp",
    "FoldOp",
    "LiteralOp",
    "MatchOp",
    "OperationType",
    "ReplaceOp",
    "RewriteOp",
    "RuleFunction",
    "RulesetOp",
    "RunType",
    "SelectOp",
    "ValueType",
    "WhereOp",
    "named_function",
    "rewrites_of",
]  # fmt: skip
