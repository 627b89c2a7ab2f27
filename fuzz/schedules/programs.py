"""TIR functions of blocks that random schedules begin with, and some drawn at random."""

from __future__ import annotations

import operator
import random
from collections.abc import Sequence
from dataclasses import dataclass, field


def function(parameters: dict[str, tuple[int, ...]], temporaries: dict[str, tuple[int, ...]], *blocks: str) -> str:
    """Returns the text of a function of float32 buffers.

    function({"A": (4,), "B": (4,)}, {}, block("B", "i:4", "B[vi] = A[vi]"))
    """
    head = ", ".join(f'{name}: T.Buffer({shape}, "float32")' for name, shape in parameters.items())
    made = "".join(f"    {name} = T.alloc_buffer({shape})\n" for name, shape in temporaries.items())
    return f"\n@T.prim_func\ndef main({head}):\n{made}{''.join(blocks)}"


def block(name: str, axes: str, *statements: str, init: Sequence[str] = ()) -> str:
    """Writes a block `vi, vj, vk` in its own loops; `axes` are `i:24 j:20 k:16R`, R for a reduction."""
    parts = [axis.split(":") for axis in axes.split()]
    loops, extents = ", ".join(loop for loop, _ in parts), ", ".join(extent.rstrip("R") for _, extent in parts)
    names, kinds = (
        ", ".join(f"v{loop}" for loop, _ in parts),
        "".join("R" if e.endswith("R") else "S" for _, e in parts),
    )
    one = len(parts) == 1
    bound = f"T.axis.spatial({extents}, {loops})" if one else f'T.axis.remap("{kinds}", [{loops}])'
    lines = [
        f"    for {loops} in {'range' if one else 'T.grid'}({extents}):",
        f'        with T.block("{name}"):',
        f"            {names} = {bound}",
        *(["            with T.init():"] if init else []),
        *(f"                {statement}" for statement in init),
        *(f"            {statement}" for statement in statements),
    ]
    return "\n".join(lines) + "\n"


