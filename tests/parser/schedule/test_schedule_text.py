"""Schedules as text: what is read, how it is printed, what is refused and how."""

from __future__ import annotations

import pytest
from mirstack.dialects.schedule import ScriptOp
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import verify

CANONICAL = """@T.schedule(mm_relu)
def mm_relu_tiled(sch):
    block_Y = sch.get_block("Y")
    i, j, k = sch.get_loops(block_Y)
    j_0, j_1 = sch.split(j, factors=[None, 4])
    sch.reorder(j_0, k, j_1)
    loops = sch.get_loops(block_Y)
    sch.vectorize(loops[-1])
    sch.reorder(*loops[::-1], loops[0])
    a, *rest = sch.split(i, [None, 16])
    sch.unroll(sch.fuse(sch.get_loops(sch.get_block("C"))[0], *rest))
    b, = sch.get_loops("C")
    x = loops[1:]
    sch.parallel(x[0])
    sch.annotate(b, "k", {"a": [1, 2.5, "x\\n", None, True], "b": -3})
    sch.transform_layout(block_Y, ("write", 0), lambda i_0, j: [i_0 // 16, IndexMap.AXIS_SEPARATOR, j, i_0 % 16], pad_value=lambda: T.float32(0))
    sch.transform_block_layout(block_Y, index_map=lambda i, j: [i * T.int64(128) + j])
    v = sch.sample_perfect_tile(loop=b, n=2)
    sch.split(b, factors=v)
    sch.split(b, factors=[v[0], v[1]])
    sch.cache_read(block_Y, 0, "local", consumer_blocks=["x", block_Y])
"""


def test_fixed_point() -> None:
    module = parse_mir(CANONICAL)
    verify(module)
    assert print_mir(module) == CANONICAL


def body(*lines: str) -> str:
    return "@T.schedule(f)\ndef s(sch):\n" + "".join(f"    {line}\n" for line in lines)


def printed(*lines: str) -> list[str]:
    text = print_mir(parse_mir(body(*lines)))
    assert print_mir(parse_mir(text)) == text
    return [line.strip() for line in text.splitlines()[2:]]


def test_names_and_data() -> None:
    assert printed("n = 4", "m = [None, n]", "l = sch.get_loops('B')", "x = l", "sch.split(x[0], m[::1])") == [
        'l = sch.get_loops("B")',
        "sch.split(l[0], [None, 4])",
    ]
    typed = "sch.annotate(sch.get_block('B'), b, [a, T.int64(3), T.bool(True)])"
    assert printed("a, b = 2, 'x' 'y'", typed) == ['sch.annotate(sch.get_block("B"), "xy", [2, 3, True])']
    # A name that is bound again is another handle.
    assert printed('b = sch.get_block("A")', 'b = sch.get_block("B")', "sch.compute_inline(b)")[-1] == (
        "sch.compute_inline(b_1)"
    )
    assert printed('"""A docstring."""', "pass") == ["pass"]


def test_nested_calls_keep_their_order() -> None:
    """A call is only written inside another where it is made then, as Python evaluates arguments."""
    from mirstack.dialects.schedule import Ref, primitive_class
    from mirstack.dialects.schedule.types import BLOCK, LOOP
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Block, Region

    first = primitive_class("get_block")({"name": "A"}, [BLOCK], positional=1)
    second = primitive_class("sample_compute_location")({"block": "B"}, [LOOP], positional=1)
    use = primitive_class("compute_at")({"block": Ref(first.outs[0]), "loop": Ref(second.outs[0])}, positional=2)
    block = Block()
    block.add_ops([first, second, use])
    module = ModuleOp([ScriptOp("s", Region(block))])
    text = print_mir(module)
    assert 'sch.compute_at(sch.get_block("A"), sch.sample_compute_location("B"))' in text
    second.detach()
    block.insert_op_before(second, first)
    lines = print_mir(module).splitlines()[2:]
    assert [line.strip() for line in lines] == [
        'l = sch.sample_compute_location("B")',
        'b = sch.get_block("A")',
        "sch.compute_at(b, l)",
    ]


