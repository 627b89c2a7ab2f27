"""Exports a graph of Python nodes to ops, without recursion: 100,000 nodes in a chain are no problem.

Bodies of functions, branches and clauses are scopes. A node is computed in the innermost scope that holds all its uses: one
that two branches use before them, one that only one branch uses there. This is the rule of TVM's ToBasicBlockNormalForm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.relay import ir, patterns
from ...dialects.relay.operator import AttrValue, operator_class, to_attribute
from ...dialects.relay.types import UNKNOWN
from ...dialects.tir.types import dtype_to_type
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import MirError, location_of
from ...support.garbage import no_collection
from ..ir.node import Node
from ..ir.op import CALL_TIR, Op, OpEntry, plain
from . import adt, expr, ty
from .graph import LEAVES, free_vars, parts, post_order, scope_starts


class Scope:
    """A scope, and its block. Ancestors are found through one jump pointer each (Myers, 1983)."""

    __slots__ = ("block", "depth", "jump", "parent")

    def __init__(self, parent: Scope | None = None):
        self.block: Block | None = None
        self.parent = parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.jump: Scope = self
        if parent is not None:
            far = parent.jump
            self.jump = far.jump if parent.depth - far.depth == far.depth - far.jump.depth else parent

    def at_depth(self, depth: int) -> Scope:
        """The scope around this one, or this one, at that depth."""
        scope = self
        while scope.depth > depth:
            scope = scope.jump if scope.jump.depth >= depth else scope.parent or scope
        return scope

    def common(self, other: Scope) -> Scope:
        """The innermost scope that holds both."""
        depth = min(self.depth, other.depth)
        a, b = self.at_depth(depth), other.at_depth(depth)
        while a is not b:
            if a.jump is not b.jump:
                a, b = a.jump, b.jump
            else:
                a, b = a.parent or a, b.parent or b
        return a

    def holds(self, other: Scope) -> bool:
        """Returns whether `other` is this scope or inside it."""
        return other.depth >= self.depth and other.at_depth(self.depth) is self


def find_scopes(root: Node) -> tuple[dict[Node, Scope], dict[tuple[Node, int], Scope]]:
    """Returns the scope of each node except leaves, and the scopes that parts open, by node and index.

    The root has a scope of its own.
    """
    top = Scope()
    home: dict[Node, Scope] = {root: top}
    opened: dict[tuple[Node, int], Scope] = {}
    for node in reversed(list(post_order(root))):
        if isinstance(node, LEAVES):
            continue
        own, first_scope = home[node], scope_starts(node)
        for place, part in enumerate(parts(node)):
            scope = own
            if place >= first_scope:
                scope = opened[node, place] = Scope(own)
            if not isinstance(part, LEAVES):
                known = home.get(part)
                home[part] = scope if known is None else known.common(scope)
    return home, opened


def export_function(name: str, function: expr.Function) -> ir.FuncOp:
    """Exports a function as an op of a module.

    Raises MirError for variables that nothing binds, or that are bound twice.
    """
    with no_collection():
        exporter = _Exporter(function)
        body = exporter.function_body(function)
    op = ir.FuncOp(
        name,
        [param.name_hint for param in function.params],
        [],
        ret_type=exporter.type(function.ret_type),
        type_params=[exporter.type_name(p) for p in function.type_params],
        attrs=function_attributes(function.attrs),
        body=body,
    )
    op.location = function.location
    return op


def export_type(data: adt.TypeData) -> ir.TypeDataOp:
    """The data type as an op of a module."""
    constructors = {c.name_hint: [ty.to_attribute(field) for field in c.inputs] for c in data.constructors}
    return ir.TypeDataOp(data.header.name_hint, [var.name_hint for var in data.type_vars], constructors)


def function_attributes(attrs: Mapping[str, object]) -> dict[str, Attribute]:
    """Attributes of a function or of a call of one."""
    return {name: _attribute(value) for name, value in attrs.items()}


def _attribute(value: object) -> Attribute:
    value = plain(value)
    return value if isinstance(value, Attribute) else to_attribute(cast("AttrValue", value))


class _Exporter:
    """Exports one top-level function. A stack holds the tasks that are left; the last one runs first."""

    def __init__(self, function: expr.Function):
        self.home, self.opened = find_scopes(function)
        self.values: dict[Node, SSAValue] = {}
        self.bound: dict[expr.Var, tuple[SSAValue, Scope]] = {}
        self.tasks: list[Callable[[], None]] = []
        self.type_names: dict[ty.TypeVar, str] = {}

    # Types ---------------------------------------------------------------------------------------------------------

    def type(self, type: ty.Type | None) -> Attribute:
        """A written type as the dialect's."""
        return ty.to_attribute(type, self.type_names)

    def type_name(self, variable: ty.TypeVar) -> str:
        """A type parameter's name, unlike that of any other of the function."""
        found = self.type_names.get(variable)
        if found is None:
            taken = set(self.type_names.values())
            found, count = variable.name_hint, 0
            while found in taken:
                count += 1
                found = f"{variable.name_hint}_{count}"
            self.type_names[variable] = found
        return found

    # Blocks --------------------------------------------------------------------------------------------------------

    def function_body(self, function: expr.Function) -> Region:
        """The body of the top-level function."""
        region = self.open_function(function, has_self=False)
        while self.tasks:
            self.tasks.pop()()
        return region

    def open_function(self, function: expr.Function, has_self: bool) -> Region:
        """A region for a function's body, whose filling is put on the stack."""
        for variable in function.type_params:
            self.type_name(variable)
        types = [self.annotation(param) for param in function.params]
        block = Block(arg_types=[UNKNOWN, *types] if has_self else types)
        scope = self.opened[function, 0]
        for param, value in zip(function.params, block.args[1 if has_self else 0 :], strict=True):
            value.location = param.location
            self.bind(param, value, scope)
        self.fill(block, scope, function.body)
        return Region(block)

    def annotation(self, variable: expr.Var) -> Attribute:
        """Returns a variable's type: its annotation, otherwise the one that inference found."""
        if variable.type_annotation is not None:
            return self.type(variable.type_annotation)
        return variable.known_type or UNKNOWN

    def bind(self, variable: expr.Var, value: SSAValue, scope: Scope) -> None:
        """From here on the variable is the value."""
        if variable in self.bound:
            raise expr.place_error(
                variable,
                f"the variable %{variable.name_hint} is bound twice",
                "each parameter, let and pattern needs a relay.var of its own",
            )
        self.bound[variable] = value, scope

    def fill(self, block: Block, scope: Scope, result: Node) -> None:
        """Puts on the stack: compute `result` into the block, then return it."""
        scope.block = block

        def finish() -> None:
            value = self.use(result, scope)
            end = ir.ReturnOp(value)
            end.location = location_of(value)
            block.add_op(end)

        self.tasks.append(finish)
        self.visit(result)

    # Values --------------------------------------------------------------------------------------------------------

    def use(self, node: Node, scope: Scope) -> SSAValue:
        """The value of a part, computed already or a leaf, for use at the end of a scope's block."""
        block = scope.block
        assert block is not None
        match node:
            case expr.Var():
                found = self.bound.get(node)
                if found is None or not found[1].holds(scope):
                    raise expr.place_error(
                        node,
                        f"the variable %{node.name_hint} is not bound where it is used",
                        "it is neither a parameter, nor bound by a Let or a pattern around its use",
                    )
                return found[0]
            case expr.Constant():
                box = node.value.data
                op = ir.ConstantOp(node.value, TensorType(dtype_to_type(box.dtype), box.shape))
            case expr.GlobalVar():
                op = ir.GlobalRefOp(node.name_hint, node.known_type or UNKNOWN)
            case adt.Constructor():
                op = ir.ConstructorRefOp(node.belong_to.name_hint, node.name_hint, node.known_type or UNKNOWN)
            case Op():
                raise expr.place_error(
                    node, f"the operator {node.name} is not a value", "call it, or wrap it in a relay.Function"
                )
            case _:
                return self.values[node]
        op.location = node.location
        block.add_op(op)
        return op.result

    def visit(self, node: Node) -> None:
        """Puts on the stack what computes a node, unless that is done or the node is a leaf."""
        if node in self.home and node not in self.values:
            self.tasks.append(lambda: self.enter(node))

    def enter(self, node: Node) -> None:
        """Begins with a node: its parts first, then the node."""
        if node in self.values:
            return
        match node:
            case expr.Let():
                self.tasks.append(lambda: self.let(node))
                if not isinstance(node.value, expr.Function) or node.value in self.values:
                    self.visit(node.value)
            case expr.Function():
                self.closure(node, None)
            case expr.If():
                self.tasks.append(lambda: self.branch(node))
                self.visit(node.cond)
            case adt.Match():
                self.tasks.append(lambda: self.match(node))
                self.visit(node.data)
            case _:
                self.tasks.append(lambda: self.build(node))
                for part in reversed(parts(node)):
                    self.visit(part)

    def add(self, node: Node, op: Operation) -> None:
        """Puts a node's op where the node belongs."""
        op.location = node.location
        block = self.home[node].block
        assert block is not None
        block.add_op(op)
        self.values[node] = op.results[0]

    def build(self, node: Node) -> None:
        """The op of a node without regions, whose parts are there."""
        scope = self.home[node]
        if isinstance(node, expr.Call):
            self.add(node, self.call(node, scope))
            return
        values = [self.use(part, scope) for part in parts(node)]
        known = cast("expr.RelayExpr", node).known_type
        match node:
            case expr.Tuple():
                op = ir.TupleOp(values, known or UNKNOWN)
            case expr.TupleGetItem():
                op = ir.TupleGetItemOp(values[0], node.index, known or UNKNOWN)
            case expr.RefCreate():
                op = ir.RefOp(values[0])
            case expr.RefRead():
                op = ir.RefReadOp(values[0], known or UNKNOWN)
            case _:
                op = ir.RefWriteOp(values[0], values[1])
        self.add(node, op)

    def call(self, node: expr.Call, scope: Scope) -> Operation:
        """The op of a call, by what is called."""
        callee, type = node.op, node.known_type or UNKNOWN
        if isinstance(callee, Op) and callee.name == CALL_TIR:
            if not node.args or not isinstance(node.args[0], expr.GlobalVar):
                raise expr.place_error(node, "call_tir must name a function of the module, by a GlobalVar")
            arguments = [self.use(arg, scope) for arg in node.args[1:]]
            return ir.CallTirOp(node.args[0].name_hint, arguments, type)
        value = None if isinstance(callee, Op | expr.GlobalVar | adt.Constructor) else self.use(callee, scope)
        arguments = [self.use(arg, scope) for arg in node.args]
        if isinstance(callee, Op):
            assert callee.operator is not None
            # `create` spares the checks of a constructor, which take longer than all the rest.
            return operator_class(callee.operator.entry).create(
                operands=arguments, result_types=(type,), attributes=_operator_attributes(node, callee.operator)
            )
        if isinstance(callee, adt.Constructor):
            return ir.ConstructOp(callee.belong_to.name_hint, callee.name_hint, arguments, type)
        op = ir.CallGlobalOp(callee.name_hint, arguments, type) if value is None else ir.CallOp(value, arguments, type)
        if node.written_type_args:
            op.properties["type_args"] = ArrayAttr([self.type(arg) for arg in node.written_type_args])
        if node.attrs:
            op.properties["attrs"] = DictionaryAttr(function_attributes(node.attrs))
        return op

    def let(self, node: expr.Let) -> None:
        """The value is there, unless it is a function, which may call itself by the variable's name."""
        if isinstance(node.value, expr.Function) and node.value not in self.values:
            self.tasks.append(lambda: self.let_value(node))
            self.closure(node.value, node.var)
        else:
            self.let_value(node)

    def let_value(self, node: expr.Let) -> None:
        scope = self.home[node]
        value = self.use(node.value, scope)
        if self._is_self(node):
            del self.bound[node.var]
        written = node.var.type_annotation
        op = ir.LetOp(node.var.name_hint, value, None if written is None else self.type(written))
        op.location = node.location
        block = scope.block
        assert block is not None
        block.add_op(op)
        self.bind(node.var, op.result, scope)

        def finish() -> None:
            self.values[node] = self.use(node.body, scope)

        self.tasks.append(finish)
        self.visit(node.body)

    def _is_self(self, node: expr.Let) -> bool:
        """Returns whether the variable still names the function inside its own body."""
        found = self.bound.get(node.var)
        return found is not None and found[1] is self.opened.get((node.value, 0))

    def closure(self, node: expr.Function, name: expr.Var | None) -> None:
        """A local function; `name` is the variable that a let binds it to."""
        if name is not None and name in self.bound:
            self.bind(name, self.bound[name][0], self.home[node])  # raises

        def finish() -> None:
            block = region.block
            self_name = None
            if name is not None:
                if block.args[0].first_use is None:
                    block.erase_arg(block.args[0])
                else:
                    self_name = name.name_hint
            op = ir.FnOp(
                [param.name_hint for param in node.params],
                region,
                node.known_type or UNKNOWN,
                ret_type=self.type(node.ret_type),
                type_params=[self.type_name(p) for p in node.type_params],
                attrs=function_attributes(node.attrs),
                self_name=self_name,
            )
            self.add(node, op)

        self.tasks.append(finish)
        region = self.open_function(node, has_self=name is not None)
        if name is not None:
            self.bind(name, region.block.args[0], self.opened[node, 0])

    def regions(self, node: expr.RelayExpr, bodies: Sequence[Node], blocks: Sequence[Block]) -> list[Region]:
        """Regions of parts 1…, in order, whose filling is put on the stack."""
        for place in reversed(range(len(bodies))):
            self.fill(blocks[place], self.opened[node, place + 1], bodies[place])
        return [Region(block) for block in blocks]

    def branch(self, node: expr.If) -> None:
        def finish() -> None:
            condition = self.use(node.cond, self.home[node])
            self.add(node, ir.IfOp(condition, regions[0], regions[1], node.known_type or UNKNOWN))

        self.tasks.append(finish)
        regions = self.regions(node, [node.true_branch, node.false_branch], [Block(), Block()])

    def match(self, node: adt.Match) -> None:
        def finish() -> None:
            value = self.use(node.data, self.home[node])
            lhs = [_pattern(clause.lhs, self) for clause in node.clauses]
            self.add(node, ir.MatchOp(value, lhs, regions, node.known_type or UNKNOWN, complete=node.complete))

        self.tasks.append(finish)
        blocks: list[Block] = []
        for place, clause in enumerate(node.clauses):
            variables = list(adt.pattern_vars(clause.lhs))
            block = Block(arg_types=[self.annotation(variable) for variable in variables])
            for variable, value in zip(variables, block.args, strict=True):
                self.bind(variable, value, self.opened[node, place + 1])
            blocks.append(block)
        regions = self.regions(node, [clause.rhs for clause in node.clauses], blocks)


