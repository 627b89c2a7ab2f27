"""tensorize: pieces of programs replaced by intrinsics; which statement differs when they are not what is described."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule, ScheduleError
from mirstack.passes.schedule.engine.tensor_intrinsics import TensorIntrin
from mirstack.support.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.fuzz.schedules.programs import MATMUL
from test_primitives import refused, run

DESC = """
@T.prim_func
def tile_desc(a: T.handle, b: T.handle, c: T.handle):
    T.func_attr({"tensor_intrin": "tile", "role": "desc"})
    A = T.match_buffer(a, (4, 8), offset_factor=1)
    B = T.match_buffer(b, (5, 8), offset_factor=1)
    C = T.match_buffer(c, (4, 5), offset_factor=1)
    with T.block("root"):
        for i, j, k in T.grid(4, 5, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
"""

IMPL = """
@T.prim_func
def tile_impl(a: T.handle, b: T.handle, c: T.handle):
    T.func_attr({"tensor_intrin": "tile", "role": "impl"})
    sa = T.int32()
    A = T.match_buffer(a, (4, 8), strides=(sa, 1), offset_factor=1)
    B = T.match_buffer(b, (5, 8), offset_factor=1)
    C = T.match_buffer(c, (4, 5), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:5], A[0:4, 0:8], B[0:5, 0:8])
        T.writes(C[0:4, 0:5])
        T.block_attr({"by": "hand"})
        for k, i, j in T.grid(8, 4, 5):
            C[i, j] = B[j, k] * A[i, k] + C[i, j]
