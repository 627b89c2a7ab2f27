"""Loops written as recursion run in one frame, and mean what they meant; other recursion takes the memory that it needs."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable
from mirstack.support.diagnostics import MirError

X = "Tensor[(3), float32]"

LOOPS = {
    "count": f"""def @f(%n: int32, %x: {X}) -> {X} {{
        if (less(%n, 1)) {{ %x }} else {{ @f(subtract(%n, 1), add(%x, 1f)) }} }}""",
    "several results, one of them the same parameter": f"""
        def @g(%n: int32, %x: {X}, %y: {X}, %k: {X}) -> ({X}, {X}) {{
          if (less(%n, 1)) {{ (%x, %y) }} else {{ @g(subtract(%n, 1), add(%y, %k), multiply(%x, 0.5f), %k) }} }}
        def @f(%n: int32, %x: {X}) -> {X} {{ let %r = @g(%n, %x, exp(%x), %x); add(%r.0, %r.1) }}""",
    "tuples": f"""
        def @g(%n: int32, %p: ({X}, {X})) -> ({X}, {X}) {{
          if (less(%n, 1)) {{ %p }} else {{ @g(subtract(%n, 1), (add(%p.1, 1f), negative(%p.0))) }} }}
        def @f(%n: int32, %x: {X}) -> {X} {{ let %r = @g(%n, (%x, tanh(%x))); subtract(%r.0, %r.1) }}""",
    "branches of branches": f"""def @f(%n: int32, %x: {X}) -> {X} {{
        if (less(%n, 1)) {{ %x }} else {{
          if (equal(mod(%n, 2), 0)) {{ @f(subtract(%n, 1), add(%x, 1f)) }} else {{ @f(subtract(%n, 3), exp(negative(%x))) }} }} }}""",
    "the value of a branch is handed on": f"""def @f(%n: int32, %x: {X}) -> {X} {{
        if (less(%n, 1)) {{ %x }} else {{
          let %s = exp(negative(%x));
          let %t = @f(subtract(%n, 1), %s);
          %t }} }}""",
    "what is returned is handed on, too": f"""def @f(%n: int32, %x: {X}) -> {X} {{
        let %y = multiply(%x, 0.5f);
        if (less(%n, 1)) {{ %y }} else {{ @f(subtract(%n, 1), %y) }} }}""",
    "constants": f"""def @f(%n: int32, %x: {X}) -> {X} {{
        if (less(%n, 1)) {{ %x }} else {{ if (less(%n, 5)) {{ @f(0, %x) }} else {{ @f(subtract(%n, 1), sqrt(exp(negative(%x)))) }} }} }}""",
    "boxes of one turn": f"""type List[A] {{ Cons(A, List[A]), Nil, }}
        def @f(%n: int32, %x: {X}) -> {X} {{
          if (less(%n, 1)) {{ %x }} else {{
            let %l: List[{X}] = Cons(add(%x, 1f), Cons(%x, Nil));
            match? (%l) {{ Cons(%h, Cons(%t, Nil)) => {{ @f(subtract(%n, 1), subtract(%h, multiply(%t, 0.5f))) }}, }} }} }}""",
    "a closure of one turn": f"""def @f(%n: int32, %x: {X}) -> {X} {{
        let %add = fn (%a: {X}) -> {X} {{ add(%a, %x) }};
        if (less(%n, 1)) {{ %x }} else {{ @f(subtract(%n, 1), %add(multiply(%x, -0.25f))) }} }}""",
}

OTHERS = {
    "swapped parameters": f"""
        def @g(%n: int32, %x: {X}, %y: {X}) -> {X} {{
          if (less(%n, 1)) {{ %x }} else {{ @g(subtract(%n, 1), %y, %x) }} }}
        def @f(%n: int32, %x: {X}) -> {X} {{ @g(%n, %x, exp(%x)) }}""",
    "either parameter": f"""
        def @g(%n: int32, %x: {X}, %y: {X}) -> {X} {{
          if (less(%n, 1)) {{ %x }} else {{
            let %z = if (equal(mod(%n, 2), 0)) {{ %y }} else {{ %x }};
            @g(subtract(%n, 1), add(%y, 1f), %z) }} }}
        def @f(%n: int32, %x: {X}) -> {X} {{ @g(%n, %x, exp(%x)) }}""",
    "something left to do": f"""def @f(%n: int32, %x: {X}) -> {X} {{
        if (less(%n, 1)) {{ %x }} else {{ add(@f(subtract(%n, 1), %x), 1f) }} }}""",
    "the call of a call": f"""def @f(%n: int32, %x: {X}) -> {X} {{
        if (less(%n, 1)) {{ %x }} else {{ @f(0, @f(subtract(%n, 1), add(%x, 1f))) }} }}""",
    "lists": f"""type List[A] {{ Cons(A, List[A]), Nil, }}
        def @g(%n: int32, %l: List[{X}]) -> List[{X}] {{
          if (less(%n, 1)) {{ %l }} else {{ match? (%l) {{ Cons(%h, _) => {{ @g(subtract(%n, 1), Cons(add(%h, 1f), %l)) }}, }} }} }}
        def @f(%n: int32, %x: {X}) -> {X} {{ match? (@g(%n, Cons(%x, Nil))) {{ Cons(%h, _) => {{ %h }}, }} }}""",
    "references": f"""def @f(%n: int32, %x: {X}) -> {X} {{
        let %r = ref(%x);
        if (less(%n, 1)) {{ ref_read(%r) }} else {{ @f(subtract(%n, 1), add(ref_read(%r), 1f)) }} }}""",
}

MAIN = f"\ndef @main(%n: int32, %x: {X}) -> {X} {{ @f(%n, %x) }}"


def compiled(text: str, **options: Any) -> RelayExecutable:
    program = mirstack.compile(mirstack.parse(text + MAIN), entry="main", threads=1, cache=False, **options)
    assert isinstance(program, RelayExecutable)
    return program


@pytest.mark.parametrize("name", [*LOOPS, *OTHERS])
def test_results_are_those_of_the_interpreter(name: str) -> None:
    text = {**LOOPS, **OTHERS}[name]
    native, meaning = compiled(text), mirstack.compile(mirstack.parse(text + MAIN), "interp", entry="main")
    x = np.array([0.5, -1.5, 2], np.float32)
    for n in (0, 1, 2, 3, 7, 8):
        count = np.array(n, np.int32)
        np.testing.assert_allclose(native(count, x), meaning(count, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_take_the_memory_of_one_turn(name: str) -> None:
    program = compiled(LOOPS[name])
    x = np.full(3, 0.25, np.float32)
    for n in (1, 3, 200_000):
        assert np.isfinite(program(np.array(n, np.int32), x)).all()
    context = program._take_context()
    grown = context.arena - program.arena_bytes
    assert grown <= (1 << 16) + 64, "boxes, if there are any, and of one turn"
    assert program.arena_bytes == program.arena_lower_bound < 1000


def test_a_loop_has_as_many_iterations_as_it_needs() -> None:
    text = """
        def @f(%n: int32, %a: int32) -> int32 { if (equal(%n, 0)) { %a } else { @f(subtract(%n, 1), add(%a, 2)) } }
        def @main(%n: int32, %a: int32) -> int32 { @f(%n, %a) }"""
    program = mirstack.compile(mirstack.parse(text), entry="main")
    assert program(np.array(3_000_000, np.int32), np.array(1, np.int32)) == 6_000_001


def test_recursion_without_end_is_an_error() -> None:
    program = compiled(f"def @f(%n: int32, %x: {X}) -> {X} {{ negative(@f(add(%n, 1), %x)) }}")
    for _ in range(2):
        with pytest.raises(MirError, match="the recursion is deeper than the stack allows"):
            program(np.array(1, np.int32), np.zeros(3, np.float32))


def test_the_heap_of_other_recursion_is_as_large_as_its_needs() -> None:
    program = compiled(OTHERS["something left to do"])
    x = np.zeros(3, np.float32)
    for n, most in ((3, 1 << 17), (2000, 1 << 20), (20_000, 1 << 24)):
        for _ in range(2):
            np.testing.assert_array_equal(program(np.array(n, np.int32), x), n)
        context = program._take_context()
        assert context.arena < most
        program._give_context(context)
