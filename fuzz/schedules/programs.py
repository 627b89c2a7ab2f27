"""TIR functions of blocks that random schedules begin with, and some drawn at random."""

from __future__ import annotations

import operator
import random

MATMUL = """
@T.prim_func
def main(A: T.Buffer((24, 16), "float32"), B: T.Buffer((20, 16), "float32"), D: T.Buffer((24, 20), "float32")):
    C = T.alloc_buffer((24, 20))
    for i, j, k in T.grid(24, 20, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
    for i, j in T.grid(24, 20):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
"""

CHAIN = """
@T.prim_func
def main(A: T.Buffer((16, 30), "float32"), C: T.Buffer((16, 30), "float32")):
    B = T.alloc_buffer((16, 30))
    for i, j in T.grid(16, 30):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 30):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""

STENCIL = """
@T.prim_func
def main(A: T.Buffer((34,), "float32"), C: T.Buffer((32,), "float32")):
    B = T.alloc_buffer((34,))
    for i in range(34):
        with T.block("B"):
            vi = T.axis.spatial(34, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(32):
        with T.block("C"):
            vi = T.axis.spatial(32, i)
            C[vi] = B[vi] + B[vi + 1] + B[vi + 2]
"""

ROWS = """
@T.prim_func
def main(A: T.Buffer((6, 14), "float32"), D: T.Buffer((6, 14), "float32")):
    S = T.alloc_buffer((6,))
    E = T.alloc_buffer((6, 14))
    for i, j in T.grid(6, 14):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = A[vi, vj] + T.float32(3)
    for i, k in T.grid(6, 14):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, j in T.grid(6, 14):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = E[vi, vj] * S[vi]
"""

TRANSPOSED = """
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), C: T.Buffer((5, 24), "float32")):
    B = T.alloc_buffer((10, 12))
    for i, j in T.grid(10, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] * T.float32(2)
    for i, j in T.grid(5, 24):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi * 2 + vj // 12, vj % 12]
"""

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
    """A size with something done to it: 16, "- 1" → 15; n → n - 1."""
    if isinstance(size, str):
        return f"{size} {by}"
    sign, amount = by.split()
    change = {"-": operator.sub, "*": operator.mul, "//": operator.floordiv}[sign]
    return str(change(size, int(amount)))


def _positive(size: Size, by: str) -> str:
    changed = _changed(size, by)
    return f"T.max({changed}, 1)" if isinstance(size, str) else str(max(1, int(changed)))