TRACE = """# from tvm import tir
def apply_trace(sch: tir.Schedule) -> None:
  b0 = sch.get_block(name="C", func_name="main")
  l1, l2, l3 = sch.get_loops(block=b0)
  sch.transform_layout(block=b0, buffer=("write", 0), index_map=lambda h: (h // T.int64(8), h % T.int64(8),), pad_value=lambda indices_0, indices_1: (0,), assume_injective_transform=False)
  v4, v5 = sch.sample_perfect_tile(loop=l1, n=2, max_innermost_factor=16, decision=[4, 2])
  l6, l7 = sch.split(loop=l1, factors=[v4, v5], preserve_unit_iters=True)
  sch.enter_postproc()
  sch.reorder(l3, l1, l2)
"""


def test_traces_of_tvm() -> None:
    module = parse_mir(TRACE)
    (script,) = module.body.block.ops
    assert isinstance(script, ScriptOp) and script.target is None
    text = print_mir(module)
    assert "pad_value=lambda indices_0, indices_1: [0]" in text
    assert "l6, l7 = sch.split(loop=l1, factors=[v4, v5], preserve_unit_iters=True)" in text
    assert print_mir(parse_mir(text)) == text


def refused(text: str) -> str:
    with pytest.raises(MirError) as error:
        parse_mir(text, "s.mir")
    return str(error.value)


SETUP = ('b = sch.get_block("B")', "i = sch.get_loops(b)")


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ('sch.get_blok("B")', 1, "there is no schedule primitive 'get_blok'; did you mean 'get_block'?"),
        ("sch.qqqqq(b)", 1, "there is no schedule primitive 'qqqqq'"),
        ("foo(b)", 1, "'foo' is not a primitive of the schedule"),
        ("sch.parallel(i)", 14, "parallel: 'loop' must be a loop, not a list of loops"),
        ("sch.parallel(b)", 14, "parallel: 'loop' must be a loop, not a block"),
        ("sch.parallel(i[0], 2)", 20, "parallel takes 1 argument at most, but 2 are given"),
        ("sch.split(i[0], factor=[2])", 17, "split has no parameter 'factor'; did you mean 'factors'?"),
        ("sch.split(i[0])", 1, "split needs the argument 'factors', a list of numbers or sampled values or None"),
        ("sch.split(i[0], [2], factors=[2])", 22, "split is given the argument 'factors' twice"),
        ("sch.unroll(loop=i[0], loop=i[0])", 23, "unroll is given the argument 'loop' twice"),
        ('sch.split(i[0], factors=[2, "a"])', 26, "'factors' must be a list of numbers or sampled values or None"),
        ("sch.reorder(i[0], b)", 19, "reorder: 'ordered_loops' must be a loop, not a block"),
        ("x = sch.parallel(i[0])", 1, "parallel gives nothing, but 1 name takes a result"),
        ("u, v, w = sch.split(i[0], factors=[2, None])", 1, "split gives 2 loops here, but 3 names take results"),
        ("u, v = sch.fuse(*i)", 1, "fuse gives one loop, but 2 names take results"),
        ("sch.split(i[0] * 2, [2])", 16, "a schedule computes only with what it draws: an argument is a handle, data, or a lambda"),
        ("for k in i:\n        sch.parallel(k)", 1, "a schedule is a list of calls"),
        ("return", 1, "a schedule is a list of calls"),
        ("b", 1, "this has no effect"),
        ("sch.reorder(*b)", 13, "only a list of handles is splatted"),
        ("sch.split(*i)", 11, "split takes no splat"),
        ("sch.unroll(loop=*i)", 17, "a splat stands among a call's arguments or in a list"),
        ("sch.unroll(bb)", 12, "'bb' is not defined; did you mean 'b'?"),
        ("sch.unroll(sch)", 12, "the schedule itself is not an argument; call its primitives: sch.split(…)"),
        ("u, v = i", 8, "only the results of a call are taken apart"),
        ("u, v = 1, 2, 3", 8, "3 values cannot be given to 2 names"),
        ("sch = 3", 1, "'sch' is the schedule"),
        ("b.x = 3", 1, "a result is given a name"),
        ("*u, *v = sch.get_loops(b)", 1, "one name of several may have a star: it takes the rest"),
        ("sch.compute_at(b, sch.parallel(i[0]))", 19, "parallel gives nothing that could be an argument"),
        ("sch.unroll(i[0, 1])", 12, "a list has one index"),
        ("sch.unroll(i[99999999999999999999])", 14, "99999999999999999999 does not fit into int64"),
        ("sch.annotate(i[0], 'a', 1e999)", 25, "'1e999' is too large for a number"),
        ("sch.unroll(i[b])", 14, "an index of a list is an integer"),
        ("sch.unroll(i[None])", 14, "an index of a list is an integer"),
        ("sch.unroll(b[0])", 12, "only a list has items"),
        ("sch.fuse(*i[::0])", 15, "the step of a slice is not 0"),
        ("sch.unroll([1][2])", 16, "the list has 1 item, so there is no item 2"),
        ('sch.unroll(-"a")', 12, "'-' stands before a number"),
        ("sch.annotate(b, 'a', {1: 2})", 23, "a key of a dictionary is a string"),
        ("sch.transform_block_layout(b, lambda i, i: i)", 41, "two parameters are called 'i'"),
        ("sch.transform_block_layout(b, lambda i: i + q)", 45, "'q' is not defined"),
    ],
)  # fmt: skip
def test_refused(line: str, column: int, message: str) -> None:
    text = refused(body(*SETUP, line))
    assert message in text
    assert f"s.mir:5:{column + 4}: error: " in text


