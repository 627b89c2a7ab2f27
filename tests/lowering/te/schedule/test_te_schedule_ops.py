"""The ops of a schedule: what their verifiers refuse, and what a schedule that does not fit its program says."""

from __future__ import annotations

import re

import pytest
from mirstack import te
from mirstack.dialects import tir
from mirstack.dialects.te import ExternOp, FuncOp, ScheduleOp
from mirstack.dialects.te.builder import func
from mirstack.dialects.te.lift import lift
from mirstack.lowering.te.schedule.apply_schedule import apply_schedule
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import verify
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

HEAD = """builtin.module {
  "te.func"() <{sym_name = "f", attrs = {}}> ({
    %A = "te.placeholder"() <{var_name = "A"}> : () -> !te.tensor<[4 : i32], f32>
    %B = "te.compute"() <{compute_name = "B", tag = "", attrs = {}, iter_names = ["i"], operandSegmentSizes = array<i32: 0, 0>}> ({
    ^bb0(%i: i32):
      %0 = "te.read"(%A, %i) : (!te.tensor<[4 : i32], f32>, i32) -> f32
      "tir.yield"(%0) : (f32) -> ()
    }) : () -> !te.tensor<[4 : i32], f32>
"""
TAIL = """    "te.return"(%A, %B) : (!te.tensor<[4 : i32], f32>, !te.tensor<[4 : i32], f32>) -> ()
  }) : () -> ()
}
"""
B = '%b = "te.tensor_ref"() <{tensor = "B", which = 0 : i64}> : () -> !te.handle<"tensor">'
AXIS = '%x = "te.axis_ref"(%b) <{which = "axis", place = 0 : i64}> : (!te.handle<"tensor">) -> !te.handle<"axis">'
UNROLL = '"te.schedule.unroll"(%b, %x) <{names = ["", "var"], literals = {}}> : (!te.handle<"tensor">, !te.handle<"axis">) -> ()'


def module_of(*steps: str, properties: str = 'outputs = ["B"]') -> ModuleOp:
    from mirstack.dialects.te import TE
    from mirstack.dialects.tir import TIR

    text = HEAD + f'"te.schedule"() <{{{properties}}}> ({{\n' + "\n".join(steps) + "\n}) : () -> ()\n" + TAIL
    context = Context()
    for dialect in (Builtin, TE, TIR):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def held(module: ModuleOp) -> tuple[FuncOp, ScheduleOp]:
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return function, next(op for op in function.body.block.ops if isinstance(op, ScheduleOp))


def test_a_good_one():
    module = module_of(B, AXIS, UNROLL)
    verify(module)
    function, schedule = held(module)
    program = lift(function)
    made = apply_schedule(schedule, program.operations, program.outputs(), program.vars)
    again = made.as_op(program.operations)
    assert [op.name for op in again.steps] == ["te.tensor_ref", "te.tensor_ref", "te.axis_ref", "te.schedule.unroll"]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((B.replace('"tensor">', '"loop">'),), "a handle is of an axis, a tensor or a group, not of 'loop'"),
        ((B, AXIS.replace('"axis", place', '"axes", place')), "an operation has axis, reduce_axis or scan_axis, not 'axes'"),
        ((B, AXIS.replace("place = 0", "place = -1")), "an axis is taken of a tensor, by its place from 0"),
        (('%t = "te.thread_axis"() <{tag = "w", var_name = "w", extent = 4 : i64}> : () -> !te.handle<"axis">',), "there is no thread 'w'"),
        ((B, AXIS, UNROLL.replace('["", "var"]', '[""]')), "unroll has 2 operands, but 1 name for them"),
        ((B, AXIS, UNROLL.replace('["", "var"]', '["var", "var"]')), "unroll is applied to one stage, not to 0 stages"),
        ((B, AXIS, UNROLL.replace('["", "var"]', '["", "axis"]')), "unroll takes no operand 'axis'"),
        ((B, AXIS, UNROLL.replace("%x", "%b").replace('"axis">)', '"tensor">)')), "'var' of unroll is of kind axis"),
        ((B, AXIS, UNROLL.replace("literals = {}", 'literals = {var = "i"}')), "'var' of unroll is an operand"),
        ((B, '"te.schedule.unroll"(%b) <{names = [""], literals = {}}> : (!te.handle<"tensor">) -> ()'), "'var' of unroll is not given"),
        ((B, AXIS, UNROLL.replace('["", "var"]', '["", "var", "var"]').replace("%x)", "%x, %x)").replace('"axis">)', '"axis">, !te.handle<"axis">)')), "'var' of unroll is given 2 times"),
        ((B, AXIS, "%r = " + UNROLL.replace("-> ()", '-> !te.handle<"axis">')), "unroll gives nothing"),
    ],
)  # fmt: skip
def test_verifiers(steps: tuple[str, ...], message: str):
    with pytest.raises(Exception, match=re.escape(message)):
        verify(module_of(*steps))


