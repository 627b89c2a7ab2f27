"""What statements define: stores, lets, buffers, allocations, threads, symbolic variables."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue

from ...dialects.tir.buffer import (
    AllocBufferOp,
    DeclBufferOp,
    MatchBufferOp,
    StoreOp,
    accessed_type,
    buffer_name,
)
from ...dialects.tir.expr import LetOp, VarOp
from ...dialects.tir.operators import Const, Value, is_float
from ...dialects.tir.stmt import (
    EnvThreadOp,
    LaunchThreadOp,
)
from ...dialects.tir.types import I1, I32, BufferType, HandleType, StringType, element_of, lanes_of, type_to_dtype
from ..python.tree import (
    Call,
    Expr,
    Index,
    Lambda,
    Sequence,
    Token,
)
from .blocks import Blocks, called
from .buffers import FIELDS
from .expressions import hint, segments

RESERVED = frozenset(["T", "tvm", "True", "False", "None", "range"])


class Definitions(Blocks):
    """Reads the right sides of assignments."""

    def store(self, target: Index, value: Value, token: Token) -> None:
        """`A[i, j] = value`: the value is cast as TVM does, except from float to integer."""
        position = len(self.ops)
        buffer = self.buffer(target.base)
        indices = [self.access_index(item) for item in target.items]
        self.check_rank(buffer, len(indices), target)
        self.location = self.at(token)
        assert isinstance(buffer.type, BufferType)
        wanted = accessed_type(buffer.type, [i.type for i in indices])
        if value.type != wanted:
            with self.before(position):
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
        described = self.describe(value)
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
        if name in RESERVED:
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
        spec = self.spec(call, self.named_arguments(call, FIELDS, 1))
        return self.make_buffer(AllocBufferOp, name, spec)

    def define_match(self, name: str, call: Call) -> SSAValue:
        """`A = T.match_buffer(a, (16,))`."""
        spec, source = self.match_spec(call)
        return self.make_buffer(MatchBufferOp, name, spec, source)

    def define_decl(self, name: str, call: Call) -> SSAValue:
        """`A = T.decl_buffer((16,), data=p)`."""
        spec = self.spec(call, self.named_arguments(call, FIELDS, 1))
        return self.make_buffer(DeclBufferOp, name, spec)

    def define_buffer(self, name: str, call: Call) -> SSAValue:
        """`A = T.Buffer((16,), data=p)`."""
        spec = self.spec(call, self.named_arguments(call, FIELDS, 1))
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


_Maker = Callable[[Definitions, str, Call], "SSAValue | None"]
_DEFINITIONS: dict[str, _Maker] = {
    "T.alloc_buffer": Definitions.define_alloc,
    "T.match_buffer": Definitions.define_match,
    "T.decl_buffer": Definitions.define_decl,
    "T.Buffer": Definitions.define_buffer,
    "T.buffer_decl": Definitions.define_buffer,
    "T.allocate": Definitions.define_allocate,
    "T.allocate_const": Definitions.define_constant,
    "T.env_thread": Definitions.define_env_thread,
    "T.launch_thread": Definitions.define_thread,
    "T.var": Definitions.define_var,
    "T.Var": Definitions.define_var,
    "T.meta_var": Definitions.define_alias,
}
