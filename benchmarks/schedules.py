"""Times schedule primitives: a schedule of over 100 on a ResNet block, and one on growing functions.

Printed are milliseconds per primitive. The second must not grow with the number of blocks elsewhere in the function.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from mirstack.parser import parse_mir
from mirstack.passes.schedule import BlockRV, LoopRV, Schedule

CHANNELS, SIZE = 64, 56
_CONV = """
    for n, c, h, w in T.grid(1, {c}, {p}, {p}):
        with T.block("pad{k}"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            P{k}[vn, vc, vh, vw] = T.if_then_else(1 <= vh and vh < {e} and 1 <= vw and vw < {e}, {x}[vn, vc, vh - 1, vw - 1], T.float32(0))
    for n, f, h, w, c, y, x in T.grid(1, {c}, {s}, {s}, {c}, 3, 3):
        with T.block("conv{k}"):
            vn, vf, vh, vw, vc, vy, vx = T.axis.remap("SSSSRRR", [n, f, h, w, c, y, x])
            with T.init():
                C{k}[vn, vf, vh, vw] = T.float32(0)
            C{k}[vn, vf, vh, vw] = C{k}[vn, vf, vh, vw] + P{k}[vn, vc, vh + vy, vw + vx] * W{k}[vf, vc, vy, vx]"""
_ELEMENTWISE = """
    for n, c, h, w in T.grid(1, {c}, {s}, {s}):
        with T.block("{name}"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            {name}[vn, vc, vh, vw] = {value}"""


def resnet_block() -> str:
    """Two convolutions with their normalizations, the sum with the input, and the activations: 12 blocks."""
    shape = f"(1, {CHANNELS}, {SIZE}, {SIZE})"
    tensors = [f'{name}: T.Buffer({shape}, "float32")' for name in ("X", "out")]
    for k in (1, 2):
        tensors += [f'W{k}: T.Buffer(({CHANNELS}, {CHANNELS}, 3, 3), "float32")']
        tensors += [f'{name}{k}: T.Buffer(({CHANNELS},), "float32")' for name in "SB"]
    padded = f"(1, {CHANNELS}, {SIZE + 2}, {SIZE + 2})"
    lines = [f"@T.prim_func\ndef main({', '.join(tensors)}):"]
    for k in (1, 2):
        lines += [f"    P{k} = T.alloc_buffer({padded})"]
        lines += [f"    {name}{k} = T.alloc_buffer({shape})" for name in ("C", "scale", "bias")]
    lines += [f"    {name} = T.alloc_buffer({shape})" for name in ("relu1", "total")]
    body = "\n".join(lines)
    at = "[vn, vc, vh, vw]"
    for k, source in ((1, "X"), (2, "relu1")):
        body += _CONV.format(k=k, c=CHANNELS, s=SIZE, p=SIZE + 2, e=SIZE + 1, x=source)
        values = {f"scale{k}": f"C{k}{at} * S{k}[vc]", f"bias{k}": f"scale{k}{at} + B{k}[vc]"}
        if k == 1:
            values["relu1"] = f"T.max(bias1{at}, T.float32(0))"
        else:
            values |= {"total": f"bias2{at} + X{at}", "out": f"T.max(total{at}, T.float32(0))"}
        for name, value in values.items():
            body += _ELEMENTWISE.format(name=name, value=value, c=CHANNELS, s=SIZE)
    return body + "\n"


class Timed:
    """A schedule that takes note of what each primitive costs."""

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.seconds: list[tuple[str, float]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def apply(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return self.schedule.apply(name, args, kwargs)
            finally:
                self.seconds.append((name, time.perf_counter() - start))

        return apply


def eights_last(a: Any, b: Any, i: Any, j: Any) -> list[Any]:
    """Returns the layout of weights whose vectors hold eight output channels."""
    return [a // 8, b, i, j, a % 8]


def transposed(a: Any, b: Any) -> list[Any]:
    """Columns as rows."""
    return [b, a]


def schedule_resnet_block(sch: Any) -> None:
    """Tiles both convolutions over threads, cache and registers, and computes all else where it is needed."""
    for name in ("scale1", "scale2", "bias1", "total"):
        sch.compute_inline(sch.get_block(name))
    for k, last in ((1, "relu1"), (2, "bias2")):
        conv, pad = sch.get_block(f"conv{k}"), sch.get_block(f"pad{k}")
        _, f, h, w, c, y, x = sch.get_loops(conv)
        f0, f1, f2 = sch.split(f, factors=[None, 2, 8])
        h0, h1 = sch.split(h, factors=[None, 7])
        w0, w1 = sch.split(w, factors=[None, 8])
        c0, c1 = sch.split(c, factors=[None, 16])
        sch.reorder(f0, h0, w0, c0, f1, h1, c1, y, x, f2, w1)
        copy = sch.cache_write(conv, 0, "local")
        sch.reverse_compute_at(copy, w0)
        weights = sch.cache_read(conv, 1, "global")
        sch.compute_at(weights, f0)
        sch.parallel(sch.get_loops(pad)[1])
        sch.unroll(f2)
        sch.vectorize(w1)
        sch.unroll(x)
        sch.annotate(c1, "pragma_unroll", 1)
        for block in (copy, weights, pad):
            loops: list[LoopRV] = sch.get_loops(block)
            outer, inner = sch.split(loops[-1], factors=[None, 2])
            sch.unroll(inner)
            sch.annotate(outer, "note", block_name(sch, block))
            sch.get_consumers(block)
        sch.transform_layout(weights, ("write", 0), eights_last)
        sch.parallel(f0)
        sch.decompose_reduction(conv, c0)
        rest = sch.get_block(last)
        n, c, h, w = sch.get_loops(rest)
        fused = sch.fuse(n, c)
        sch.parallel(fused)
        inner = sch.split(w, factors=[None, 8])[1]
        sch.vectorize(inner)
        sch.get_producers(rest)
    block = sch.get_block("out")
    n, c, h, w = sch.get_loops(block)
    sch.parallel(sch.fuse(n, c))
    sch.vectorize(sch.split(w, factors=[None, 8])[1])


def block_name(sch: Any, block: BlockRV) -> str:
    """Returns the block's current name."""
    schedule: Schedule = sch.schedule if isinstance(sch, Timed) else sch
    op = schedule.resolve(block)
    return op.block_name.data


def chains(count: int) -> str:
    """A function of `count` chains, each of three blocks: a product, a sum over rows, an activation."""
    parameters = ", ".join(
        f'A{k}: T.Buffer((64, 64), "float32"), O{k}: T.Buffer((64, 64), "float32")' for k in range(count)
    )
    lines = [f"@T.prim_func\ndef main({parameters}):"]
    lines += [f"    {name}{k} = T.alloc_buffer((64, 64))" for k in range(count) for name in "XY"]
    for k in range(count):
        lines.append(
            f"""    for i, j in T.grid(64, 64):
        with T.block("X{k}"):
            vi, vj = T.axis.remap("SS", [i, j])
            X{k}[vi, vj] = A{k}[vi, vj] * T.float32(2)
    for i, j, k in T.grid(64, 64, 64):
        with T.block("Y{k}"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y{k}[vi, vj] = T.float32(0)
            Y{k}[vi, vj] = Y{k}[vi, vj] + X{k}[vi, vk] * A{k}[vk, vj]
    for i, j in T.grid(64, 64):
        with T.block("O{k}"):
            vi, vj = T.axis.remap("SS", [i, j])
            O{k}[vi, vj] = T.max(Y{k}[vi, vj], T.float32(0))"""
        )
    return "\n".join(lines) + "\n"


def schedule_chain(sch: Any, number: int) -> None:
    """Schedules one of the chains: most primitives, each once or twice."""
    y, x, o = (sch.get_block(f"{name}{number}") for name in "YXO")
    i, j, k = sch.get_loops(y)
    i0, i1 = sch.split(i, [None, 8])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, k, i1, j1)
    sch.get_producers(y)
    sch.get_consumers(y)
    sch.compute_at(x, i0)
    sch.reverse_compute_at(o, j0)
    sch.cache_write(y, 0, "local")
    sch.cache_read(y, 1, "shared")
    sch.parallel(i0)
    sch.vectorize(sch.get_loops(o)[-1])
    sch.annotate(i0, "key", 1)
    sch.decompose_reduction(y, k)
    sch.set_scope(x, 0, "local")
    sch.transform_layout(x, ("write", 0), transposed)


def main() -> None:
    """Prints both measurements."""
    gc.disable()
    timed = Timed(Schedule(parse_mir(resnet_block())))
    schedule_resnet_block(timed)
    total = sum(seconds for _, seconds in timed.seconds)
    worst = max(timed.seconds, key=lambda each: each[1])
    count = len(timed.seconds)
    print(
        f"ResNet block: {count} primitives in {1e3 * total:.0f} ms, {1e3 * total / count:.2f} ms a primitive, ", end=""
    )
    print(f"at most {1e3 * worst[1]:.1f} ms ({worst[0]})")
    by_name = dict.fromkeys((name for name, _ in timed.seconds), 0.0)
    for name, seconds in timed.seconds:
        by_name[name] += seconds
    calls = Counter(name for name, _ in timed.seconds)
    for name, seconds in sorted(by_name.items(), key=lambda item: -item[1]):
        print(f"  {name:<22}{calls[name]:>4} x {1e3 * seconds / calls[name]:8.2f} ms")
    print("One chain of many in a function: ms a primitive")
    for count in (8, 32, 128, 512):
        schedule = Schedule(parse_mir(chains(count)))
        schedule_chain(schedule, 0)
        best = float("inf")
        for number in (1, count // 2, count - 1):
            timed = Timed(schedule)
            schedule_chain(timed, number)
            best = min(best, sum(seconds for _, seconds in timed.seconds) / len(timed.seconds))
        print(f"  {3 * count:>5} blocks {1e3 * best:8.2f} ms")
    gc.enable()


if __name__ == "__main__":
    main()
