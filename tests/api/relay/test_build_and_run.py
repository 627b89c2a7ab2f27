"""`relay.build` with `graph_executor`, `relay.vm.compile` with `VirtualMachine`: inputs, outputs, parameters, files, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack import relay, runtime
from mirstack.api.contrib import graph_executor
from mirstack.api.runtime.vm import VirtualMachine

TEXT = """
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
  let %y = nn.relu(nn.dense(%x, %w));
  let %s = split(%y, indices_or_sections=2, axis=1);
  (%y, add(%s.0, %s.1), 3f)
}
def @twice(%x: Tensor[(2), float32]) { add(%x, %x) }
"""
X, W = np.arange(6, dtype="float32").reshape(2, 3), np.ones((4, 3), "float32")
SUMS = [[6, 6], [24, 24]]


@pytest.fixture(scope="module")
def built() -> relay.build_module.GraphExecutorFactoryModule:
    with mirstack.transform.PassContext(opt_level=3):
        return relay.build(relay.parse(TEXT), target="llvm", params={"w": W})


def module_of(built: relay.build_module.GraphExecutorFactoryModule) -> graph_executor.GraphModule:
    return graph_executor.GraphModule(built["default"](mirstack.cpu()))


def test_graphs_run(built: relay.build_module.GraphExecutorFactoryModule) -> None:
    graph = module_of(built)
    assert (graph.get_num_inputs(), graph.get_num_outputs(), graph.get_input_index("x")) == (1, 3, 0)
    assert graph.get_input_index("w") == -1 and graph.get_input_info() == ({"x": (2, 3)}, {"x": "float32"})
    assert (graph.get_input("x").numpy() == 0).all()
    graph.set_input("x", X.astype("float64"))
    for name, array in built.get_params().items():
        graph.set_input(name, array)
    graph.run()
    assert graph.get_output(1).numpy().tolist() == SUMS and graph.get_output(2).numpy() == 3
    out = mirstack.nd.empty((2, 2))
    assert graph.get_output(1, out) is out and out.numpy().tolist() == SUMS
    graph.run(x=X * 2)
    assert graph.get_output(1).numpy().tolist() == [[12, 12], [48, 48]]
    graph.set_input(0, X)
    graph["run"]()
    assert graph.module["get_output"](1).numpy().tolist() == SUMS and graph.get_input(0).numpy().tolist() == X.tolist()
    assert (graph.get_input("w").numpy() == W).all()


def test_arrays_of_the_caller(built: relay.build_module.GraphExecutorFactoryModule) -> None:
    graph = module_of(built)
    data, out = mirstack.nd.array(np.zeros((2, 3), "float32")), mirstack.nd.empty((2, 2))
    graph.set_input_zero_copy("x", data)
    graph.set_output_zero_copy(1, out)
    data[:] = X
    graph.run()
    assert out.numpy().tolist() == SUMS
    other = module_of(built)
    other.share_params(graph, runtime.save_param_dict({"x": X}))
    other.run()
    assert other.get_output(1).numpy().tolist() == SUMS
    other.load_params(runtime.save_param_dict({"x": X * 0}))
    other.run()
    assert (other.get_output(0).numpy() == 0).all() and (graph.get_input("x").numpy() == X).all()


def test_timing(built: relay.build_module.GraphExecutorFactoryModule) -> None:
    graph = module_of(built)
    for result in (
        graph.benchmark(mirstack.cpu(), repeat=2, number=1, x=X),
        graph.benchmark(repeat=2, number=1, end_to_end=True, x=X),
        graph.module.time_evaluator("run", mirstack.cpu(), number=1, repeat=2)(),
    ):
        assert len(result.results) == 2 and result.mean > 0 and result.std >= 0


def test_parts_of_what_is_built(built: relay.build_module.GraphExecutorFactoryModule) -> None:
    text, library, params = built
    graph = graph_executor.create(text, library, mirstack.cpu())
    graph.run(x=X)
    assert graph.get_output(1).numpy().tolist() == SUMS and list(params) == ["w"] and "main" in built.ir_mod
    assert built.get_lib() is built.module is library and built.graph_json == built.graph_json_str == text
    assert str(built.target) == "llvm -keys=cpu" and built.executor == relay.backend.Executor("graph")
    nodes = json.loads(text)["nodes"]
    assert [node["op"] for node in nodes].count("tvm_op") >= 2 and nodes[0]["name"] == "x"
    kernel = next(node for node in nodes if node["op"] == "tvm_op")
    assert kernel["name"].startswith("tvmgen_default_fused_nn_dense") and kernel["inputs"][0] == [0, 0, 0]
    assert len(json.loads(text)["heads"]) == 3 and json.loads(text)["attrs"]["shape"][1][0] == [2, 3]
    with pytest.raises(ValueError, match="the graph is not that of the library\nnote: give both parts"):
        graph_executor.create("{}", library, mirstack.cpu())


def test_files(built: relay.build_module.GraphExecutorFactoryModule, tmp_path: Path) -> None:
    built.export_library(tmp_path / "net.mirpkg")
    graph = graph_executor.GraphModule(runtime.load_module(tmp_path / "net.mirpkg")["default"](mirstack.cpu()))
    graph.run(x=X)
    assert graph.get_output(1).numpy().tolist() == SUMS and graph.get_num_outputs() == 3


def test_functions_and_targets() -> None:
    x = relay.var("x", shape=(2,))
    with mirstack.target.Target("interp"):
        lib = relay.build(relay.Function([x], x + x))
    graph = graph_executor.GraphModule(lib["default"](mirstack.cpu()))
    graph.run(x=[1, 2])
    assert graph.get_output(0).numpy().tolist() == [2, 4] and graph.get_num_outputs() == 1
    for target in (["llvm"], {"cpu": "llvm -num-cores=1"}):
        graph = graph_executor.GraphModule(relay.build(relay.Function([x], x + x), target)["default"](mirstack.cpu()))
        graph.run(x=[1, 2])
        assert graph.get_output(0).numpy().tolist() == [2, 4]
    with pytest.raises(ValueError, match="there is no code for the target 'cuda'"):
        relay.build(relay.Function([x], x + x), "cuda")
    with pytest.raises(ValueError, match="a program is compiled for one target, not for llvm -keys=cpu and cuda"):
        relay.build(relay.Function([x], x + x), ["llvm", "cuda"])


def test_open_shapes() -> None:
    lib = relay.build(relay.parse("def @main(%x: Tensor[(?, 2), float32]) { add(%x, 1f) }"))
    graph = graph_executor.GraphModule(lib["default"](mirstack.cpu()))
    for read in (graph.run, lambda: graph.get_input("x")):
        with pytest.raises(ValueError, match="the input 'x', whose shape is open, is not set"):
            read()
    graph.run(x=np.zeros((3, 2)))
    assert graph.get_output(0).numpy().shape == (3, 2) and graph.get_input_info()[0] == {"x": ("?", 2)}
    assert json.loads(lib.get_graph_json())["attrs"]["shape"][1][0] == [-1, 2]


def test_what_graphs_refuse(built: relay.build_module.GraphExecutorFactoryModule, tmp_path: Path) -> None:
    graph = module_of(built)
    for wrong, message in (
        (lambda: graph.set_input("v", X), "there is no input 'v'.*\n?note: the inputs are x"),
        (lambda: graph.set_input(3, X), "there is no input 3; there are 1, from 0 on"),
        (lambda: graph.get_input("v"), "there is no input 'v'"),
        (lambda: graph.set_input("x", W), r"'x' has shape \(2, 3\), not \(4, 3\)"),
        (
            lambda: graph.set_input("w", W * 2),
            "'w' is part of the compiled code, with another value\nnote: build without",
        ),
        (lambda: graph.get_output(0), "there are no outputs yet: call run first"),
        (lambda: graph["walk"], "a graph's runtime has no function 'walk'.*\n?note: it has get_input"),
        (lambda: built["other"], "the library has no function 'other'\nnote: it has default"),
        (lambda: relay.build(relay.parse(TEXT), workspace_memory_pools=3), "there are no pools of memory here"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    graph.run()
    with pytest.raises(ValueError, match="there is no output 3; there are 3, from 0 on"):
        graph.get_output(3)
    branch = relay.build(relay.parse("def @main(%x: float32) { if (less(%x, 0f)) { 0f } else { %x } }"))
    with pytest.raises(mirstack.MirError, match=r"the program is not a graph of kernels: it holds 'relay\.if'"):
        branch.get_graph_json()
    one = mirstack.build(relay.parse("@T.prim_func\ndef f(A: T.Buffer((1,), 'int32')):\n    A[0] = 1\n"))
    one.export_library(tmp_path / "one.mirpkg")
    with pytest.raises(TypeError, match="f is not a function of Relay, which a graph is made of"):
        runtime.load_module(tmp_path / "one.mirpkg")["default"](mirstack.cpu())


def test_building_step_by_step() -> None:
    builder = relay.build_module.BuildModule()
    with pytest.raises(ValueError, match="nothing is built yet\nnote: call build first"):
        builder.get_json()
    builder.set_params({"w": W})
    with relay.build_config(opt_level=0):
        text, library, params = builder.build(relay.parse(TEXT), "llvm")
    assert text == builder.get_graph_json() and builder.get_module() is library and builder.get_params() is params
    branch, _, _ = relay.build_module.BuildModule().build(
        relay.parse("def @main(%x: bool) { if (%x) { 0f } else { 1f } }")
    )
    assert branch is None
    optimized, left = builder.optimize(relay.parse(TEXT), "llvm")
    assert "Primitive=1" in str(optimized) and left == {} and len(optimized["main"].params) == 1


def test_names_of_executors() -> None:
    executor = relay.backend.Executor("aot", {"unpacked-api": True})
    assert executor["unpacked-api"] is True and executor["link-params"] is None and "unpacked-api" in executor
    assert executor.list_registered() == ["aot", "graph"] and relay.backend.Runtime("cpp").name == "cpp"
    assert relay.backend.Runtime.list_registered_options("crt") == {"system-lib": "bool"}
    assert (
        executor != relay.backend.Executor("aot")
        and len({executor, relay.backend.Executor("aot", {"unpacked-api": True})}) == 1
    )
    with pytest.raises(ValueError, match="there is no executor 'jit'\nnote: there are aot, graph"):
        relay.backend.Executor("jit")
    with pytest.raises(ValueError, match="the runtime 'cpp' has no option 'lib'; it has system-lib"):
        relay.backend.Runtime("cpp", {"lib": True})
    with pytest.raises(TypeError, match="the option 'system-lib' of the runtime 'cpp' is bool, not 'x'"):
        relay.backend.Runtime("cpp", {"system-lib": "x"})


def test_virtual_machines(tmp_path: Path) -> None:
    exe = relay.vm.compile(relay.parse(TEXT), "llvm", params={"w": W})
    machine = VirtualMachine(exe, mirstack.cpu())
    with pytest.raises(ValueError, match="there are no outputs yet: call a function first"):
        machine.get_outputs()
    assert isinstance(machine.run(X), runtime.ADT) and machine.run(x=X)[1].numpy().tolist() == SUMS
    assert machine.invoke("twice", [1.0, 2.0]).numpy().tolist() == [2, 4] and len(machine.get_outputs()) == 1
    machine.set_input("main", X)
    machine.invoke_stateful("main")
    assert machine.get_outputs()[1].numpy().tolist() == SUMS
    machine.set_one_input("main", "x", X * 2)
    assert machine.invoke("main")[1].numpy().tolist() == [[12, 12], [48, 48]]
    machine.set_one_input("main", 0, X)
    assert machine.invoke("main")[1].numpy().tolist() == SUMS
    assert machine.benchmark(mirstack.cpu(), X, repeat=2, number=1).mean > 0
    assert exe.get_function_params("main") == ["x"] and set(exe.globals) == {"main", "twice"}
    assert (machine.get_input_index("x"), machine.get_input_index("w")) == (0, -1)
    exe.export_library(tmp_path / "net.mirpkg")
    assert runtime.load_module(tmp_path / "net.mirpkg")(X)[1].numpy().tolist() == SUMS
    with pytest.raises(ValueError, match="@main has no parameter 'w'; it has x"):
        machine.set_one_input("main", w=W)
    with pytest.raises(ValueError, match="set_one_input takes one argument of @main, not 0"):
        machine.set_one_input("main")
    with pytest.raises(ValueError, match="the module has no function @other"):
        machine.invoke("other", X)


def test_compiling_for_machines_step_by_step() -> None:
    compiler = relay.vm.VMCompiler()
    with pytest.raises(ValueError, match="nothing is lowered yet\nnote: call lower first"):
        compiler.codegen()
    compiler.set_params({"w": W})
    compiler.lower(relay.parse(TEXT), "llvm")
    compiler.codegen()
    assert VirtualMachine(compiler.get_exec()).run(X)[1].numpy().tolist() == SUMS and list(compiler.get_params()) == [
        "w"
    ]
    assert "Primitive=1" in str(compiler.optimize(relay.parse(TEXT), "llvm")[0])
    lists = relay.vm.compile(relay.parse("type L { N, C(L) }\ndef @main(%x: L) -> L { C(%x) }"))
    with pytest.raises(ValueError, match="main takes or returns other values than tensors, so that it has no code"):
        lists.export_library("never.mirpkg")
