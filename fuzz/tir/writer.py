"""Random TIR functions as text, of every statement, expression and intrinsic, and dtype.

```python
@T.prim_func
def main(A0: T.Buffer((7,), "int8"), A1: T.Buffer((3, 5), "float16"), n: T.int32, O0: T.Buffer((7,), "int64")):
    for i in T.parallel(7):
        O0[i] = T.shift_left(T.Cast("int64", A0[i]), T.int64(3)) // T.Cast("int64", n)
```

Each nest of loops writes a buffer of its own and reads the parameters and what nests before it wrote, so that its iterations do not depend on each
other unless it adds to an element. Indices stay inside by remainders.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...dialects.array import numpy_dtype
from ...dialects.tir.intrinsics import BINARY_MATH, BITWISE, FLOAT_TESTS, UNARY_MATH
from ...dialects.tir.scalar_ops import INTRINSICS
from ..relay.single import with_specials

INTS = ("int32", "int32", "int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float32", "float64", "float16", "bfloat16")
EXTENTS = (0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31)
LANES = (2, 4, 8)

UNARY = tuple(row.name for row in INTRINSICS.values() if row.name in UNARY_MATH)
BINARY = tuple(row.name for row in INTRINSICS.values() if row.name in BINARY_MATH - {"ldexp"})
TESTS = tuple(row.name for row in INTRINSICS.values() if row.name in FLOAT_TESTS)
BITS = tuple(row.name for row in INTRINSICS.values() if row.name in BITWISE)


@dataclass(frozen=True)
class Buf:
    """A buffer: its name, dtype, extents (numbers or `n`) as text, and whether elements can be read."""

    name: str
    dtype: str
    shape: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Tells whether the buffer may have no element to read at a remainder."""
        return any(not extent.isdigit() or int(extent) == 0 for extent in self.shape)


@dataclass
class Scope:
    """The names that an expression may use: integer variables with their extents, and buffers."""

    variables: dict[str, str]
    buffers: list[Buf]
    lets: dict[str, str] = field(default_factory=dict[str, str])
    """Variables of any dtype."""

    def inside(self, variables: dict[str, str]) -> Scope:
        """Writes the scope within loops."""
        return Scope({**self.variables, **variables}, self.buffers, dict(self.lets))