def _operator_attributes(node: expr.Call, operator: OpEntry) -> dict[str, Attribute]:
    """The attributes that differ from their defaults."""
    if node.attrs is None or node.attrs is operator.default_attrs:
        return {}
    given = operator.entry.canonical(node.attrs)
    return {
        name: to_attribute(value) for name, value in given.items() if value is not None or not _is_none(operator, name)
    }


def _is_none(operator: OpEntry, name: str) -> bool:
    """Returns whether an attribute's default is None; such an attribute is not written."""
    return operator.default_attrs.get(name, 0) is None


def _pattern(pattern: adt.Pattern, exporter: _Exporter) -> Attribute:
    match pattern:
        case adt.PatternVar():
            annotation = pattern.var.type_annotation
            written = None if annotation is None else exporter.type(annotation)
            return patterns.VarPattern(StringAttr(pattern.var.name_hint), written or patterns.NoneType())
        case adt.PatternConstructor():
            fields = [_pattern(field, exporter) for field in pattern.patterns]
            constructor = pattern.constructor
            return patterns.ConstructorPattern.get(constructor.belong_to.name_hint, constructor.name_hint, fields)
        case adt.PatternTuple():
            return patterns.TuplePattern.get([_pattern(field, exporter) for field in pattern.patterns])
        case _:
            return patterns.WildcardPattern()


