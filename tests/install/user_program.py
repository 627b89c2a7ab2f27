"""A user's program that uses every public module; `test_stubs.py` type checks it strictly and runs it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import no_type_check

import mirstack
import mirstack.contrib.graph_executor
import mirstack.error
import mirstack.nd
import mirstack.relay.op.nn
import mirstack.testing
import numpy as np
from mirstack import (
    IRModule,
    MirError,
    arith,
    contrib,
    error,
    ir,
    nd,
    onnx,
    relay,
    rules,
    runtime,
    script,
    target,
    te,
    tir,
    topi,
    transform,
)
from mirstack.contrib import graph_executor
from mirstack.ir import instrument, structural_equal
from mirstack.ir.transform import PassContext
from mirstack.relay import ExprMutator, ExprVisitor
from mirstack.relay.dataflow_pattern import DFPatternCallback, is_constant, is_op, rewrite, wildcard
from mirstack.relay.op.nn import dense, relu
from mirstack.relay.qnn.op import dequantize, quantize
from mirstack.relay.testing import run_infer_type
from mirstack.runtime import vm as virtual_machine
from mirstack.runtime.container import ADT
from mirstack.runtime.vm import VirtualMachine
from mirstack.script import ir as I
from mirstack.script import tir as T
from mirstack.te import hybrid
from mirstack.tir import stmt_functor
from mirstack.tir.schedule import BlockRV, LoopRV

ROWS, COLUMNS = 4, 8


def network() -> relay.Function:
    """Builds a small network of operators of several kinds."""
    x = relay.var("x", shape=(ROWS, COLUMNS), dtype="float32")
    w = relay.var("w", relay.TensorType((6, COLUMNS), "float32"))
    hidden: relay.Call = relu(dense(x, w))
    total = relay.sum(hidden, axis=1, keepdims=True)
    shares = relay.divide(hidden, relay.add(total, relay.const(1.0)))
    halves = relay.split(shares, indices_or_sections=2, axis=1)
    both = relay.concatenate([halves[0], relay.nn.leaky_relu(halves[1], alpha=0.1)], axis=1)
    return relay.Function([x, w], both)


def compiled(function: relay.Function) -> None:
    """Compiles a function, calls it by position and by name, and stores it."""
    net = mirstack.compile(IRModule.from_expr(function), opt_level=3)
    x = np.ones((ROWS, COLUMNS), "float32")
    w = np.full((6, COLUMNS), 0.5, "float32")
    result: object = net(x, w)
    named: object = net(x=x, w=w)
    mirstack.testing.assert_allclose(result, named)
    print(net.name, [(param.name, param.dtype) for param in net.params], np.shape(np.asarray(result)))
    with tempfile.TemporaryDirectory() as folder:
        written = net.export(Path(folder, "net.mirpkg"))
        print([path.suffix for path in written])
        again = mirstack.Executable.load(written[0])
        mirstack.testing.assert_allclose(again(x, w), result)


def executors(function: relay.Function) -> None:
    """Runs a function by the graph executor, the virtual machine and `create_executor`."""
    mod = IRModule.from_expr(function)
    x, w = nd.array(np.ones((ROWS, COLUMNS), "float32")), nd.array(np.ones((6, COLUMNS), "float32"))
    library = relay.build(mod, target="llvm")
    graph = graph_executor.GraphModule(library["default"](mirstack.cpu()))
    graph.set_input("x", x)
    graph.set_input("w", w)
    graph.run()
    first: nd.NDArray = graph.get_output(0)
    executable = relay.vm.compile(mod, "llvm")
    machine = VirtualMachine(executable, mirstack.cpu(0))
    second: object = machine.run(x, w)
    mirstack.testing.assert_allclose(first.numpy(), second)
    evaluate = relay.create_executor("graph", mod, mirstack.cpu(), "llvm").evaluate()
    mirstack.testing.assert_allclose(evaluate(x, w), first)
    print(first.shape, first.dtype, contrib.graph_executor is graph_executor, virtual_machine.VirtualMachine)


class Operators(ExprVisitor):
    """Counts calls by their operator."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def visit_call(self, call: relay.Call) -> None:
        """Counts one."""
        if isinstance(call.op, ir.Op):
            self.counts[call.op.name] = self.counts.get(call.op.name, 0) + 1
        super().visit_call(call)


