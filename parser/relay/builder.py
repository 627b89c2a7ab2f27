"""Relay text to ops: blocks, bindings, control flow, functions. Leaves and calls are in `calls`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, NoneType, StringAttr, TupleType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from ...dialects.relay import ir
from ...dialects.relay.leaves import place_all_leaves
from ...dialects.relay.patterns import ConstructorPattern, TuplePattern, VarPattern, WildcardPattern
from ...dialects.relay.types import UNKNOWN, RefType
from ...support.text import counted
from .calls import UNKNOWN_TYPE, CallReader
from .reader import array_of, suggest
from .scopes import Frame

PARAM_ATTRS = "param_attrs"
"""A function's attribute that keeps the attributes in braces after each parameter, by parameter name."""


@dataclass
class Head:
    """The part of a function before its body."""

    token: int
    name: str
    params: list[str]
    result_type: Attribute
    type_names: list[str]
    attrs: dict[str, object]
    frame: Frame


@dataclass(frozen=True)
class Param:
    """A parameter: the token of its name, its type, and the attributes in braces after it."""

    token: int
    type: Attribute
    attrs: dict[str, object]


@dataclass
class Params:
    """The parameters of a function's head."""

    tokens: list[int] = field(default_factory=list[int])
    types: list[Attribute] = field(default_factory=list[Attribute])
    attrs: dict[str, object] = field(default_factory=dict[str, object])
    param_attrs: dict[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class Pattern:
    """A pattern as it is read: its kind, the token of its name, and what it holds."""

    kind: str
    token: int = 0
    annotation: Attribute | None = None
    fields: Sequence[Pattern] = ()


class Statements:
    """Marks, among the parser's values, where a block's statements begin.

    Reading goes on there after an error.
    """

    __slots__ = ("frame",)

    def __init__(self, frame: Frame | None):
        self.frame = frame


class Builder(CallReader):
    """Builds the ops of one item; the parser calls `on_NAME` for each rule of the grammar that it reduces."""

    def on_function(self, head: Head, body: SSAValue) -> Operation:
        self.refuse_attributes_left()
        region = self._close(body)
        self.drop_type_vars(head.type_names)
        self.scopes.forget()
        function = ir.FuncOp.create(
            properties={
                "sym_name": StringAttr(head.name),
                "param_names": array_of(head.params),
                "type_params": array_of(head.type_names),
                "attrs": self.attribute_dictionary(head.attrs),
                "ret_type": head.result_type,
            },
            regions=[region],
            location=self.at(head.token),
        )
        place_all_leaves(function)
        return function

    def on_function_head(
        self, define: int, name: int, type_names: list[str], _: int, params: Params, __: int, result: Attribute
    ) -> Head:
        return self._open_function(define, self.name_at(name), type_names, params, result)

    def on_fn_head(self, token: int, type_names: list[str], _: int, params: Params, __: int, result: Attribute) -> Head:
        head = self._open_function(token, "", type_names, params, result)
        if self._let is not None and token == self._let[2] + 1:
            self.scopes.bind_self(*self._let[:2])
        return head

    def _open_function(self, token: int, name: str, type_names: list[str], params: Params, result: Attribute) -> Head:
        block = Block(arg_types=params.types)
        frame = self.scopes.push(block)
        names: list[str] = []
        seen: set[str] = set()
        for param, value in zip(params.tokens, block.args, strict=True):
            value.location = self.at(param)
            text = self.texts[param]
            if text in seen:
                self.error(param, f"the parameter {text} is there twice")
            seen.add(text)
            names.append(self.scopes.variables.fresh(self.name_at(param)))
            self.scopes.bind(text, value)
        attrs = params.attrs
        if params.param_attrs:
            attrs = {**attrs, PARAM_ATTRS: params.param_attrs}
        return Head(token, name, names, result, type_names, attrs, frame)

    def on_fn(self, head: Head, body: SSAValue) -> SSAValue:
        region = self._close(body)
        self.drop_type_vars(head.type_names)
        properties: dict[str, Attribute] = {
            "param_names": array_of(head.params),
            "type_params": array_of(head.type_names),
            "attrs": self.attribute_dictionary(head.attrs),
            "ret_type": head.result_type,
        }
        if head.frame.self_used is not None:
            properties["self_name"] = StringAttr(head.frame.self_used)
        op = ir.FnOp.create(
            properties=properties, regions=[region], result_types=UNKNOWN_TYPE, location=self.at(head.token)
        )
        return self.add(op)

    def on_params(self, *args: Params) -> Params:
        return args[0] if args else Params()

    def on_param_list(self, *args: object) -> Params:
        params: Params = args[0] if len(args) == 3 else Params()  # type: ignore[assignment]
        param = args[-1]
        if isinstance(param, Param):
            params.tokens.append(param.token)
            params.types.append(param.type)
            if param.attrs:
                params.param_attrs[self.name_at(param.token)] = param.attrs
            if params.attrs:
                self.error(param.token, "a parameter follows an attribute", "parameters come before attributes")
        else:
            name, value = cast("tuple[str, object]", param)
            params.attrs[name] = value
        return params

    def on_param(self, token: int, attrs: dict[str, object], annotation: Attribute | None) -> Param:
        return Param(token, UNKNOWN if annotation is None else annotation, attrs)

    def on_param_attr(self, key: int, value: object) -> object:
        return self.key_at(key), value

    def on_param_attrs(self, *args: object) -> object:
        return args[1] if args else {}

    # A text that is only an expression: its free variables are the parameters of @main -----------------------------

    def on_free_vars(self, *args: object) -> list[tuple[int, Attribute]]:
        if not args:
            return []
        found: list[tuple[int, Attribute]] = args[0]  # type: ignore[assignment]
        found.append((args[2], UNKNOWN if args[3] is None else args[3]))  # type: ignore[arg-type]
        return found

    def on_program_head(self, free: list[tuple[int, Attribute]]) -> Head:
        params = Params([token for token, _ in free], [type for _, type in free])
        return self._open_function(0, "main", [], params, UNKNOWN)

    def on_program(self, head: Head, _: Statements, body: SSAValue, *__: int) -> Operation:
        fn = body.owner
        alone = isinstance(fn, ir.FnOp) and fn.prev_op is None and fn.next_op is None
        if not alone or head.params or "self_name" in fn.properties:  # type: ignore[union-attr]
            return self.on_function(head, body)
        # `fn (%x) { … }` as a whole program is @main itself.
        assert isinstance(fn, ir.FnOp)
        fn.detach()
        self.scopes.forget()
        properties = {name: fn.properties[name] for name in ("param_names", "type_params", "attrs", "ret_type")}
        region = fn.detach_region(fn.body)
        function = ir.FuncOp.create(
            properties={"sym_name": StringAttr("main"), **properties}, regions=[region], location=fn.location
        )
        place_all_leaves(function)
        return function

    # Blocks and statements -----------------------------------------------------------------------------------------

    def _close(self, value: SSAValue) -> Region:
        """Ends the innermost block with its value."""
        frame = self.scopes.pop()
        location = value.owner.location if isinstance(value, OpResult) else frame.end
        frame.block.add_op(ir.ReturnOp.create(operands=(value,), location=location))
        return Region(frame.block)

    def on_block(self, _: int, __: Statements, value: SSAValue, end: int) -> SSAValue:
        frame = self.scopes.frame
        if frame is not None and not isinstance(value, OpResult):
            frame.end = self.at(end)
        return value

    def on_statements(self, *args: Statements) -> Statements:
        return args[0] if args else Statements(self.scopes.frame)

    def on_graph_binding(self, token: int, value: SSAValue, _: int) -> None:
        text = self.texts[token]
        self.scopes.bind_graph(text[:-1].rstrip(), value)

    def on_expression(self, _: SSAValue, __: int) -> None:
        """`e;`: evaluated for what it does."""

    def on_let_head(self, token: int, name: int, annotation: Attribute | None, equal: int) -> object:
        called = self.scopes.variables.fresh(self.name_at(name))
        self._let = (self.texts[name], called, equal)
        return token, name, called, annotation

    _let: tuple[str, str, int] | None = None
    """The last `let`: the name as written and as called in the IR, and the token of its equals sign."""

    def on_let_binding(self, head: tuple[int, int, str, Attribute | None], value: SSAValue, _: int) -> None:
        token, name, called, annotation = head
        text = self.texts[name]
        op = ir.LetOp.create(
            operands=(value,),
            properties={"var_name": StringAttr(called)},
            result_types=(UNKNOWN if annotation is None else annotation,),
            location=self.at(token),
        )
        value = self.add(op)
        if text != "_":
            self.scopes.bind(text, value)

    # Operands that are more than leaves ----------------------------------------------------------------------------

    def on_projection(self, value: SSAValue, token: int) -> SSAValue:
        digits = self.texts[token][1:]
        if len(digits) > 6:
            self.error(token, f"a tuple has no field {digits}")
            return self.poison
        place = token - 1 if self.tokens.kinds[token - 1] in ("LOCAL", "GRAPH") else token
        op = ir.TupleGetItemOp.create(
            operands=(value,),
            properties={"index": IntegerAttr(int(digits), 64)},
            result_types=UNKNOWN_TYPE,
            location=self.at(place),
        )
        return self.add(op)

    def on_ref(self, token: int, _: int, value: SSAValue, __: int) -> SSAValue:
        return self.add(ir.RefOp.create(operands=(value,), result_types=(RefType(UNKNOWN),), location=self.at(token)))

    def on_empty_tuple(self, token: int, _: int) -> SSAValue:
        return self._tuple(token, [])

    def on_parenthesized(self, _: int, value: SSAValue, __: int) -> SSAValue:
        return value

    def on_tuple(self, token: int, first: SSAValue, _: int, rest: list[SSAValue], __: int) -> SSAValue:
        return self._tuple(token, [first, *rest])

    def _tuple(self, token: int, fields: list[SSAValue]) -> SSAValue:
        type = UNKNOWN if fields else TupleType(())
        return self.add(ir.TupleOp.create(operands=fields, result_types=(type,), location=self.at(token)))

    def on_tuple_rest(self, *args: object) -> object:
        return args[0] if args else []

    def on_tuple_fields(self, *args: object) -> object:
        if len(args) == 1:
            return [args[0]]
        args[0].append(args[2])  # type: ignore[attr-defined]
        return args[0]

    def on_block_paren(self, _: int) -> Frame:
        frame = self.scopes.frame
        assert frame is not None
        return self.scopes.push(frame.block)

    on_block_brace = on_block_paren

    def on_tail(self, value: SSAValue) -> SSAValue:
        return value

    def on_parenthesized_block(self, _: Frame, __: Statements, value: SSAValue, ___: int) -> SSAValue:
        self.scopes.pop()
        return value

    # Control flow --------------------------------------------------------------------------------------------------

    def on_if_head(self, token: int, _: int, condition: SSAValue, __: int) -> tuple[int, SSAValue]:
        self.scopes.push(Block())
        return token, condition

    def on_then_part(self, head: tuple[int, SSAValue], value: SSAValue) -> tuple[int, SSAValue, Region]:
        return *head, self._close(value)

    def on_else_head(self, _: int) -> None:
        self.scopes.push(Block())

    def on_if_expr(self, then: tuple[int, SSAValue, Region], _: None, value: SSAValue) -> SSAValue:
        token, condition, then_region = then
        op = ir.IfOp.create(
            operands=(condition,),
            regions=[then_region, self._close(value)],
            result_types=UNKNOWN_TYPE,
            location=self.at(token),
        )
        return self.add(op)

    on_if_chain = on_if_expr

    def on_match_head(self, token: int, _: int, value: SSAValue, *__: int) -> tuple[int, SSAValue]:
        return token, value

    def on_clauses(self, *args: object) -> object:
        if not args:
            return []
        if not isinstance(args[1], int):
            args[0].append(args[1])  # type: ignore[attr-defined]
        return args[0]

    def on_clause(self, pattern: Attribute, value: SSAValue, *_: int) -> tuple[Attribute, Region]:
        return pattern, self._close(value)

    def on_match_with_last(
        self,
        head: tuple[int, SSAValue],
        clauses: list[tuple[Attribute, Region]],
        pattern: Attribute,
        value: SSAValue,
        end: int,
    ) -> SSAValue:
        return self.on_match_expr(head, [*clauses, self.on_clause(pattern, value)], end)

    def on_matched(self, value: SSAValue) -> SSAValue:
        return value

    def on_matched_tuple(self, first: SSAValue, comma: int, rest: list[SSAValue]) -> SSAValue:
        """Builds the tuple that `match (%x, %y) { … }` matches: the parentheses are those of the tuple."""
        return self._tuple(comma, [first, *rest])

    def on_match_expr(self, head: tuple[int, SSAValue], clauses: list[tuple[Attribute, Region]], _: int) -> SSAValue:
        token, value = head
        op = ir.MatchOp.create(
            operands=(value,),
            properties={
                "patterns": ArrayAttr([pattern for pattern, _ in clauses]),
                "complete": IntegerAttr(int(self.texts[token] == "match"), 1),
            },
            regions=[region for _, region in clauses],
            result_types=UNKNOWN_TYPE,
            location=self.at(token),
        )
        return self.add(op)

    def on_clause_head(self, pattern: Pattern, _: int) -> Attribute:
        variables: list[Pattern] = []
        pending = [pattern]
        while pending:
            current = pending.pop()
            if current.kind == "variable":
                variables.append(current)
            pending += reversed(current.fields)
        block = Block(arg_types=[v.annotation or UNKNOWN for v in variables])
        self.scopes.push(block)
        names: dict[int, str] = {}
        for variable, value in zip(variables, block.args, strict=True):
            value.location = self.at(variable.token)
            names[variable.token] = self.scopes.variables.fresh(self.name_at(variable.token))
            self.scopes.bind(self.texts[variable.token], value)
        return self._pattern_attribute(pattern, names)

    def _pattern_attribute(self, pattern: Pattern, names: dict[int, str]) -> Attribute:
        match pattern.kind:
            case "wildcard":
                return WildcardPattern()
            case "variable":
                return VarPattern(StringAttr(names[pattern.token]), pattern.annotation or NoneType())
            case "tuple":
                return TuplePattern.get([self._pattern_attribute(p, names) for p in pattern.fields])
            case _:
                return self._constructor_attribute(pattern, names)

    def _constructor_attribute(self, pattern: Pattern, names: dict[int, str]) -> Attribute:
        name = self.texts[pattern.token]
        found = self.constructors.get(name)
        if found is None:
            hint = suggest(name, list(self.constructors))
            self.error(pattern.token, f"unknown constructor '{name}'{hint}", "a variable is written %x, anything is _")
            return WildcardPattern()
        if found[1] != len(pattern.fields):
            self.error(
                pattern.token, f"{name} has {counted(found[1], 'field')}, its pattern here {len(pattern.fields)}"
            )
        fields = [self._pattern_attribute(p, names) for p in pattern.fields]
        return ConstructorPattern.get(found[0], name, fields)

    def on_wildcard(self, _: int) -> Pattern:
        return Pattern("wildcard")

    def on_variable(self, token: int, annotation: Attribute | None) -> Pattern:
        return Pattern("variable", token, annotation)

    def on_constructor_pattern(self, token: int, *args: object) -> Pattern:
        fields: Sequence[Pattern] = args[1] if args else ()  # type: ignore[assignment]
        return Pattern("constructor", token, fields=fields)

    def on_tuple_pattern(self, token: int, fields: Sequence[Pattern], _: int) -> Pattern:
        return Pattern("tuple", token, fields=fields)

    def on_patterns(self, *args: object) -> object:
        return args[0] if args else ()

    def on_pattern_list(self, *args: object) -> object:
        if len(args) == 1:
            return [args[0]]
        args[0].append(args[2])  # type: ignore[attr-defined]
        return args[0]

    # Data types ----------------------------------------------------------------------------------------------------

    def declare(self, op: ir.TypeDataOp) -> None:
        """Makes the names of a data type known that another text declares."""
        self.type_names[op.sym_name.data] = len(op.type_params.data)
        for constructor, fields in op.constructors().items():
            self.constructors[constructor] = (op.sym_name.data, len(fields))

    def on_data_type(
        self, head: tuple[int, list[str]], _: int, constructors: list[tuple[int, Sequence[Attribute]]], __: int
    ) -> Operation:
        return self._data_type(head, constructors, extern=False)

    def on_extern_type(self, _: int, head: tuple[int, list[str]], *__: int) -> Operation:
        return self._data_type(head, [], extern=True)

    def _data_type(
        self, head: tuple[int, list[str]], constructors: list[tuple[int, Sequence[Attribute]]], *, extern: bool
    ) -> Operation:
        name, parameters = head
        self.drop_type_vars(parameters)
        fields: dict[str, Sequence[Attribute]] = {}
        for token, types in constructors:
            constructor = self.texts[token]
            if constructor in self.constructors:
                owner = self.constructors[constructor][0]
                self.error(token, f"the constructor '{constructor}' is declared twice", f"'{owner}' has it already")
                continue
            fields[constructor] = types
            self.constructors[constructor] = (self.texts[name], len(types))
        op = ir.TypeDataOp(self.texts[name], parameters, fields, extern=extern)
        op.location = self.at(name)
        return op

    def bind_to_nothing(self, first: int, last: int) -> None:
        """Binds the names of a broken statement, tokens `first` to `last`, to a value that no error mentions."""
        kinds = self.tokens.kinds
        for token in range(max(first - 2, 0), last):
            text = self.texts[token]
            if kinds[token] == "BIND_GRAPH" or kinds[token : token + 3] == ["GRAPH", "COLON", "EQUAL"]:
                self.scopes.bind(text.removesuffix("=").rstrip(), self.poison)
            elif kinds[token] in ("LOCAL", "KEY", "NAME") and (
                (token and kinds[token - 1] == "LET") or kinds[token + 1 : token + 2] == ["EQUAL"]
            ):
                self.scopes.bind(f"%{text.strip('%= ')}", self.poison)

    def on_error_expr(self, _: int) -> SSAValue:
        return self.poison
