"""Weights of a side file are in memory once, and an executable owns those that it reads: what becomes of the file is its own matter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mirstack
import numpy as np
import pytest
from safetensors.numpy import save_file

LAYERS, SIZE = 8, 2048
WEIGHTS = LAYERS * SIZE * SIZE * 4

PROGRAM = """
import sys, mirstack, numpy as np

def own():
    "Bytes of this process that are in memory and of no file."
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("RssAnon"))

x = np.ones((1, {size}), "float32")
# What is imported and started on first use does not count.
mirstack.compile(mirstack.parse('def @main(%x: Tensor[(1, {size}), float32]) {{ nn.relu(%x) }}'))(x)
before = own()
model = mirstack.compile(sys.argv[1])
result = model(x)
print(own() - before, float(result[0, 0]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by /proc, which Linux has")
def test_weights_are_in_memory_once(tmp_path: Path):
    # Layer k keeps its input times its number.
    save_file({f"w{k}": np.eye(SIZE, dtype="float32") * (k + 1) for k in range(LAYERS)}, tmp_path / "w.safetensors")
    lines = [
        f"  %{k} = nn.dense(%{k - 1 if k else 'x'}, meta[relay.Constant][w{k}], units={SIZE});" for k in range(LAYERS)
    ]
    body = "\n".join([*lines, f"  %{LAYERS - 1}"])
    path = tmp_path / "deep.mir"
    path.write_text(f'#[constants = "w.safetensors"]\ndef @main(%x: Tensor[(1, {SIZE}), float32]) {{\n{body}\n}}\n')
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(size=SIZE), str(path)], capture_output=True, text=True, check=True
    )
    grown, value = ran.stdout.split()
    assert float(value) == 40320  # 8!
    assert int(grown) < 1.25 * WEIGHTS


@pytest.mark.parametrize("cached", [False, True])
def test_a_file_that_is_overwritten_or_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: bool) -> None:
    from mirstack.lowering.driver.cache.programs import wait_for_writing

    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MIRSTACK_CACHE_LIMIT", "1G" if cached else "0")
    file, path = tmp_path / "w.safetensors", tmp_path / "m.mir"
    weights = {"w": np.eye(64, dtype="float32"), "b": np.arange(64, dtype="float32")}
    save_file(weights, file)
    path.write_text(
        '#[constants = "w.safetensors"]\ndef @main(%x: Tensor[(4, 64), float32]) {\n'
        "  add(nn.dense(%x, meta[relay.Constant][w]), meta[relay.Constant][b])\n}\n"
    )
    x = np.ones((4, 64), "float32")
    executables = [mirstack.compile(path, cache=cached) for _ in range(2)]
    wait_for_writing()
    with file.open("r+b") as opened:
        opened.write(b"\xff" * file.stat().st_size)
    for executable in executables:
        np.testing.assert_array_equal(executable(x), x + weights["b"])
    with file.open("r+b") as opened:
        opened.truncate(10)
    for executable in executables:
        np.testing.assert_array_equal(executable(x), x + weights["b"])


def test_constants_that_are_packed_do_not_wait_for_the_collector() -> None:
    """What was folded into weights is given up with the module, which is a cycle that only a collection frees."""
    import gc

    from mirstack.dialects.array import ArrayBox

    def folded() -> int:
        boxes = [each for each in gc.get_objects() if type(each) is ArrayBox]
        return sum(box.shape == (191, 67) and box.origin is None for box in boxes)

    weight = mirstack.relay.const(np.ones((191, 67), np.float32))
    x = mirstack.relay.var("x", shape=(4, 67))
    scaled = mirstack.relay.multiply(weight, mirstack.relay.const(np.float32(2)))
    module = mirstack.ir.IRModule.from_expr(mirstack.relay.Function([x], mirstack.relay.nn.dense(x, scaled)))
    gc.disable()
    try:
        program = mirstack.compile(module, cache=False, threads=1)
        assert folded() == 1, "the user's own"
    finally:
        gc.enable()
    np.testing.assert_array_equal(program(np.ones((4, 67), np.float32)), np.full((4, 191), 134, np.float32))