"""

WHOLE_DESC = DESC.replace(
    '"SSR", [i, j, k])\n',
    '"SSR", [i, j, k])\n                with T.init():\n                    C[vi, vj] = T.float32(0)\n',
)
WHOLE_IMPL = IMPL.replace(
    "        for k, i, j", "        for i, j in T.grid(4, 5):\n            C[i, j] = T.float32(0)\n        for k, i, j"
)


def program(desc: str = DESC, impl: str = IMPL, main: str = MATMUL) -> str:
    """A module with an intrinsic and the function that is scheduled."""
    return desc + impl + main


def tiled(s: Schedule) -> Any:
    """The innermost three loops of the product, cut in tiles of 4, 5 and 8: the outermost of them."""
    s.work_on("main")
    i, j, k = s.get_loops(s.get_block("C"))
    i0, i1 = s.split(i, [None, 4])
    j0, j1 = s.split(j, [None, 5])
    k0, k1 = s.split(k, [None, 8])
    s.reorder(i0, j0, k0, i1, j1, k1)
    return i1


def whole(s: Schedule) -> None:
    """The intrinsic in place of a tile whose output was set to 0 before."""
    loop = tiled(s)
    s.decompose_reduction(s.get_block("C"), s.get_loops(s.get_block("C"))[2])
    s.tensorize(loop, "tile")


def direct(s: Schedule) -> None:
    """The intrinsic in place of a tile that sets its output to 0 itself."""
    loop = tiled(s)
    s.tensorize(loop, "tile")


def tensorized(text: str, steps: Any) -> str:
    """The scheduled function; checks that it verifies, reads back, and computes what it did."""
    module = parse_mir(text)
    expected = run(parse_mir(MATMUL))
    steps(Schedule(module))
    verify(module)
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    main = printed[printed.index("def main") :]
    for ours, theirs in zip(run(parse_mir("@T.prim_func\n" + main)), expected, strict=True):
        assert (ours == theirs).all()
    return main


def message(desc: str = DESC, impl: str = IMPL, steps: Any = whole, main: str = MATMUL) -> str:
    """The refusal of a program."""
    return refused(program(desc, impl, main), steps)


def test_loops() -> None:
    text = tensorized(program(), whole)
    assert 'with T.block("C_update_o"):' in text
    assert "A_1 = T.match_buffer(A[vi_o * 4:vi_o * 4 + 4, vk_o * 8:vk_o * 8 + 8], (4, 8), strides=" in text
    assert "C_1 = T.match_buffer(C[vi_o * 4:vi_o * 4 + 4, vj_o * 5:vj_o * 5 + 5], (4, 5), offset_factor=1)" in text
    assert 'T.block_attr({"by": "hand"})' in text
    assert "C_1[i, j] = B_1[j, k] * A_1[i, k] + C_1[i, j]" in text


def test_init_stays_outside() -> None:
    text = tensorized(program(), direct)
    assert 'with T.block("C_init"):' in text


def test_intrinsic_that_initializes() -> None:
    small = MATMUL.replace("16", "8")
    text = program(WHOLE_DESC, WHOLE_IMPL, small)
    module = parse_mir(text)
    expected = run(parse_mir(small))
    direct(Schedule(module))
    printed = print_mir(module)
    main = "@T.prim_func\n" + printed[printed.index("def main") :]
    assert "T.init()" not in main
    assert all((a == b).all() for a, b in zip(run(parse_mir(main)), expected, strict=True))
    assert (
        "tensorize: 'tile' initializes its output, but the loops around go on with reduction axis 'vk' of block 'C'"
        in message(WHOLE_DESC, WHOLE_IMPL, direct)
    )


def test_block() -> None:
    def steps(s: Schedule) -> None:
        outer = s.blockize(tiled(s))
        s.tensorize(outer, "tile")

    text = tensorized(program(), steps)
    assert "T.init()" in text
    assert "C_1[i, j] = B_1[j, k] * A_1[i, k] + C_1[i, j]" in text


def test_handles_of_what_was_replaced() -> None:
    def steps(s: Schedule) -> None:
        loop = tiled(s)
        s.tensorize(loop, "tile")
        s.unroll(loop)

    assert "tensor intrinsic 'tile' took its place" in message(steps=steps)


def test_the_program_is_the_function_that_is_no_half() -> None:
    named = MATMUL.replace("def main", "def product")
    schedule = Schedule(parse_mir(program(main=named)))
    assert len(schedule.get_loops(schedule.get_block("C"))) == 3


def test_registry() -> None:
    desc, impl = (parse_mir(t).body.block.first_op for t in (DESC, IMPL))
    TensorIntrin.register("registered tile", desc, impl, override=True)
    found = TensorIntrin.get("registered tile")
    assert found is not None and found.name == "registered tile"
    assert "registered tile" in TensorIntrin.names()
    with pytest.raises(ScheduleError, match="there is a tensor intrinsic 'registered tile' already"):
        TensorIntrin.register("registered tile", desc, impl)
    with pytest.raises(ScheduleError, match="there is no tensor intrinsic 'nothing'"):
        TensorIntrin.get("nothing")
    assert TensorIntrin.get("nothing", allow_missing=True) is None
    with pytest.raises(ScheduleError, match="tensor intrinsic 'x': a str is not a prim_func"):
        TensorIntrin.register("x", DESC, IMPL)

    def steps(s: Schedule) -> None:
        loop = tiled(s)
        s.tensorize(loop, "registered tile")

    module = parse_mir(MATMUL)
    schedule = Schedule(module)
    steps(schedule)
    assert all((a == b).all() for a, b in zip(run(module), run(parse_mir(MATMUL)), strict=True))


def test_declarations_refused() -> None:
    def named(s: Schedule) -> None:
        loop = tiled(s)
        s.tensorize(loop, "tall")

    found = message(steps=named)
    assert "there is no tensor intrinsic 'tall'" in found
    assert "there are 'tile'" in found
    assert "tensor intrinsic 'tile' has no function with the role 'impl'" in message(impl="")
    twice = IMPL.replace('"role": "impl"', '"role": "desc"')
    assert "tensor intrinsic 'tile' has two functions with the role 'desc'" in message(impl=twice)
    bare = IMPL.replace(', "role": "impl"', "")
    assert "function 'tile_impl' of tensor intrinsic 'tile' has no role" in message(impl=bare)
    fewer = IMPL.replace("c: T.handle", "c: T.handle, d: T.handle").replace(
        "    with T.block", "    D = T.match_buffer(d, (4,))\n    with T.block"
    )
    assert "tensor intrinsic 'tile': the description takes 3 buffers, the implementation 4" in message(impl=fewer)
    other = IMPL.replace("(5, 8)", "(8, 5)")
    assert (
        "tensor intrinsic 'tile': 'B' of the description and 'B' of the implementation differ in shape, dtype or scope"
        in message(impl=other)
    )
    scalar = IMPL.replace("c: T.handle", "c: T.handle, n: T.int32")
    assert "tensor intrinsic 'tile': parameter 'n' of 'tile_impl' is not a buffer" in message(impl=scalar)
    symbolic = IMPL.replace("(4, 5)", "(sa, 5)")
    assert "tensor intrinsic 'tile': buffer 'C' of 'tile_impl' has a symbolic shape" in message(impl=symbolic)
    unused = DESC.replace("A[vi, vk] * B[vj, vk]", "A[vi, vk] * A[vi, vk]")
    squares = MATMUL.replace("A[vi, vk] * B[vj, vk]", "A[vi, vk] * A[vi, vk]")
    assert "tensorize: the description of 'tile' does not access its parameter 'B'" in message(unused, main=squares)


def test_statements_that_differ() -> None:
    def desc(old: str, new: str) -> str:
        assert old in DESC
        return message(DESC.replace(old, new))

    found = desc("T.grid(4, 5, 8)", "T.grid(4, 5, 4)")
    assert "tensorize: loop 'k_1' has 8 iterations, where loop 'k' of the description has 4: it is not 'tile'" in found
    assert "the description has loop 'k' here" in found
    assert "what the store to 'C' is another value than in the description" in desc("A[vi, vk] * B", "A[vi, vk] - B")
    assert "axis 'vi_i' of block 'C_update' is spatial over 4" in desc('"SSR", [i, j, k]', '"RSR", [i, j, k]')
    found = desc(
        'vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
        'vi, vk = T.axis.remap("SR", [i, k])\n                vj = T.axis.spatial(5, j)',
    )
    assert (
        "axis 'vj_i' of block 'C_update' is spatial over 5, where 'vk' of the description is a reduction over 8"
        in found
    )
    found = desc(
        'vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
        'vi, vj = T.axis.remap("SS", [i, j])\n                vk = T.axis.reduce(8, 7 - k)',
    )
    assert "axis 'vk_i' of block 'C_update' is bound to k_1, where 'vk' of the description is bound to" in found
    assert "block 'C_update' has other annotations than in the description" in desc(
        "                C[vi, vj] =", '                T.block_attr({"x": 1})\n                C[vi, vj] ='
    )
    assert "block 'C_update' has another predicate (T.where) than in the description" in desc(
        "                C[vi, vj] =", "                T.where(i < 3)\n                C[vi, vj] ="
    )
    assert "block 'C_update' holds 1 statement, where the description has 2" in desc(
        "B[vj, vk]\n", "B[vj, vk]\n                C[vi, vj] = C[vi, vj]\n"
    )
    found = desc("for i, j, k in T.grid(4, 5, 8):", "for k, i, j in T.grid(8, 4, 5):")
    assert "loop 'i_1' has 4 iterations, where loop 'k' of the description has 8" in found
    found = desc("for i, j, k in T.grid(4, 5, 8):", "for i, j in T.grid(4, 5):\n          for k in T.unroll(8):")
    assert "loop 'k_1' is serial, where loop 'k' of the description is unrolled" in found
    found = desc('vi, vj, vk = T.axis.remap("SSR", [i, j, k])', 'vi, vj, vk, vl = T.axis.remap("SSRR", [i, j, k, k])')
    assert (
        "block 'C_update' has 3 axes in these loops (vi_i, vj_i, vk_i), where block 'C' of the description has 4"
        in found
    )


def test_accesses_that_differ() -> None:
    def desc(old: str, new: str) -> str:
        return message(DESC.replace(old, new), IMPL.replace(old, new))

    found = desc("a, (4, 8),", 'a, (4, 8), scope="shared",')
    assert "'A' is float32 in scope 'global', where 'A' of the description is float32 in 'shared'" in found
    found = message(DESC.replace("B[vj, vk]", "B[vj, 7 - vk]"))
    assert "index 1 of 'B' is vk_o * 8 + vk_i" in found
    assert "which does not move as that of 'B' in the description" in found
    other_place = MATMUL.replace(
        "C[vi, vj] + A[vi, vk] * B", "C[vi, vj] + A[vi, vk] * T.float32(3) * A[vi, 15 - vk + vk] * B"
    )
    two = DESC.replace("C[vi, vj] + A[vi, vk] * B", "C[vi, vj] + A[vi, vk] * T.float32(3) * A[vi, 3] * B")
    assert "'A' is accessed at another place than elsewhere as 'A' of the description" in message(two, main=other_place)
    crossed = DESC.replace("A[vi, vk] * B[vj, vk]", "A[vi, vk] * B[vj, vk] + A[vi, vk] * T.float32(3)")
    ours = MATMUL.replace("A[vi, vk] * B[vj, vk]", "A[vi, vk] * B[vj, vk] + B[vi, vk] * T.float32(3)")
    assert "'B' is accessed where 'A' is 'A' of the description elsewhere" in message(crossed, main=ours)
    higher = DESC.replace("a, (4, 8)", "a, (1, 4, 8)").replace("A[vi, vk]", "A[0, vi, vk]")
    higher_impl = (
        IMPL.replace("a, (4, 8)", "a, (1, 4, 8)")
        .replace("(sa, 1)", "(sa, sa, 1)")
        .replace("A[", "A[0, ")
        .replace("A[0, 0:4", "A[0, 0:4")
    )
    assert "'A' has 2 dimensions, fewer than 'A' of the description" in message(higher, higher_impl)


def test_regions_refused() -> None:
    square = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi + 4, vj]
"""
    desc = """
@T.prim_func
def tile_desc(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tensor_intrin": "tile", "role": "desc"})
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
"""
    impl = desc.replace("desc", "impl")

    def steps(s: Schedule) -> None:
        s.work_on("main")
        s.tensorize(s.get_loops(s.get_block("B"))[0], "tile")

    found = message(desc, impl, steps, square)
    assert "tensorize: 'A' would be both 'B', which 'tile' writes, and 'A'" in found
    large = desc.replace("A: T.Buffer((4, 4)", "A: T.Buffer((4, 9)")
    found = message(
        large, large.replace("desc", "impl"), steps, square.replace("        A[vi, vj] =", "        B[vi, vj] =")
    )
    assert (
        "tensorize: 'A' of 'tile' would reach from 0 over 9 elements of dimension 1 of 'A', which is not known to be inside"
        in found
    )
    handles = impl.replace('A: T.Buffer((4, 4), "float32")', "a: T.handle").replace(
        "    for i, j", "    A = T.match_buffer(a, (4, 4), offset_factor=64)\n    for i, j"
    )
    found = message(desc, handles, steps, square.replace("        A[vi, vj] =", "        B[vi, vj] ="))
    assert (
        "tensorize: 'A' of 'tile' must begin at a multiple of 64 elements (offset_factor), which 32 in 'A' is not known to be"
        in found
    )