MATMUL = function(
    {"A": (24, 16), "B": (20, 16), "D": (24, 20)},
    {"C": (24, 20)},
    block("C", "i:24 j:20 k:16R", "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]", init=["C[vi, vj] = T.float32(0)"]),
    block("D", "i:24 j:20", "D[vi, vj] = T.max(C[vi, vj], T.float32(0))"),
)
CHAIN = function(
    {"A": (16, 30), "C": (16, 30)},
    {"B": (16, 30)},
    block("B", "i:16 j:30", "B[vi, vj] = A[vi, vj] * T.float32(2)"),
    block("C", "i:16 j:30", "C[vi, vj] = B[vi, vj] + T.float32(1)"),
)
STENCIL = function(
    {"A": (34,), "C": (32,)},
    {"B": (34,)},
    block("B", "i:34", "B[vi] = A[vi] * T.float32(2)"),
    block("C", "i:32", "C[vi] = B[vi] + B[vi + 1] + B[vi + 2]"),
)
ROWS = function(
    {"A": (6, 14), "D": (6, 14)},
    {"S": (6,), "E": (6, 14)},
    block("E", "i:6 j:14", "E[vi, vj] = A[vi, vj] + T.float32(3)"),
    block("S", "i:6 k:14R", "S[vi] = S[vi] + E[vi, vk]", init=["S[vi] = T.float32(0)"]),
    block("D", "i:6 j:14", "D[vi, vj] = E[vi, vj] * S[vi]"),
)
TRANSPOSED = function(
    {"A": (12, 10), "C": (5, 24)},
    {"B": (10, 12)},
    block("B", "i:10 j:12", "B[vi, vj] = A[vj, vi] * T.float32(2)"),
    block("C", "i:5 j:24", "C[vi, vj] = B[vi * 2 + vj // 12, vj % 12]"),
)
ARGMAX = function(
    {"A": (6, 20), "X": (6,), "V": (6,)},
    {},
    block(
        "V",
        "i:6 k:20R",
        "x: T.float32 = T.Select(V[vi] >= A[vi, vk], X[vi], A[vi, vk] * T.float32(2))",
        "v: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])",
        "X[vi] = x",
        "V[vi] = v",
        init=["X[vi] = T.float32(-1)", "V[vi] = T.float32(-100)"],
    ),
)
UPDATES = function(
    {"A": (12, 10), "B": (12, 10), "C": (10, 12)},
    {},
    block("A", "i:12 j:10", "A[vi, vj] = A[vi, vj] * T.float32(2) + B[vi, vj]"),
    block("C", "i:10 j:12", "C[vi, vj] = A[vj, vi] + B[vj // 2 + vi // 4, vj % 5 + vi // 3]"),
    block("B", "i:12 j:10", "B[vi, vj] = B[vi, vj] + A[11 - vi, vj]"),
)
POOL = function(
    {"A": (2, 10, 10), "D": (2, 4, 4)},
    {"B": (2, 10, 10), "C": (2, 4, 4)},
    block("B", "c:2 i:10 j:10", "B[vc, vi, vj] = A[vc, vj, vi] + T.float32(1)"),
    block(
        "C",
        "c:2 i:4 j:4 r:4R s:4R",
        "C[vc, vi, vj] = T.max(C[vc, vi, vj], B[vc, vi * 2 + vr, vj * 2 + vs])",
        init=["C[vc, vi, vj] = T.float32(-9)"],
    ),
    block("D", "c:2 i:4 j:4", "D[vc, vi, vj] = C[vc, 3 - vi, vj] * B[vc, vi, vj]"),
)
OVERWRITTEN = function(
    {"A": (16, 10), "D": (16, 10), "X": (16, 10)},
    {"B": (16, 10), "C": (16, 10)},
    block("B", "i:16 j:10", "B[vi, vj] = A[vi, vj] * T.float32(2)"),
    block("C", "i:16 j:10", "C[vi, vj] = B[vi, vj] + X[vi, vj]"),
    block("A", "i:16 j:10", "A[vi, vj] = C[15 - vi, vj]"),
    block("X", "i:16 j:10", "X[vi, vj] = T.float32(3)"),
    block("D", "i:16 j:10", "D[vi, vj] = B[vi, vj] + A[vi, vj]"),
)
WINDOWS = function(
    {"A": (12, 14), "D": (8, 9)},
    {"B": (12, 12), "C": (10, 10)},
    block("B", "i:12 j:12 q:3R", "B[vi, vj] = B[vi, vj] + A[vi, vj + vq]", init=["B[vi, vj] = T.float32(0)"]),
    block("C", "i:10 j:10", "C[vi, vj] = B[vi, vj] + B[vi + 2, vj + 1] * T.float32(2)"),
    block("D", "i:8 j:9", "D[vi, vj] = C[vi, vj + 1] - C[vi + 1, vj] + C[vi + 2, vj]"),
)
PADDED = function(
    {"A": (10, 6), "C": (10, 6), "E": (14, 8)},
    {"P": (12, 8)},
    block(
        "P",
        "i:12 j:8",
        "P[vi, vj] = T.if_then_else(1 <= vi and vi < 11 and 1 <= vj and vj < 7, A[vi - 1, vj - 1], T.float32(5))",
    ),
    block("C", "i:10 j:6 p:3R q:3R", "C[vi, vj] = C[vi, vj] + P[vi + vp, vj + vq]", init=["C[vi, vj] = T.float32(0)"]),
    block(
        "E",
        "i:14 j:8",
        "E[vi, vj] = T.if_then_else(2 <= vi and vi < 12, C[vi - 2, vj // 2] + P[vi - 2, vj], T.float32(0))",
    ),
)
PROGRAMS = {
    **{"chain": CHAIN, "matmul": MATMUL, "stencil": STENCIL, "rows": ROWS, "transposed": TRANSPOSED},
    **{"overwritten": OVERWRITTEN, "argmax": ARGMAX, "updates": UPDATES, "pool": POOL},
    **{"windows": WINDOWS, "padded": PADDED},
}

Size = int | str
"""A number, or the name of a parameter."""

SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 13, 16)
DTYPES = ("int32", "float32", "float32", "int8", "float64", "int64", "uint8", "float16")


