"""Statements and functions: from the syntax tree to `tir.prim_func`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, NoneType, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.tir.buffer import (
    NO_ATTRS,
    AllocBufferOp,
    BufferGetOp,
    BufferRegionOp,
    DeclBufferOp,
    MatchBufferOp,
    StoreOp,
    accessed_type,
    buffer_name,
)
from ...dialects.tir.expr import CallOp, ConstOp, LetOp, VarOp, YieldOp
from ...dialects.tir.operators import Const, Value, is_float
from ...dialects.tir.stmt import (
    AssertOp,
    AttrOp,
    EnvThreadOp,
    EvaluateOp,
    ForOp,
    IfOp,
    LaunchThreadOp,
    PrefetchOp,
    PrimFuncOp,
    RealizeOp,
    ScopeOp,
    WhileOp,
)
from ...dialects.tir.types import I1, I32, BufferType, HandleType, StringType, element_of, lanes_of, type_to_dtype
from ...support.diagnostics import MirError
from .blocks import Blocks, called, contains_block, has_axes
from .buffers import _FIELDS, BufferSpec
from .expressions import hint, segments
from .linear import literal_int
from .scope import Callee
from .tree import (
    Annotated,
    Assert,
    Assign,
    Augmented,
    Binary,
    Call,
    Expr,
    Expression,
    For,
    Function,
    If,
    Index,
    Lambda,
    Return,
    Sequence,
    Stmt,
    Token,
    While,
    With,
)

_LOOPS = {
    "range": "serial", "T.serial": "serial", "T.parallel": "parallel", "T.vectorized": "vectorized", "T.unroll": "unrolled",
    "T.unrolled": "unrolled", "T.thread_binding": "thread_binding",
}  # fmt: skip
_RESERVED = frozenset(["T", "I", "tvm", "True", "False", "None", "range"])


class FunctionReader(Blocks):
    """Reads one prim_func."""

    func_attrs: dict[str, Attribute]
    func_depth: int = 0

    def function(self, tree: Function, callee: Callee) -> PrimFuncOp | None:
        """The function; None (with errors reported) where it has none."""
        self.func_attrs = {}
        block = Block()
        self.location = at = self.at(tree.name)
        names: list[str] = []
        with self.inside(block):
            declared: list[tuple[Token, BufferSpec]] = []
            self.parameters(tree, block, names, declared)
            for name, _ in declared:
                self.hand_over(name, block, names)
            names = [self.fresh(n) for n in names]
            self.shown.update(zip(block.args, names, strict=True))
            for name, spec in declared:
                handle = self.names[name]
                assert isinstance(handle, SSAValue)
                self.location = self.at(name)
                self.define(name, self.make_buffer(MatchBufferOp, str(name), spec, handle))
            self.statements(self.function_body(tree.body))
        ret_type = NoneType() if callee.result is None else callee.result
        attrs = self.func_attrs
        if attrs.get("global_symbol") == StringAttr(tree.name):
            del attrs["global_symbol"]
        private = self.is_private(tree)
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(callee.symbol),
            "param_names": ArrayAttr([StringAttr(n) for n in names]),
            "attrs": DictionaryAttr(attrs),
            "ret_type": ret_type,
        }
        if private:
            properties["sym_visibility"] = StringAttr("private")
        op = PrimFuncOp.create(properties=properties, regions=[Region(block)], location=at)
        inline_simple_matches(op)
        return op

    def is_private(self, tree: Function) -> bool:
        """Whether the decorator says `private=True`."""
        for decorator in tree.decorators:
            if isinstance(decorator, Call):
                for keyword in decorator.keywords:
                    if keyword.name == "private":
                        return keyword.value == "True"
                    if keyword.name != "check_well_formed":
                        self.context.error(
                            self.at(keyword.name),
                            f"T.prim_func has no argument '{keyword.name}'",
                            "it has private=True",
                        )
        return False

    def parameters(
        self, tree: Function, block: Block, names: list[str], declared: list[tuple[Token, BufferSpec]]
    ) -> None:
        """Parameters become the block's arguments; a buffer that is not simple is a handle, to be matched afterwards."""
        later: list[tuple[int, Token, Expr]] = []
        for parameter in tree.parameters:
            name, annotation = parameter.name, parameter.annotation
            with self.recovering():
                if name in names or name in _RESERVED:
                    self.fail(
                        name,
                        f"'{name}' cannot be a parameter"
                        if name in _RESERVED
                        else f"two parameters are called '{name}'",
                    )
                if annotation is None:
                    self.fail(
                        name,
                        f"parameter '{name}' has no type",
                        'write a: T.Buffer((8,), "float32"), n: T.int32 or a: T.handle',
                    )
                type_ = self.named_type(annotation)
                if type_ is None and not (
                    isinstance(annotation, Index | Call)
                    and str(annotation.base if isinstance(annotation, Index) else annotation.function)
                    in ("T.Buffer", "T.match_buffer", "T.buffer_decl")
                ):
                    self.fail(
                        annotation,
                        f"parameter '{name}' has an unknown type",
                        "it is a T.Buffer, T.handle, or a dtype like T.int32",
                    )
                arg = block.insert_arg(type_ or HandleType.get(), len(block.args))
                names.append(str(name))
                arg.name_hint = hint(name)
                arg.location = self.at(name)
                self.define(name, arg)
                if type_ is None:
                    later.append((len(names) - 1, name, annotation))
        # Shapes may name any scalar parameter, those behind the buffer too.
        for place, name, annotation in later:
            with self.recovering():
                spec = self.annotation(annotation)
                assert spec is not None
                if spec.simple():
                    arg = Rewriter.replace_value_with_new_type(block.args[place], spec.type())
                    arg.name_hint = hint(name)
                    arg.location = self.at(name)
                    self.names[name] = arg
                else:
                    declared.append((name, spec))

    def hand_over(self, name: Token, block: Block, names: list[str]) -> None:
        """A buffer parameter with a symbolic shape gives its name to the buffer matched at the head of the function."""
        place = names.index(str(name))
        handle = f"{name}_handle"
        while handle in names:
            handle += "_"
        names[place] = handle
        block.args[place].name_hint = hint(handle)

    def function_body(self, body: list[Stmt]) -> list[Stmt]:
        """The statements, without an explicit root block where the function itself stands for it."""
        last = body[-1] if body else None
        if not (isinstance(last, With) and len(last.items) == 1 and called(last.items[0][0]) == "T.block"):
            return body
        call = last.items[0][0]
        assert isinstance(call, Call)
        named_root = len(call.arguments) == 1 and call.arguments[0] in ('"root"', "'root'")
        if not named_root or has_axes(last.body):
            return body
        inner = [s for s in last.body if not _is_empty_regions(s)]
        heads = [called(s.value) for s in inner if isinstance(s, Expression)]
        if any(h in ("T.reads", "T.writes", "T.where", "T.block_attr") for h in heads):
            return body
        matched = any(isinstance(s, Assign) and called(s.value) == "T.match_buffer" for s in inner)
        if matched or any(isinstance(s, With) and called(s.items[0][0]) == "T.init" for s in inner):
            return body
        if any(isinstance(s, Assign) and called(s.value) == "T.alloc_buffer" for s in inner):
            return body[:-1] + inner
        single = inner[0] if len(inner) == 1 else None
        single_block = isinstance(single, With) and called(single.items[0][0]) == "T.block"
        if single_block:
            assert isinstance(single, With)
            return body[:-1] + inner if has_axes(single.body) else body
        return body[:-1] + inner if contains_block(inner) else body

    # Statements

    def statements(self, body: list[Stmt]) -> None:
        """Reads statements into the current region; after an error, the next one."""
        last = len(body) - 1
        for number, statement in enumerate(body):
            mark = len(self.ops)
            try:
                self.statement(statement, number == last)
            except MirError as error:
                self.context.report(error)
                self.poison(statement)
                del self.ops[mark:]

    def poison(self, statement: Stmt) -> None:
        """Names that a failed statement would have defined are not complained about afterwards."""
        targets: list[Expr | None] = []
        match statement:
            case Assign() | Annotated():
                targets = [statement.target]
            case With():
                targets = [target for _, target in statement.items]
            case _:
                pass
        for target in targets:
            for name in self.items(target, "names"):
                if isinstance(name, Token) and name not in self.names:
                    self.poisoned.add(str(name))

    def statement(self, statement: Stmt, last: bool) -> None:
        """Reads one statement; `last` says that nothing follows it in its region."""
        kind = type(statement)
        if kind is Assign:
            self.assign(statement)
        elif kind is For:
            self.for_loop(statement)
        elif kind is With:
            self.with_statement(statement, last)
        elif kind is Expression:
            self.expression(statement.value)
        elif kind is Annotated:
            self.annotated(statement)
        elif kind is If:
            self.if_statement(statement)
        elif kind is Assert:
            self.assertion(statement.token, statement.condition, statement.message)
        elif kind is While:
            self.while_loop(statement)
        elif kind is Return:
            self.return_statement(statement)
        elif kind is Augmented:
            self.augmented(statement)

    def assign(self, statement: Assign) -> None:
        """`A[i] = x`, `x = …`, `a, b = …`."""
        target, value = statement.target, statement.value
        if isinstance(target, Index):
            self.store(target, self.expr(value), statement.token)
        elif isinstance(target, Sequence):
            values = value.items if isinstance(value, Sequence) else None
            if values is None or len(values) != len(target.items):
                if called(value).startswith("T.axis."):
                    self.fail(value, "axes are bound in a block", 'write them under with T.block("name"):')
                self.fail(target, f"{len(target.items)} names need as many values", "write them on lines of their own")
            for part, item in zip(target.items, values, strict=True):
                self.assign(Assign(part, statement.token, item))
        elif isinstance(target, Token) and target.type == "NAME":
            self.assign_name(target, value)
        else:
            self.fail(target, "this cannot be assigned to", "assign to a name, or to an element of a buffer, A[i]")

    def store(self, target: Index, value: Value, token: Token) -> None:
        """`A[i, j] = value`: the value is cast as TVM does, except from float to integer."""
        buffer = self.buffer(target.base)
        indices = [self.access_index(item) for item in target.items]
        self.check_rank(buffer, len(indices), target)
        self.location = self.at(token)
        assert isinstance(buffer.type, BufferType)
        wanted = accessed_type(buffer.type, [i.type for i in indices])
        if value.type != wanted:
            value = self.convert(value, wanted, f"'{buffer_name(buffer)}' holds")
        stored = self.value(value)
        self.location = self.at(target)
        op = StoreOp.create(
            operands=(buffer, *indices, stored),
            properties={"operandSegmentSizes": segments(1, len(indices), 0, 1)},
            location=self.location,
        )
        self.ops.append(op)

    def convert(self, value: Value, wanted: Attribute, subject: str) -> Value:
        """A value as the dtype it is assigned to: constants adapt, numbers are cast where nothing is cut off."""
        described = self.describe(self.value(value) if not isinstance(value, Const) else value)
        if lanes_of(value.type) not in (1, lanes_of(wanted)):
            raise self.error(f"{subject} {type_to_dtype(wanted)} here, but the value is {described}")
        element, given = element_of(wanted), element_of(value.type)
        if isinstance(element, HandleType | StringType) or isinstance(given, HandleType | StringType | BufferType):
            raise self.error(f"{subject} {type_to_dtype(wanted)} here, but the value is {described}")
        cuts = is_float(given) and not is_float(element)
        if cuts and not (isinstance(value, Const) and float(value.value).is_integer()):
            raise self.error(
                f"{subject} {type_to_dtype(wanted)} here, but the value is {described}",
                f'to cut off the fraction, write T.Cast("{type_to_dtype(wanted)}", …)',
            )
        return self.cast(value, wanted)

    def assign_name(self, name: Token, value: Expr) -> None:
        """`x = …`: a buffer, an allocation, a thread, a variable, or a let."""
        if "." in name and not called(value):
            self.fail(name, f"'{name}' cannot be assigned to")
        if name in _RESERVED:
            self.fail(name, f"'{name}' cannot be defined again")
        if isinstance(value, Call) and isinstance(value.function, Token):
            made = self.definition(str(name), value)
            if made is not None:
                self.define(str(name), made)
                return
        if isinstance(value, Index) and value.base in ("T.Buffer", "T.buffer_decl"):
            spec = self.annotation(value)
            assert spec is not None
            properties = {"implicit": IntegerAttr(1, I1)}
            self.define(str(name), self.make_buffer(DeclBufferOp, str(name), spec, properties=properties))
            return
        if isinstance(value, Lambda | Sequence):
            self.fail(name, "only scalars, buffers and handles have names", "write the list where it is used")
        entry = self.expr(value)
        if isinstance(entry, SSAValue) and not self.is_scalar(entry):
            self.define(str(name), entry)
            return
        self.let(name, entry, None)

    def is_scalar(self, value: SSAValue) -> bool:
        """Whether a value is a number or handle, and no buffer, reducer or iteration variable."""
        return not isinstance(value.type, BufferType) and not getattr(value.type, "name", "").startswith(
            ("tir.reducer", "tir.token", "tir.region")
        )

    def let(self, name: Token, value: Value, type_: Attribute | None, var: SSAValue | None = None) -> SSAValue:
        """Names a value for the rest of the region."""
        self.location = self.at(name)
        if type_ is not None and value.type != type_:
            handles = isinstance(type_, HandleType) and isinstance(value.type, HandleType)
            if not handles:
                value = self.convert(value, type_, f"'{name}' is")
        given = self.value(value)
        text = self.fresh(name) if var is None else self.shown.get(var, str(name))
        result = self.emit(LetOp(text, given, type_, var=var))
        result.name_hint = hint(name)
        self.shown[result] = text
        self.define(str(name), result)
        return result

    def definition(self, name: str, call: Call) -> SSAValue | None:
        """What a call that defines something gives; None for a call that is a plain value."""
        maker = _DEFINITIONS.get(str(call.function))
        if maker is not None:
            return maker(self, name, call)
        if str(call.function).startswith("T.axis."):
            self.fail(call, "axes are bound in a block", 'write them under with T.block("name"):')
        if not call.arguments:
            type_ = self.named_type(call.function)
            if type_ is not None:
                return self.variable(name, call, type_)
        elif call.function == "T.handle":
            return self.variable(name, call, self.handle(call))
        return None

    def variable(self, name: str, call: Call, type_: Attribute) -> SSAValue:
        """`n = T.int32()`."""
        size_var = any(k.name == "is_size_var" and k.value == "True" for k in call.keywords)
        self.location = self.at(call)
        text = self.fresh(name)
        result = self.emit(VarOp(text, type_, size_var=size_var))
        result.name_hint = hint(name)
        self.shown[result] = text
        return result

    def define_var(self, name: str, call: Call) -> SSAValue:
        """`n = T.var("int32")`, `n = T.Var("n", "int32")`."""
        type_ = self.dtype(call.arguments[-1]) if call.arguments else I32
        return self.variable(name, Call(call.function, [], call.keywords), type_)

    def define_alias(self, name: str, call: Call) -> SSAValue | None:
        """`x = T.meta_var(expression)`: another name for the expression."""
        (value,) = self.arguments(call, 1)
        return self.value(value)

    def define_alloc(self, name: str, call: Call) -> SSAValue:
        """`A = T.alloc_buffer((16,), "float32")`."""
        spec = self.spec(call, self.named_arguments(call, _FIELDS, 1))
        return self.make_buffer(AllocBufferOp, name, spec)

    def define_match(self, name: str, call: Call) -> SSAValue:
        """`A = T.match_buffer(a, (16,))`."""
        spec, source = self.match_spec(call)
        return self.make_buffer(MatchBufferOp, name, spec, source)

    def define_decl(self, name: str, call: Call) -> SSAValue:
        """`A = T.decl_buffer((16,), data=p)`."""
        spec = self.spec(call, self.named_arguments(call, _FIELDS, 1))
        return self.make_buffer(DeclBufferOp, name, spec)

    def define_buffer(self, name: str, call: Call) -> SSAValue:
        """`A = T.Buffer((16,), data=p)`."""
        spec = self.spec(call, self.named_arguments(call, _FIELDS, 1))
        return self.make_buffer(DeclBufferOp, name, spec, properties={"implicit": IntegerAttr(1, I1)})

    def define_allocate(self, name: str, call: Call) -> SSAValue:
        """`p = T.allocate([16], "float32", "global")`."""
        return self.allocate(call, name)

    def define_constant(self, name: str, call: Call) -> SSAValue:
        """`p = T.allocate_const([1, 2], "int32", [2])`."""
        return self.allocate_const(call, name)

    def define_env_thread(self, name: str, call: Call) -> SSAValue:
        """`tx = T.env_thread("threadIdx.x")`."""
        tag, dtype = self.named_arguments(call, ("thread_tag", "dtype"), 1)
        thread = self.string(tag, "a thread")
        type_ = I32 if dtype is None else self.dtype(dtype)
        self.location = self.at(call)
        result = self.emit(EnvThreadOp(self.fresh(name), thread, type_))
        result.name_hint = hint(name)
        return result

    def define_thread(self, name: str, call: Call) -> SSAValue:
        """`tx = T.launch_thread("threadIdx.x", 32)`, or of a variable that T.env_thread made."""
        thread_node, extent_node = self.named_arguments(call, ("thread", "extent"), 2)
        assert thread_node is not None and extent_node is not None
        env: SSAValue | None = None
        if self.is_string(thread_node):
            thread = self.string(thread_node, "a thread")
        else:
            env = self.scalar(thread_node)
            if not isinstance(env.owner, EnvThreadOp | LaunchThreadOp):
                self.fail(thread_node, "T.launch_thread takes a thread's name or a variable of T.env_thread")
            thread = env.owner.thread.data
            name = env.owner.var_name.data
        extent = self.expr(extent_node)
        if env is not None and isinstance(extent, Const):
            extent = self.cast(extent, env.type)
        self.location = self.at(call)
        given = self.value(extent)
        result = self.emit(LaunchThreadOp(self.fresh(name) if env is None else name, thread, given, env))
        result.name_hint = hint(name)
        if env is not None and isinstance(thread_node, Token):
            self.define(str(thread_node), result)
        return result

    def annotated(self, statement: Annotated) -> None:
        """`x: T.int32 = value`."""
        name = statement.target
        if not isinstance(name, Token) or name.type != "NAME":
            self.fail(name, "only a name is declared with a type")
        type_ = self.named_type(statement.annotation)
        if type_ is None:
            self.fail(statement.annotation, "a type is expected here", "write x: T.int32 = …")
        if statement.value is None:
            self.location = self.at(name)
            self.define(str(name), self.emit(VarOp(self.fresh(name), type_)))
            return
        self.let(name, self.expr(statement.value), type_)

    def augmented(self, statement: Augmented) -> None:
        """`A[i] += x`."""
        if not isinstance(statement.target, Index):
            self.fail(statement.target, "a name is bound once", "only an element of a buffer is updated: A[i] += x")
        op = Token("OPERATOR", statement.token[:-1], statement.token.start)
        self.store(statement.target, self.expr(Binary(op, statement.target, statement.value)), statement.token)

    # Control flow

    def for_loop(self, statement: For) -> None:
        """`for i in range(n):` and its kinds; `for i, j in T.grid(m, n):`."""
        call = statement.iterable
        targets = statement.target.items if isinstance(statement.target, Sequence) else [statement.target]
        names = [t for t in targets if isinstance(t, Token) and t.type == "NAME" and "." not in t]
        if len(names) != len(targets):
            self.fail(statement.target, "a loop variable is a name")
        function = called(call)
        if not isinstance(call, Call) or (function not in _LOOPS and function != "T.grid"):
            self.fail(
                call,
                "this is no loop",
                "a loop is over range(n), T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid(m, n)",
            )
        with self.recovering():
            if function == "T.grid":
                self.grid(statement, names, call)
            else:
                if len(names) != 1:
                    self.fail(statement.target, f"{function} gives one loop variable", "several come from T.grid(m, n)")
                self.simple_loop(statement, names[0], call, _LOOPS[function])
            return
        # The header is wrong: its body is still read, for its errors.
        block = Block(arg_types=[I32] * len(names))
        with self.inside(block):
            for name, arg in zip(names, block.args, strict=True):
                self.bind(name, arg)
            self.statements(statement.body)

    def grid(self, statement: For, names: list[Token], call: Call) -> None:
        """Nested serial loops."""
        if call.keywords or len(call.arguments) != len(names):
            self.fail(call, f"T.grid has {len(call.arguments)} extents for {len(names)} loop variables")
        outer = self.ops
        try:
            loops: list[tuple[ForOp, list[Operation]]] = []
            for name, node in zip(names, call.arguments, strict=True):
                # As in loops written one by one, an extent is evaluated in the loop around; it cannot name its variable.
                if isinstance(node, Sequence) and len(node.items) == 2:
                    low, extent = self.range_of(node.items[0], node.items[1])
                else:
                    extent = self.scalar(node)
                    low = self.value(Const(0, extent.type))
                loop = self.loop(statement.token, name, low, extent, "serial", None, NO_ATTRS)
                self.ops = []
                loops.append((loop, self.ops))
            with self.local():
                for name, (loop, _) in zip(names, loops, strict=True):
                    self.bind_loop(name, loop)
                self.statements(statement.body)
            for loop, ops in loops:
                loop.body.block.add_ops(ops)
        finally:
            self.ops = outer

    def loop(
        self,
        token: Token,
        name: Token,
        low: SSAValue,
        extent: SSAValue,
        kind: str,
        thread: str | None,
        annotations: DictionaryAttr,
    ) -> ForOp:
        """Emits a loop with an empty body."""
        if not isinstance(element_of(extent.type), type(I32)) or extent.type == I1:
            self.fail(name, f"loop '{name}' runs over integers, not {self.describe(extent)}")
        block = Block(arg_types=(extent.type,))
        properties: dict[str, Attribute] = {
            "var_name": StringAttr(str(name)),
            "kind": StringAttr(kind),
            "annotations": annotations,
        }
        if thread is not None:
            properties["thread"] = StringAttr(thread)
        # A loop over a variable that is declared outside, to which an attribute there refers.
        var = self.names.get(name)
        operands = (low, extent)
        if isinstance(var, SSAValue) and isinstance(var.owner, VarOp) and var.type == extent.type:
            operands = (low, extent, var)
        op = ForOp.create(operands=operands, properties=properties, regions=[Region(block)], location=self.at(token))
        self.ops.append(op)
        return op

    def bind_loop(self, name: Token, op: ForOp) -> None:
        """Makes a loop's variable visible."""
        arg = op.body.block.args[0]
        if op.var is None:
            op.properties["var_name"] = StringAttr(self.bind(name, arg))
            return
        arg.name_hint = hint(name)
        self.define(name, arg)
        self.shown[arg] = self.shown.get(op.var, str(name))
        op.properties["var_name"] = StringAttr(self.shown[arg])

    def simple_loop(self, statement: For, name: Token, call: Call, kind: str) -> None:
        """A single loop of any kind."""
        arguments = list(call.arguments)
        thread: str | None = None
        annotations = NO_ATTRS
        for keyword in call.keywords:
            if keyword.name == "annotations" and call.function != "range":
                annotations = self.annotations(keyword.value)
            elif keyword.name == "thread" and kind == "thread_binding":
                thread = self.string(keyword.value, "a thread")
            elif keyword.name == "stop":
                arguments.append(keyword.value)
            elif keyword.name == "start":
                arguments.insert(0, keyword.value)
            else:
                self.fail(keyword.name, f"{call.function} has no argument '{keyword.name}'")
        if kind == "thread_binding":
            if thread is None and arguments and self.is_string(arguments[-1]):
                thread = self.string(arguments.pop(), "a thread")
            if thread is None:
                self.fail(call, "T.thread_binding needs a thread", 'write T.thread_binding(32, thread="threadIdx.x")')
        if len(arguments) == 3 and literal_int(arguments[2]) == 1:
            arguments.pop()
        if not 1 <= len(arguments) <= 2:
            self.fail(
                call,
                f"{call.function} takes an extent, or a start and a stop",
                "a step other than 1 is written in the body: i * step",
            )
        if len(arguments) == 2:
            low, extent = self.range_of(arguments[0], arguments[1])
        else:
            extent = self.scalar(arguments[0])
            self.location = self.at(call)
            low = self.value(Const(0, extent.type))
        loop = self.loop(statement.token, name, low, extent, kind, thread, annotations)
        with self.inside(loop.body.block):
            self.bind_loop(name, loop)
            self.statements(statement.body)

    def if_statement(self, statement: If) -> None:
        """`if condition: … else: …`."""
        condition = self.condition(statement.condition, "the condition of 'if'")
        op = IfOp.create(
            operands=(condition,),
            regions=[Region(Block()), Region(Block()) if statement.orelse else Region()],
            location=self.at(statement.token),
        )
        self.ops.append(op)
        with self.inside(op.then_region.block):
            self.statements(statement.body)
        if statement.orelse:
            with self.inside(op.else_region.block):
                self.statements(statement.orelse)

    def while_loop(self, statement: While) -> None:
        """`while condition: …`."""
        condition, body = Block(), Block()
        with self.inside(condition):
            value = self.condition(statement.condition, "the condition of 'while'")
            self.ops.append(YieldOp.create(operands=(value,), location=self.at(statement.token)))
        op = WhileOp.create(regions=[Region(condition), Region(body)], location=self.at(statement.token))
        self.ops.append(op)
        with self.inside(body):
            self.statements(statement.body)

    def assertion(self, at: Expr, condition: Expr, message: Expr | None) -> None:
        """`assert condition, "message"`."""
        value = self.condition(condition, "the condition of 'assert'")
        text = "" if message is None else self.string(message, "the message of 'assert'")
        self.ops.append(
            AssertOp.create(operands=(value,), properties={"message": StringAttr(text)}, location=self.at(at))
        )

    def return_statement(self, statement: Return) -> None:
        """`return x`: `T.ret(x)`, evaluated."""
        if statement.value is None or statement.value == "None":
            self.fail(
                statement.token, "'return' gives a value", "a function without a result ends with its last statement"
            )
        value = self.scalar(statement.value)
        self.location = self.at(statement.token)
        self.evaluate(self.intrinsic("ret", [value]))

    def evaluate(self, value: SSAValue) -> None:
        """`T.evaluate(value)`, at the current location."""
        self.ops.append(EvaluateOp.create(operands=(value,), location=self.location))

    # Scopes

    def with_statement(self, statement: With, last: bool) -> None:
        """`with T.block(…):`, `with T.init():`, and scopes: `with T.allocate(…) as p:`, `with T.attr(…):`."""
        first = statement.items[0][0]
        function = called(first)
        if function in ("T.block", "T.init"):
            target = statement.items[0][1]
            if len(statement.items) > 1 or target is not None:
                self.fail(
                    target or first,
                    f"{function} stands alone and has no 'as'",
                    "axes are bound inside: vi = T.axis.spatial(8, i)",
                )
            assert isinstance(first, Call)
            if function == "T.block":
                self.block(first, statement)
            else:
                self.init(statement)
            return
        with self.scope(statement.token, last):
            for item, target in statement.items:
                self.scope_item(item, target)
            self.statements(statement.body)

    @contextmanager
    def scope(self, token: Token, last: bool) -> Iterator[None]:
        """A scope; one that ends with the region around it needs no op."""
        if last:
            with self.local():
                yield
            return
        block = Block()
        op = ScopeOp.create(regions=[Region(block)], location=self.at(token))
        self.ops.append(op)
        with self.inside(block):
            yield

    def scope_item(self, item: Expr, target: Expr | None) -> None:
        """One of a with's items."""
        if not isinstance(item, Call) or not isinstance(item.function, Token):
            self.fail(
                item,
                "this opens no scope",
                "with is for T.block, T.init, T.attr, T.allocate, T.decl_buffer, T.launch_thread, T.LetStmt, T.realize",
            )
        if item.function == "T.LetStmt":
            self.let_statement(item, target)
        elif target is not None:
            if not isinstance(target, Token) or target.type != "NAME":
                self.fail(target, "'as' gives one name")
            made = self.definition(str(target), item)
            if made is None:
                self.fail(item, f"{item.function} gives nothing to name")
            self.define(str(target), made)
        elif item.function == "T.Assert":
            condition, message = self.named_arguments(item, ("condition", "message"), 2)
            assert condition is not None
            self.assertion(item, condition, message)
        elif item.function in _SCOPES or item.function == "T.launch_thread":
            self.expression(item)
        else:
            self.fail(item, f"{item.function} opens no scope")

    def let_statement(self, call: Call, target: Expr | None) -> None:
        """`with T.LetStmt(value, type) as x:`, `with T.LetStmt(value, var=x):`."""
        value_node, type_node, var_node = self.named_arguments(call, ("value", "type_annotation", "var"), 1)
        assert value_node is not None
        value = self.expr(value_node)
        type_ = None if type_node is None else self.named_type(type_node)
        name = target if target is not None else var_node
        if not isinstance(name, Token) or name.type != "NAME":
            self.fail(call, "T.LetStmt names its value", "write with T.LetStmt(value) as x:")
        var = None
        if var_node is not None:
            var = self.scalar(var_node)
            type_ = var.type
        self.let(name, value, type_, var)

    # Expressions as statements

    def expression(self, node: Expr) -> None:
        """A call for its effect; a docstring; a value, evaluated."""
        if self.is_string(node):
            return
        if isinstance(node, Call) and isinstance(node.function, Token):
            name = node.function
            reader = _STATEMENTS.get(str(name))
            if reader is not None:
                reader(self, node)
                return
            if not name.startswith("T."):
                value = self.call_op(node, name)
                if value is not None:
                    self.evaluate(value)
                return
        value = self.scalar(node)
        self.location = self.at(node)
        if isinstance(value.type, NoneType):
            self.drop_result(value)
            return
        self.evaluate(value)

    def drop_result(self, value: SSAValue) -> None:
        """A void call has no result."""
        made = value.owner
        assert isinstance(made, CallOp)
        plain = CallOp.create(operands=made.operands, properties=made.properties, location=made.location)
        self.ops.remove(made)
        made.erase()
        self.ops.append(plain)

    def read_evaluate(self, call: Call) -> None:
        """`T.evaluate(x)`."""
        if len(call.arguments) != 1 or call.keywords:
            self.fail(call, "T.evaluate takes one value")
        inner = call.arguments[0]
        if isinstance(inner, Call) and isinstance(inner.function, Token) and not inner.function.startswith("T."):
            self.expression(inner)
            return
        value = self.scalar(inner)
        self.location = self.at(call)
        if isinstance(value.type, NoneType):
            self.drop_result(value)
            return
        self.evaluate(value)

    def read_func_attr(self, call: Call) -> None:
        """`T.func_attr({…})`."""
        if len(call.arguments) != 1 or call.keywords:
            self.fail(call, "T.func_attr takes one dictionary")
        for key, value in self.dictionary(call.arguments[0]).data.items():
            if key in self.func_attrs:
                self.fail(call, f"the attribute '{key}' is given twice")
            self.func_attrs[key] = value

    def read_misplaced(self, call: Call) -> None:
        """What belongs into a block's head."""
        self.fail(call, f"{call.function} belongs directly into a block", 'write it under with T.block("name"):')

    def read_attr(self, call: Call) -> None:
        """`T.attr(node, "key", value)`."""
        node, key, value = self.named_arguments(call, ("node", "attr_key", "value"), 3)
        assert node is not None and value is not None
        subject = self.attr_operand(node)
        text = self.string(key, "the key of T.attr")
        given = self.attr_operand(value)
        self.ops.append(
            AttrOp.create(operands=(subject, given), properties={"key": StringAttr(text)}, location=self.at(call))
        )

    def attr_operand(self, node: Expr) -> SSAValue:
        """A string or any value."""
        if self.is_string(node):
            self.location = self.at(node)
            attr = StringAttr(self.string(node, ""))
            return self.emit(ConstOp.create(properties={"value": attr}, result_types=(StringType(),)))
        return self.scalar(node)

    def read_realize(self, call: Call) -> None:
        """`T.realize(A[0:16], "global")`, `T.ProducerRealize(A[0:16], condition)`."""
        producer = call.function == "T.ProducerRealize"
        names = ("region", "condition", "storage_scope") if producer else ("region", "storage_scope", "condition")
        region_node, second, third = self.named_arguments(call, names, 1)
        assert region_node is not None
        scope, condition = (third, second) if producer else (second, third)
        region = self.region(region_node)
        guard = None if condition is None else self.condition(condition, "the condition of a realize")
        text = None if scope is None else self.string(scope, "a storage scope")
        self.location = self.at(call)
        op = RealizeOp(region, text, guard, producer=producer)
        op.location = self.location
        self.ops.append(op)

    def read_prefetch(self, call: Call) -> None:
        """`T.prefetch(A, [T.Range(0, 16)])`."""
        buffer_node, bounds = self.named_arguments(call, ("buffer", "bounds"), 2)
        assert buffer_node is not None
        buffer = self.buffer(buffer_node)
        mins: list[SSAValue] = []
        extents: list[SSAValue] = []
        for bound in self.items(bounds, "the bounds of T.prefetch"):
            ends = bound.arguments if isinstance(bound, Call) else self.items(bound, "a bound")
            if len(ends) != 2:
                self.fail(bound, "a bound is a pair (start, stop)")
            low, extent = self.range_of(ends[0], ends[1])
            mins.append(low)
            extents.append(extent)
        self.check_rank(buffer, len(mins), call)
        self.location = self.at(call)
        region = self.emit(BufferRegionOp(buffer, mins, extents))
        self.ops.append(PrefetchOp.create(operands=(region,), location=self.location))

    def read_launch(self, call: Call) -> None:
        """`T.launch_thread(tx, 32)` of an env_thread's variable."""
        self.define_thread("", call)

    def read_store(self, call: Call) -> None:
        """`T.buffer_store(A, value, [i, j])`."""
        buffer, value, indices = self.named_arguments(call, ("buffer", "value", "indices"), 3)
        assert buffer is not None and value is not None
        token = call.function
        assert isinstance(token, Token)
        self.store(Index(buffer, self.items(indices, "the indices")), self.expr(value), token)


