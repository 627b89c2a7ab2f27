"""Draws functions of blocks with odd axes, alone or two under a loop.

Axes are spatial and reducing, bound to digits of several loops, indexed by quotients, remainders and sums; blocks have inits,
predicates and in-place updates. Values are integers, so that the order of sums does not matter. Every element of an inner
buffer is written before it is read.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


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
        """The text."""
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
        """One block, or two under the outermost loop."""
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
        """An axis with loops of its own, appended to `loops`."""
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
        """A value of elements of buffers and of axes."""
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
        """An index of a dimension, inside of it."""
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
    """A function of 1 to 4 such blocks, on int32."""
    return ProgramWriter(rng).program()