def random_blocks(rng: random.Random, *, symbolic: bool = False) -> str:
    """Returns a function of consecutive blocks: elementwise, shifted, transposed, padded, reducing.

    With `symbolic` its sizes are parameters n and m, which may be 0.
    """
    dtype = rng.choice(DTYPES)
    n, m = ("n", "m") if symbolic else (rng.choice(SIZES), rng.choice(SIZES))
    lines: list[str] = []
    buffers = ["A"]
    count = rng.randint(1, 4)
    for place in range(count):
        name = f"B{place}"
        source, other = buffers[-1] if rng.random() < 0.7 else rng.choice(buffers), rng.choice(buffers)
        lines += _stage(rng, name, source, other, n, m, dtype)
        buffers.append(name)
    inner = [f'    {name} = T.alloc_buffer(({n}, {m}), "{dtype}")' for name in buffers[1:-1]]
    outer = ("A", buffers[-1])
    if symbolic:
        params = [*(f"{name.lower()}: T.handle" for name in outer), "n: T.int32", "m: T.int32"]
        inner = [*(f'    {name} = T.match_buffer({name.lower()}, (n, m), "{dtype}")' for name in outer), *inner]
    else:
        params = [f'{name}: T.Buffer(({n}, {m}), "{dtype}")' for name in outer]
    return "\n".join(["@T.prim_func", f"def main({', '.join(params)}):", *inner, *lines, ""])


def _stage(rng: random.Random, name: str, source: str, other: str, n: Size, m: Size, dtype: str) -> list[str]:
    kind = rng.randrange(6)
    if kind < 2:
        k = rng.choice((*SIZES, n, m)) if isinstance(n, str) else rng.choice(SIZES)
        combine = rng.choice(("{0} + {1}", "T.max({0}, {1})"))
        value = (
            f"{source}[vi, (vj + vk) % {m}]"
            if rng.random() < 0.5
            else f"{source}[vi, vj] * {other}[(vi + vk) % {n}, vj]"
        )
        return [
            f"    for i, j, k in T.grid({n}, {m}, {k}):",
            f'        with T.block("{name}"):',
            '            vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
            "            with T.init():",
            f"                {name}[vi, vj] = T.{dtype}({rng.choice((0, 0, 1))})",
            f"            {name}[vi, vj] = {combine.format(f'{name}[vi, vj]', value)}",
        ]
    where = [f"            T.where(i * {m} + j < {_changed(n, f'* {m}')})"] if rng.random() < 0.1 else []
    values = [
        f"{source}[vi, vj] * T.{dtype}(3) + {other}[vi, vj]",
        f"{source}[{_changed(n, '- 1')} - vi, vj] + {other}[vi, {_changed(m, '- 1')} - vj]",
        f"T.if_then_else(1 <= vi and vj < {_changed(m, '- 1')}, {source}[vi - 1, vj + 1], T.{dtype}(5))"
        if m != 1
        else f"{source}[vi, vj]",
        f"T.max({source}[vi, vj], {other}[vi // 2, vj % {_positive(m, '// 2')}])",
    ]
    return [
        f"    for i, j in T.grid({n}, {m}):",
        f'        with T.block("{name}"):',
        '            vi, vj = T.axis.remap("SS", [i, j])',
        *where,
        f"            {name}[vi, vj] = {rng.choice(values)}",
    ]


def _changed(size: Size, by: str) -> str:
    """Returns a size with something done to it: 16, "- 1" → 15; n → n - 1."""
    if isinstance(size, str):
        return f"{size} {by}"
    sign, amount = by.split()
    change = {"-": operator.sub, "*": operator.mul, "//": operator.floordiv}[sign]
    return str(change(size, int(amount)))


def _positive(size: Size, by: str) -> str:
    changed = _changed(size, by)
    return f"T.max({changed}, 1)" if isinstance(size, str) else str(max(1, int(changed)))


@dataclass
class DrawnAxis:
    """An axis of a block: its name, extent, kind, and the text of its binding."""

    name: str
    extent: int
    kind: str
    binding: str


