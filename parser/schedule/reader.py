"""Schedule scripts: from the syntax tree to ops."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from typing import NoReturn

from xdsl.dialects.builtin import LocationAttr, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...dialects.schedule import (
    ARITHMETIC,
    EXPR,
    Argument,
    ComputeOp,
    ExprType,
    ItemOp,
    Lambda,
    ListType,
    PrimitiveOp,
    Ref,
    ScriptOp,
    Signature,
    SignatureError,
    SliceOp,
    Splat,
    nearest_primitive,
    primitive_class,
    result_types,
    signature,
)
from ...dialects.schedule.ops import check_call, check_results, name_results
from ...support.diagnostics import MirError, error_at
from ...support.text import counted, did_you_mean
from ..items import Item, ParseContext
from ..python.literals import is_string
from ..python.tree import (
    Assign,
    Binary,
    Call,
    Expr,
    Expression,
    Function,
    Index,
    Mapping,
    Module,
    Slice,
    Stmt,
    Token,
    Unary,
    first_token,
)
from ..python.tree import Lambda as LambdaTree
from ..python.tree import Sequence as Items
from ..tvmscript.literals import named_type, read_number, read_string
from ..tvmscript.names import is_name
from ..tvmscript.reader import FileNames, Reader
from ..tvmscript.syntax import TVMSCRIPT
from .lambdas import read_lambda

_WORDS: MappingABC[str, bool | None] = {"True": True, "False": False, "None": None}
_CALL_FORM = "write one call a line, such as i, j = sch.get_loops(block)"
SCHEDULE = replace(
    TVMSCRIPT,
    name="a schedule",
    foreign={
        **dict.fromkeys(TVMSCRIPT.foreign, _CALL_FORM),
        "import": "a script imports nothing",
        "from": "a script imports nothing",
    },
    conditional=("a schedule has no 'a if condition else b'", _CALL_FORM),
)


@dataclass(frozen=True)
class Target:
    """A name that takes a result, empty for a nested call; a `whole` one takes a list, or the rest of it."""

    name: str
    whole: bool
    node: Expr


class ScriptReader:
    """Reads one script."""

    def __init__(self, item: Item, context: ParseContext, of_rule: bool = False):
        self.of_rule = of_rule
        self.lambdas = Reader(item, context, FileNames())
        self.context = context
        self.schedule = "sch"
        self.names: dict[str, SSAValue | Argument] = {}
        # Names whose definition failed: what uses them is wrong only because of that.
        self.poisoned: set[str] = set()
        self.ops: list[Operation] = []

    def at(self, node: Expr | None) -> LocationAttr:
        """Returns the place of a node."""
        return self.lambdas.at(node)

    def fail(self, where: Expr | None, message: str, *notes: str) -> NoReturn:
        """Raises an error at `where`."""
        raise error_at(self.at(where), message, *notes)

    def script(self, tree: Function | Module) -> ScriptOp:
        """Returns the script; errors in its statements are reported."""
        if not isinstance(tree, Function):
            self.fail(tree.name, "a schedule is a function", "write def name(sch): … under @T.schedule")
        self.lambdas.location = self.at(tree.name)
        target = self.target(tree)
        block, given = Block(), [str(each.name) for each in tree.parameters[1:]] if self.of_rule else []
        for name in given:
            self.define(name, Ref(block.insert_arg(EXPR, len(block.args))))
        if len(tree.parameters) != 1 + len(given):
            self.fail(
                tree.name,
                f"a schedule has one parameter, the schedule that it works on, not {len(tree.parameters)}",
                f"write def {tree.name}(sch):",
            )
        self.schedule = str(tree.parameters[0].name)
        for statement in tree.body:
            try:
                self.statement(statement)
            except (MirError, VerifyException) as error:
                self.context.report(error, self.at(first_token(statement)))
        block.add_ops(self.ops)
        op = ScriptOp(str(tree.name), Region(block), target, given)
        op.location = self.at(tree.name)
        return op

    def target(self, tree: Function) -> str | None:
        """Returns the function that the decorator names."""
        for decorator in tree.decorators:
            if isinstance(decorator, Call):
                if decorator.keywords or len(decorator.arguments) != 1 or not _is_name(decorator.arguments[0]):
                    self.fail(
                        decorator,
                        "T.schedule takes the name of one function",
                        "write @T.schedule(main), or @T.schedule for the whole module",
                    )
                return str(decorator.arguments[0]).rpartition(".")[2]
        return None

    # Statements

    def statement(self, statement: Stmt) -> None:
        """Reads a statement: a call, alone or with names for its results, or a name for a value."""
        match statement:
            case Expression(value=Token() as token) if token.type == "STRING":
                return
            case Expression(value=Call() as call):
                self.call(call, [])
            case Assign():
                self.assign(statement)
            case Expression():
                self.fail(statement.value, "this has no effect", _CALL_FORM)
            case _:
                self.fail(getattr(statement, "token", None), "a schedule is a list of calls", _CALL_FORM)

    def assign(self, statement: Assign) -> None:
        """Reads `targets = value`."""
        targets = self.targets(statement.target)
        try:
            if isinstance(statement.value, Call) and self.primitive_name(statement.value) is not None:
                self.call(statement.value, targets)
                return
            value = self.expression(statement.value)
            if isinstance(statement.target, Items):
                self.unpack(statement.value, value, targets)
                return
        except MirError:
            self.poisoned.update(target.name for target in targets)
            raise
        if isinstance(value, Ref) and isinstance(value.value.owner, ItemOp | SliceOp):
            _name_item(value.value.owner, targets[0].name)
        self.define(targets[0].name, value)

    def unpack(self, node: Expr, value: Argument, targets: list[Target]) -> None:
        """Reads `a, b = 4, 8`: data by name."""
        if not isinstance(value, list):
            self.fail(
                node,
                "only the results of a call are taken apart",
                "name the call's results one by one, or take items: i = loops[0]",
            )
        if len(value) != len(targets) or any(target.whole for target in targets):
            self.fail(node, f"{counted(len(value), 'value')} cannot be given to {counted(len(targets), 'name')}")
        for target, item in zip(targets, value, strict=True):
            self.define(target.name, item)

    def targets(self, node: Expr) -> list[Target]:
        """Returns the names that a statement binds."""
        if not isinstance(node, Items):
            return [self.target_of(node, node, True)]
        found: list[Target] = []
        for item in node.items:
            starred = isinstance(item, Unary) and item.op == "*"
            found.append(self.target_of(item, item.operand if isinstance(item, Unary) and starred else item, starred))
        if sum(target.whole for target in found) > 1:
            self.fail(node, "one name of several may have a star: it takes the rest")
        return found

    def target_of(self, item: Expr, name: Expr, whole: bool) -> Target:
        """Returns one name."""
        if not isinstance(name, Token) or not _is_name(name) or "." in name:
            self.fail(item, "a result is given a name", "write name = …, or one name for each result")
        if name == self.schedule:
            self.fail(name, f"'{name}' is the schedule")
        return Target(str(name), whole, item)

    def define(self, name: str, value: SSAValue | Argument) -> None:
        """Binds a name from here on."""
        self.poisoned.discard(name)
        self.names[name] = value

    # Calls

    def primitive_name(self, node: Call) -> str | None:
        """Returns the primitive that a node calls, if it is a call of the schedule's."""
        function = node.function
        if not isinstance(function, Token):
            return None
        base, _, name = function.rpartition(".")
        return name if base == self.schedule else None

    def call(self, node: Call, targets: list[Target]) -> PrimitiveOp:
        """Returns a primitive applied; its results are bound to the targets."""
        known = self.called(node)
        arguments, positional = self.arguments(known, node)
        types = result_types(known, [target.whole for target in targets])
        try:
            check_results(known, arguments, types)
        except SignatureError as error:
            self.fail(targets[0].node, error.message, error.note)
        op = primitive_class(known.name)(arguments, types, positional=positional, names=[t.name for t in targets])
        op.location = self.at(node)
        self.ops.append(op)
        for target, result in zip(targets, op.outs, strict=True):
            if target.name:
                self.define(target.name, result)
        return op

    def called(self, node: Call) -> Signature:
        """Returns the signature of the primitive that a node calls."""
        name = self.primitive_name(node)
        if name is None:
            shown = f"'{node.function}'" if isinstance(node.function, Token) else "this"
            self.fail(node, f"{shown} is not a primitive of the schedule", f"write {self.schedule}.split(…)")
        known = signature(name)
        if known is None:
            near = nearest_primitive(name)
            self.fail(
                node,
                f"there is no schedule primitive '{name}'" + (f"; did you mean '{near}'?" if near else ""),
                "primitives are those of TVM's tir.Schedule: get_block, get_loops, split, reorder, compute_at, …",
            )
        return known

    def arguments(self, known: Signature, node: Call) -> tuple[dict[str, Argument], int]:
        """Reads arguments: (those by parameter, how many of them are written without a name)."""
        positional = [self.argument(a) for a in node.arguments]
        keywords: dict[str, Argument] = {}
        for keyword in node.keywords:
            if str(keyword.name) in keywords:
                self.fail(keyword.name, f"{known.name} is given the argument '{keyword.name}' twice")
            keywords[str(keyword.name)] = self.expression(keyword.value)
        try:
            if known.variadic is None:
                for value in positional:
                    if isinstance(value, Splat):
                        raise SignatureError(
                            f"{known.name} takes no splat",
                            f"it is called as {self.schedule}.{known}",
                            positional.index(value),
                        )
            bound: dict[str, Argument] = {k: v for k, v in known.bind(positional, keywords).items()}  # type: ignore[misc]
            check_call(known, bound)
        except SignatureError as error:
            note = error.note.replace("sch.", f"{self.schedule}.")
            self.fail(self.argument_node(known, node, error.argument), error.message, note)
        return bound, len(bound) - len(keywords)

    def argument_node(self, known: Signature, node: Call, argument: str | int | None) -> Expr:
        """Returns the node of an argument that an error is about; the call where it is about none."""
        if isinstance(argument, int) and argument < len(node.arguments):
            return node.arguments[argument]
        for keyword in node.keywords:
            if keyword.name == argument:
                again = any(p.name == argument for p in known.parameters[: len(node.arguments)])
                return keyword.value if argument in known.by_name and not again else keyword.name
        for parameter, given in zip(known.parameters, node.arguments, strict=False):
            if parameter.name == argument:
                return given
        return node

    def argument(self, node: Expr) -> Argument:
        """Returns an argument without a name, or an element of a list: it may have a star."""
        if not (isinstance(node, Unary) and node.op == "*"):
            return self.expression(node)
        value = self.expression(node.operand)
        if not isinstance(value, Ref) or not isinstance(value.value.type, ListType):
            self.fail(
                node, "only a list of handles is splatted", f"write *{self.schedule}.get_loops(block), or *loops[1:]"
            )
        return Splat(value.value)

    # Expressions

    def expression(self, node: Expr) -> Argument:
        """Returns the value of an expression: a handle or plain data."""
        match node:
            case Token():
                return self.token(node)
            case Call():
                return self.value_of_call(node)
            case Index():
                return self.item(node)
            case Items():
                return [self.argument(item) for item in node.items]
            case Mapping():
                return {self.key(key): self.expression(value) for key, value in node.pairs}
            case LambdaTree():
                return Lambda(read_lambda(self.lambdas, node), tuple(map(str, node.parameters)))
            case Binary() if node.op in ARITHMETIC:
                return self.arithmetic(node)
            case Unary(op=op) if op in ("-", "+"):
                value = self.expression(node.operand)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    return -value if op == "-" else value
                self.fail(node, f"'{op}' stands before a number")
            case Unary(op="*"):
                self.fail(node, "a splat stands among a call's arguments or in a list")
            case _:
                self.refuse_computation(node)

    def arithmetic(self, node: Binary) -> Argument:
        """Reads arithmetic on drawn numbers, `tile * 2`."""
        sides = [self.expression(node.left), self.expression(node.right)]
        drawn = [isinstance(side, Ref) and isinstance(side.value.type, ExprType) for side in sides]
        if not any(drawn) or not all(known or type(side) is int for known, side in zip(drawn, sides, strict=True)):
            self.refuse_computation(node)
        return Ref(self.emit(ComputeOp(str(node.op), *sides), node))

    def refuse_computation(self, node: Expr) -> NoReturn:
        """Raises the error of an expression that is neither data nor arithmetic on drawn numbers."""
        self.fail(
            node,
            "a schedule computes only with what it draws: an argument is a handle, data, or a lambda",
            "numbers are written out; arithmetic is on whole numbers that sch.sample_perfect_tile and its like return",
        )

    def token(self, token: Token) -> Argument:
        """Returns a name, a number, a string."""
        if token.type == "NUMBER":
            const = read_number(self.lambdas, token)
            if isinstance(const.value, int) and const.value >= 1 << 63:
                self.fail(token, f"{const.value} does not fit into int64")
            if const.value in (float("inf"), float("nan")):
                self.fail(token, f"'{token}' is too large for a number")
            return float(token.replace("_", "")) if isinstance(const.value, float) else const.value
        if token.type == "STRING":
            return read_string(self.lambdas, token, "an argument")
        if token in _WORDS:
            return _WORDS[token]
        if token in self.names:
            value = self.names[token]
            return Ref(value) if isinstance(value, SSAValue) else value
        if token in self.poisoned:
            raise MirError(())
        if token == self.schedule:
            self.fail(token, f"the schedule itself is not an argument; call its primitives: {token}.split(…)")
        near = did_you_mean(token, self.names, 0.6)
        self.fail(
            token, f"'{token}' is not defined{near}", *([] if near else ["names of blocks and buffers are strings"])
        )

    def key(self, node: Expr) -> str:
        """Returns a key of a dictionary."""
        value = self.expression(node)
        if not isinstance(value, str):
            self.fail(node, "a key of a dictionary is a string")
        return value

    def value_of_call(self, node: Call) -> Argument:
        """Returns a nested call of a primitive; strings side by side; a typed number such as `T.int64(4)`."""
        if is_string(node):
            return read_string(self.lambdas, node, "an argument")
        if isinstance(node.function, Token) and node.function.startswith("T.") and len(node.arguments) == 1:
            value = self.expression(node.arguments[0])
            type_ = named_type(self.lambdas, node.function)
            if type_ is not None and isinstance(value, int | float):
                return bool(value) if node.function in ("T.bool", "T.boolean") else value
        known = self.called(node)
        if known.result == "none":
            self.fail(node, f"{known.name} gives nothing that could be an argument")
        return Ref(self.call(node, [Target("", True, node)]).outs[0])

    def item(self, node: Index) -> Argument:
        """Reads `loops[0]`, `loops[1:]` of a list of handles or of data."""
        base = self.expression(node.base)
        if len(node.items) != 1:
            self.fail(node, "a list has one index")
        index = node.items[0]
        is_handles = isinstance(base, Ref) and isinstance(base.value.type, ListType)
        if isinstance(index, Slice):
            bounds = [self.bound(b) for b in (index.start, index.stop, index.step)]
            if bounds[2] == 0:
                self.fail(index, "the step of a slice is not 0")
            if isinstance(base, list):
                return base[slice(*bounds)]
            if isinstance(base, Ref) and is_handles:
                return Ref(self.emit(SliceOp(base.value, bounds[0], bounds[1], bounds[2]), node))
        else:
            place = self.bound(index)
            if place is None:
                self.fail(index, "an index of a list is an integer")
            if isinstance(base, list):
                if not -len(base) <= place < len(base):
                    self.fail(index, f"the list has {counted(len(base), 'item')}, so there is no item {place}")
                return base[place]
            if isinstance(base, Ref) and is_handles:
                return Ref(self.emit(ItemOp(base.value, place), node))
        self.fail(node, "only a list has items", "a primitive that gives several handles gives a list")

    def bound(self, node: Expr | None) -> int | None:
        """Returns an index, or a bound of a slice."""
        value = None if node is None else self.expression(node)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        self.fail(node, "an index of a list is an integer")

    def emit(self, op: ItemOp | SliceOp | ComputeOp, node: Expr) -> SSAValue:
        """Appends an op; its result."""
        op.location = self.at(node)
        self.ops.append(op)
        return op.result


def _is_name(node: Expr) -> bool:
    return isinstance(node, Token) and node.type == "NAME" and is_name(node)


def _name_item(op: ItemOp | SliceOp, name: str) -> None:
    """Keeps the name that an item or slice is bound to, where it is the first."""
    if not op.result_name.data:
        op.properties["result_name"] = StringAttr(name)
        name_results(op, [name])
