"""`mir-view` and `mir-opt --dot`: what is on the page, without a browser; `test_mir_view_in_browser.py` looks at it with one."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mirstack.driver.modules import read_module
from mirstack.driver.view.layout import place
from mirstack.driver.view.make_view import make_view
from mirstack.driver.view.native import assembly, llvm_ir, with_set_numbers
from mirstack.driver.view.tables import Tables
from mirstack.lowering.driver.build import lower_module
from mirstack.lowering.driver.compile import compile_source
from mirstack.lowering.llvm.jit.load import HOST
from mirstack.lowering.pipeline import Options
from mirstack.support.diagnostics import Sources

NET = """def @main(%x: Tensor[(1, 3, 16, 16), float32], %w: Tensor[(8, 3, 3, 3), float32], %v: Tensor[(4, 8), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1], channels=8, kernel_size=[3, 3]);
  %1 = nn.relu(%0);
  %2 = nn.max_pool2d(%1, pool_size=[2, 2], strides=[2, 2]);
  %3 = nn.batch_flatten(nn.global_avg_pool2d(%2));
  nn.softmax(nn.dense(%3, %v))
}
"""
SCHEDULED = """@T.prim_func
def scale(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)

@T.schedule(scale)
def tiles(sch):
    i, = sch.get_loops("B")
    i0, i1 = sch.split(i, [None, 8])
    sch.vectorize(i1)
"""


def data_of(page: Path) -> dict[str, Any]:
    """What a page's script unpacks."""
    packed = re.search(r'<template id="data">([^<]*)</template>', page.read_text(encoding="utf-8"))
    assert packed is not None
    return json.loads(zlib.decompress(base64.b64decode(packed[1])))


