"""Defines the op of an operator that a file defines: `operator my.gelu(%x: Tensor) -> Tensor { … }`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import import_module
from io import StringIO

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, NoneType, StringAttr
from xdsl.ir import Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, SymbolOpInterface

from ...support.diagnostics import error_at
from ...support.notebook import text_html
from ..relay.operator import REQUIRED, AttrSpec, Operator, attr, from_attribute, to_attribute
from ..relay.own_operators import TENSOR, Description, make_operator

_NO_TEXT = StringAttr("")


@irdl_op_definition
class DefineOperatorOp(IRDLOperation):
    """`operator my.gelu(%x: Tensor, slope=1.0) -> Tensor { compute @gelu gradient … }`.

    `attribute_names` have the kinds `attribute_kinds`, which end in `?` where None is allowed, and the defaults that are in `defaults`.
    `functions` compute it. The region holds the gradient as a rule, `(my.gelu(%x), %gradient) => (…)`, or nothing. `digest` is that of
    the item and its functions: the operator's identity.
    """

    name = "rule.operator"
    sym_name = prop_def(StringAttr)
    arguments = prop_def(ArrayAttr[StringAttr])
    types = prop_def(ArrayAttr[StringAttr])
    result_type = prop_def(StringAttr, default_value=StringAttr(TENSOR))
    attribute_names = prop_def(ArrayAttr[StringAttr], default_value=ArrayAttr([]))
    attribute_kinds = prop_def(ArrayAttr[StringAttr], default_value=ArrayAttr([]))
    defaults = prop_def(DictionaryAttr, default_value=DictionaryAttr({}))
    relation = prop_def(StringAttr, default_value=_NO_TEXT)
    kind = prop_def(StringAttr, default_value=_NO_TEXT)
    functions = prop_def(ArrayAttr[StringAttr], default_value=ArrayAttr([]))
    onnx = prop_def(StringAttr, default_value=_NO_TEXT)
    doc = prop_def(StringAttr, default_value=_NO_TEXT)
    digest = opt_prop_def(StringAttr)
    body = region_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(SymbolOpInterface(), NoTerminator())

    @staticmethod
    def of(described: Description, functions: Sequence[str]) -> DefineOperatorOp:
        """Returns the op of a description whose functions have these names, without a gradient."""
        specs = described.attributes
        assert isinstance(described.relation, str)
        op = DefineOperatorOp.create(
            properties={
                "sym_name": StringAttr(described.name),
                "arguments": _texts(described.arguments),
                "types": _texts(described.types),
                "result_type": StringAttr(described.result),
                "attribute_names": _texts([spec.name for spec in specs]),
                "attribute_kinds": _texts([spec.kind + "?" * spec.nullable for spec in specs]),
                "defaults": DictionaryAttr({s.name: to_attribute(s.otherwise) for s in specs if not s.is_required}),
                "relation": StringAttr(described.relation),
                "kind": StringAttr(described.kind),
                "functions": _texts(functions),
                "onnx": StringAttr(described.onnx),
                "doc": StringAttr(described.doc),
            },
            regions=[Region()],
        )
        if described.location is not None:
            op.location = described.location
        return op

    def specs(self) -> tuple[AttrSpec, ...]:
        """Returns the attributes."""
        found: list[AttrSpec] = []
        for name, kind in zip(self.attribute_names.data, self.attribute_kinds.data, strict=True):
            default = self.defaults.data.get(name.data)
            given = REQUIRED if default is None else None if isinstance(default, NoneType) else from_attribute(default)
            found.append(attr(name.data, given, kind.data.rstrip("?"), nullable=kind.data.endswith("?")))  # pyright: ignore[reportArgumentType]
        return tuple(found)

    @property
    def gradient(self) -> Operation | None:
        """The rule of the gradient."""
        return self.body.block.first_op if self.body.blocks else None

    def described(self, functions: Sequence[Operation]) -> Description:
        """Returns the description, with the functions that compute it."""
        return Description(
            self.sym_name.data,
            tuple(name.data for name in self.arguments.data),
            tuple(text.data for text in self.types.data),
            self.result_type.data,
            self.specs(),
            self.relation.data,
            self.kind.data,
            tuple(functions),
            onnx=self.onnx.data,
            doc=self.doc.data,
            location=self.location,
        )

    def define(self, functions: Sequence[Operation]) -> Operator:
        """Returns the entry that these functions compute: one for equal definitions.

        Raises MirError for what is wrong in the definition.
        """
        key = self._digest(functions)
        self.properties["digest"] = StringAttr(key)
        found = _ENTRIES.get(key)
        if found is None:
            # Passes replace the functions of a module.
            kept = [function.clone() for function in functions]
            for clone, function in zip(kept, functions, strict=True):
                clone.location = function.location
            found = _ENTRIES[key] = make_operator(
                self.described(kept), None if self.gradient is None else self.gradient.clone()
            )
        return found

    def entry(self) -> Operator:
        """Returns the entry, made from the functions of the module around it where there is none yet."""
        found = None if self.digest is None else _ENTRIES.get(self.digest.data)
        if found is not None:
            return found
        block = self.parent
        symbols = {
            name.data: op
            for op in (() if block is None else block.ops)
            if isinstance(name := op.properties.get("sym_name"), StringAttr) and op is not self
        }
        return self.define(self.functions_among(symbols))

    def functions_among(self, symbols: dict[str, Operation]) -> list[Operation]:
        """Returns the functions that compute it. Raises MirError for one that is missing or of another level."""
        found: list[Operation] = []
        for name in (name.data for name in self.functions.data):
            function = symbols.get(name)
            if function is None:
                raise error_at(
                    self,
                    f"operator {self.sym_name.data}: there is no function @{name}",
                    "it is computed by TE or TIR functions of the same file",
                )
            if function.name not in ("te.func", "tir.prim_func"):
                raise error_at(self, f"operator {self.sym_name.data}: @{name} is neither a TE nor a TIR function")
            found.append(function)
        return found

    def _digest(self, functions: Sequence[Operation]) -> str:
        hasher = hashlib.sha256()
        properties = {name: value for name, value in self.properties.items() if name != "digest"}
        hasher.update(str(sorted((name, str(value)) for name, value in properties.items())).encode())
        for op in (*functions, *([] if self.gradient is None else [self.gradient])):
            text = StringIO()
            Printer(text, print_generic_format=True).print_op(op)
            hasher.update(text.getvalue().encode() + b"\0")
        return hasher.hexdigest()

    def verify_(self) -> None:
        self.entry()

    def __repr__(self) -> str:
        return f"DefineOperatorOp({self.sym_name.data})"

    def _repr_html_(self) -> str:
        # By name: printers of formats import dialects.
        printer = import_module("....parser.rules.definitions", __name__)
        return text_html(printer.print_definition(self))


_ENTRIES: dict[str, Operator] = {}
"""The entries of operators that files define, by digest."""


def _texts(values: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(value) for value in values])