class Writer:
    """Writes one module with the function `main`, and draws its inputs."""

    def __init__(self, rng: random.Random, wraps: bool = True):
        self.rng = rng
        self.names = 0
        self.lines: list[str] = []
        self.matches: list[str] = []
        self.params: list[str] = []
        self.inputs: dict[str, np.ndarray] = {}
        self.helper: list[str] = []
        self.scalar = rng.choice((0, 1, 2, 3, 5, 8))
        self.calm = rng.random() < 0.75
        """Whether constants are small and casts fit."""
        self.wraps = wraps
        """Whether constants of int32 and int64 may be the ends of these, so that arithmetic wraps around."""

    def program(self) -> str:
        """Returns the text."""
        scope = Scope({}, [])
        for _ in range(self.rng.randint(2, 4)):
            scope.buffers.append(self.parameter())
        self.params.append("n: T.int32")
        self.inputs["n"] = np.array(self.scalar, np.int32)
        for _ in range(self.rng.randint(1, 4)):
            scope.buffers.append(self.nest(scope))
        head = ["@T.prim_func", f"def main({', '.join(self.params)}):"]
        body = ["    " + line for line in (*self.matches, *self.lines)]
        if not self.helper:
            return "\n".join([*head, *body]) + "\n"
        parts = ["@I.ir_module", "class Module:", *("    " + line for line in (*self.helper, *head, *body))]
        return "\n".join(parts) + "\n"

    def fresh(self, stem: str) -> str:
        """Returns a new name."""
        self.names += 1
        return f"{stem}{self.names}"

    def line(self, depth: int, text: str) -> None:
        """Writes a line of the body."""
        self.lines.append("    " * depth + text)

    # Parameters.

    def dtype(self) -> str:
        """Draws any dtype of a buffer."""
        return self.rng.choice(
            (self.rng.choice(INTS), self.rng.choice(FLOATS), "bool" if self.rng.random() < 0.3 else "int32")
        )

    def parameter(self) -> Buf:
        """Writes a buffer that is read, with an array for it."""
        name, dtype = self.fresh("A"), self.dtype()
        symbolic = self.rng.random() < 0.2
        shape = [self.rng.choice(EXTENTS[1:]) for _ in range(self.rng.choice((1, 1, 2)))]
        written = [str(extent) for extent in shape]
        if symbolic:
            handle = name.lower()
            if self.rng.random() < 0.5:
                shape[0], written[0] = self.scalar, "n"
            else:
                written[0] = f"size_{handle}"
                self.matches.append(f"{written[0]} = T.int32()")
            self.params.append(f"{handle}: T.handle")
            self.matches.append(f'{name} = T.match_buffer({handle}, ({", ".join(written)},), "{dtype}")')
        else:
            self.params.append(f'{name}: T.Buffer(({", ".join(written)},), "{dtype}")')
        self.inputs[name.lower() if symbolic else name] = self.array(dtype, shape)
        return Buf(name, dtype, tuple(written))

    def array(self, dtype: str, shape: Sequence[int]) -> np.ndarray:
        """Draws numbers that most functions are defined on; in some programs special ones among them."""
        draw = np.random.default_rng(self.rng.randrange(1 << 30))
        if dtype == "bool":
            return draw.integers(0, 2, shape).astype(bool)
        if dtype.startswith(("int", "uint")):
            low = 0 if dtype.startswith("u") else -20
            made = np.asarray(draw.integers(low, 40, shape)).astype(dtype)
        else:
            made = np.asarray(draw.uniform(-2.0, 2.0, shape)).astype(numpy_dtype(dtype))
        return with_specials(made, self.rng) if not self.calm and made.size else made

    def output(self, shape: tuple[str, ...], dtype: str) -> Buf:
        """Adds a buffer that a nest writes: a parameter, or a temporary that a later nest copies out."""
        name = self.fresh("O")
        extents = [self.scalar if extent == "n" else int(extent) for extent in shape]
        dims = ", ".join(shape) + ("," if shape else "")
        if "n" in shape:
            handle = name.lower()
            self.params.append(f"{handle}: T.handle")
            self.matches.append(f'{name} = T.match_buffer({handle}, ({dims}), "{dtype}")')
        else:
            self.params.append(f'{name}: T.Buffer(({dims}), "{dtype}")')
        self.inputs[name.lower() if "n" in shape else name] = np.zeros(extents, numpy_dtype(dtype))
        return Buf(name, dtype, shape)

    # Statements.

    def nest(self, scope: Scope) -> Buf:
        """Writes loops that write a buffer."""
        made: Callable[[Scope], Buf] = self.rng.choice(
            (self.loops, self.loops, self.loops, self.block, self.reduction, self.reduction, self.parallel, self.vectorized, self.vectors,
             self.repeated, self.uneven, self.through_memory, self.threads, self.called, self.statements, self.of_views, self.of_lanes, self.constants)
        )  # fmt: skip
        return made(scope)

    def extents(self, least: int = 1) -> tuple[str, ...]:
        """Extents of some loops."""
        count = self.rng.choice((1, 1, 2, 3)) if least == 1 else self.rng.choice((2, 3))
        found = [str(self.rng.choice(EXTENTS)) for _ in range(count)]
        if self.rng.random() < 0.2:
            found[0] = "n"
        return tuple(found)

    def loops(self, scope: Scope) -> Buf:
        """Writes serial loops, one or several stores under conditions and lets."""
        shape, dtype = self.extents(), self.dtype()
        out = self.output(shape, dtype)
        variables = {self.fresh("i"): extent for extent in shape}
        inner = scope.inside(variables)
        if self.rng.random() < 0.5:
            self.line(0, f"for {', '.join(variables)} in T.grid({', '.join(shape)}):")
            depth = 1
        else:
            for depth, (name, extent) in enumerate(variables.items()):
                kind = (
                    self.rng.choice(["range", "range", "T.serial", "T.unroll"])
                    if extent.isdigit() and int(extent) < 6
                    else "range"
                )
                self.line(depth, f"for {name} in {kind}({extent}):")
            depth = len(variables)
        place = f"{out.name}[{', '.join(variables)}]"
        self.body(inner, depth, place, dtype)
        return out

    def body(self, scope: Scope, depth: int, place: str, dtype: str) -> None:
        """Writes the statements for one element."""
        rng = self.rng
        if rng.random() < 0.3:
            name, kind = self.fresh("v"), self.dtype()
            self.line(depth, f"{name}: T.{kind} = {self.expression(kind, scope, 2)}")
            scope.lets[name] = kind
        if rng.random() < 0.15:
            self.line(depth, f'assert {self.expression("bool", scope, 1)} or T.bool(True), "never"')
        if rng.random() < 0.1:
            self.line(depth, f"T.evaluate({self.expression('int32', scope, 1)})")
        if rng.random() < 0.3:
            guard = self.expression("bool", scope, 2)
            self.line(depth, f"if {f'T.likely({guard})' if rng.random() < 0.3 else guard}:")
            self.line(depth + 1, f"{place} = {self.expression(dtype, scope, 3)}")
            if rng.random() < 0.6:
                self.line(depth, "else:")
                self.line(depth + 1, f"{place} = {self.expression(dtype, scope, 3)}")
            return
        self.line(depth, f"{place} = {self.expression(dtype, scope, 4)}")
        if rng.random() < 0.2 and dtype != "bool":
            self.line(depth, f"{place} = {place} + {self.expression(dtype, scope, 2)}")

    def block(self, scope: Scope) -> Buf:
        """Writes a block of spatial axes, some with a predicate."""
        shape, dtype = tuple(e for e in self.extents() if e != "n") or ("3",), self.dtype()
        out = self.output(shape, dtype)
        names = [self.fresh("i") for _ in shape]
        axes = [self.fresh("v") for _ in shape]
        self.line(0, f"for {', '.join(names)} in T.grid({', '.join(shape)}):")
        self.line(1, f'with T.block("{out.name}"):')
        self.line(2, f'{", ".join(axes)} = T.axis.remap("{"S" * len(axes)}", [{", ".join(names)}])' if len(axes) > 1 else f"{axes[0]} = T.axis.spatial({shape[0]}, {names[0]})")  # fmt: skip
        if self.rng.random() < 0.3:
            self.line(2, f"T.where({names[0]} < {self.rng.randint(0, 6)})")
        inner = scope.inside(dict(zip(axes, shape, strict=True)))
        self.line(2, f"{out.name}[{', '.join(axes)}] = {self.expression(dtype, inner, 4)}")
        return out

    def reduction(self, scope: Scope) -> Buf:
        """Writes a block with an init: sums, products, extremes."""
        shape = tuple(e for e in self.extents(2) if e != "n")
        shape = shape if len(shape) > 1 else (*shape, "5")
        dtype = self.rng.choice((self.rng.choice(INTS), self.rng.choice(FLOATS)))
        keep = shape[:-1]
        out = self.output(keep, dtype)
        names = [self.fresh("i") for _ in shape]
        axes = [self.fresh("v") for _ in shape]
        self.line(0, f"for {', '.join(names)} in T.grid({', '.join(shape)}):")
        self.line(1, f'with T.block("{out.name}"):')
        self.line(2, f'{", ".join(axes)} = T.axis.remap("{"S" * len(keep)}R", [{", ".join(names)}])')
        place = f"{out.name}[{', '.join(axes[:-1])}]"
        self.line(2, "with T.init():")
        self.line(3, f"{place} = {self.constant(dtype)}")
        inner = scope.inside(dict(zip(axes, shape, strict=True)))
        value = self.expression(dtype, inner, 2)
        combined = self.rng.choice([f"{place} + {value}", f"T.max({place}, {value})", f"T.min({place}, {value})"])
        self.line(2, f"{place} = {combined}")
        return out

    def parallel(self, scope: Scope) -> Buf:
        """Writes a loop for threads."""
        extent, dtype = self.rng.choice((*EXTENTS, "n")), self.dtype()
        out, name = self.output((str(extent),), dtype), self.fresh("i")
        self.line(0, f"for {name} in T.parallel({extent}):")
        self.body(scope.inside({name: str(extent)}), 1, f"{out.name}[{name}]", dtype)
        return out

    def vectorized(self, scope: Scope) -> Buf:
        """Writes a loop in lanes."""
        outer, lanes, dtype = self.rng.choice(EXTENTS), self.rng.choice((*LANES, 1, 3, 5)), self.dtype()
        out, i, j = self.output((str(outer), str(lanes)), dtype), self.fresh("i"), self.fresh("j")
        self.line(0, f"for {i} in range({outer}):")
        self.line(1, f"for {j} in T.vectorized({lanes}):")
        inner = scope.inside({i: str(outer), j: str(lanes)})
        self.line(2, f"{out.name}[{i}, {j}] = {self.expression(dtype, inner, 3)}")
        return out

    def vectors(self, scope: Scope) -> Buf:
        """Stores of whole vectors: ramps, broadcasts, shuffles."""
        dtype, lanes = self.rng.choice((self.rng.choice(INTS), self.rng.choice(FLOATS))), self.rng.choice(LANES)
        out = self.output((str(4 * lanes),), dtype)
        source = next((b for b in scope.buffers if b.dtype == dtype and len(b.shape) == 1 and b.shape[0].isdigit() and int(b.shape[0]) >= lanes), None)  # fmt: skip
        i = self.fresh("i")
        self.line(0, f"for {i} in range(4):")
        inner = scope.inside({i: "4"})
        one = f"T.Broadcast({self.expression(dtype, inner, 2)}, {lanes})"
        vector = one
        if source is not None:
            read = self.rng.choice(
                [f"{source.name}[0:{lanes}]", f"{source.name}[T.Ramp({lanes - 1}, -1, {lanes})]",
                 f"T.Shuffle([{source.name}[0:{lanes}]], [{', '.join(str(self.rng.randrange(lanes)) for _ in range(lanes))}])"]
            )  # fmt: skip
            forms = [f"{read} + {one}", f"T.max({read}, {one})", f"T.Select({read} < {one}, {one}, {read})", read]
            vector = self.rng.choice(forms)
        if "int" in dtype and self.rng.random() < 0.3:
            vector = f'T.Cast("{dtype}x{lanes}", T.Ramp({i}, {self.rng.randint(-2, 3)}, {lanes})) + {vector}'
        place = self.rng.choice([f"{i} * {lanes}:{i} * {lanes} + {lanes}", f"T.Ramp({i} * {lanes} + {lanes - 1}, -1, {lanes})"])  # fmt: skip
        self.line(1, f"{out.name}[{place}] = {vector}")
        return out

    def repeated(self, scope: Scope) -> Buf:
        """Writes a while loop."""
        extent = self.rng.choice(EXTENTS)
        out, i = self.output((str(extent),), "int32"), self.fresh("i")
        self.line(0, f"for {i} in range({extent}):")
        inner = scope.inside({i: str(extent)})
        self.line(1, f"{out.name}[{i}] = {self.index(inner, 2)} % 7")
        self.line(1, f"while {out.name}[{i}] < {self.rng.randint(5, 40)}:")
        self.line(2, f"{out.name}[{i}] = {out.name}[{i}] * 2 + {self.rng.randint(1, 3)}")
        return out

    def uneven(self, scope: Scope) -> Buf:
        """Writes loops whose extents and begins depend on others, adding to elements."""
        extent, dtype = self.rng.choice(EXTENTS), self.rng.choice((*INTS, *FLOATS))
        out, i, j = self.output((str(extent),), dtype), self.fresh("i"), self.fresh("j")
        self.line(0, f"for {i} in range({extent}):")
        bounds = self.rng.choice([f"{i}", f"{i} + 1", f"{i} // 2", f"1, {i} + 2", f"n, {i} + n", f"{i} % 3, 4"])
        self.line(1, f"for {j} in range({bounds}):")
        inner = scope.inside({i: str(extent), j: "?"})
        self.line(2, f"{out.name}[{i}] = {out.name}[{i}] + {self.expression(dtype, inner, 2)}")
        return out

    def through_memory(self, scope: Scope) -> Buf:
        """Writes through memory of the function's own, allocated in each way that exists."""
        extent, dtype = str(self.rng.choice(EXTENTS[1:])), self.dtype()
        out = self.output((extent,), dtype)
        name = self.fresh("M")
        forms = [
            [f'{name} = T.decl_buffer(({extent},), "{dtype}")'],
            [
                f'{name}_data = T.allocate([{extent}], "{dtype}", "global")',
                f'{name} = T.Buffer(({extent},), "{dtype}", data={name}_data)',
            ],
            [f'{name} = T.alloc_buffer(({extent},), "{dtype}")'],
        ]
        form = self.rng.choice(forms)
        if form is forms[2]:
            self.matches.extend(form)
        else:
            for text in form:
                self.line(0, text)
        own = Buf(name, dtype, (extent,))
        for target, buffers in ((own, scope.buffers), (out, [own, own, *scope.buffers])):
            i = self.fresh("i")
            self.line(0, f"for {i} in range({extent}):")
            inner = Scope({**scope.variables, i: extent}, list(buffers))
            self.line(1, f"{target.name}[{i}] = {self.expression(dtype, inner, 3)}")
        return out

    def threads(self, scope: Scope) -> Buf:
        """Writes loops bound to threads, and the statements that represent them in lowered functions."""
        extent, dtype = str(self.rng.choice(EXTENTS[1:])), self.dtype()
        out, i = self.output((extent,), dtype), self.fresh("i")
        if self.rng.random() < 0.5:
            self.line(0, f'for {i} in T.thread_binding({extent}, thread="threadIdx.x"):')
            self.line(1, f"{out.name}[{i}] = {self.expression(dtype, scope.inside({i: extent}), 3)}")
        else:
            self.line(0, f'with T.launch_thread("blockIdx.x", {extent}) as {i}:')
            self.line(1, f"{out.name}[{i}] = {self.expression(dtype, scope.inside({i: extent}), 3)}")
        return out

    def called(self, scope: Scope) -> Buf:
        """Writes another function of the module that writes the buffer."""
        extent, dtype = str(self.rng.choice(EXTENTS[1:])), self.rng.choice((*INTS, *FLOATS))
        out = self.output((extent,), dtype)
        if self.helper:
            return self.statements(scope)
        before, self.lines = self.lines, []
        i = self.fresh("i")
        inner = Scope({i: extent, "k": "?"}, [Buf("P", dtype, (extent,))])
        self.line(1, f"for {i} in range({extent}):")
        self.line(2, f"P[{i}] = P[{i}] + {self.expression(dtype, inner, 2)}")
        self.helper = [
            "@T.prim_func(private=True)",
            f'def helper(P: T.Buffer(({extent},), "{dtype}"), k: T.int32):',
            *self.lines,
        ]
        self.lines = before
        self.line(0, f"Module.helper({out.name}, {self.rng.randint(0, 9)})")
        return out

    def statements(self, scope: Scope) -> Buf:
        """Statements outside of loops, one scope in another."""
        dtype = self.rng.choice((*INTS, *FLOATS))
        out = self.output(("4",), dtype)
        for k in range(4):
            self.line(0, f"{out.name}[{k}] = {self.expression(dtype, scope, 3)}")
        with_attr = self.rng.random()
        if with_attr < 0.4:
            self.line(0, f'with T.attr(0, "pragma_unroll_explicit", {self.rng.randint(0, 1)}):')
            self.line(1, f"{out.name}[{self.index(scope, 1)} % 4] = {self.expression(dtype, scope, 2)}")
        elif with_attr < 0.7:
            self.line(0, f'{out.name}[1] = {out.name}[T.Cast("int64", {self.index(scope, 1)}) % T.int64(4)]')
        return out

    def of_views(self, scope: Scope) -> Buf:
        """Writes through a view of the buffer's memory, or of a region of it."""
        dtype = self.rng.choice((*INTS, *FLOATS))
        out, view, i = self.output(("8",), dtype), self.fresh("V"), self.fresh("i")
        inner = scope.inside({i: "4"})
        value = self.expression(dtype, inner, 3)
        kind = self.rng.randrange(4)
        if kind == 3:
            self.line(0, f"for {i} in range(4):")
            self.line(1, f'with T.block("{out.name}"):')
            self.line(2, f"v{i} = T.axis.{self.rng.choice(('spatial', 'opaque'))}(4, {i})")
            self.line(2, "T.reads()")
            self.line(2, f"T.writes({out.name}[v{i} * 2:v{i} * 2 + 2])")
            self.line(2, 'T.block_attr({"note": 1})')
            self.line(
                2, f'{view} = T.match_buffer({out.name}[v{i} * 2:v{i} * 2 + 2], (2,), "{dtype}", offset_factor=1)'
            )
            self.line(2, f"for k{i} in range(2):")
            inner = Scope({f"v{i}": "4", f"k{i}": "2"}, [])
            self.line(3, f'{view}[k{i}] = {self.expression(dtype, inner, 2)} + T.Cast("{dtype}", {view}.elem_offset)')
            return out
        pointer = [
            f"T.address_of({out.name}[2])",
            f'T.tvm_access_ptr(T.type_annotation("{dtype}"), {out.name}.data, 2, 4, 2)',
            f"{out.name}.data",
        ][kind]
        self.line(0, f'{view} = T.decl_buffer((4,), "{dtype}", data={pointer})')
        self.line(0, f"for {i} in range(4):")
        self.line(1, f"{view}[{i}] = {value}")
        if self.rng.random() < 0.3:
            self.line(0, 'T.attr(T.target("llvm"), "target", 0)')
        if self.rng.random() < 0.3:
            self.line(0, f'T.realize({out.name}[0:8], "", T.bool(True))')
            self.line(0, f"{out.name}[7] = {self.constant(dtype)}")
        return out

    def of_lanes(self, scope: Scope) -> Buf:
        """Writes all lanes of a vector as one number, and sums of products of bytes."""
        dtype, lanes = self.rng.choice((*INTS, "float32", "float64")), self.rng.choice(LANES)
        name = self.fresh("M")
        own, i = Buf(name, dtype, ("8",)), self.fresh("i")
        self.line(0, f'{name} = T.decl_buffer((8,), "{dtype}")')
        self.line(0, f"for {i} in range(8):")
        self.line(1, f"{name}[{i}] = {self.expression(dtype, scope.inside({i: '8'}), 2)}")
        if self.rng.random() < 0.3 and dtype in ("int8", "uint8"):
            out = self.output(("2",), "int32")
            self.line(0, f"{out.name}[0:2] = T.vector_dot({out.name}[0:2], {name}[0:8], {name}[0:8])")
            return out
        out = self.output(("1",), dtype)
        kind = self.rng.choice(("add", "mul", "min", "max") if "int" in dtype else ("add", "min", "max"))
        self.line(0, f"{out.name}[0] = T.vector_reduce_{kind}({own.name}[0:{lanes}])")
        return out

    def constants(self, scope: Scope) -> Buf:
        """Writes a table of numbers that the function holds, and the ends of dtypes."""
        dtype = self.rng.choice(INTS)
        out, name, i = self.output(("4",), dtype), self.fresh("C"), self.fresh("i")
        numbers = ", ".join(str(self.rng.randint(0, 9)) for _ in range(4))
        self.line(0, f'{name}_data = T.allocate_const([{numbers}], "{dtype}", [4])')
        self.line(0, f'{name} = T.Buffer((4,), "{dtype}", data={name}_data)')
        inner = scope.inside({i: "4"})
        inner.buffers = [*scope.buffers, Buf(name, dtype, ("4",))]
        if self.rng.random() < 0.5:
            self.line(0, f"for {i} in range(4):")
            self.line(1, f"{out.name}[{i}] = {name}[{i}] + {self.expression(dtype, inner, 2)}")
        else:
            self.line(0, f'{i} = T.env_thread("blockIdx.y")')
            self.line(0, f"T.launch_thread({i}, 4)")
            self.line(0, f"{out.name}[{i}] = {self.expression(dtype, inner, 2)}")
        return out

    # Expressions.

    def index(self, scope: Scope, depth: int) -> str:
        """Writes an int32 expression of loop variables."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(
                [
                    *scope.variables,
                    *scope.variables,
                    "n" if "k" not in scope.variables else "k",
                    str(rng.randint(-3, 9)),
                ]
            )
        a, b = self.index(scope, depth - 1), self.index(scope, depth - 1)
        return rng.choice(
            [f"({a} + {b})", f"({a} - {b})", f"({a} * {rng.randint(2, 5)})", f"({a} // {rng.randint(2, 4)})", f"({a} % {rng.randint(2, 6)})",
             f"T.min({a}, {b})", f"T.max({a}, {b})", f"T.truncdiv({a}, {rng.randint(2, 4)})", f"T.truncmod({a}, {rng.randint(2, 4)})",
             f"T.Select({a} < {b}, {a}, {b})"]
        )  # fmt: skip

    def place(self, buffer: Buf, scope: Scope) -> str | None:
        """Writes an element of a buffer that exists."""
        indices: list[str] = []
        for extent in buffer.shape:
            direct = [name for name, other in scope.variables.items() if other == extent or (other.isdigit() and extent.isdigit() and 0 < int(other) <= int(extent))]  # fmt: skip
            if direct and self.rng.random() < 0.7:
                indices.append(self.rng.choice(direct))
            elif extent.isdigit() and int(extent) > 0:
                form = self.rng.choice(("({}) % {}", "({}) % {}", 'T.Cast("int64", {}) % T.int64({})'))
                indices.append(form.format(self.index(scope, 2), extent))
            else:
                return None
        if any("T.int64" in index for index in indices):
            indices = [index if "T.int64" in index else f'T.Cast("int64", {index})' for index in indices]
        return f"{buffer.name}[{', '.join(indices)}]"

    def load(self, dtype: str, scope: Scope) -> str | None:
        """Writes an element of a buffer of a dtype."""
        fit = [b for b in scope.buffers if b.dtype == dtype]
        return self.place(self.rng.choice(fit), scope) if fit else None

    def constant(self, dtype: str) -> str:
        """Writes a constant."""
        rng = self.rng
        if dtype == "bool":
            return f"T.bool({rng.random() < 0.5})"
        if dtype.startswith(("int", "uint")):
            info = np.iinfo(dtype)
            if not self.calm and (self.wraps or dtype not in ("int32", "int64")) and rng.random() < 0.3:
                return f"T.{dtype}({rng.choice((int(info.min), int(info.max)))})"
            return f"T.{dtype}({rng.randint(0 if dtype.startswith('u') else -9, 9)})"
        if not self.calm and rng.random() < 0.2:
            if rng.random() < 0.3:
                return rng.choice([f'T.infinity("{dtype}")', f'T.min_value("{dtype}")', f'T.max_value("{dtype}")'])
            return f'T.{dtype}("{rng.choice(("nan", "inf", "-inf"))}")'
        return f"T.{dtype}({rng.choice((0, 1, -1, 2, 0.5, -0.25, 3, 1.5))})"

    def expression(self, dtype: str, scope: Scope, depth: int) -> str:
        """Writes a scalar expression of a dtype."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            return self.leaf(dtype, scope)
        if dtype == "bool":
            return self.condition(scope, depth)
        a = self.expression(dtype, scope, depth - 1)
        b = self.expression(dtype, scope, depth - 1)
        kind = rng.randrange(10)
        if kind < 4:
            forms = [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"T.min({a}, {b})", f"T.max({a}, {b})"]
            return rng.choice(forms)
        if kind == 4:
            form = rng.choice(("T.Select({}, {}, {})", "T.if_then_else({}, {}, {})"))
            return form.format(self.expression("bool", scope, depth - 1), a, b)
        if kind == 5:
            name = self.fresh("w")
            inner = Scope(scope.variables, scope.buffers, {**scope.lets, name: dtype})
            return f"T.Let({self.expression(dtype, inner, depth - 1)}, where={{{name}: {a}}})"
        if kind == 6:
            return self.cast(dtype, scope, depth)
        return self.of_ints(dtype, a, b, scope) if "int" in dtype else self.of_floats(dtype, a, b, scope)

    def of_ints(self, dtype: str, a: str, b: str, scope: Scope) -> str:
        """Writes operators and intrinsics on integers."""
        rng = self.rng
        bits = int(dtype.removeprefix("u").removeprefix("int"))
        # The text refuses a constant 0 here.
        divisor = rng.choice([f"T.{dtype}(3)", f'T.Cast("{dtype}", {"k" if "k" in scope.variables else "n"})'])
        forms = [f"({a} // {b})", f"({a} % {b})", f"T.truncdiv({a}, {b})", f"T.truncmod({a}, {b})", f"T.bitwise_not({a})", f"T.ceildiv({a}, {divisor})", f"T.popcount({a})"]  # fmt: skip
        forms += [f"T.{name}({a}, {b})" for name in BITS[:3]]
        amount = f"T.bitwise_and({b}, T.{dtype}({bits - 1}))" if self.calm else b
        forms += [f"T.{name}({a}, {amount})" for name in BITS[3:]]
        if not dtype.startswith("u"):
            forms.append(f"T.abs({a})")
        if dtype == "int32":
            forms += [
                f"T.clz({a})",
                f"T.q_multiply_shift({a}, {rng.choice((1 << 30, 1518500249, 2147483647))}, 31, {rng.randint(-4, 4)})",
            ]
            forms.append(f"T.q_multiply_shift_per_axis({a}, {rng.choice((1 << 30, 1518500249))}, {rng.randint(0, 3)}, {rng.randint(0, 4)}, 31, {self.constant('bool')}, {self.constant('bool')})")  # fmt: skip
        if self.calm and rng.random() < 0.3:
            forms = [
                f"T.{rng.choice(('pow', 'power'))}(T.bitwise_and({a}, T.{dtype}(3)), T.bitwise_and({b}, T.{dtype}(2)))"
            ]
        return rng.choice(forms)

    def of_floats(self, dtype: str, a: str, b: str, scope: Scope) -> str:
        """Writes operators and intrinsics on floats, mostly where they are defined and steady."""
        rng = self.rng
        kind = rng.randrange(8)
        if kind == 0:
            return f"({a} / {b})" if not self.calm else f"({a} / (T.fabs({b}) + T.{dtype}(1)))"
        if kind == 1:
            return f"T.fma({a}, {b}, {self.leaf(dtype, scope)})"
        if kind == 2:
            name = rng.choice(BINARY)
            return f"T.{name}(T.fabs({a}) + T.{dtype}(0.5), {b})" if name in ("pow", "power") else f"T.{name}({a}, {b})"
        if kind == 3:
            return f"T.fmod({a}, T.{dtype}(3))"
        if kind == 4 and dtype == "float32":
            name = rng.choice(("sqrtf", "cbrtf", "expm1f", "fabsf"))
            # Where rounding does not grow, nor decides which integer the result is cut to, as the root of a cube does.
            argument = f"T.fabs(T.sin({a}))" if name == "expm1f" else f"T.fabs({a})"
            argument += " + T.float32(0.3)" if name == "cbrtf" else ""
            return f'T.{rng.choice(("call_extern", "call_pure_extern"))}("float32", "{name}", {argument})'
        if kind == 5:
            bits = {"float16": "uint16", "bfloat16": "uint16", "float32": "uint32", "float64": "uint64"}[dtype]
            return f'T.reinterpret("{dtype}", T.bitwise_and(T.reinterpret("{bits}", {a}), T.{bits}({(1 << (int(bits[4:]) - 1)) - 1})))'
        name = rng.choice(UNARY)
        if not self.calm:
            return f"T.{name}({a})"
        bounded = {"asin": f"T.sin({a})", "acos": f"T.cos({a})", "atanh": f"T.{dtype}(0.5) * T.sin({a})"}
        positive = f"T.fabs({a}) + T.{dtype}(1)"
        argument = bounded.get(name) or (
            positive if name.startswith("log") or name in ("sqrt", "rsqrt", "acosh") else a
        )
        if name.startswith(("exp", "sinh", "cosh")):
            argument = f"T.sin({a})"
        return f"T.{name}({argument})"

    def cast(self, dtype: str, scope: Scope, depth: int) -> str:
        """Writes a value of another dtype, converted."""
        other = self.dtype()
        value = self.expression(other, scope, depth - 1)
        if "int" in dtype and "float" in other and self.calm:
            value = f"T.{self.rng.choice(('floor', 'trunc'))}(T.max(T.min({value}, T.{other}(100)), T.{other}({0 if dtype[0] == 'u' else -100})))"  # fmt: skip
        return f'T.Cast("{dtype}", {value})'

    def leaf(self, dtype: str, scope: Scope) -> str:
        """Writes a variable, an element or a constant."""
        rng = self.rng
        named = [name for name, kind in scope.lets.items() if kind == dtype]
        if named and rng.random() < 0.4:
            return rng.choice(named)
        if dtype == "int32" and scope.variables and rng.random() < 0.3:
            return self.index(scope, 1)
        loaded = self.load(dtype, scope)
        if loaded is None and dtype not in ("bool",) and scope.buffers and rng.random() < 0.5:
            other = rng.choice([b for b in scope.buffers])
            if (element := self.place(other, scope)) is not None and not ("float" in other.dtype and "int" in dtype):
                return f'T.Cast("{dtype}", {element})'
        return loaded if loaded is not None and rng.random() < 0.85 else self.constant(dtype)

    def condition(self, scope: Scope, depth: int) -> str:
        """Writes a bool."""
        rng = self.rng
        kind = rng.randrange(6)
        if kind == 0:
            a, b = self.expression("bool", scope, depth - 1), self.expression("bool", scope, depth - 1)
            return rng.choice([f"({a} and {b})", f"({a} or {b})", f"(not {a})"])
        if kind == 1:
            dtype = rng.choice(FLOATS)
            return f"T.{rng.choice(TESTS)}({self.expression(dtype, scope, depth - 1)})"
        dtype = rng.choice((*INTS, *FLOATS)) if kind > 2 else "int32"
        # What a condition is computed from may not overflow (docs/semantics.md), as arithmetic on the ends of integers does.
        if dtype in ("int32", "int64") and not self.calm:
            depth = 1
        a, b = self.expression(dtype, scope, depth - 1), self.expression(dtype, scope, depth - 1)
        return f"({a} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {b})"