def lines_of(data: dict[str, Any], step: str, only: str = "") -> list[tuple[str, set[int]]]:
    """The lines of a step, each with the source lines that it comes from."""
    (parts,) = [parts for name, _, parts in data["steps"] if name == step]
    found: list[tuple[str, set[int]]] = []
    for part in parts:
        name, _, deltas, sets = data["parts"][part]
        number = 0
        for delta, places in zip(deltas, sets, strict=True):
            number += delta
            if only in name:
                found.append((data["lines"][number], {data["places"][each][1] for each in data["sets"][places]}))
    return found


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The data of the page of NET."""
    from mirstack.driver.mir_view import main

    folder = tmp_path_factory.mktemp("view")
    (folder / "net.mir").write_text(NET)
    assert main([str(folder / "net.mir"), "-o", str(folder / "net.html"), "--threads", "1"]) == 0
    return data_of(folder / "net.html")


def test_steps(net: dict[str, Any]):
    names = [name for name, _, _ in net["steps"]]
    assert names[0] == "input" and names[-2:] == ["LLVM IR", "assembly"]
    assert {"fuse-ops", "lower-te-to-tir", "default-schedule", "lower-tir-to-scf", "lower-std-to-llvm"} <= set(names)
    before = dict(zip(names, [parts for _, _, parts in net["steps"]], strict=True))
    # A step that changes nothing has the same texts, which the page shows in grey.
    assert before["monomorphize"] == before["input"] != before["fuse-ops"]
    assert net["files"][0]["lines"] == NET.split("\n")


def test_provenance(net: dict[str, Any]):
    """Line 2, the convolution, is followed from Relay to loops, LLVM IR and assembly; and nothing else is taken for it."""
    (conv,) = [places for text, places in lines_of(net, "input") if "nn.conv2d" in text]
    assert conv == {2}
    (pool,) = [places for text, places in lines_of(net, "fuse-ops") if "nn.max_pool2d(" in text]
    assert pool == {4}
    for step in ("lower-te-to-tir", "default-schedule", "lower-tir-to-scf", "lower-std-to-llvm", "LLVM IR", "assembly"):
        kernel = lines_of(net, step, "fused_nn_conv2d")
        assert sum(2 in places for _, places in kernel) >= 3, step
        # The fused relu is in the same kernel.
        assert any(3 in places for _, places in kernel), step
        assert not any(4 in places for _, places in kernel), step
    assert any(
        2 in places and re.search(r"\bv?f?m(ul|add)|fmla|fmul", text) for text, places in lines_of(net, "assembly")
    )


def test_graph(net: dict[str, Any]):
    (graph,) = net["graphs"]
    boxes = graph["boxes"]
    titles = [box["title"] for box in boxes]
    assert titles[:4] == ["%x", "%w", "%v", "nn.conv2d · nn.relu"] and titles[-1] == "result"
    assert [box["kernel"] for box in boxes if box["kind"] == "kernel"][:2] == [
        "fused_nn_conv2d_nn_relu",
        "fused_nn_max_pool2d",
    ]
    (edge,) = [e for e in graph["edges"] if (e["source"], e["target"]) == (3, 4)]
    ((message, _, notes),) = edge["reasons"]
    assert message == (
        "nn.relu is not fused with nn.max_pool2d: out-elemwise-fusable operators take in only elemwise and broadcast ones on their "
        "own shape; nn.max_pool2d is out-elemwise-fusable"
    )
    assert notes[0][0] == "nn.max_pool2d uses it here"
    # What a parameter makes is of no kernel.
    assert all(not e["reasons"] for e in graph["edges"] if boxes[e["source"]]["kind"] == "param")


def test_times(mir_view: Callable[..., Any], tmp_path: Path):
    """`--run` measures each kernel; open dimensions take the sizes that are given."""
    (tmp_path / "open.mir").write_text(
        "def @main(%x: Tensor[(?, 8), float32], %w: Tensor[(4, 8), float32]) { nn.softmax(nn.dense(%x, %w)) }"
    )
    ran = mir_view(tmp_path / "open.mir", "-o", tmp_path / "page.html", "--run", "3", "--size", "x.0=5")
    assert ran.code == 0, ran.err
    data = data_of(tmp_path / "page.html")
    assert data["limits"]["gflops"] > 0 and data["limits"]["gbytes"] > 0
    kernels = {kernel["name"]: kernel for kernel in data["kernels"]}
    # Of a dense layer's two kernels the one for many rows may take the call.
    assert set(kernels) == {"fused_nn_dense", "fused_nn_dense_large", "fused_nn_softmax"}
    ran_once = [kernel for kernel in kernels.values() if kernel["calls"]]
    assert len(ran_once) == 2 and all(kernel["seconds"] > 0 and kernel["calls"] == 1 for kernel in ran_once)
    assert all(kernel["flops"] >= 2 * 5 * 8 * 4 for kernel in ran_once if "dense" in kernel["name"])
    ran = mir_view(tmp_path / "open.mir", "-o", tmp_path / "page.html", "--size", "x.0=5")
    assert ran.code == 2 and "--size: sizes are those of the arguments that --run N draws" in ran.err
    ran = mir_view(tmp_path / "open.mir", "-o", tmp_path / "page.html", "--run", "0")
    assert ran.code == 2 and "'0' is not a whole number from 1 on" in ran.err


def test_kernels(net: dict[str, Any]):
    kernels = {kernel["name"]: kernel for kernel in net["kernels"]}
    conv = kernels["fused_nn_conv2d_nn_relu"]
    assert conv["calls"] == 1
    # A multiplication and an addition for each of 3·3·3 weights, and the relu.
    assert conv["flops"] == 8 * 16 * 16 * (2 * 27 + 1)
    assert conv["bytes"] == 4 * (3 * 16 * 16 + 8 * 27 + 8 * 16 * 16)
    assert {net["places"][each][1] for each in net["sets"][conv["set"]]} == {2, 3}


def test_memory_is_that_of_the_code(tmp_path: Path):
    (tmp_path / "net.mir").write_text(NET)
    sources = Sources()
    with sources.reading():
        view = make_view("net", read_module(str(tmp_path / "net.mir")), None, Options(), {})
        executable = compile_source(read_module(str(tmp_path / "net.mir")), "cpu", None, Options(), cache=False)
    (frame,) = view.frames
    assert frame.size == executable.arena_bytes > 0  # pyright: ignore[reportAttributeAccessIssue]
    assert frame.bound == executable.arena_lower_bound  # pyright: ignore[reportAttributeAccessIssue]
    assert all(each.offset >= 0 and each.offset + each.bytes <= frame.size for each in frame.tensors)
    for step in range(max(each.end for each in frame.tensors) + 1):
        alive = sorted((e.offset, e.offset + e.bytes) for e in frame.tensors if e.start <= step <= e.end)
        assert all(before[1] <= after[0] for before, after in pairwise(alive))


def test_debug_lines_change_no_instruction(tmp_path: Path):
    """The assembly on the page is that of the code which runs: LLVM makes the same of a text with debug lines."""
    (tmp_path / "net.mir").write_text(NET)
    module = read_module(str(tmp_path / "net.mir"))
    lower_module(module, Options(threads=1))
    plain, _ = assembly("\n".join(llvm_ir("net", module, ()).lines) + "\n", HOST)
    lines, sets = assembly(with_set_numbers(module, (), Tables()), HOST)
    assert lines == plain and len(lines) == len(sets)
    assert sum(map(bool, sets)) > 20


def test_schedule_script(mir_view: Callable[..., Any], tmp_path: Path):
    """Each call of a script that changes something is a step, with its line."""
    (tmp_path / "scale.mir").write_text(SCHEDULED)
    ran = mir_view(tmp_path / "scale.mir", "-o", tmp_path / "page.html")
    assert ran.code == 0 and re.fullmatch(r"\S+page.html: \d+ kB, \d+ of \d+ steps change the program\n", ran.out)
    data = data_of(tmp_path / "page.html")
    calls = [(name, summary) for name, summary, _ in data["steps"] if name.startswith("sch.")]
    assert calls == [("sch.split", "i0, i1 = sch.split(i, [None, 8])"), ("sch.vectorize", "sch.vectorize(i1)")]
    assert any("for i_0, i_1 in T.grid(8, 8)" in text for text, _ in lines_of(data, "sch.split"))
    # The multiplication is followed through its vectors to instructions.
    for step in ("vectorize-loop", "lower-tir-to-scf", "LLVM IR", "assembly"):
        assert any(6 in places and re.search(r"\*|mul|add", text) for text, places in lines_of(data, step)), step
    assert data["graphs"] == [] and data["memory"] == []
    (kernel,) = data["kernels"]
    assert (kernel["name"], kernel["flops"], kernel["bytes"]) == ("scale", 64, 2 * 64 * 4)


def test_other_levels(mir_view: Callable[..., Any], tmp_path: Path):
    """A TE function, a func.func of MLIR, a function of open sizes that is given its shape."""
    files = {
        "te.mir": 'def f():\n    A = te.placeholder((4,), name="A")\n    return [A, te.compute((4,), lambda i: A[i] + A[i], name="B")]\n',
        "f.mlir": "func.func @f(%a: f32) -> f32 {\n  %0 = arith.addf %a, %a : f32\n  func.return %0 : f32\n}\n",
        "open.mir": "def @main(%x: Tensor[(?, 4), float32]) { nn.relu(%x) }\n",
    }
    files["te.mir"] = "@te.func\n" + files["te.mir"]
    data: dict[str, Any] = {}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        shape = ["--shape", "x=3,4"] if name == "open.mir" else []
        extra = ["--entry", "f"] if name == "f.mlir" else []
        ran = mir_view(tmp_path / name, "-o", tmp_path / "page.html", *shape, *extra)
        assert ran.code == 0, ran.err
        data = data_of(tmp_path / "page.html")
        assert any(places for _, places in lines_of(data, "assembly")), name
    assert [name for name, _, _ in data["steps"]][:2] == ["input", "--shape"]
    assert data["kernels"][0]["bytes"] == 2 * 3 * 4 * 4


INJECTION = '</template></script><script>window.broken = 1</script><img src=x onerror="window.broken = 1">'


def test_nothing_of_a_program_is_html(mir_view: Callable[..., Any], tmp_path: Path):
    file = tmp_path / "<img src=x onerror=alert(1)>.mir"
    file.write_text(f"// {INJECTION}\n" + NET)
    assert mir_view(file, "-o", tmp_path / "page.html").code == 0
    text = (tmp_path / "page.html").read_text()
    assert text.count("<script") == 1 and text.count("<template") == 1
    assert "<img" not in text and "onerror=" not in text.replace("&lt;img src=x onerror=alert(1)&gt;", "")
    assert data_of(tmp_path / "page.html")["files"][0]["lines"][0] == f"// {INJECTION}"
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and "default-src 'none'" in policy[1] and "script-src 'sha256-" in policy[1]


def test_other_files_are_not_opened(mir_view: Callable[..., Any], tmp_path: Path):
    """A location may name any file; only what was read to be compiled is on the page."""
    (tmp_path / "secret.txt").write_text("a secret\n")
    (tmp_path / "f.mlir").write_text(
        "func.func @f(%a: f32) -> f32 {\n"
        f'  %0 = arith.addf %a, %a : f32 loc("{tmp_path}/secret.txt":1:1)\n'
        "  func.return %0 : f32\n}\n"
    )
    assert mir_view(tmp_path / "f.mlir", "--entry", "f", "-o", tmp_path / "page.html").code == 0
    data = data_of(tmp_path / "page.html")
    assert any("secret.txt" in file["name"] for file in data["files"])
    assert "a secret" not in json.dumps(data)


def test_errors(mir_view: Callable[..., Any], tmp_path: Path):
    (tmp_path / "net.mir").write_text(NET)
    ran = mir_view(tmp_path / "net.mir")
    assert ran.code == 2 and "the following arguments are required: -o/--output" in ran.err
    ran = mir_view(tmp_path / "net.mir", "-o", tmp_path)
    assert ran.code == 2 and "cannot be written: Is a directory" in ran.err
    ran = mir_view(tmp_path / "net.mir", "-o", tmp_path / "no" / "page.html")
    assert ran.code == 2 and "page.html: cannot be written: No such file or directory" in ran.err
    ran = mir_view(tmp_path / "other.mir", "-o", tmp_path / "page.html")
    assert ran.code == 2 and "no such file" in ran.err
    ran = mir_view(tmp_path / "net.mir", "-o", tmp_path / "page.html", "--entry", "man")
    assert ran.code == 1 and "no function 'man'; did you mean 'main'?" in ran.err
    (tmp_path / "wrong.mir").write_text("def @main(%x: Tensor[(2), float32]) { nn.dense(%x) }")
    ran = mir_view(tmp_path / "wrong.mir", "-o", tmp_path / "page.html")
    assert ran.code == 1 and "wrong.mir:1:39: error: " in ran.err
    assert not (tmp_path / "page.html").exists()


def test_dot(mir_opt: Callable[..., Any], tmp_path: Path):
    (tmp_path / "net.mir").write_text(NET)
    ran = mir_opt(tmp_path / "net.mir", "-p", "fuse-ops", "--dot")
    assert ran.code == 0 and ran.out.startswith("digraph {") and ran.out.endswith("}\n")
    assert ran.out.count("fillcolor=lightblue") == 6
    names = dict(re.findall(r'(f0_\d+) \[label="([\w.%]+)', ran.out))
    edges = {(names[a], names[b]) for a, b in re.findall(r"(f0_\d+) -> (f0_\d+);", ran.out)}
    assert {
        ("%x", "nn.conv2d"),
        ("nn.conv2d", "nn.relu"),
        ("nn.relu", "nn.max_pool2d"),
        ("nn.softmax", "result"),
    } <= edges
    assert "lightblue" not in mir_opt(tmp_path / "net.mir", "--dot").out
    ran = mir_opt(tmp_path / "net.mir", "--dot", "-t", "asm")
    assert ran.code == 2 and "--dot prints the graph instead of the module: leave out -t asm" in ran.err
    (tmp_path / "scale.mir").write_text(SCHEDULED)
    ran = mir_opt(tmp_path / "scale.mir", "--dot")
    assert ran.code == 1 and "--dot writes the graph of Relay functions, and the module has none" in ran.err


def test_layout():
    """Boxes of a layer do not overlap, edges lead down, and a box that nothing is before stands right above its user."""
    sizes = [(100, 40), (80, 30), (60, 20), (100, 40), (50, 20), (120, 30)]
    edges = [(0, 2), (1, 2), (2, 3), (2, 5), (3, 5), (4, 5)]
    layout = place(sizes, edges)
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(layout.corners, sizes, strict=True)]
    for k, one in enumerate(boxes):
        assert one[0] >= 0 and one[2] <= layout.width and one[3] <= layout.height
        for other in boxes[:k]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    for (source, target), line in zip(edges, layout.lines, strict=True):
        assert line[0][1] == boxes[source][3] and line[-1][1] == boxes[target][1]
        assert all(before[1] <= after[1] for before, after in pairwise(line))
    assert boxes[4][1] == boxes[3][1]
