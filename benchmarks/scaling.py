"""Times parse, verify, CSE, DCE and print of growing modules; each doubling should double the time.

A chain, a wide graph, and many functions of Relay.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import mirstack
from mirstack.parser import print_mir
from mirstack.passes.common.cse import CommonSubexpressionElimination
from mirstack.passes.common.dce import Dce
from mirstack.support.deep_stack import in_deep_stack
from mirstack.support.verify import verify
from xdsl.context import Context

HEAD = '#[version = "0.0.5"]\n'
PARAM = "%x: Tensor[(4), float32]"


def chain(count: int) -> str:
    """Returns a module in which every op uses the one before."""
    lines = ["  %0 = add(%x, %x);", *(f"  %{k} = add(%{k - 1}, %x);" for k in range(1, count))]
    body = "\n".join(lines)
    return f"{HEAD}def @main({PARAM}) {{\n{body}\n  %{count - 1}\n}}\n"


def wide(count: int) -> str:
    """Returns a module in which every op uses the parameter; a tuple takes them all."""
    lines = "\n".join(f"  %{k} = add(%x, {k}f);" for k in range(count))
    fields = ", ".join(f"%{k}" for k in range(count))
    return f"{HEAD}def @main({PARAM}) {{\n{lines}\n  ({fields})\n}}\n"


def functions(count: int) -> str:
    """Returns a module in which each function calls the one before."""
    first = f"def @f0({PARAM}) -> Tensor[(4), float32] {{ add(%x, 1f) }}\n"
    rest = (f"def @f{k}({PARAM}) -> Tensor[(4), float32] {{ add(@f{k - 1}(%x), 1f) }}\n" for k in range(1, count))
    return HEAD + first + "".join(rest)


SHAPES: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "chain": (chain, (25_000, 50_000, 100_000)),
    "wide": (wide, (25_000, 50_000, 100_000)),
    "functions": (functions, (2_500, 5_000, 10_000)),
}


def stages(text: str) -> dict[str, float]:
    """Seconds of each stage."""
    seconds: dict[str, float] = {}
    clock = time.perf_counter

    def timed(name: str, work: Callable[[], object]) -> object:
        start = clock()
        result = work()
        seconds[name] = clock() - start
        return result

    module = timed("parse", lambda: mirstack.parse(text))
    context = Context()
    timed("verify", lambda: verify(module))  # type: ignore[arg-type]
    timed("cse", lambda: CommonSubexpressionElimination().apply(context, module))  # type: ignore[arg-type]
    timed("dce", lambda: Dce().apply(context, module))  # type: ignore[arg-type]
    timed("print", lambda: print_mir(module))  # type: ignore[arg-type]
    return seconds


def main() -> None:
    for name, (make, sizes) in SHAPES.items():
        before: dict[str, float] | None = None
        for size in sizes:
            now = in_deep_stack(lambda size=size, make=make: stages(make(size)))
            shown = "  ".join(
                f"{stage} {took:.2f} s" + (f" (x{took / before[stage]:.2f})" if before else "")
                for stage, took in now.items()
            )
            print(f"  {name} {size:>7}: {shown}")
            before = now


if __name__ == "__main__":
    main()
