"""Modules of WebAssembly give the numbers of Python, in node and in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import mirstack
import numpy as np
import pytest
from extras import node
from mirstack.examples.models.registry import build
from mirstack.lowering.driver.artifacts.wasm_library import MATHEMATICS

ROOT = Path(__file__).parents[4]
NODE = node()
pytestmark = pytest.mark.extra

NET = """
def @main(%x: Tensor[(2, 16), float32], %w: Tensor[(8, 16), float32]) {
  let %h = nn.dense(%x, %w);
  (nn.softmax(%h), argmax(%h, axis=[1]))
}
"""


def run_js(folder: Path, library: str, body: str, options: Sequence[str] = ()) -> str:
    """Runs JavaScript in which `net` is the loaded library; returns what it prints."""
    (folder / "test.mjs").write_text(f"import {{ load }} from './{library}.mjs';\nconst net = await load();\n{body}\n")
    command = [NODE, *options, "test.mjs"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def arguments():
    x = (np.arange(32, dtype=np.float32) % 7 - 3).reshape(2, 16)
    return x, (np.arange(128, dtype=np.float32) % 5 * np.float32(0.125)).reshape(8, 16)


RUN = """
const x = Float32Array.from({ length: 32 }, (_, i) => (i % 7) - 3);
const w = Float32Array.from({ length: 128 }, (_, i) => (i % 5) * 0.125);
const { out0, out1 } = net.run({ x, w });
console.log(JSON.stringify([[...out0], [...out1].map(Number), out0.shape]));
"""


def test_node_computes_what_python_does(tmp_path: Path):
    exe = mirstack.compile(mirstack.parse(NET))
    assert exe.export(tmp_path / "net.wasm") == [tmp_path / "net.wasm", tmp_path / "net.mjs"]
    probabilities, classes, shape = json.loads(run_js(tmp_path, "net", RUN))
    wanted = exe(*arguments())
    np.testing.assert_allclose(np.reshape(probabilities, (2, 8)), wanted[0], rtol=1e-5)
    np.testing.assert_array_equal(classes, wanted[1])
    assert shape == [2, 8]


def relaxed_options() -> list[str]:
    """Returns the options with which node has relaxed SIMD; skips the test where it has none."""
    # The smallest module of which a function has an instruction of it, i8x16.relaxed_swizzle.
    body = "0,97,115,109,1,0,0,0,1,5,1,96,0,1,123,3,2,1,0,10,15,1,13,0,65,1,253,15,65,2,253,15,253,128,2,11"
    script = f"process.exit(WebAssembly.validate(new Uint8Array([{body}])) ? 0 : 3)"
    for options in ([], ["--experimental-wasm-relaxed-simd"]):
        if subprocess.run([NODE, *options, "-e", script], capture_output=True, timeout=60, check=False).returncode == 0:
            return options
    pytest.skip("this node has no relaxed SIMD")


def test_relaxed_simd_computes_what_python_does(tmp_path: Path):
    options = relaxed_options()
    exe = mirstack.compile(mirstack.parse(NET))
    exe.export(tmp_path / "net.wasm", cpus=["relaxed"])
    # f32x4.relaxed_madd
    assert b"\xfd\x85\x02" in (tmp_path / "net.wasm").read_bytes()
    probabilities, classes, _ = json.loads(run_js(tmp_path, "net", RUN, options))
    wanted = exe(*arguments())
    np.testing.assert_allclose(np.reshape(probabilities, (2, 8)), wanted[0], rtol=1e-5)
    np.testing.assert_array_equal(classes, wanted[1])


MODELS: dict[str, dict[str, float]] = {
    "mobilenet": {"image": 32, "width": 1 / 8, "classes": 10},
    "resnet18": {"image": 32, "width": 1 / 8, "classes": 10},
    "gpt": {"batch": 2, "sequence": 16, "hidden": 48, "heads": 4},
    "lstm": {"batch": 2, "sequence": 5, "inputs": 12, "hidden": 20},
}


@pytest.mark.parametrize("name", MODELS)
def test_models_compute_the_same(name: str, tmp_path: Path):
    exe = mirstack.compile(build(name, 0, **MODELS[name]).write(tmp_path, name))
    exe.export(tmp_path / "net.wasm")
    random = np.random.default_rng(1)
    shapes = {p.name: [int(extent) for extent in p.shape] for p in exe.params}
    inputs = {
        p.name: (random.normal(size=shapes[p.name]) * (3 if "int" in p.dtype else 1)).astype(p.dtype)
        for p in exe.params
    }
    inputs = {name: np.abs(array) if array.dtype.kind == "i" else array for name, array in inputs.items()}
    for key, array in inputs.items():
        array.tofile(tmp_path / f"{key}.bin")
    body = """
    import { readFileSync, writeFileSync } from 'node:fs';
    const values = {};
    const kinds = { Float32Array, Int32Array, BigInt64Array };
    for (const { name, array } of net.inputs) values[name] = new kinds[array](new Uint8Array(readFileSync(`${name}.bin`)).buffer);
    for (const [name, array] of Object.entries(net.run(values))) writeFileSync(`${name}.out`, Buffer.from(array.buffer));
    """
    run_js(tmp_path, "net", body)
    for key, wanted in exe.run(inputs).items():
        found = np.fromfile(tmp_path / f"{key}.out", wanted.dtype).reshape(wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * float(np.abs(wanted).max()))


OPEN = "def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) { nn.softmax(add(%x, %y)) }"


def test_open_sizes_come_with_the_arrays(tmp_path: Path):
    mirstack.compile(mirstack.parse(OPEN, "sum.mir")).export(tmp_path / "net.wasm")
    body = """
    const of = (rows) => ({ data: new Float32Array(3 * rows).fill(1), shape: [rows, 3] });
    for (const rows of [1, 5000, 2]) {
      const { out0 } = net.run({ x: of(rows), y: of(rows) });
      if (out0.length !== 3 * rows || out0.some((each) => Math.abs(each - 1 / 3) > 1e-6)) throw new Error("wrong");
    }
    try { net.run({ x: of(2), y: of(3) }); } catch (error) { console.log(error.message); }
    """
    assert re.match(
        r"sum.mir:1:\d+: error: add: dimension 0 of 'lhs' .* do not broadcast", run_js(tmp_path, "net", body)
    )


WRONG = [
    ("{ x }", "w is missing: an array of shape [8,16]"),
    ("{ x: new Float64Array(32), w }", "x must be a Float32Array"),
    ("{ x: new Float32Array(31), w }", "x must have 32 elements, not 31"),
    ("{ x: { data: x, shape: [4, 8] }, w }", "x must have shape [2,16]"),
]


def test_wrong_arrays_are_refused(tmp_path: Path):
    mirstack.compile(mirstack.parse(NET)).export(tmp_path / "net.wasm")
    calls = "\n".join(
        f"try {{ net.run({call}); }} catch (error) {{ console.log(error.message); }}" for call, _ in WRONG
    )
    body = f"const x = new Float32Array(32), w = new Float32Array(128);\n{calls}"
    assert run_js(tmp_path, "net", body).splitlines() == [message for _, message in WRONG]


REFUSED = [
    ("net.wasm", {"cpus": ["haswell"]}, r"net.wasm: 'haswell' is not a processor of WebAssembly"),
    ("net.wasm", {"weights": "net.bin"}, r"net.wasm: a module of WebAssembly holds its weights"),
    ("net.html", {}, r"a page is made of a program that takes one square image of gray values, and @main does not"),
]


@pytest.mark.parametrize("name, options, message", REFUSED, ids=[message[:30] for *_, message in REFUSED])
def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options, message: str):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mirstack.MirError, match=message):
        mirstack.compile(mirstack.parse(NET)).export(name, **options)


def test_functions_that_javascript_lacks_are_named(tmp_path: Path):
    assert {"exp", "sinh", "pow"} <= MATHEMATICS and "erf" not in MATHEMATICS
    text = """
