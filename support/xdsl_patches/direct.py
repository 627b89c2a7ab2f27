"""Reads xDSL's fields, makes its blocks and checks its attributes with fewer calls of Python.

Compiling makes millions of them. Each replacement has the same meaning as the original;
`tests/support/xdsl_patches/test_direct.py` holds it to that.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, IntegerType, Signedness
from xdsl.ir import Attribute, Block, BlockArgument, IRNode, Operation, OpResult, ParametrizedAttribute, SSAValue
from xdsl.ir.core import BlockOps, SSAValues, _IRNode
from xdsl.irdl import AnyAttr, AnyOf, AttrConstraint, BaseAttr, TypeVarConstraint
from xdsl.irdl.constraints import VerificationContext
from xdsl.utils.exceptions import VerifyException

from ..edit import unlink_operands
from . import Patch

FIELDS: tuple[tuple[type, str, str], ...] = (
    (SSAValue, "type", "_type"),
    (OpResult, "owner", "op"),
    (BlockArgument, "owner", "block"),
    (Operation, "next_op", "_next_op"),
    (Operation, "prev_op", "_prev_op"),
    (Block, "args", "_args"),
    (Block, "first_op", "_first_op"),
    (Block, "last_op", "_last_op"),
)
"""Properties, and the fields that they return: C reads them."""


def replace_methods() -> None:
    """Puts all that this module has into xDSL's classes."""
    for kind, name, field in FIELDS:
        setattr(kind, name, property(attrgetter(field), doc=vars(kind)[name].__doc__))
    for kind, name, method in METHODS:
        setattr(kind, name, method)


_tuple_item = cast("Any", tuple.__getitem__)  # pyright: ignore[reportUnknownMemberType]


def _item(self: SSAValues[Any], idx: int | slice) -> Any:
    """One of some values, or several of them."""
    found = _tuple_item(self, idx)
    return SSAValues(found) if type(idx) is slice else found


def _ops(self: BlockOps) -> Iterator[Operation]:
    return _from(self.block._first_op)


def _from(op: Operation | None) -> Iterator[Operation]:
    """Iterates from `op` to the end of its block; safe if the yielded op is moved or erased."""
    while op is not None:
        following = op._next_op
        yield op
        op = following


def _count(self: BlockOps) -> int:
    count, op = 0, self.block._first_op
    while op is not None:
        count += 1
        op = op._next_op
    return count


def _make_block(self: Block, ops: Iterable[Operation] = (), *, arg_types: Iterable[Attribute] = ()) -> None:
    # With the location that arguments have by default: xDSL looks for it in a module, for each.
    self._args = tuple([BlockArgument(each, self, index, UNKNOWN_LOC) for index, each in enumerate(arg_types)])
    self._first_op = self._last_op = None
    self.add_ops(ops)


def _is_ancestor(self: object, op: IRNode) -> bool:
    """Tells whether an op, block or region is this one, or inside it."""
    current: IRNode | None = op
    while current is not None:
        if current is self:
            return True
        current = current.parent
    return False


def _drop_references(self: Operation) -> None:
    """Drops all uses by an op and the ops inside it."""
    self.parent = None
    unlink_operands(self)
    if self._successors:
        for successor, use in zip(self._successors, self._successor_uses, strict=False):
            successor.remove_use(use)
        self._successor_uses = ()
        self._successors = ()
    for region in self.regions:
        region.drop_all_references()


_post_init = cast("Any", Attribute.__post_init__)
_checked: set[object] = set()
"""Classes of attributes that are data or have parameters, as all must."""


def _check(self: Attribute) -> None:
    kind = type(self)
    if kind in _checked:
        self._verify()
    else:
        _post_init(self)
        _checked.add(kind)


def _fill_attribute(self: ParametrizedAttribute, *parameters: Any) -> None:
    fields = self.get_irdl_definition().parameters
    for (field, each), parameter in zip(fields, parameters, strict=True):
        _set(self, field, parameter if each.converter is None else each.converter(parameter))
    self.__post_init__()


_set = object.__setattr__


def _verify(self: ParametrizedAttribute) -> None:
    """Verifies an attribute and its parameters; once per class where only their classes matter."""
    context: VerificationContext | None = None
    for field, constraint, fine, by_class in _known.get(type(self)) or _parameters(type(self)):
        value: Attribute = getattr(self, field)
        kind = type(value)
        if kind in fine:
            continue
        context = context or VerificationContext()
        try:
            constraint.verify(value, context)
        except VerifyException as error:
            raise VerifyException(f"parameter '{field}' does not verify:\n{error}") from error
        if by_class:
            fine.add(kind)
    self.verify()


_Parameter = tuple[str, AttrConstraint, "set[object]", bool]
"""A parameter's field, its constraint, classes of values that fulfil it, and whether it asks for the class only."""
_known: dict[object, list[_Parameter]] = {}
"""What is checked of the attributes of a class."""


def _parameters(kind: type[ParametrizedAttribute]) -> list[_Parameter]:
    checks: list[_Parameter] = [
        (field, each.constr, set(), asks_for_class(each.constr))
        for field, each in kind.get_irdl_definition().parameters
    ]
    _known[kind] = checks
    return checks


def asks_for_class(constraint: AttrConstraint) -> bool:
    """Tells whether all values of a class meet the constraint or none does."""
    match constraint:
        case AnyAttr() | BaseAttr():
            return True
        case AnyOf():
            return all(map(asks_for_class, constraint.attr_constrs))
        case TypeVarConstraint():
            return asks_for_class(constraint.base_constraint)
        case _:
            return False


_hash_of_integer_type = IntegerType.__hash__
_hashes: dict[int, int] = {}
"""Of signless types, by width."""


def _hash(self: IntegerType) -> int:
    if self.signedness.data is not Signedness.SIGNLESS:
        return _hash_of_integer_type(self)
    width = self.width.data
    known = _hashes.get(width)
    if known is None:
        # The same number as before: there may be dictionaries with such keys.
        known = _hashes[width] = _hash_of_integer_type(self)
    return known


METHODS: tuple[tuple[type, str, object], ...] = (
    (SSAValues, "__getitem__", _item),
    (BlockOps, "__iter__", _ops),
    (BlockOps, "__len__", _count),
    (Block, "__init__", _make_block),
    (_IRNode, "is_ancestor", _is_ancestor),
    (Operation, "drop_all_references", _drop_references),
    (Attribute, "__post_init__", _check),
    (ParametrizedAttribute, "__init__", _fill_attribute),
    (ParametrizedAttribute, "_verify", _verify),
    (IntegerType, "__hash__", _hash),
)

PATCH = Patch(
    reason="properties, iteration over a block's ops and checks of attributes are Python calls that add nothing to the field behind them",
    gain="5 % of the compile time of SqueezeNet (of 1.09 s), 10 % together with `identity`",
    apply=replace_methods,
)
