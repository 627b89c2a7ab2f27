"""Infers the types of data types' constructors and of the variables that patterns bind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, NoneType, TupleType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....support.diagnostics import MirError, error_at
from ....support.text import counted
from .. import ir
from ..patterns import ConstructorPattern, TuplePattern, VarPattern
from ..types import FuncType
from .unify import POISON

if TYPE_CHECKING:
    from .inference import Inference


class PatternTyping:
    """The rules for constructors and patterns, over the data types of a module."""

    def __init__(self, inference: Inference, data_types: Mapping[str, ir.TypeDataOp]):
        self._inference = inference
        self._data_types = data_types
        self._constructors: dict[tuple[str, str], FuncType] = {}
        self._matches: list[ir.MatchOp] = []

    def constructor(self, where: Operation, type_name: str, name: str) -> FuncType:
        """Returns a constructor's type, `fn [A](A, List[A]) -> List[A]`.

        Raises MirError when the type has no such constructor.
        """
        found = self._constructors.get((type_name, name))
        if found is not None:
            return found
        declared = self._data_types.get(type_name)
        if declared is None:
            raise error_at(where, f"there is no data type '{type_name}' in the module", f"{name} is declared by it")
        if declared.fields_of(name) is None:
            raise error_at(where, f"the data type '{type_name}' has no constructor '{name}'")
        found = self._constructors[type_name, name] = declared.constructor_type(name)
        return found

    def bind(self, op: ir.MatchOp, pattern: Attribute, value: Attribute, block: Block) -> None:
        """Types the variables of a clause (its block's arguments) from the type of the matched value."""
        arguments = iter(block.args)
        try:
            self._bind(op, pattern, value, arguments)
        except MirError as error:
            self._inference.error(error)
            for argument in block.args:
                self._inference.bind_variable(argument, POISON)

    def _bind(self, op: ir.MatchOp, pattern: Attribute, value: Attribute, arguments: Iterator[SSAValue]) -> None:
        inference = self._inference
        match pattern:
            case VarPattern():
                type = value
                if not isinstance(pattern.annotation, NoneType):
                    annotation = inference.unifier.open(pattern.annotation)
                    type = inference.expect(op, f"the pattern's %{pattern.var_name.data}", annotation, value)
                inference.bind_variable(next(arguments), type)
            case ConstructorPattern():
                name = pattern.constructor.data
                declared = self.constructor(op, pattern.type_name.data, name)
                constructor = inference.unifier.instantiate(declared)
                if len(constructor.inputs.data) != len(pattern.fields.data):
                    raise error_at(
                        op,
                        f"{name} has {counted(len(constructor.inputs.data), 'field')}, its pattern here {len(pattern.fields.data)}",
                    )
                inference.expect(op, f"what the pattern {name} matches", constructor.output, value)
                for field, type in zip(pattern.fields.data, constructor.inputs.data, strict=True):
                    self._bind(op, field, type, arguments)
            case TuplePattern():
                fields = [inference.unifier.hole() for _ in pattern.fields.data]
                inference.expect(op, "what the tuple pattern matches", TupleType(ArrayAttr(fields)), value)
                for field, type in zip(pattern.fields.data, fields, strict=True):
                    self._bind(op, field, type, arguments)
            case _:
                pass

    def remember(self, op: ir.MatchOp) -> None:
        """Notes a match whose variables' types are to be written into its patterns at the end."""
        self._matches.append(op)

    def finish(self) -> None:
        """Writes the types of variables into the patterns, once all are known."""
        for op in self._matches:
            patterns: list[Attribute] = []
            for pattern, region in zip(op.patterns.data, op.clauses, strict=True):
                patterns.append(_annotated(pattern, iter(region.block.args)))
            op.properties["patterns"] = ArrayAttr(patterns)


def _annotated(pattern: Attribute, values: Iterator[SSAValue]) -> Attribute:
    match pattern:
        case VarPattern():
            return VarPattern(pattern.var_name, next(values).type)
        case ConstructorPattern():
            fields = ArrayAttr([_annotated(field, values) for field in pattern.fields.data])
            return ConstructorPattern(pattern.type_name, pattern.constructor, fields)
        case TuplePattern():
            return TuplePattern(ArrayAttr([_annotated(field, values) for field in pattern.fields.data]))
        case _:
            return pattern