@T.prim_func
def gamma(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.call_pure_extern("float32", "lgammaf", A[vi])

def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] { call_tir(@gamma, %x) }
"""
    with pytest.raises(mirstack.MirError, match=r"the program calls lgammaf, which JavaScript does not have"):
        mirstack.compile(mirstack.parse(text)).export(tmp_path / "net.wasm")


DRAW = """
<script type="module">
await new Promise((done) => setTimeout(done, 500));
const canvas = document.getElementById("drawing"), box = canvas.getBoundingClientRect();
const before = document.getElementById("classes").dataset.best;
for (let step = 0; step <= 20; step++)
  canvas.dispatchEvent(new PointerEvent("pointermove", {
    buttons: 1, clientX: box.left + box.width * 0.5, clientY: box.top + box.height * (0.1 + 0.04 * step) }));
document.body.dataset.drawn = `${before} ${document.getElementById("classes").dataset.best} ${document.getElementById("error").textContent}`;
</script>
"""


def test_a_person_draws_a_digit(tmp_path: Path):
    page = tmp_path / "digits.html"
    assert mirstack.compile(ROOT / "examples/digits/digits.mir").export(page) == [page]
    text = page.read_text()
    assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org)", text)
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no browser")
    (tmp_path / "drawn.html").write_text(text.replace("</html>", f"{DRAW}</html>"))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000", "--dump-dom"]
    arguments = [browser, *options, f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "drawn.html").as_uri()]
    shown = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False).stdout
    found = re.search(r'data-drawn="(\d+) (\d+) "', shown)
    # A stroke from top to bottom is a one.
    assert found is not None and found[2] == "1", shown[-2000:]