def _is_empty_regions(statement: Stmt) -> bool:
    """`T.reads()` or `T.writes()`, naming nothing."""
    if not isinstance(statement, Expression) or called(statement.value) not in ("T.reads", "T.writes"):
        return False
    call = statement.value
    return isinstance(call, Call) and not call.arguments


def inline_simple_matches(op: PrimFuncOp) -> None:
    """A handle that is only matched to a simple buffer becomes the buffer itself, as TVM prints it."""
    names = list(op.param_names.data)
    for arg in list(op.body.block.args):
        if not isinstance(arg.type, HandleType) or not isinstance(arg.type.pointee, NoneType):
            continue
        use = arg.get_unique_use()
        match = use.operation if use is not None else None
        if not isinstance(match, MatchBufferOp) or match.parent_block() is not op.body.block:
            continue
        type_ = match.result.type
        plain = (
            match.source is arg
            and match.data is None
            and not _shares_data(match.result)
            and type_.static_shape is not None
            and not match.stride_dims.data
            and match.elem_offset is None
            and type_.scope.data == "global"
            and not (match.data_alignment or match.offset_factor or match.buffer_type or match.axis_separators)
        )
        if not plain:
            continue
        index = arg.index
        name, location = match.var_name, match.location
        new = Rewriter.replace_value_with_new_type(arg, type_)
        assert isinstance(new, BlockArgument)
        match.result.replace_all_uses_with(new)
        match.detach()
        match.erase()
        new.name_hint = hint(name.data)
        new.location = location
        names[index] = name
    op.properties["param_names"] = ArrayAttr(names)


