"""Infers the types of a whole module, in the manner of Hindley and Milner with TVM's type relations.

Ops are typed in order. A rule that needs an unknown type waits for the hole in its place and runs again when the hole
is filled (a parameter without a type, a function that is declared later, the result of a recursive call). Each op is
thus typed once, plus once for each hole that it waited for; a chain takes time linear in its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, LocationAttr, ModuleOp, StringAttr, TensorType, TupleType, i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from ....support.deep_stack import in_deep_stack
from ....support.diagnostics import Diagnostic, MirError, error_at, source_position
from ....support.edit import set_type
from ....support.graph import components
from ....support.locations import result_type_place
from ....support.text import counted
from ....support.walk import walk_ops
from .. import ir
from ..operator import OperatorOp
from ..text import global_text, is_known, local_text, near_global, type_text
from ..types import UNKNOWN, FuncType, RefType
from .patterns import PatternTyping
from .relation import Postponed, Use, attribute_place
from .tir_calls import call_tir_type
from .unify import POISON, Hole, Mismatch, TypeTooLarge, Unifier

BOOL = TensorType(i1, [])


def infer_types(module: ModuleOp, *, fresh: bool = False) -> None:
    """Types every value of the module's Relay functions, parameters and results included.

    The types of parameters, lets and results that are known are kept (with `fresh` only those of parameters, and of results of local
    functions that call themselves, which do not follow from the body alone), all other types are inferred again. Types that do not
    follow from the program stay unknown.

    Raises:
        MirError: with every type error that was found; the types of all other values are set.
    """
    named = [(op.properties.get("sym_name"), op) for op in module.ops]
    symbols = {name.data: op for name, op in named if isinstance(name, StringAttr)}
    if fresh:
        for op in walk_ops(module):
            if isinstance(op, ir.LetOp):
                set_type(op.result, UNKNOWN)
            elif isinstance(op, ir.FuncOp) or (isinstance(op, ir.FnOp) and op.self_name is None):
                op.properties["ret_type"] = UNKNOWN
    errors = infer_ops(module.ops, symbols)
    if errors:
        raise MirError(errors)


def infer_ops(ops: Iterable[Operation], symbols: Mapping[str, Operation]) -> list[Diagnostic]:
    """Types top-level ops that may call `symbols`, as `infer_types`; returns the errors."""
    return in_deep_stack(lambda: Inference(symbols).run([op for op in ops if isinstance(op, ir.FuncOp)]))


def require_types(function: Operation) -> None:
    """Checks that inference left nothing open in a function.

    Raises:
        MirError: naming the values whose type is not known, each at its place.
    """
    errors: list[Diagnostic] = []
    for op in walk_ops(function):
        values: list[tuple[str, SSAValue]] = [("this value", result) for result in op.results]
        if isinstance(op, ir.FuncOp | ir.FnOp):
            names = [local_text(name.data) for name in op.param_names.data]
            values += zip([f"parameter {name}" for name in names], op.params, strict=True)
        for what, value in values:
            if not is_known(value.type):
                place = value.location if isinstance(value, BlockArgument) else op.location
                diagnostic = Diagnostic(f"the type of {what} is not known", place)
                errors.append(diagnostic.with_note("annotate the parameters or the variable it is bound to"))
                break
    if errors:
        raise MirError(errors)


class Inference:
    """One run over a module. Rules are methods by op class; each sets the type of its op's result."""

    def __init__(self, symbols: Mapping[str, Operation]):
        self.unifier = Unifier()
        self.errors: list[Diagnostic] = []
        self._symbols = symbols
        self._types: dict[SSAValue, Attribute] = {}
        self._waiting: dict[int, list[Operation]] = {}
        self._function_types: dict[str, FuncType] = {}
        self._functions: dict[str, ir.FuncOp] = {}
        self._results: dict[Operation, Attribute] = {}
        self._types_seen: dict[Attribute, Attribute] = {}
        self._results_of_uses: dict[tuple[object, ...], tuple[Attribute, list[Attribute], list[Attribute]]] = {}
        self._current: ir.FuncOp | None = None
        data_types = {op.sym_name.data: op for op in symbols.values() if isinstance(op, ir.TypeDataOp)}
        self._patterns = PatternTyping(self, data_types)

        self._rules: Mapping[type[Operation], Callable[[Any], None]] = {
            ir.ConstantOp: self._constant,
            ir.LetOp: self._let,
            ir.TupleOp: self._tuple,
            ir.TupleGetItemOp: self._tuple_get_item,
            ir.GlobalRefOp: self._global_ref,
            ir.CallGlobalOp: self._call_global,
            ir.CallOp: self._call,
            ir.CallTirOp: self._call_tir,
            ir.FnOp: self._fn,
            ir.IfOp: self._if,
            ir.ConstructOp: self._construct,
            ir.ConstructorRefOp: self._constructor_ref,
            ir.MatchOp: self._match,
            ir.RefOp: self._ref,
            ir.RefReadOp: self._ref_read,
            ir.RefWriteOp: self._ref_write,
        }

    def run(self, functions: Sequence[ir.FuncOp]) -> list[Diagnostic]:
        """Types the functions; returns the errors, in the order of the text."""
        for function in functions:
            self._declare(function)
        # Generic functions first: a call of one takes a copy of its type, which must be whole by then.
        for function in sorted(_callees_first(functions), key=lambda f: not f.type_params.data):
            self._current = function
            self._body(function, function.body.block, self._results[function])
        self._finish(functions)
        return sorted(self.errors, key=lambda error: source_position(error.location) or ("", 0, 0))

    def _declare(self, function: ir.FuncOp) -> None:
        inputs = [self._open_argument(param, param.type) for param in function.params]
        result = self._results[function] = self.unifier.open(function.ret_type)
        names = [p.data for p in function.type_params.data]
        self._function_types[function.sym_name.data] = FuncType.get(inputs, result, names)
        self._functions[function.sym_name.data] = function

    def _open_argument(self, value: SSAValue, annotation: Attribute) -> Attribute:
        type = self.unifier.open(annotation)
        if isinstance(type, TensorType):
            type = self._one_of_equals(type)
            set_type(value, type)
        elif type is not annotation:
            self._types[value] = type
        return type

    # Types that rules read and set ---------------------------------------------------------------------------------------

    def type_of(self, value: SSAValue) -> Attribute:
        """Returns a value's type, perhaps with holes."""
        found = self._types.get(value)
        return value.type if found is None else found

    def set_result(self, op: Operation, type: Attribute) -> None:
        """Sets the op's result type. Raises MirError when it is known to be another."""
        value = op.results[0]
        own = self._types.get(value)
        if own is not None:
            try:
                self._types[value] = self.unifier.unify(own, type)
            except Mismatch as mismatch:
                own, type = self.unifier.close(own), self.unifier.close(type)
                raise error_at(
                    op,
                    f"the value here is {type_text(type)}, but it is used as {type_text(own)}",
                    f"incompatible types: {mismatch.detail}",
                ) from None
        elif isinstance(type, TensorType) or self.unifier.first_hole(type) is None:
            set_type(value, self.unifier.close(type))
        else:
            self._types[value] = type

    def error(self, error: MirError) -> None:
        """Notes an error; inference continues."""
        self.errors += error.diagnostics

    def expect(self, where: Operation, what: str, wanted: Attribute, found: Attribute, *notes: Diagnostic) -> Attribute:
        """Joins two types that must agree. Raises MirError `what must be WANTED, not FOUND`."""
        try:
            return self.unifier.unify(wanted, found)
        except Mismatch as mismatch:
            message = f"{what} must be {self.show(wanted)}, not {self.show(found)}"
            diagnostic = Diagnostic(message, where.location).with_note(f"incompatible types: {mismatch.detail}")
            for note in notes:
                diagnostic = diagnostic.with_note(note.message, note.location)
            raise MirError(diagnostic) from None

    def show(self, type: Attribute) -> str:
        """Returns a type for a message."""
        return type_text(self.unifier.close(type))

    # Walking -------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> Attribute:
        """Types a block's ops; returns the type of its value."""
        op = block.first_op
        while op is not None:
            if isinstance(op, ir.ReturnOp):
                return self.type_of(op.value)
            self._type(op)
            op = op.next_op
        return POISON

    def _body(self, function: ir.FuncOp | ir.FnOp, block: Block, result: Attribute) -> None:
        value = self.block(block)
        last = block.last_op or function
        try:
            self.unifier.unify(result, value)
        except Mismatch as mismatch:
            self.error(MirError(self._wrong_result(function, last, (result, value), mismatch)))
        self._wake()

    def _wrong_result(
        self, function: ir.FuncOp | ir.FnOp, last: Operation, types: tuple[Attribute, Attribute], mismatch: Mismatch
    ) -> Diagnostic:
        """Returns the error for a body whose value, of the op `last`, is not of the function's result type.

        Its place is the result type, where one is written.
        """
        name = global_text(function.sym_name.data) if isinstance(function, ir.FuncOp) else "a local function"
        wanted, found = map(self.show, types)
        declared = result_type_place(function.location)
        message = f"the result of {name} must be {wanted}, not {found}"
        error = Diagnostic(message, declared or last.location).with_note(f"incompatible types: {mismatch.detail}")
        if declared is None:
            return error.with_note("declared here", function.location)
        return error.with_note(f"what is returned, of type {found}, comes from here", last.location)

    def _type(self, op: Operation) -> None:
        self._ask(op)
        if self.unifier.filled:
            self._wake()

    def _ask(self, op: Operation) -> None:
        try:
            if isinstance(op, OperatorOp):
                self._operator(op)
            elif (rule := self._rules.get(type(op))) is not None:
                rule(op)
        except Postponed as postponed:
            value = op.results[0]
            if postponed.hole is POISON:
                self._types[value] = POISON
                return
            if value not in self._types:
                self._types[value] = self.unifier.hole()
            self._waiting.setdefault(postponed.hole.index.data, []).append(op)
        except MirError as error:
            self.error(TypeTooLarge(op.location) if isinstance(error, TypeTooLarge) else error)
            self._types[op.results[0]] = POISON

    def _wake(self) -> None:
        """Runs again the rules that waited for holes which are now filled."""
        filled = self.unifier.filled
        while filled:
            for op in self._waiting.pop(filled.pop(), ()):
                self._ask(op)

    def _finish(self, functions: Sequence[ir.FuncOp]) -> None:
        for value, type in self._types.items():
            location = (
                value.op.location
                if isinstance(value, OpResult)
                else value.location
                if isinstance(value, BlockArgument)
                else UNKNOWN_LOC
            )
            set_type(value, self._closed(type, location))
        for function, result in self._results.items():
            function.properties["ret_type"] = self._closed(result, function.location)
        self._patterns.finish()

    def _closed(self, type: Attribute, location: LocationAttr) -> Attribute:
        try:
            return self.unifier.close(type)
        except TypeTooLarge:
            self.error(TypeTooLarge(location))
            return UNKNOWN

    # Rules ---------------------------------------------------------------------------------------------------------

    def _operator(self, op: OperatorOp) -> None:
        # Uses of one operator with the same attributes and argument types, the very same objects, have one result.
        types = [self.type_of(value) for value in op.operands]
        attributes = op.attributes
        key = (type(op), *map(id, types), *attributes, *map(id, attributes.values()))
        known = self._results_of_uses.get(key)
        if known is not None:
            self.set_result(op, known[0])
            return
        self._relate(op)
        result = op.results[0]
        if result not in self._types and all(isinstance(type, TensorType) for type in types):
            # Equal types become one object, so that the next use is found; the objects are kept, so that ids stay theirs.
            one = self._one_of_equals(result.type)
            set_type(result, one)
            self._results_of_uses[key] = (one, types, list(attributes.values()))

    def _one_of_equals(self, type: Attribute) -> Attribute:
        return self._types_seen.setdefault(type, type)

    def _relate(self, op: OperatorOp) -> None:
        """Runs the operator's type relation."""
        operator = op.OPERATOR
        given = op.given() if op.attributes else {}
        problem = operator.problem(given, len(op.args))
        if problem is not None:
            raise error_at(attribute_place(op, problem), problem)
        attrs = operator.attrs(given)
        try:
            operator.relation(Use(op, attrs, self))
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            # A relation is written for attributes that make sense; any others are the user's mistake.
            written = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise error_at(op, f"{operator.name}: the attributes do not fit ({written}): {error}") from error

    def _constant(self, op: ir.ConstantOp) -> None:
        set_type(op.result, self._one_of_equals(op.result.type))

    def _let(self, op: ir.LetOp) -> None:
        own, value = op.result.type, self.type_of(op.value)
        if own is UNKNOWN or own == UNKNOWN:
            self.set_result(op, value)
            return
        joined = self.expect(op, local_text(op.var_name.data), self.unifier.open(own), value)
        self._types[op.result] = joined

    def _tuple(self, op: ir.TupleOp) -> None:
        self.set_result(op, TupleType(ArrayAttr([self.type_of(field) for field in op.fields])))  # type: ignore[arg-type]

    def _tuple_get_item(self, op: ir.TupleGetItemOp) -> None:
        type = self.unifier.head(self.type_of(op.tuple_value))
        if isinstance(type, Hole):
            raise Postponed(type)
        index = op.index.value.data
        if not isinstance(type, TupleType):
            raise error_at(op, f"only a tuple has fields: .{index} of {self.show(type)}")
        if not 0 <= index < len(type.types.data):
            raise error_at(
                op, f"a tuple of {counted(len(type.types.data), 'field')} has no field {index}", self.show(type)
            )
        self.set_result(op, type.types.data[index])

    def _global_ref(self, op: ir.GlobalRefOp) -> None:
        self.set_result(op, self._function_type(op, op.symbol.root_reference.data))

    def _function_type(self, op: Operation, name: str) -> FuncType:
        found = self._function_types.get(name)
        if found is not None:
            return found
        symbol = self._symbols.get(name)
        if isinstance(symbol, ir.FuncOp):
            # A function that is not being typed now.
            return FuncType.get(
                [p.type for p in symbol.params], symbol.ret_type, [p.data for p in symbol.type_params.data]
            )
        if symbol is None:
            raise error_at(op, f"there is no function {global_text(name)}{near_global(name, self._symbols)}")
        call = f"write call_tir({global_text(name)}, …)"
        raise error_at(op, f"{global_text(name)} is not a Relay function but a '{symbol.name}'", call)

    def _call_global(self, op: ir.CallGlobalOp) -> None:
        name = op.callee.root_reference.data
        type = self._function_type(op, name)
        self._apply(op, global_text(name), type, op.type_args.data, op.arguments, self._functions.get(name))

    def _call(self, op: ir.CallOp) -> None:
        callee = self.unifier.head(self.type_of(op.callee))
        if isinstance(callee, Hole) and callee is not POISON:
            wanted = FuncType.get([self.type_of(a) for a in op.arguments], self.unifier.hole())
            try:
                callee = self.unifier.unify(callee, wanted)
            except Mismatch as mismatch:
                raise error_at(op, f"this call has no type: {mismatch.detail}") from None
        if callee is POISON:
            raise Postponed(POISON)
        if not isinstance(callee, FuncType):
            raise error_at(op, f"only a function can be called, not {self.show(callee)}")
        owner = op.callee.owner
        function = owner if isinstance(owner, ir.FnOp) else None
        self._apply(op, "the function", callee, op.type_args.data, op.arguments, function)

    def _apply(
        self,
        op: Operation,
        name: str,
        type: FuncType,
        type_args: Sequence[Attribute],
        arguments: Sequence[SSAValue],
        function: ir.FuncOp | ir.FnOp | None,
    ) -> None:
        """Types a call of a function of type `type`; `function` is its definition, for messages."""
        parameters = [p.data for p in type.type_params.data]
        if type_args and len(type_args) != len(parameters):
            raise error_at(op, f"{name} takes {counted(len(parameters), 'type argument')}, not {len(type_args)}")
        if parameters and function is not self._current:
            hole = self.unifier.first_hole(type)
            if hole is not None:
                raise Postponed(hole)
        type = self.unifier.instantiate(type, [self.unifier.open(t) for t in type_args])
        if len(arguments) != len(type.inputs.data):
            form = ", ".join(self.show(t) for t in type.inputs.data)
            count = len(type.inputs.data)
            raise error_at(op, f"{name} takes {counted(count, 'argument')} ({form}), not {len(arguments)}")
        for index, (argument, wanted) in enumerate(zip(arguments, type.inputs.data, strict=True)):
            notes: list[Diagnostic] = []
            what = f"argument {index} of {name}"
            if function is not None:
                param = local_text(function.param_names.data[index].data)
                what = f"argument {param} of {name}"
                notes.append(Diagnostic(f"{param} is declared here", function.params[index].location))  # type: ignore[attr-defined]
            self.expect(op, what, wanted, self.type_of(argument), *notes)
        self.set_result(op, type.output)

    def _call_tir(self, op: ir.CallTirOp) -> None:
        name = op.callee.root_reference.data
        callee = self._symbols.get(name)
        if callee is None:
            raise error_at(op, f"there is no function {global_text(name)}{near_global(name, self._symbols)}")
        types: list[TensorType[Attribute]] = []
        for index, argument in enumerate(op.arguments):
            type = self.unifier.head(self.type_of(argument))
            if isinstance(type, Hole):
                raise Postponed(type)
            if not isinstance(type, TensorType):
                raise error_at(op, f"argument {index} of {global_text(name)} must be a tensor, not {self.show(type)}")
            types.append(type)
        self.set_result(op, call_tir_type(op, callee, types))

    def _fn(self, op: ir.FnOp) -> None:
        inputs = [self._open_argument(param, param.type) for param in op.params]
        result = self._results[op] = self.unifier.open(op.ret_type)
        type = FuncType.get(inputs, result, [p.data for p in op.type_params.data])
        if op.self_name is not None:
            self._types[op.body.block.args[0]] = type
        self._body(op, op.body.block, result)
        self.set_result(op, type)

    def _if(self, op: ir.IfOp) -> None:
        try:
            self.expect(op, "the condition of 'if'", BOOL, self.type_of(op.condition))
        except MirError as error:
            self.error(error)
        then, other = self.block(op.then_region.block), self.block(op.else_region.block)
        try:
            self.set_result(op, self.unifier.unify(then, other))
        except Mismatch as mismatch:
            diagnostic = Diagnostic("the branches of 'if' have different types", op.location)
            diagnostic = diagnostic.with_note(f"incompatible types: {mismatch.detail}")
            for what, type, region in (("then", then, op.then_region), ("else", other, op.else_region)):
                place = region.block.last_op.location if region.block.last_op else op.location
                diagnostic = diagnostic.with_note(f"the {what} branch gives {self.show(type)}", place)
            raise MirError(diagnostic) from None

    def _construct(self, op: ir.ConstructOp) -> None:
        type = self._patterns.constructor(op, op.type_name.data, op.constructor.data)
        self._apply(op, op.constructor.data, type, (), op.arguments, None)

    def _constructor_ref(self, op: ir.ConstructorRefOp) -> None:
        self.set_result(op, self._patterns.constructor(op, op.type_name.data, op.constructor.data))

    def _match(self, op: ir.MatchOp) -> None:
        value = self.type_of(op.value)
        result: Attribute | None = None
        for index, (pattern, region) in enumerate(zip(op.patterns.data, op.clauses, strict=True)):
            self._patterns.bind(op, pattern, value, region.block)
            type = self.block(region.block)
            if result is None:
                result = type
                continue
            last = region.block.last_op or op
            try:
                result = self.expect(last, f"clause {index} of this match", result, type)
            except MirError as error:
                self.error(error)
        self.set_result(op, POISON if result is None else result)
        self._patterns.remember(op)

    def bind_variable(self, value: SSAValue, type: Attribute) -> None:
        """Gives a variable of a pattern its type."""
        self._types[value] = type

    def _ref(self, op: ir.RefOp) -> None:
        self.set_result(op, RefType(self.type_of(op.value)))

    def _cell(self, op: Operation, ref: SSAValue) -> Attribute:
        """Returns the type that the reference holds."""
        content = self.unifier.hole()
        type = self.expect(op, f"the argument of {op.name.removeprefix('relay.')}", RefType(content), self.type_of(ref))
        return type.value_type if isinstance(type, RefType) else POISON

    def _ref_read(self, op: ir.RefReadOp) -> None:
        self.set_result(op, self._cell(op, op.ref))

    def _ref_write(self, op: ir.RefWriteOp) -> None:
        self.expect(op, "the value that ref_write stores", self._cell(op, op.ref), self.type_of(op.value))


def _callees_first(functions: Sequence[ir.FuncOp]) -> Sequence[ir.FuncOp]:
    """Returns the functions so that results are known before they are used, except in recursion.

    A result that is not known yet takes the type of the parameter that it is passed to, `?` where its own dimension is a number.
    """
    if len(functions) < 2:
        return functions
    by_name = {function.sym_name.data: function for function in functions}
    calls = {
        name: dict.fromkeys(
            callee
            for op in walk_ops(function)
            if isinstance(op, ir.CallGlobalOp) and (callee := op.callee.root_reference.data) in by_name
        )
        for name, function in by_name.items()
    }
    return [by_name[name] for component in components(calls) for name in component]