def test_where_a_schedule_stands():
    with pytest.raises(
        Exception, match=r"a schedule stands in its te.func, or has a name and names the function that it is for"
    ):
        verify(module_of(properties='sym_name = "s", target = @f'))
    module = module_of(B)
    held(module)[1].body.block.insert_arg(held(module)[0].params[0].type, 0)
    with pytest.raises(Exception, match="a schedule is one block without arguments: handles come from its ops"):
        verify(module)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((B.replace('"B"', '"D"'),), "the program has no tensor 'D'"),
        (('%n = "te.var_ref"() <{var_name = "n"}> : () -> i32',), "the program has no size 'n'"),
        ((B, AXIS.replace("place = 0", "place = 3")), "'B' has 1 axes in axis; there is no number 3"),
        (('"tir.evaluate"(%n) : (i32) -> ()',), "'tir.evaluate' is not a step of a schedule"),
        (('%s = "tir.const"() <{value = "x"}> : () -> !tir.string',), "a string is not a number"),
    ],
)
def test_schedules_that_do_not_fit(steps: tuple[str, ...], message: str):
    first = ('%n = "tir.const"() <{value = 1 : i32}> : () -> i32',) if "evaluate" in steps[0] else ()
    function, schedule = held(module_of(*first, *steps))
    program = lift(function)
    with pytest.raises(MirError, match=re.escape(message)):
        apply_schedule(schedule, program.operations, program.outputs(), program.vars)


def test_results_that_do_not_fit():
    written = '%l, %m = "te.schedule.cache_write"(%b) <{names = ["tensor"], literals = {scope = "local"}}> : (!te.handle<"tensor">) -> (!te.handle<"tensor">, !te.handle<"tensor">)'
    function, schedule = held(module_of(B, written))
    program = lift(function)
    with pytest.raises(MirError, match="cache_write gives 1 results here, not 2"):
        apply_schedule(schedule, program.operations, program.outputs(), program.vars)


def test_externs_of_other_statements():
    text = """@te.func
def f():
    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda ins, outs: te.call_extern("int32", "f", ins[0].data), name="B")
    return [A, B]
"""
    function = next(op for op in parse_mir(text).ops if isinstance(op, FuncOp))
    body = next(op for op in function.body.block.ops if isinstance(op, ExternOp)).body.block
    scope = tir.ScopeOp()
    body.add_op(scope)
    with pytest.raises(MirError, match=r"'tir.scope' cannot be scheduled as a statement of te.extern"):
        lift(function)


def test_outputs():
    function, schedule = held(module_of(properties='outputs = ["D"]'))
    program = lift(function)
    with pytest.raises(MirError, match="the program has no tensor 'D'"):
        apply_schedule(schedule, program.operations, program.outputs(), program.vars)
    function, schedule = held(module_of(properties="outputs = []"))
    with pytest.raises(MirError, match="a schedule needs an output"):
        apply_schedule(schedule, lift(function).operations, [], {})


