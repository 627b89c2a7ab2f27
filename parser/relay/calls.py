"""Expressions that name something: operators, functions, constructors, variables, constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.array import ArrayValueAttr
from ...dialects.relay import ir
from ...dialects.relay.operator import (
    AttrValue,
    Operator,
    OperatorOp,
    all_operators,
    get_operator,
    operator_class,
    to_attribute,
)
from ...dialects.relay.types import UNKNOWN
from ...support.text import counted
from ..items import ParseContext
from .constants import ConstantError, Constants, number_of
from .metadata import NODE, Metadata
from .reader import RelayReader, suggest, unquote
from .scopes import Scopes

UNKNOWN_TYPE: Sequence[Attribute] = (UNKNOWN,)
_INFIX = {
    "*": ("multiply", 3), "/": ("divide", 3), "+": ("add", 2), "-": ("subtract", 2), "<": ("less", 1),
    ">": ("greater", 1), "<=": ("less_equal", 1), ">=": ("greater_equal", 1), "==": ("equal", 0), "!=": ("not_equal", 0),
}  # fmt: skip


class Arguments:
    """The arguments of a call."""

    __slots__ = ("attrs", "values")

    def __init__(self) -> None:
        self.values: list[SSAValue] = []
        self.attrs: dict[str, object] | None = None


class _Argument:
    """A copy of an argument that TVM keeps in an attribute, `start=meta[relay.Var][0]`; it is ignored."""


ARGUMENT_COPY = _Argument()


class ValueReader(RelayReader):
    """The rules of attribute values; each returns the value in Python."""

    def on_number_value(self, token: int) -> AttrValue:
        text = self.texts[token]
        digits = text.lstrip("-")
        if digits.isdecimal() and len(digits) < 20:
            return int(text)
        try:
            return number_of(text)[0]
        except ConstantError as error:
            self.error(token, error.message, *error.notes)
            return 0

    # fmt: off
    def on_string_value(self, token: int) -> AttrValue: return unquote(self.texts[token])
    def on_true_value(self, _: int) -> AttrValue: return True
    def on_false_value(self, _: int) -> AttrValue: return False
    def on_none_value(self, _: int) -> AttrValue: return None
    def on_name_value(self, token: int) -> AttrValue: return self.texts[token]
    def on_list_value(self, _: int, values: object, __: int) -> object: return values
    def on_dict_value(self, _: int, entries: object, __: int) -> object: return entries
    def on_node_value(self, name: int, _: int, entries: dict[str, AttrValue], __: int) -> AttrValue: return {NODE: self.texts[name], **entries}
    def on_meta_value(self, meta: int, _: int, name: int, *rest: object) -> object: return self.meta_value(meta, self.texts[name], rest[2])  # type: ignore[arg-type]
    def on_meta_key(self, token: int) -> int: return token
    def on_values(self, *args: object) -> object: return args[0] if args else []
    def on_entries(self, *args: object) -> object: return args[0] if args else {}
    def on_entry(self, key: int, value: object) -> tuple[str, object]: return self.key_at(key), value
    def on_dict_entries(self, *args: object) -> object: return args[0] if args else {}
    def on_dict_list(self, *args: object) -> object: return self.on_entry_list(*args)
    def on_dict_entry(self, key: int, _: int, value: object) -> tuple[str, object]: return unquote(self.texts[key]), value
    # fmt: on

    def meta_value(self, token: int, key: str, index: int) -> object:
        """The value of `meta[key][index]` in an attribute."""
        text = self.texts[index]
        if key == "relay.Constant" or (key.startswith("relay.") and not key.startswith("relay.attrs.")):
            return ARGUMENT_COPY
        try:
            if not text.isdecimal() or len(text) > 9:
                raise ValueError(f"'{text}' is not an index")
            return {NODE: key, **self.metadata.attributes(key, int(text))}
        except ValueError as error:
            self.error(token, f"meta[{key}][{text}] cannot be read: {error}")
            return {NODE: key}

    def on_value_list(self, *args: object) -> object:
        if len(args) == 1:
            return [args[0]]
        args[0].append(args[2])  # type: ignore[attr-defined]
        return args[0]

    def on_entry_list(self, *args: object) -> object:
        if len(args) == 1:
            return dict([args[0]])  # type: ignore[list-item]
        key, value = args[2]  # type: ignore[misc]
        args[0][key] = value  # type: ignore[index]
        return args[0]

    def key_at(self, token: int) -> str:
        """The name that a KEY token (`axis=`) writes."""
        return self.texts[token][:-1].rstrip()


class CallReader(ValueReader):
    """The rules of calls and leaves. Each returns an SSA value whose op is appended to the present block."""

    def __init__(self, context: ParseContext, metadata: Metadata, constants: Constants):
        super().__init__(context, metadata)
        self.constants = constants
        self.scopes = Scopes()
        self.poison: SSAValue = Block(arg_types=[UNKNOWN]).args[0]
        """Stands for the value of an expression that has been complained about."""
        self.constructors: dict[str, tuple[str, int]] = {}
        """Constructor → its data type and how many fields it has."""
        self._operators: dict[str, type[OperatorOp] | None] = {}
        self._extra_attributes: tuple[int, dict[str, object]] | None = None
        """Where attributes in metadata were read, and they, until the call that they are written in takes them."""
        self._attributes: dict[tuple[type, object], Attribute] = {}

    def add(self, op: Operation) -> SSAValue:
        """Appends an op of one result to the block being filled."""
        self.scopes.frame.block.add_op(op)  # type: ignore[union-attr]  # expressions are read inside a scope
        return op.results[0]

    # Leaves --------------------------------------------------------------------------------------------------------

    def on_local(self, token: int) -> SSAValue:
        text = self.texts[token]
        value = self.scopes.find(text)
        return self._unknown_local(token, text) if value is None else value

    def _unknown_local(self, token: int, text: str) -> SSAValue:
        if self.scopes.was_bound(text):
            self.error(
                token,
                f"{text} is not visible here",
                "it is computed from a variable of another block; bind it where both places see it",
            )
        else:
            self.error(token, f"{text} is not defined{suggest(text, self.scopes.visible())}")
        return self.poison

    def on_number(self, token: int) -> SSAValue:
        try:
            value, type = self.constants.literal(self.texts[token])
        except ConstantError as error:
            self.error(token, error.message, *error.notes)
            return self.poison
        return self._constant(token, value, type)

    on_boolean = on_number

    def _constant(self, token: int, value: ArrayValueAttr, type: Attribute) -> SSAValue:
        op = ir.ConstantOp.create(properties={"value": value}, result_types=(type,), location=self.at(token))
        return self.add(op)

    def on_constant(self, meta: int, *args: int) -> SSAValue:
        kind, key = self.texts[args[1]], self.texts[args[4]]
        if kind.startswith("relay.attrs."):
            # TVM writes a call's attributes like this where their names cannot be written.
            self.refuse_attributes_left()
            self._extra_attributes = meta, cast("dict[str, object]", self.meta_value(meta, kind, args[4]))
            return self.poison
        if kind != "relay.Constant":
            self.error(meta, f"meta[{kind}] is not a constant", "a constant is written meta[relay.Constant][0]")
            return self.poison
        quoted = key.startswith('"')
        try:
            value, type = self.constants.reference(unquote(key) if quoted else key, quoted)
        except ConstantError as error:
            # What is wrong with the file that should have it has been told.
            if not (self.metadata.is_broken or self.constants.is_broken):
                self.error(meta, error.message, *error.notes)
            return self.poison
        return self._constant(meta, value, type)

    def on_global_ref(self, token: int) -> SSAValue:
        symbol = SymbolRefAttr(self.name_at(token))
        op = ir.GlobalRefOp.create(properties={"symbol": symbol}, result_types=UNKNOWN_TYPE, location=self.at(token))
        return self.add(op)

    def on_bare_name(self, token: int) -> SSAValue:
        name = self.texts[token]
        found = self.constructors.get(name)
        if found is not None:
            type_name, count = found
            properties = {"type_name": StringAttr(type_name), "constructor": StringAttr(name)}
            cls = ir.ConstructorRefOp if count else ir.ConstructOp
            return self.add(cls.create(properties=properties, result_types=UNKNOWN_TYPE, location=self.at(token)))
        if self._operator(name) is not None:
            self.error(
                token,
                f"the operator {name} is not a value",
                f"call it, {name}(…), or wrap it in a function, fn (%x) {{ {name}(%x) }}",
            )
        else:
            self._unknown_name(token, name)
        return self.poison

    # Arguments -----------------------------------------------------------------------------------------------------

    def on_arguments(self, *args: Arguments) -> Arguments:
        return args[0] if args else Arguments()

    def on_first_argument(self, value: SSAValue) -> Arguments:
        arguments = Arguments()
        arguments.values.append(value)
        return arguments

    def on_next_argument(self, arguments: Arguments, _: int, value: SSAValue) -> Arguments:
        arguments.values.append(value)
        return arguments

    def on_first_attribute(self, key: int, value: object) -> Arguments:
        arguments = Arguments()
        arguments.attrs = {self.key_at(key): value}
        return arguments

    def on_next_attribute(self, arguments: Arguments, _: int, key: int, value: object) -> Arguments:
        name = self.key_at(key)
        if arguments.attrs is None:
            arguments.attrs = {name: value}
        elif name in arguments.attrs:
            self.error(key, f"the attribute '{name}' is there twice")
        else:
            arguments.attrs[name] = value
        return arguments

    # Calls ---------------------------------------------------------------------------------------------------------

    def on_call_name(self, token: int, _: int, arguments: Arguments, __: int) -> SSAValue:
        name = self.texts[token]
        cls = self._operators.get(name)
        if cls is None:
            return self._call_other(token, name, arguments)
        attributes: dict[str, Attribute] | None = None
        if arguments.attrs is not None or self._extra_attributes is not None:
            attributes = self._operator_attributes(cls.OPERATOR, arguments)
        op = cls.create(
            operands=arguments.values,
            result_types=UNKNOWN_TYPE,
            attributes=attributes or {},
            location=self.at(token),
        )
        return self.add(op)

    def _call_other(self, token: int, name: str, arguments: Arguments) -> SSAValue:
        found = self.constructors.get(name)
        if found is not None:
            properties = {"type_name": StringAttr(found[0]), "constructor": StringAttr(name)}
            self._refuse_attributes(token, arguments, f"the constructor {name}")
            op = ir.ConstructOp.create(
                operands=arguments.values,
                properties=properties,
                result_types=UNKNOWN_TYPE,
                location=self.at(token),
            )
            return self.add(op)
        match name:
            case "ref_read" | "ref_write":
                return self._reference(token, name, arguments)
            case "call_tir":
                return self._call_tir(token, arguments)
            case _:
                pass
        if self._operator(name) is not None:
            return self.on_call_name(token, 0, arguments, 0)
        self._unknown_name(token, name)
        return self.poison

    def _operator(self, name: str) -> type[OperatorOp] | None:
        if name not in self._operators:
            operator = get_operator(name)
            self._operators[name] = None if operator is None else operator_class(operator)
        return self._operators[name]

    def _unknown_name(self, token: int, name: str) -> None:
        if self.scopes.find(f"%{name}") is self.poison:
            return  # `let y = …` was reported.
        # The operators are in the order in which their files were loaded; the shortest name is meant.
        operators = sorted([*all_operators(), "call_tir", "ref", "ref_read", "ref_write"], key=lambda k: (len(k), k))
        known = [*self.constructors, *operators]
        last = name.rpartition(".")[2]
        better = next((k for k in known if k != name and k.rpartition(".")[2] == last), None)
        hint = f"; did you mean '{better}'?" if better else suggest(name, known)
        if name[0].isupper() and not better:
            # Of operators only one that differs in no more than capitals is meant.
            same = next((k for k in known if k.rpartition(".")[2].lower() == last.lower()), None)
            hint = f"; did you mean '{same}'?" if same else suggest(name, list(self.constructors))
            self.error(token, f"unknown constructor '{name}'{hint}", "a constructor is declared by 'type T { … }'")
        else:
            self.error(token, f"unknown operator '{name}'{hint}", "a variable is written %x, a function @f")

    def _attributes_of_metadata(self, arguments: Arguments) -> dict[str, object]:
        """Returns the attributes in metadata that are among a call's arguments, which lose them."""
        if self._extra_attributes is None:
            return {}
        if self.poison not in arguments.values:
            self.refuse_attributes_left()
            return {}
        arguments.values.remove(self.poison)
        (_, extra), self._extra_attributes = self._extra_attributes, None
        return extra

    def refuse_attributes_left(self):
        """Reports attributes in metadata that no call took, such as those of `1 == meta[relay.attrs.A][0]`."""
        if self._extra_attributes is not None:
            note = "they are the last argument of a call: f(%x, meta[relay.attrs.A][0])"
            self.error(self._extra_attributes[0], "attributes are not a value", note)
            self._extra_attributes = None

    def _operator_attributes(self, operator: Operator, arguments: Arguments) -> dict[str, Attribute]:
        given = {name: value for name, value in (arguments.attrs or {}).items() if value is not ARGUMENT_COPY}
        extra = self._attributes_of_metadata(arguments).items()
        given = {**{n: v for n, v in extra if n != NODE and n in operator.specs}, **given}
        canonical = operator.canonical(cast("dict[str, AttrValue]", given))
        return {name: self.attribute(value) for name, value in canonical.items()}

    def attribute(self, value: AttrValue) -> Attribute:
        """`value` as an attribute; equal ones are shared."""
        try:
            key = type(value), value
            found = self._attributes.get(key)
        except TypeError:
            return to_attribute(value)  # a list or a dictionary
        # Tuples of 1 and of True are equal, and so would be their attributes' keys.
        if found is None or isinstance(value, tuple):
            found = self._attributes[key] = to_attribute(value)
        return found

    def attribute_dictionary(self, attrs: dict[str, object] | None) -> DictionaryAttr:
        """The attributes of a function or of a call of one."""
        if not attrs:
            return ir.NO_ATTRS
        values = cast("dict[str, AttrValue]", attrs)
        return DictionaryAttr({n: self.attribute(v) for n, v in values.items() if v is not ARGUMENT_COPY})

    def _call_attributes(self, arguments: Arguments) -> DictionaryAttr:
        """The attributes of a call of a function."""
        attrs = arguments.attrs
        if self._extra_attributes is not None:
            attrs = {**(attrs or {}), **self._attributes_of_metadata(arguments)}
        return self.attribute_dictionary(attrs)

    def _refuse_attributes(self, token: int, arguments: Arguments, what: str) -> None:
        if arguments.attrs:
            self.error(token, f"{what} takes no attribute '{next(iter(arguments.attrs))}'")

    def _reference(self, token: int, name: str, arguments: Arguments) -> SSAValue:
        self._refuse_attributes(token, arguments, name)
        wanted = 1 if name == "ref_read" else 2
        values = arguments.values
        if len(values) != wanted:
            form = "ref_read(%r)" if wanted == 1 else "ref_write(%r, %x)"
            self.error(token, f"{name} takes {counted(wanted, 'argument')}, not {len(values)}", f"it is written {form}")
            return self.poison
        op = ir.RefReadOp(values[0]) if wanted == 1 else ir.RefWriteOp(*values)
        op.location = self.at(token)
        return self.add(op)

    def _call_tir(self, token: int, arguments: Arguments) -> SSAValue:
        self._refuse_attributes(token, arguments, "call_tir")
        callee = arguments.values[0].owner if arguments.values else None
        if not isinstance(callee, ir.GlobalRefOp):
            self.error(token, "call_tir must name a function of the module", "it is written call_tir(@f, %x)")
            return self.poison
        callee.detach()
        op = ir.CallTirOp.create(
            operands=arguments.values[1:],
            properties={"callee": callee.symbol},
            result_types=UNKNOWN_TYPE,
            location=self.at(token),
        )
        return self.add(op)

    def on_call_global(self, token: int, _: int, arguments: Arguments, __: int) -> SSAValue:
        return self._call_global(token, [], arguments)

    def on_call_global_typed(
        self, token: int, _: int, types: list[Attribute], __: int, ___: int, arguments: Arguments, ____: int
    ) -> SSAValue:
        return self._call_global(token, types, arguments)

    def _call_global(self, token: int, types: list[Attribute], arguments: Arguments) -> SSAValue:
        attrs = self._call_attributes(arguments)
        op = ir.CallGlobalOp.create(
            operands=arguments.values,
            properties={
                "callee": SymbolRefAttr(self.name_at(token)),
                "type_args": ArrayAttr(types),
                "attrs": attrs,
            },
            result_types=UNKNOWN_TYPE,
            location=self.at(token),
        )
        return self.add(op)

    def on_call_value(self, callee: SSAValue, paren: int, arguments: Arguments, _: int) -> SSAValue:
        return self._call_value(callee, paren, [], arguments)

    def on_call_value_typed(
        self, callee: SSAValue, paren: int, types: list[Attribute], _: int, __: int, arguments: Arguments, ___: int
    ) -> SSAValue:
        return self._call_value(callee, paren, types, arguments)

    def _call_value(self, callee: SSAValue, paren: int, types: list[Attribute], arguments: Arguments) -> SSAValue:
        # The token before the parenthesis is the callee's name, mostly: there the caret stands.
        place = paren - 1 if self.tokens.kinds[paren - 1] in ("LOCAL", "GRAPH") else paren
        attrs = self._call_attributes(arguments)
        op = ir.CallOp.create(
            operands=[callee, *arguments.values],
            properties={"type_args": ArrayAttr(types), "attrs": attrs},
            result_types=UNKNOWN_TYPE,
            location=self.at(place),
        )
        return self.add(op)

    # Infix operators -----------------------------------------------------------------------------------------------

    def on_infix_start(self, left: SSAValue, token: int, right: SSAValue) -> list[object]:
        return [left, token, right]

    def on_infix_more(self, chain: list[object], token: int, right: SSAValue) -> list[object]:
        chain += [token, right]
        return chain

    def on_infix_end(self, chain: list[object]) -> SSAValue:
        """`a + b * c < d` by precedence, equal ones from the left."""
        values: list[SSAValue] = [cast(SSAValue, chain[0])]
        waiting: list[int] = []
        for token, value in zip(cast("list[int]", chain[1::2]), cast("list[SSAValue]", chain[2::2]), strict=True):
            while waiting and self._precedence(waiting[-1]) >= self._precedence(token):
                self._apply(waiting.pop(), values)
            waiting.append(token)
            values.append(value)
        while waiting:
            self._apply(waiting.pop(), values)
        return values[0]

    def _precedence(self, token: int) -> int:
        return _INFIX[self.texts[token]][1]

    def _apply(self, token: int, values: list[SSAValue]) -> None:
        right, left = values.pop(), values.pop()
        cls = self._operator(_INFIX[self.texts[token]][0])
        if cls is None:
            self._unknown_name(token, _INFIX[self.texts[token]][0])
            values.append(self.poison)
            return
        op = cls.create(operands=(left, right), result_types=UNKNOWN_TYPE, location=self.at(token))
        values.append(self.add(op))
