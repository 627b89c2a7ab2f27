"""Draws TIR programs as text: loops, branches, lets and views around stores that stay in bounds."""

from __future__ import annotations

import random

SIZE = 12


class LoopWriter:
    """Writes one function `main(A, B, n, m)` of int32 buffers of `SIZE` elements."""

    def __init__(self, seed: int, likely: bool = True):
        self.draw = random.Random(seed)
        self.likely = likely
        self.lines: list[str] = []
        self.names = 0

    def program(self) -> str:
        """Returns the text."""
        self.lines = [
            "@T.prim_func",
            f'def main(A: T.Buffer(({SIZE},), "int32"), B: T.Buffer(({SIZE},), "int32"), n: T.int32, m: T.int32):',
        ]
        for _ in range(self.draw.randint(1, 3)):
            self.statement(1, ["n", "m"], 3)
        return "\n".join(self.lines)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def body(self, depth: int, scope: list[str], budget: int) -> None:
        for _ in range(self.draw.choice([1, 1, 2])):
            self.statement(depth, scope, budget)

    def statement(self, depth: int, scope: list[str], budget: int) -> None:
        kind = self.draw.randrange(12) if budget > 0 else 11
        if kind < 5:
            name = self.fresh("i")
            extent = self.draw.choice(["1", "2", "3", "4", "7", "n", "n // 2", "m + 1", self.extent(scope)])
            low = self.draw.choice(["", "", "", "1, 1 + ", "m, m + "])
            loop = self.draw.choice(["range", "range", "T.serial", "T.unroll"]) if extent.isdigit() else "range"
            self.line(depth, f"for {name} in {loop}({low}{extent}):")
            self.body(depth + 1, [*scope, name], budget - 1)
        elif kind < 8:
            self.line(depth, f"if {self.guard(scope)}:")
            self.body(depth + 1, scope, budget - 1)
            if self.draw.random() < 0.4:
                self.line(depth, "else:")
                self.body(depth + 1, scope, budget - 1)
        elif kind == 8:
            name = self.fresh("v")
            self.line(depth, f"{name}: T.int32 = {self.index(scope, 2)}")
            self.statement(depth, [*scope, name], budget - 1)
        elif kind == 9:
            name = self.fresh("c")
            self.line(depth, f'{name} = T.decl_buffer((2,), "int32")')
            self.line(depth, f"{name}[0] = {self.value(scope)}")
            self.line(depth, f"A[{self.place(scope)}] = {name}[0] + 1")
        elif kind == 10:
            name = self.fresh("w")
            self.line(depth, f'{name} = T.Buffer(({SIZE},), "int32", data=B.data)')
            self.line(depth, f"{name}[{self.place(scope)}] = {self.value(scope)}")
        else:
            buffer = self.draw.choice("AB")
            self.line(depth, f"{buffer}[{self.place(scope)}] = {self.value(scope)}")

    def extent(self, scope: list[str]) -> str:
        return f"{self.draw.choice(scope)} % 5"

    def index(self, scope: list[str], depth: int) -> str:
        if depth == 0 or self.draw.random() < 0.2:
            return self.draw.choice([*scope, *scope, str(self.draw.randint(-3, 9))])
        a = self.index(scope, depth - 1)
        b = self.index(scope, depth - 1)
        return self.draw.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {self.draw.randint(2, 5)})", f"({a} // {self.draw.randint(2, 4)})",
                f"({a} % {self.draw.randint(2, 6)})", f"T.min({a}, {b})", f"T.max({a}, {b})",
                f"T.Select({self.condition(scope, 0)}, {a}, {b})",
            ]
        )  # fmt: skip

    def condition(self, scope: list[str], depth: int = 1) -> str:
        a, b = self.index(scope, depth), self.index(scope, depth)
        return f"{a} {self.draw.choice(['<', '<=', '>', '>=', '==', '!='])} {b}"

    def guard(self, scope: list[str]) -> str:
        text = self.condition(scope)
        if self.draw.random() < 0.3:
            text = f"({text}) {self.draw.choice(['and', 'or'])} ({self.condition(scope)})"
        if self.draw.random() < 0.15:
            text = f"not ({text})"
        return f"T.likely({text})" if self.likely and self.draw.random() < 0.5 else text

    def place(self, scope: list[str]) -> str:
        return f"({self.index(scope, 2)}) % {SIZE}"

    def value(self, scope: list[str]) -> str:
        a = f"{self.draw.choice('AB')}[{self.place(scope)}]"
        b = self.index(scope, 2)
        return self.draw.choice(
            [a, b, f"{a} + {b}", f"T.Select({self.condition(scope)}, {a}, {b})",
             f"T.if_then_else({self.condition(scope)}, {a}, {b})"]
        )  # fmt: skip