def test_text_of_schedules_that_do_not_fit():
    for steps, message in (
        ((B.replace('"B"', '"D"'),), "the schedule names a tensor 'D', which its function does not have"),
        (('%n = "te.var_ref"() <{var_name = "n"}> : () -> i32',), "the schedule names a size 'n', which its function does not have"),
        ((B, AXIS, '"te.schedule.pragma"(%b, %x) <{names = ["", "var"], literals = {pragma_type = []}}> : (!te.handle<"tensor">, !te.handle<"axis">) -> ()'), "an argument of a step cannot be written as text"),
        (('%n = "tir.const"() <{value = 1 : i32}> : () -> i32', '"tir.evaluate"(%n) : (i32) -> ()'), "'tir.evaluate' is not a step of a schedule"),
    ):  # fmt: skip
        with pytest.raises(MirError, match=message):
            print_mir(module_of(*steps))


def test_what_cannot_be_written_down():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    J = te.placeholder((n,), "int32", "J")
    C = te.compute((n,), lambda i: A[i] + te.cast("float32", J[i]), name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis((0, n), "threadIdx.x"))
    with pytest.raises(MirError, match=r"thread 'threadIdx.x' has a range that is not a number"):
        s.as_op([A.op, J.op, C.op])
    other = te.compute((n,), lambda i: A[i], name="other")
    s = te.create_schedule(C.op)
    with pytest.raises(MirError, match="axis 'i' belongs to no stage of this schedule"):
        s[C].vectorize(other.op.axis[0])
    s[C].split(C.op.axis[0], factor=te.call_extern("int32", "size", n))
    with pytest.raises(MirError, match="an argument of split is not integer arithmetic"):
        s.as_op([A.op, J.op, C.op])


def test_lifting_gives_the_same_function():
    text = """@te.func
def f():
    n = te.var("n")
    m = te.size_var("m")
    A = te.placeholder((n, m), name="A")
    I = te.placeholder((n,), dtype="int64", name="I")
    k = te.reduce_axis((1, m), name="k")
    argmax = te.comm_reducer(lambda x, y: (te.Select(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])), lambda t0, t1: (-1, te.min_value("float32")), name="argmax")
    T_v0, T_v1 = te.compute((n,), lambda i: argmax((k, A[i, k]), axis=k, where=k > 2), name="T", tag="red")
    B = te.compute((n,), lambda i: te.if_then_else(I[i] > te.const(0, "int64"), te.exp(T_v1[i]), -1.0), name="B", attrs={"a": [1, 2.5, "x", True, None]})
    S = te.placeholder((8, n), name="S")
    init = te.compute((1, n), lambda t, i: B[i], name="init")
    update = te.compute((8, n), lambda t, i: S[t - 1, i] + 1.0, name="update")
    Y = te.scan(init, update, S, inputs=[B], name="Y")
    def Z_body(ins, outs):
        t = te.allocate((n,), "float32", "local", name="t")
        for i in range(n):
            t[i] = ins[0][0, i]
            if i > 2:
                outs[0][i] = t[i]
            else:
                outs[0][i] = 0.0
        te.call_extern("int32", "done", outs[0].data)
    Z = te.extern((n,), [Y], Z_body, name="Z")
    return [A, I, T_v0, Z, n, m]
"""
    module = parse_mir(text)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    program = lift(function)
    again = func("f", program.args, definitions=[*program.vars.values(), *program.operations])
    assert print_mir(ModuleOp([again])) == print_mir(parse_mir(print_mir(ModuleOp([again.clone()]))))
    for line in print_mir(module).splitlines():
        if any(
            word in line for word in ("te.compute", "te.scan", "te.extern", "te.placeholder", "ins[0]", "te.allocate")
        ):
            assert line in print_mir(ModuleOp([again.clone()]))
