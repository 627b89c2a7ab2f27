"""Random TIR programs with much memory: buffers of several sizes and dtypes, each filled from those before it."""

from __future__ import annotations

import random

SIZE = 16


class StorageWriter:
    """Writes one function `main(A, B, n)` of int32 buffers of `SIZE` elements, `n` at least 1."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0

    def program(self) -> str:
        """The text."""
        self.lines = [
            "@T.prim_func",
            f'def main(A: T.Buffer(({SIZE},), "int32"), B: T.Buffer(({SIZE},), "int32"), n: T.int32):',
        ]
        self.statements(1, [("A", SIZE, "int32")], 2)
        return "\n".join(self.lines)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statements(self, depth: int, filled: list[tuple[str, int | str, str]], budget: int) -> None:
        filled = list(filled)
        for _ in range(self.draw.randint(2, 4)):
            if budget and self.draw.random() < 0.35:
                self.names += 1
                kind = self.draw.choice(["range(2)", "range(n)", "T.parallel(2)", "T.parallel(n)", "if"])
                self.line(depth, "if n > 1:" if kind == "if" else f"for t{self.names} in {kind}:")
                self.statements(depth + 1, filled, budget - 1)
            else:
                filled.append(self.fill(depth, filled[-3:]))
        # What parallel loops write is the same in all turns.
        source, size, _ = self.draw.choice(filled)
        self.line(depth, f"for o in range({SIZE}):")
        self.line(depth + 1, f'B[o] = T.Cast("int32", {source}[o % {size}])')

    def fill(self, depth: int, filled: list[tuple[str, int | str, str]]) -> tuple[str, int | str, str]:
        self.names += 1
        name = f"m{self.names}"
        size = self.draw.choice([1, 8, 16, 16, 16, 40, "(n * 8)", "(n * 8)"])
        dtype = self.draw.choice(["int32", "int32", "int32", "int8", "int16"])
        memory = self.draw.choice(["global", "global", "global", "local", "global.tag"])
        if memory == "global.tag" and isinstance(size, str):
            memory = "global"
        if self.draw.random() < 0.5:
            self.line(depth, f'{name} = T.decl_buffer(({size},), "{dtype}", scope="{memory}")')
        else:
            self.line(depth, f'{name}_p = T.allocate([{size}], "{dtype}", "{memory}")')
            self.line(depth, f'{name} = T.Buffer(({size},), "{dtype}", data={name}_p, scope="{memory}")')
        source, length, source_type = self.draw.choice(filled)
        index = "j" if length == size and self.draw.random() < 0.7 else f"(j * {self.draw.randint(1, 3)}) % {length}"
        other, other_length, _ = self.draw.choice(filled)
        value = f"{source}[{index}] + 1"
        if self.draw.random() < 0.4:
            value = f'T.Cast("{source_type}", {other}[(j + 1) % {other_length}]) + {value}'
        if dtype != source_type:
            value = f'T.Cast("{dtype}", {value})'
        self.line(depth, f"for j in range({size}):")
        self.line(depth + 1, f"{name}[j] = {value}")
        return name, size, dtype