def test_what_follows_from_an_error_is_not_reported() -> None:
    text = refused(body("b = sch.get_blok('B')", "sch.compute_inline(b)", "l, m = sch.get_loops(b)", "sch.fuse(l, m)"))
    assert text.count("error:") == 1


def test_refused_heads() -> None:
    assert "T.schedule takes the name of one function" in refused("@T.schedule(f, 2)\ndef s(sch):\n    pass\n")
    assert "a schedule has one parameter, the schedule that it works on, not 2" in refused(
        "@T.schedule\ndef s(sch, x):\n    pass\n"
    )
    assert (
        "note: primitives are those of TVM's tir.Schedule: get_block, get_loops, split, reorder, compute_at, …"
        in refused(body("sch.qqqqq()"))
    )
    assert "a schedule is a function" in refused("@T.schedule\nclass A:\n    pass\n")
    assert "'f' is defined twice" in refused("@T.schedule\ndef f(s):\n    pass\n@T.schedule\ndef f(s):\n    pass\n")
    assert "'*' before a value takes a list apart, and TVMScript has no lists of values" in refused(
        '@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n    A[0] = *A[1]\n'
    )


def test_what_has_no_text() -> None:
    from mirstack.dialects.schedule import Lambda, YieldOp, primitive_class
    from mirstack.dialects.tir import AddOp
    from mirstack.dialects.tir.types import I32
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.test import TestOp
    from xdsl.ir import Block, Region, SSAValue

    with pytest.raises(MirError, match=r"'test\.op' has no text in a schedule"):
        print_mir(ModuleOp([ScriptOp("s", Region(Block([TestOp()])))]))
    inner = Block(arg_types=[I32])
    value: SSAValue = inner.args[0]
    for _ in range(20):
        op = AddOp(value, value)
        inner.add_op(op)
        value = op.result
    inner.add_op(YieldOp([value], single=True))
    call = primitive_class("transform_block_layout")({"block": "B", "index_map": Lambda(Region(inner), ("i",))})
    with pytest.raises(MirError, match="this lambda is too long to be written"):
        print_mir(ModuleOp([ScriptOp("s", Region(Block([call])))]))