def _shares_data(buffer: SSAValue) -> bool:
    """Whether another parameter is matched to the same memory."""
    return any(
        isinstance(use.operation, BufferGetOp)
        and any(isinstance(inner.operation, MatchBufferOp) for inner in use.operation.result.uses)
        for use in buffer.uses
    )


_Maker = Callable[[FunctionReader, str, Call], "SSAValue | None"]
_DEFINITIONS: dict[str, _Maker] = {
    "T.alloc_buffer": FunctionReader.define_alloc,
    "T.match_buffer": FunctionReader.define_match,
    "T.decl_buffer": FunctionReader.define_decl,
    "T.Buffer": FunctionReader.define_buffer,
    "T.buffer_decl": FunctionReader.define_buffer,
    "T.allocate": FunctionReader.define_allocate,
    "T.allocate_const": FunctionReader.define_constant,
    "T.env_thread": FunctionReader.define_env_thread,
    "T.launch_thread": FunctionReader.define_thread,
    "T.var": FunctionReader.define_var,
    "T.Var": FunctionReader.define_var,
    "T.meta_var": FunctionReader.define_alias,
}
_SCOPES = frozenset(["T.attr", "T.realize", "T.ProducerRealize", "T.prefetch"])
_STATEMENTS: dict[str, Callable[[FunctionReader, Call], None]] = {
    "T.evaluate": FunctionReader.read_evaluate,
    "T.func_attr": FunctionReader.read_func_attr,
    "T.reads": FunctionReader.regions_op,
    "T.writes": FunctionReader.regions_op,
    "T.where": FunctionReader.read_misplaced,
    "T.block_attr": FunctionReader.read_misplaced,
    "T.attr": FunctionReader.read_attr,
    "T.realize": FunctionReader.read_realize,
    "T.ProducerRealize": FunctionReader.read_realize,
    "T.prefetch": FunctionReader.read_prefetch,
    "T.launch_thread": FunctionReader.read_launch,
    "T.buffer_store": FunctionReader.read_store,
}