@dataclass
class ProgramWriter:
    """Draws one function `main` of int32 buffers."""

    draw: random.Random
    buffers: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    parameters: list[str] = field(default_factory=list[str])
    ready: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    blocks: int = 0
    rows: dict[str, bool] = field(default_factory=dict[str, bool])
    """Buffers that the loop written now fills, which are read only where its iteration has: by the loop's axis, or not at all."""

    def program(self) -> str:
        """Returns the text."""
        draw = self.draw
        for _ in range(draw.randint(1, 2)):
            self.buffer(tuple(draw.choice([2, 3, 4, 5, 6, 8, 12]) for _ in range(draw.randint(1, 2))), True, True)
        count = draw.randint(1, 4)
        for number in range(count):
            self.nest(number == count - 1)
        allocated = [name for name in self.buffers if name not in self.parameters]
        head = ", ".join(f'{n}: T.Buffer({self.shape(n)}, "int32")' for n in self.parameters)
        made = [f'    {n} = T.alloc_buffer({self.shape(n)}, "int32")' for n in allocated]
        return "\n".join(["@T.prim_func", f"def main({head}):", *made, *self.lines]) + "\n"

    def shape(self, name: str) -> str:
        return f"({', '.join(map(str, self.buffers[name]))},)"

    def buffer(self, shape: tuple[int, ...], is_parameter: bool, ready: bool = False) -> str:
        name = f"B{len(self.buffers)}"
        self.buffers[name] = shape
        if is_parameter:
            self.parameters.append(name)
        if ready:
            self.ready.append(name)
        return name

    def nest(self, last: bool) -> None:
        """Writes one block, or two under the outermost loop."""
        if self.draw.random() < 0.2:
            extent = self.draw.choice([2, 3, 4, 6])
            shared = f"s{self.blocks}"
            self.lines.append(f"    for {shared} in range({extent}):")
            self.block(2, last, (shared, extent))
            self.block(2, last, (shared, extent))
            self.rows.clear()
        else:
            self.block(1, last, None)

    def axis(self, number: int, kind: str, loops: list[tuple[str, int]], guards: list[str]) -> DrawnAxis:
        """Returns an axis with loops of its own, appended to `loops`."""
        draw, tag = self.draw, f"{self.blocks}_{number}"
        name = f"{'v' if kind == 'S' else 'w'}{tag}"
        match draw.randrange(8):
            case 0:
                a, b = draw.choice([2, 3, 4]), draw.choice([2, 3])
                loops += [(f"a{tag}", a), (f"b{tag}", b)]
                extent = a * b
                if draw.random() < 0.4 and extent > 3:
                    extent -= 1
                    guards.append(f"a{tag} * {b} + b{tag} < {extent}")
                return DrawnAxis(name, extent, kind, f"a{tag} * {b} + b{tag}")
            case 1:
                return DrawnAxis(name, 1, kind, "0")
            case _:
                extent = draw.choice([1, 2, 3, 4, 5, 6, 8])
                loops.append((f"i{tag}", extent))
                return DrawnAxis(name, extent, kind, f"i{tag}")

    def block(self, depth: int, last: bool, shared: tuple[str, int] | None) -> None:
        draw = self.draw
        loops: list[tuple[str, int]] = []
        guards: list[str] = []
        axes: list[DrawnAxis] = []
        if shared is not None:
            axes.append(DrawnAxis(f"v{self.blocks}_s", shared[1], "S", shared[0]))
        axes += [self.axis(k, "S", loops, guards) for k in range(draw.randint(0 if axes else 1, 2))]
        reducing = draw.random() < 0.5
        if reducing:
            axes += [self.axis(k + 4, "R", loops, guards) for k in range(draw.randint(1, 2))]
        if draw.random() < 0.2:
            draw.shuffle(loops)
        spatial = [a for a in axes if a.kind == "S"]
        target, place = self.target(spatial, axes, last, reducing)
        name = f"blk{self.blocks}"
        self.blocks += 1
        pad = "    " * depth
        if loops:
            names, extents = ", ".join(n for n, _ in loops), ", ".join(str(e) for _, e in loops)
            self.lines.append(
                f"{pad}for {names} in " + (f"range({extents}):" if len(loops) == 1 else f"T.grid({extents}):")
            )
            pad += "    "
        self.lines.append(f'{pad}with T.block("{name}"):')
        pad += "    "
        for a in axes:
            call = "T.axis.spatial" if a.kind == "S" else "T.axis.reduce"
            self.lines.append(f"{pad}{a.name} = {call}({a.extent}, {a.binding})")
        if guards:
            self.lines.append(f"{pad}T.where({' and '.join(guards)})")
        sources = [b for b in self.ready if b != target and self.rows.get(b, True)]
        value = self.term(sources, axes)
        where = f"{target}[{place}]"
        if reducing:
            if draw.random() < 0.9 or target not in self.ready:
                start = draw.choice(["0", "0", "7", "-100"])
                self.lines += [f"{pad}with T.init():", f"{pad}    {where} = {start}"]
            combine = draw.choice(["{0} + {1}", "{0} + {1}", "T.max({0}, {1})", "T.min({0}, {1})", "{0} + {1} * {2}"])
            self.lines.append(f"{pad}{where} = " + combine.format(where, value, self.term(sources, axes)))
        elif target in self.ready:
            self.lines.append(f"{pad}{where} = {where} * 2 + {value}")
        else:
            self.lines.append(f"{pad}{where} = {value}")
        if target not in self.ready:
            self.ready.append(target)
            if shared is not None and target not in self.parameters:
                self.rows[target] = place.split(",")[0] == axes[0].name

    def target(self, spatial: list[DrawnAxis], axes: list[DrawnAxis], last: bool, reducing: bool) -> tuple[str, str]:
        """Returns the buffer that a block writes, and its indices."""
        draw = self.draw
        if draw.random() < 0.2:
            fitting = [b for b in self.ready if len(self.buffers[b]) == len(spatial)]
            fitting = [b for b in fitting if all(a.extent <= d for a, d in zip(spatial, self.buffers[b], strict=True))]
            if fitting:
                return draw.choice(fitting), ", ".join(a.name for a in spatial)
        is_parameter = last or draw.random() < 0.3
        if reducing and is_parameter and draw.random() < 0.15:
            odd = draw.choice([a for a in axes if a.kind == "R"])
            chosen = [*spatial, odd]
            return self.buffer(tuple(a.extent for a in chosen), is_parameter), ", ".join(a.name for a in chosen)
        if not spatial:
            return self.buffer((1,), is_parameter), "0"
        if len(spatial) == 1 and draw.random() < 0.15 and spatial[0].extent % 2 == 0:
            v = spatial[0]
            return self.buffer((v.extent // 2, 2), is_parameter), f"{v.name} // 2, {v.name} % 2"
        if len(spatial) == 2 and draw.random() < 0.15:
            a, b = spatial
            return self.buffer((a.extent * b.extent,), is_parameter), f"{a.name} * {b.extent} + {b.name}"
        if draw.random() < 0.1:
            spatial = spatial[::-1]
        if draw.random() < 0.1:
            first = spatial[0]
            shape = (first.extent, *(a.extent for a in spatial[1:]))
            return self.buffer(shape, is_parameter), ", ".join(
                [f"{first.extent - 1} - {first.name}", *(a.name for a in spatial[1:])]
            )
        # What nobody writes is read of parameters only.
        extra = draw.choice([0, 0, 0, 1]) if is_parameter else 0
        return self.buffer(tuple(a.extent + extra for a in spatial), is_parameter), ", ".join(a.name for a in spatial)

    def term(self, sources: list[str], axes: list[DrawnAxis]) -> str:
        """Returns a value of elements of buffers and of axes."""
        draw = self.draw
        parts: list[str] = []
        for _ in range(draw.choice([1, 1, 2])):
            if sources and draw.random() < 0.9:
                name = draw.choice(sources)
                indices = [self.index(dim, axes) for dim in self.buffers[name]]
                if name in self.rows:
                    indices[0] = axes[0].name
                parts.append(f"{name}[{', '.join(indices)}]")
            elif axes:
                parts.append(draw.choice(axes).name)
            else:
                parts.append("3")
        return draw.choice([" + ", " - "]).join(parts) if len(parts) > 1 else parts[0]

    def index(self, dim: int, axes: list[DrawnAxis]) -> str:
        """Returns an index of a dimension, inside of it."""
        draw = self.draw
        if not axes:
            return str(draw.randrange(dim))
        a = draw.choice(axes)
        if a.extent > dim:
            return f"{a.name} % {dim}" if draw.random() < 0.5 else f"{a.name} // {-(-a.extent // dim)}"
        b = draw.choice(axes)
        choices = [a.name] * 4 + [f"{dim - 1} - {a.name}"]
        if dim > a.extent:
            choices.append(f"{a.name} + {dim - a.extent}")
        if a is not b and a.extent + b.extent - 1 <= dim:
            choices += [f"{a.name} + {b.name}"] * 4
        if a is not b and a.extent * b.extent <= dim:
            choices.append(f"{a.name} * {b.extent} + {b.name}")
        return draw.choice(choices)


def odd_blocks(rng: random.Random) -> str:
    """Returns a function of 1 to 4 such blocks, on int32."""
    return ProgramWriter(rng).program()
