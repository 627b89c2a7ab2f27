"""Relay text at size: linear in chains, wide graphs and functions; nesting thousands deep."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth, ratio
from mirstack.dialects.relay.infer import infer_types
from mirstack.parser import parse_mir, print_mir
from mirstack.support.verify import verify

T = "Tensor[(4), float32]"


def chain(n: int) -> str:
    lines = "".join(f"  %{i + 1} = add(%{i}, %x);\n" for i in range(n))
    return f"def @main(%x: {T}) {{\n  %0 = exp(%x);\n{lines}  %{n}\n}}\n"


def chain_of_lets(n: int) -> str:
    lines = "".join(f"  let %v{i + 1} = add(%v{i}, 1f);\n" for i in range(n))
    return f"def @main(%v0: {T}) {{\n{lines}  %v{n}\n}}\n"


def wide(n: int) -> str:
    lines = "".join(f"  %{i} = exp(%x);\n" for i in range(n))
    return f"def @main(%x: {T}) {{\n{lines}  ({', '.join(f'%{i}' for i in range(n))})\n}}\n"


def functions(n: int) -> str:
    """Each calls the next one, which is declared later; only the first has a typed parameter."""
    made = [f"def @main(%x: {T}) {{\n  @f0(%x)\n}}\n"]
    made += [f"def @f{i}(%x) {{\n  @f{i + 1}(exp(%x))\n}}\n" for i in range(n // 4)]
    return "".join([*made, f"def @f{n // 4}(%x) {{\n  %x\n}}\n"])


def chain_of_closures(n: int) -> str:
    lines = "".join(f"  let %f{i + 1} = fn (%a: {T}) {{\n    %f{i}(%a)\n  }};\n" for i in range(n // 4))
    return f"def @main(%f0: fn ({T}) -> {T}, %x: {T}) {{\n{lines}  %f{n // 4}(%x)\n}}\n"


def shadowed(n: int) -> str:
    return f"def @main(%x: {T}) {{\n{'  let %x = exp(%x);' * n}\n  %x\n}}\n"


def chain_of_ifs(n: int) -> str:
    lines = "".join(f"  %{i + 1} = if (%c) {{ exp(%{i}) }} else {{ %{i} }};\n" for i in range(n // 4))
    return f"def @main(%c: bool, %x: {T}) {{\n  %0 = exp(%x);\n{lines}  %{n // 4}\n}}\n"


def constructors(n: int) -> str:
    """A data type of many constructors, and a match of all of them."""
    declared = "".join(f"C{i}({T}), " for i in range(n // 2))
    clauses = ", ".join(f"C{i}(%a) => {{ exp(%a) }}" for i in range(n // 2))
    return f"type Many {{ {declared}}}\ndef @main(%x: Many) {{\n  match (%x) {{ {clauses} }}\n}}\n"


def read_and_print(text: str) -> str:
    return print_mir(parse_mir(text))


@pytest.mark.parametrize(
    "program", [chain, chain_of_lets, wide, functions, chain_of_closures, shadowed, chain_of_ifs, constructors]
)
def test_linear(program: Callable[[int], str]) -> None:
    """Eight times the size takes about eight times as long, not sixty-four times."""
    assert growth(lambda n: cpu_seconds(partial(read_and_print, program(n))), 375, 3_000, below=20) < 20


def ifs(depth: int) -> str:
    opened = "".join("if (%c) { " for _ in range(depth))
    return f"def @main(%c: bool, %x: {T}) {{ {opened}%x{' } else { exp(%x) }' * depth} }}"


def closures(depth: int) -> str:
    opened = "".join(f"let %f{i} = fn (%a{i}: {T}) {{ " for i in range(depth))
    closed = "".join(f" }}; %f{i}(%x)" for i in reversed(range(depth)))
    return f"def @main(%x: {T}) {{ {opened}%x{closed} }}"


def calls(depth: int) -> str:
    return f"def @main(%x: {T}) {{ {'exp(' * depth}%x{')' * depth} }}"


def tuples(depth: int) -> str:
    return f"def @main(%x: {T}) {{ {'(' * depth}%x{',)' * depth} }}"


def matches(depth: int) -> str:
    opened = "match (%l) { Nil => { %x }, Cons(_, _) => { "
    return f"type List[A] {{ Cons(A, List[A]), Nil, }}\ndef @main(%l: List[int32], %x: {T}) {{ {opened * depth}%x{' } }' * depth} }}"


@pytest.mark.parametrize("program", [ifs, closures, constructors])
def test_verifying_is_linear(program: Callable[[int], str]) -> None:
    """In how deep blocks nest, and in what a match chooses from, too."""

    def seconds(n: int) -> float:
        module = parse_mir(program(n))
        infer_types(module)
        return cpu_seconds(partial(verify, module))

    assert growth(seconds, 150, 1_200, below=20) < 20


@pytest.mark.parametrize(
    ("program", "depth"), [(ifs, 2_000), (closures, 500), (calls, 2_000), (tuples, 300), (matches, 500)]
)
def test_deep(program: Callable[[int], str], depth: int) -> None:
    module = parse_mir(program(depth))
    verify(module)
    infer_types(module)
    text = print_mir(module)
    assert print_mir(parse_mir(text)) == text


def test_reading_takes_no_longer_than_building() -> None:
    """Text to typed ops, against making the same ops by xDSL's own constructor: about as long, and never twice that."""
    from mirstack.dialects.plain_op import PlainOp
    from mirstack.dialects.relay import ir
    from mirstack.dialects.relay.operator import get_operator, operator_class
    from xdsl.dialects.builtin import ModuleOp, TensorType, f32
    from xdsl.ir import Block, Region, SSAValue
    from xdsl.irdl import IRDLOperation

    n = 3_000
    operator = get_operator("add")
    assert operator is not None
    add, type = operator_class(operator), TensorType(f32, [4])

    def build() -> ModuleOp:
        block = Block(arg_types=[type])
        value: SSAValue = block.args[0]
        for _ in range(n):
            op = add([value, block.args[0]], type=type)
            block.add_op(op)
            value = op.result
        block.add_op(ir.ReturnOp(value))
        return ModuleOp([ir.FuncOp("main", ["x"], [], body=Region(block))])

    def building() -> float:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PlainOp, "__init__", IRDLOperation.__init__)
            return cpu_seconds(build)

    text = chain(n)
    parse_mir(text)
    assert ratio(lambda: cpu_seconds(lambda: parse_mir(text)), building, below=2) < 2