class Doubled(ExprMutator):
    """Doubles each constant."""

    def visit_constant(self, const: relay.Constant) -> relay.Expr:
        """Returns the constant twice as large."""
        return relay.const(const.data.numpy() * 2)


class WithoutDropout(DFPatternCallback):
    """Removes dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.data = wildcard()
        self.pattern = is_op("multiply")(self.data, is_constant())

    def callback(self, pre: relay.Expr, post: relay.Expr, node_map: object) -> relay.Expr:
        """Returns what is multiplied."""
        return post


def expressions(function: relay.Function) -> None:
    """Visits, changes, matches and prints expressions of Relay."""
    operators = Operators()
    operators.visit(function)
    print(sorted(operators.counts.items()))
    doubled = Doubled().visit(function)
    print(structural_equal(doubled, function), relay.analysis.free_vars(function.body)[0].name_hint)
    rewritten: relay.Expr = rewrite(WithoutDropout(), function)
    print(type(run_infer_type(rewritten)).__name__)
    x = relay.var("x", shape=(2, 3))
    best, places = relay.topk(x, k=2)
    only: relay.Call = relay.topk(x, k=1, ret_type="values")
    print(relay.astext(relay.Function([x], relay.Tuple([best, places, only]))).count("topk"))
    shrunk = dequantize(quantize(x, relay.const(0.5), relay.const(0)), relay.const(0.5), relay.const(0))
    padded = relay.nn.pad(shrunk, pad_width=((0, 1), (2, 3)), pad_value=1.0)
    resized = relay.image.resize2d(relay.reshape(padded, (1, 1, 3, 8)), size=(6, 16), method="nearest_neighbor")
    print(relay.transform.InferType()(IRModule.from_expr(resized))["main"].checked_type)
    builder = relay.ScopeBuilder()
    builder.ret(builder.let("y", relay.exp(x)))
    print(type(builder.get()).__name__, len(relay.parse('#[version = "0.0.5"]\ndef @main() { 1 }').functions))


def passes(function: relay.Function) -> None:
    """Runs passes of the project and of one's own."""

    @transform.module_pass(opt_level=1, name="Nothing")
    def nothing(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod

    timing = instrument.PassTimingInstrument()
    with transform.PassContext(opt_level=3, instruments=[timing]):
        pipeline = transform.Sequential([transform.InferType(), nothing, transform.FoldConstant(), transform.FuseOps()])
        fused: IRModule = pipeline(IRModule.from_expr(function))
    layouts = transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
    print(fused.astext().count("Primitive=1"), layouts.info.name, "FuseOps" in dir(transform))


def tensors() -> None:
    """Describes tensors, schedules them, builds and runs the program."""
    n = te.var("n")
    a = te.placeholder((n, 8), name="a")
    k = te.reduce_axis((0, 8), name="k")
    sums = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="sums")
    roots = te.compute((n,), lambda i: te.sqrt(te.max(sums[i], 0.0)), name="roots")
    schedule = te.create_schedule(roots.op)
    outer, inner = schedule[roots].split(roots.op.axis[0], factor=4)
    schedule[roots].unroll(inner)
    schedule[sums].compute_at(schedule[roots], outer)
    print(mirstack.lower(schedule, [a, roots], simple_mode=True).astext().count("for "))
    built = mirstack.build(schedule, [a, roots], target="llvm", name="roots")
    out = nd.empty((3,), "float32")
    built(nd.array(np.ones((3, 8), "float32")), out)
    print(out.numpy().round(3).tolist())
    x = te.placeholder((2, 8), name="x")
    y: te.Tensor = topi.nn.relu(topi.add(topi.nn.dense(x, te.placeholder((4, 8), name="w")), 1.0))
    print(y.shape, y.dtype, topi.nn.softmax(y).op.name)