def node_types(root: expr.RelayExpr, functions: Sequence[Operation] = ()) -> dict[Node, Attribute]:
    """Infers the types of an expression's nodes, which may call these functions of a module.

    Raises MirError if they do not fit together.
    """
    from ...dialects.relay.infer.inference import infer_ops
    from ...dialects.relay.text import is_known

    function = root if isinstance(root, expr.Function) else expr.Function(free_vars(root), root)
    exporter = _Exporter(function)
    body = exporter.function_body(function)
    names = [param.name_hint for param in function.params]
    symbols = {op.sym_name.data: op for op in functions if isinstance(op, ir.FuncOp | ir.TypeDataOp)}
    errors = infer_ops([ir.FuncOp("", names, [], body=body)], symbols)
    if errors:
        raise MirError(errors)
    values = {**exporter.values, **{variable: value for variable, (value, _) in exporter.bound.items()}}
    return {node: value.type for node, value in values.items() if is_known(value.type)}


def expression_text(node: expr.RelayExpr, *, header: bool = False, metadata: bool = False) -> str:
    """Prints an expression, preceded by a line `free_var %x: …;` for each free variable."""
    from ...parser.relay.printer import expression_text as text_of

    if isinstance(node, expr.Var):
        text = f"%{node.name_hint}"
        return f"free_var {text}: {node.type_annotation};\n{text}" if node.type_annotation is not None else text
    if isinstance(node, expr.GlobalVar):
        return f"@{node.name_hint}"
    free = free_vars(node)
    is_function = isinstance(node, expr.Function) and not free
    whole = node if isinstance(node, expr.Function) and is_function else expr.Function(free, node, span=node.span)
    op = export_function("", whole)
    text = in_deep_stack(lambda: text_of(op, is_function=is_function, header=header, metadata=metadata))
    return text.rstrip("\n")