def test_other_statements() -> None:
    main = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            if vi > 1:
                A[vi, 0] = T.float32(1)
            else:
                A[vi, 1] = T.float32(2)
            T.evaluate(T.call_extern("int32", "f", vi))
"""
    desc = main.replace("def main", "def tile_desc").replace(
        "    for i", '    T.func_attr({"tensor_intrin": "tile", "role": "desc"})\n    for i', 1
    )
    impl = desc.replace("desc", "impl")

    def steps(s: Schedule) -> None:
        s.work_on("main")
        s.tensorize(s.get_loops(s.get_block("A"))[0], "tile")

    module = parse_mir(program(desc, impl, main))
    steps(Schedule(module))
    verify(module)
    assert "the condition of 'if' is another one than in the description" in message(
        desc.replace("vi > 1", "vi > 2"), impl, steps, main
    )
    assert "the expression evaluated is another one than in the description" in message(
        desc.replace('"f"', '"g"'), impl, steps, main
    )
    assert "'tir.if' stands where the description has the store to 'A'" in message(
        desc.replace("            if vi", "            A[vi, 2] = T.float32(0)\n            if vi"), impl, steps, main
    )
    allocated = main.replace("            if vi", "            B = T.alloc_buffer((4,))\n            if vi")
    text = message(
        desc.replace("            if vi", "            B = T.alloc_buffer((4,))\n            if vi"),
        impl,
        steps,
        allocated,
    )
    assert "cannot be compared with a description" in text