@hybrid.script
@no_type_check
def outer_product(a, b):
    """Multiplies each element by each."""
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@T.prim_func
@no_type_check
def square(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    """Squares each element."""
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * A[vi]


@I.ir_module
class Squares:
    """A module of one function."""

    @T.prim_func
    @no_type_check
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] * A[vi]


def loops() -> None:
    """Schedules and inspects functions of TIR."""
    function: tir.PrimFunc = square
    schedule = tir.Schedule(function)
    block: BlockRV = schedule.get_block("B")
    (loop,) = schedule.get_loops(block)
    parts: list[LoopRV] = schedule.split(loop, factors=[None, 4])
    schedule.vectorize(parts[1])
    trace = schedule.trace
    print(len(str(trace).splitlines()) > 3, len(schedule.mod.functions))
    out = np.zeros(16, "float32")
    mirstack.compile(schedule.mod)(np.full(16, 3.0, "float32"), out)
    print(out[0], [str(name) for name in Squares.functions])
    seen: list[str] = []

    def note(node: object) -> None:
        seen.append(type(node).__name__)

    stmt_functor.post_order_visit(function.body, note)
    print(seen.count("BufferLoad"), tir.transform.Simplify().info.name)
    pair = outer_product(te.placeholder((2,), name="a"), te.placeholder((3,), name="b"))
    print(type(pair).__name__, type(script.from_source(square.script())).__name__)


def arithmetic() -> None:
    """Asks what is known about integers."""
    analyzer = arith.Analyzer()
    i = tir.Var("i", "int32")
    analyzer.bind(i, ir.Range(0, 8))
    bound = analyzer.const_int_bound(i * 4 + 1)
    number: tir.PrimExpr = T.int32(3) + i
    print(bound.min_value, bound.max_value, analyzer.simplify((i * 8) // 8 - i), number)
    interval = arith.IntervalSet(tir.IntImm("int32", 0), tir.IntImm("int32", 3))
    print(interval.min_value, analyzer.can_prove(i < 8), str(tir.floordiv(i, 2)))


def rewriting() -> None:
    """Rewrites a program by a rule."""
    x, y = rules.values("x y")
    rule = rules.rewrite(
        "double", rules.op.add(x, x), rules.op.multiply(x, rules.const(2.0)), where=[rules.is_float(x)]
    )
    v = relay.var("v", shape=(4,))
    module = rules.apply(IRModule.from_expr(relay.Function([v], relay.add(v, v))), [rule])
    print("multiply" in module.astext(), type(y).__name__)


def values_and_targets() -> None:
    """Makes values, devices and targets, and reads what is wrong."""
    device: mirstack.runtime.Device = mirstack.device("cpu", 0)
    host = target.Target("llvm -mcpu=haswell")
    tensor = runtime.convert([1, 2, 3])
    pair = ADT(0, [nd.array(np.zeros(2, "int32"))])
    print(device.device_type, host.kind.name, type(tensor).__name__, len(pair), runtime.enabled("llvm"))
    try:
        mirstack.parse("def @main(%x: Tensor[(2), float32]) { nn.relux(%x) }")
    except MirError as problem:
        print(str(problem).splitlines()[0], error.TVMError.__name__)
    print(mirstack.error.MirError is MirError, onnx.__name__, mirstack.nd.NDArray is nd.NDArray)


def imported(reader: Callable[..., IRModule] | None = None) -> None:
    """Reads models of other frameworks, where their packages are installed."""
    if reader is None:
        print(mirstack.from_onnx.__name__, mirstack.from_torch.__name__, mirstack.from_jax.__name__)
    else:
        print(reader("model").astext())


def main() -> None:
    """Runs all of it."""
    function = network()
    compiled(function)
    executors(function)
    expressions(function)
    passes(function)
    tensors()
    loops()
    arithmetic()
    rewriting()
    values_and_targets()
    imported()
    print(mirstack.relay.op.nn.dense is not None, mirstack.contrib.graph_executor is graph_executor)


if __name__ == "__main__":
    main()
