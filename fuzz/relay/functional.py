"""Draws Relay programs of functions, on tensors of one type.

Recursion, closures, data types, references, branches, generic functions:

```text
type List[A] { Cons(A, List[A]), Nil, }
def @loop0(%i: int32, %x: Tensor[(?), float32]) -> Tensor[(?), float32] {
  if (less(%i, 3)) { @loop0(add(%i, 1), tanh(%x)) } else { %x }
}
```
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from ...dialects.array import numpy_dtype
from .single import with_specials

DTYPES = ("float32", "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")  # fmt: skip
LENGTHS = (0, 1, 2, 3, 5, 7, 8, 13, 17, 33)

LIBRARY = """
type List[A] { Cons(A, List[A]), Nil, }
type Option[A] { Some(A), None, }
type Tree[A] { Leaf(A), Node(Tree[A], Tree[A]), }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil }, }
}
def @fold[A, B](%f: fn (A, B) -> B, %z: B, %l: List[A]) -> B {
  match (%l) { Cons(%h, %t) => { %f(%h, @fold(%f, %z, %t)) }, Nil => { %z }, }
}
def @length[A](%l: List[A]) -> int32 {
  match (%l) { Cons(_, %t) => { add(1, @length(%t)) }, Nil => { 0 }, }
}
def @or_else[A](%o: Option[A], %z: A) -> A {
  match (%o) { Some(%x) => { %x }, None => { %z }, }
}
def @second[A](%l: List[A], %z: A) -> A {
  match? (%l) { Cons(_, Cons(%x, _)) => { %x }, _ => { %z }, }
}
def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C { fn (%x: A) -> C { %f(%g(%x)) } }
def @sum_tree[A](%f: fn (A, A) -> A, %t: Tree[A]) -> A {
  match (%t) { Leaf(%x) => { %x }, Node(%a, %b) => { %f(@sum_tree(%f, %a), @sum_tree(%f, %b)) }, }
}
"""


def functional_program(rng: random.Random) -> tuple[str, dict[str, np.ndarray], frozenset[str]]:
    """Returns the text of a program, inputs for its `@main`, and what it is made of."""
    writer = FunctionalWriter(rng)
    return writer.program(), writer.inputs, frozenset(writer.drawn)


class FunctionalWriter:
    """Writes one program: expressions of type `tensor` nest in each other."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.dtype = rng.choice(DTYPES)
        length = rng.choice(LENGTHS)
        self.tensor = f"Tensor[({'?' if rng.random() < 0.4 else length}), {self.dtype}]"
        self.names = 0
        self.functions: list[str] = []
        self.drawn: set[str] = {"?"} if "?" in self.tensor else set()
        draw = np.random.default_rng(rng.randrange(1 << 30))
        low = 0 if self.dtype.startswith("u") else -4
        self.inputs: dict[str, np.ndarray] = {}
        for name in ("x", "y"):
            array = (draw.integers(low * 4, 16, length) / (1 if "int" in self.dtype else 4)).astype(
                numpy_dtype(self.dtype)
            )
            if length and rng.random() < 0.3:
                array = with_specials(array, rng)
            self.inputs[name] = array
        self.inputs["n"] = np.array(rng.randrange(4), np.int32)

    def program(self) -> str:
        """Returns the text."""
        body = self.expression(["%x", "%y"], self.rng.choice((2, 3, 3, 4)))
        second = self.expression(["%x", "%y"], 2)
        result = self.rng.choice([f"{body}", f"({body}, {second})"])
        header = f"def @main(%x: {self.tensor}, %y: {self.tensor}, %n: int32) {{\n  {result}\n}}\n"
        return "\n".join([LIBRARY, *self.functions, header])

    def fresh(self, stem: str) -> str:
        """Returns a new name."""
        self.names += 1
        return f"{stem}{self.names}"

    def expression(self, scope: list[str], depth: int) -> str:
        """Writes a tensor expression over the variables in scope."""
        if depth == 0:
            return self.rng.choice(scope)
        made: Callable[[list[str], int], str] = self.rng.choice(
            (self.arithmetic, self.arithmetic, self.arithmetic, self.let, self.branch, self.closure, self.closure_of_two, self.tail_loop,
             self.loop, self.list, self.option, self.tree, self.reference, self.tuple, self.twice, self.moved)
        )  # fmt: skip
        self.drawn.add(made.__name__)
        return made(scope, depth - 1)

    def scalar(self, text: str) -> str:
        """Writes an int32 constant in the dtype."""
        return text if self.dtype == "int32" else f'cast({text}, dtype="{self.dtype}")'

    def arithmetic(self, scope: list[str], depth: int) -> str:
        """Writes operators that keep the type."""
        a, b = self.expression(scope, depth), self.expression(scope, depth)
        forms = [f"add({a}, {b})", f"subtract({a}, {b})", f"maximum({a}, {b})", f"minimum({a}, {b})", f"where(less({a}, {b}), {b}, {a})",
                 f"multiply({a}, {self.scalar('2')})", f"abs({a})"]  # fmt: skip
        if "float" in self.dtype:
            forms += [f"tanh({a})", f"multiply({a}, {b})", f"sigmoid({a})", f"negative({a})", f"nn.relu({a})"]
        else:
            forms += [f"bitwise_xor({a}, {b})", f"multiply({a}, {b})", f"floor_divide({a}, {b})", f"floor_mod({a}, {b})", f"bitwise_not({a})"]  # fmt: skip
        return self.rng.choice(forms)

    def moved(self, scope: list[str], depth: int) -> str:
        """Writes operators along the axis."""
        a = self.expression(scope, depth)
        return self.rng.choice(
            [f"reverse({a}, axis=0)", f"copy({a})", f"take({a}, argsort({a}), axis=0)", f"zeros_like({a})"]
        )

    def let(self, scope: list[str], depth: int) -> str:
        """Writes a binding, within a function so that it can stand anywhere."""
        name = self.fresh("%v")
        value = self.expression(scope, depth)
        return f"(fn () -> {self.tensor} {{ let {name} = {value}; {self.expression([*scope, name, name], depth)} }})()"

    def condition(self, scope: list[str]) -> str:
        """Writes a bool."""
        a = self.rng.choice(scope)
        of_values = (
            [] if "?" not in self.tensor and self.inputs["x"].size == 0 else [f"less(sum({a}), {self.scalar('3')})"]
        )
        return self.rng.choice([f"less(%n, {self.rng.randrange(4)})" if "%n" in scope or self.at_top(scope) else f"any(less({a}, {a}))", f"any(less({a}, {self.scalar('1')}))", *of_values])  # fmt: skip

    def at_top(self, scope: list[str]) -> bool:
        """Tells whether `@main`'s parameters are visible."""
        return "%x" in scope

    def branch(self, scope: list[str], depth: int) -> str:
        """Writes an if."""
        then, other = self.expression(scope, depth), self.expression(scope, depth)
        return f"if ({self.condition(scope)}) {{ {then} }} else {{ {other} }}"

    def function(self, scope: list[str], depth: int) -> str:
        """Writes a local function of one tensor that may use what is around it."""
        name = self.fresh("%a")
        return f"fn ({name}: {self.tensor}) -> {self.tensor} {{ {self.expression([*scope, name, name], depth)} }}"

    def closure(self, scope: list[str], depth: int) -> str:
        """Writes a local function called where it stands, or as a choice of two."""
        f = self.function(scope, depth)
        if self.rng.random() < 0.4:
            f = f"if ({self.condition(scope)}) {{ {f} }} else {{ {self.function(scope, depth)} }}"
        return f"({f})({self.expression(scope, depth)})"

    def closure_of_two(self, scope: list[str], depth: int) -> str:
        """Writes two functions, one after the other."""
        return f"(@compose({self.function(scope, depth)}, {self.function(scope, 1)}))({self.expression(scope, depth)})"

    def twice(self, scope: list[str], depth: int) -> str:
        """Writes a function given to a generic one."""
        return f"@twice({self.function(scope, min(depth, 2))}, {self.expression(scope, depth)})"

    def tail_loop(self, scope: list[str], depth: int) -> str:
        """Writes a global function that ends by calling itself."""
        return self._loop(scope, depth, lambda call: call)

    def loop(self, scope: list[str], depth: int) -> str:
        """Writes a global function that does more once it has called itself."""
        return self._loop(scope, depth, lambda call: f"minimum({call}, %acc)")

    def _loop(self, scope: list[str], depth: int, around: Callable[[str], str]) -> str:
        name = self.fresh("@loop")
        step = self.expression(["%acc", "%acc", "%k"], min(depth, 2))
        call = around(f"{name}(add(%i, 1), {step}, %k)")
        self.functions.append(
            f"def {name}(%i: int32, %acc: {self.tensor}, %k: {self.tensor}) -> {self.tensor} {{\n"
            f"  if (less(%i, {self.rng.randrange(5)})) {{ {call} }} else {{ %acc }}\n}}\n"
        )
        return f"{name}(0, {self.expression(scope, depth)}, {self.rng.choice(scope)})"

    def list_of(self, scope: list[str], depth: int) -> str:
        """Writes a list of tensors."""
        made = "Nil"
        for _ in range(self.rng.randrange(4)):
            made = f"Cons({self.expression(scope, max(0, depth - 1))}, {made})"
        if made == "Nil":
            made = f"Cons({self.rng.choice(scope)}, Nil)"
        return f"@map({self.function(scope, min(depth, 1))}, {made})" if self.rng.random() < 0.4 else made

    def list(self, scope: list[str], depth: int) -> str:
        """Writes a list folded, or its second element."""
        items, last = self.list_of(scope, depth), self.expression(scope, depth)
        a, b = self.fresh("%h"), self.fresh("%z")
        added = f"fn ({a}: {self.tensor}, {b}: {self.tensor}) -> {self.tensor} {{ {self.expression([a, b], 1)} }}"
        return self.rng.choice(
            [f"@fold({added}, {last}, {items})", f"@second({items}, {last})", f'add({last}, cast(@length({items}), dtype="{self.dtype}"))']
        )  # fmt: skip

    def option(self, scope: list[str], depth: int) -> str:
        """Writes a value that may be missing."""
        a, b = self.expression(scope, depth), self.expression(scope, depth)
        return f"@or_else(if ({self.condition(scope)}) {{ Some({a}) }} else {{ None }}, {b})"

    def tree(self, scope: list[str], depth: int) -> str:
        """Writes a tree summed up."""
        leaves = [f"Leaf({self.expression(scope, min(depth, 1))})" for _ in range(self.rng.randint(1, 4))]
        while len(leaves) > 1:
            place = self.rng.randrange(len(leaves) - 1)
            leaves[place : place + 2] = [f"Node({leaves[place]}, {leaves[place + 1]})"]
        a, b = self.fresh("%l"), self.fresh("%r")
        added = f"fn ({a}: {self.tensor}, {b}: {self.tensor}) -> {self.tensor} {{ {self.expression([a, b], 1)} }}"
        return f"@sum_tree({added}, {leaves[0]})"

    def reference(self, scope: list[str], depth: int) -> str:
        """Writes a cell that is read, written and read again."""
        cell, old, unit = self.fresh("%c"), self.fresh("%o"), self.fresh("%u")
        first, second = self.expression(scope, depth), self.expression(scope, depth)
        return (
            f"(fn () -> {self.tensor} {{ let {cell} = ref({first}); let {old} = ref_read({cell}); "
            f"let {unit} = ref_write({cell}, {second}); {self.expression([old, old], 1)} }})()"
            if self.rng.random() < 0.3
            else f"(fn () -> {self.tensor} {{ let {cell} = ref({first}); let {old} = ref_read({cell}); "
            f"let {unit} = ref_write({cell}, {second}); subtract(ref_read({cell}), {old}) }})()"
        )

    def tuple(self, scope: list[str], depth: int) -> str:
        """Writes a field of a tuple."""
        a, b = self.expression(scope, depth), self.expression(scope, depth)
        return f"({a}, {b}).{self.rng.randrange(2)}"
