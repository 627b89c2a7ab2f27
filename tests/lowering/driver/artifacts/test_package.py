"""Packages hold a program for some processors, and are loaded only where they are whole and run here."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack import relay
from mirstack.lowering.driver.artifacts.package import (
    ENDING,
    FORMAT,
    MAGIC,
    START,
    append_package,
    describe,
    read_package,
)
from mirstack.lowering.driver.loading import relay_executable
from mirstack.support import target as target_module
from mirstack.support.target import named

NET = """
def @main(%x: Tensor[(?, 16), float32], %pair: (Tensor[(8, 16), float32], Tensor[(8), float32])) {
  let %h = nn.bias_add(nn.dense(%x, %pair.0), %pair.1, axis=1);
  (nn.relu(%h), nn.softmax(%h))
}
"""
LEAST = "x86-64" if named("").arch == "x86_64" else "cortex-a72"
LACKING = "diamondrapids" if named("").arch == "x86_64" else "a64fx"


def arguments(size: int = 5):
    random = np.random.default_rng(size)
    x, w, b = (random.normal(size=shape).astype(np.float32) for shape in ((size, 16), (8, 16), (8,)))
    return x, (w, b)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with weights, for this machine."""
    path = tmp_path_factory.mktemp("package") / "net.mirpkg"
    weights = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    x = relay.var("x", shape=(3, 8))
    module = mirstack.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(weights))))
    assert mirstack.compile(module).export(path) == [path]
    return path


def test_a_package_computes_what_the_program_does(tmp_path: Path):
    exe = mirstack.compile(mirstack.parse(NET), specialize=False)
    exe.export(tmp_path / "net.mirpkg")
    loaded = mirstack.Executable.load(tmp_path / "net.mirpkg")
    assert repr(loaded) == "Executable(main(x: float32[?, 16], pair.0: float32[8, 16], pair.1: float32[8]))"
    for size in (5, 0, 40):
        for got, wanted in zip(loaded(*arguments(size)), exe(*arguments(size)), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.fixture(scope="module")
def packed() -> mirstack.Executable:
    """A product whose kernel reads its constant weights packed."""
    weights = np.random.default_rng(0).normal(size=(512, 256)).astype(np.float32)
    x = relay.var("x", shape=(64, 256))
    return mirstack.compile(mirstack.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(weights)))))


def test_weights_are_packed_when_the_package_is_built(
    tmp_path: Path, packed: mirstack.Executable, monkeypatch: pytest.MonkeyPatch
):
    packed.export(tmp_path / "net.mirpkg")
    assert (tmp_path / "net.mirpkg").stat().st_size < 1.2 * 512 * 256 * 4
    monkeypatch.setattr(relay_executable, "prepare_constants", lambda *_: pytest.fail("they are packed again"))
    loaded = mirstack.Executable.load(tmp_path / "net.mirpkg")
    x = np.random.default_rng(1).normal(size=(64, 256)).astype(np.float32)
    np.testing.assert_array_equal(loaded(x), packed(x))


def test_levels_share_packed_weights_where_they_are_the_same(tmp_path: Path, packed: mirstack.Executable):
    least = ["x86-64", "x86-64-v2"] if LEAST == "x86-64" else ["cortex-a72", "neoverse-n1"]
    packed.export(tmp_path / "net.mirpkg", cpus=least)
    first, second = read_package(tmp_path / "net.mirpkg").header["levels"]
    assert first["contents"] == second["contents"] != []
    assert (tmp_path / "net.mirpkg").stat().st_size < 1.2 * 512 * 256 * 4


def test_weights_are_packed_for_processors_that_are_not_here(tmp_path: Path, packed: mirstack.Executable):
    packed.export(tmp_path / "net.mirpkg", cpus=[LACKING])
    package = read_package(tmp_path / "net.mirpkg")
    (level,) = package.header["levels"]
    assert level["constants"] == [] and len(level["contents"]) == 1
    _, _, (start, length) = package.header["arrays"][level["contents"][0]]
    # A packed matrix has the elements of the matrix in another order.
    elements = np.frombuffer(package.weights[start : start + length], np.float32)
    weights = np.random.default_rng(0).normal(size=(512, 256)).astype(np.float32)
    np.testing.assert_array_equal(np.sort(elements), np.sort(weights.ravel()))
    assert not np.array_equal(elements, weights.ravel())


def test_a_package_that_is_mapped_may_be_built_again(tmp_path: Path, packed: mirstack.Executable):
    packed.export(tmp_path / "net.mirpkg")
    loaded = mirstack.Executable.load(tmp_path / "net.mirpkg")
    x = np.random.default_rng(1).normal(size=(64, 256)).astype(np.float32)
    wanted = loaded(x)
    mirstack.compile(mirstack.parse(NET)).export(tmp_path / "net.mirpkg")
    np.testing.assert_array_equal(loaded(x), wanted)


def test_errors_of_a_package_are_those_of_the_program(tmp_path: Path):
    text = "def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { add(%x, %y) }"
    mirstack.compile(mirstack.parse(text, "sum.mir")).export(tmp_path / "net.mirpkg")
    loaded = mirstack.Executable.load(tmp_path / "net.mirpkg")
    with pytest.raises(mirstack.MirError, match=r"2 does not broadcast to 3|3 does not broadcast to 2|sum.mir:1"):
        loaded(np.zeros(2, np.float32), np.zeros(3, np.float32))


def test_functions_of_tir_go_into_packages(tmp_path: Path):
    text = """
@T.prim_func
def double(a: T.handle, b: T.handle):
    n = T.int32(is_size_var=True)
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(2)
"""
    mirstack.compile(mirstack.parse(text)).export(tmp_path / "double.mirpkg")
    loaded = mirstack.Executable.load(tmp_path / "double.mirpkg")
    a, b = np.arange(7, dtype=np.float32), np.zeros(7, np.float32)
    loaded(a, b)
    np.testing.assert_array_equal(b, 2 * a)


def test_the_best_level_that_runs_here_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    exe = mirstack.compile(mirstack.parse(NET), specialize=False)
    exe.export(tmp_path / "net.mirpkg", cpus=[LEAST, LACKING])
    package = read_package(tmp_path / "net.mirpkg")
    assert [level["cpu"] for level in package.header["levels"]] == [LACKING, LEAST]
    loaded = mirstack.Executable.load(tmp_path / "net.mirpkg")
    for got, wanted in zip(loaded(*arguments()), exe(*arguments()), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_a_package_without_code_for_this_machine_is_refused(tmp_path: Path):
    mirstack.compile(mirstack.parse(NET)).export(tmp_path / "net.mirpkg", cpus=[LACKING])
    with pytest.raises(mirstack.MirError, match=rf"net.mirpkg: has no code that runs on this machine\n.*{LACKING}: "):
        mirstack.Executable.load(tmp_path / "net.mirpkg")


def test_the_same_program_makes_the_same_bytes(tmp_path: Path, package: Path):
    exe = mirstack.compile(mirstack.parse(NET))
    exe.export(tmp_path / "a.mirpkg")
    mirstack.compile(mirstack.parse(NET)).export(tmp_path / "b.mirpkg")
    assert (tmp_path / "a.mirpkg").read_bytes() == (tmp_path / "b.mirpkg").read_bytes()


def test_damaged_packages_are_refused(tmp_path: Path, package: Path):
    whole = package.read_bytes()
    damaged = tmp_path / "damaged.mirpkg"
    choose = random.Random(1)
    for number in range(1000):
        data = bytearray(whole)
        match number % 4:
            case 0:
                data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
            case 1:
                del data[choose.randrange(len(data)) :]
            case 2:
                start = choose.randrange(len(data))
                data[start : start + 16] = choose.randbytes(len(data[start : start + 16]))
            case _:
                data += choose.randbytes(1 + choose.randrange(100))
        if bytes(data) == whole:
            continue
        damaged.write_bytes(data)
        with pytest.raises(mirstack.MirError, match=r"is damaged or incomplete|is not a package|is of format"):
            mirstack.Executable.load(damaged)


def rewritten(package: Path, path: Path, change) -> None:
    """Writes a package whose header is another, with the right checksum."""
    data = package.read_bytes()
    _, _, length, _ = START.unpack(data[: START.size])
    header = json.loads(data[START.size : START.size + length])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-(START.size + len(text)) % 64)
    start = START.pack(MAGIC, FORMAT, len(text), hashlib.sha256(text).digest())
    path.write_bytes(start + text + data[START.size + length :])


REWRITTEN = [
    (lambda header: header.update(system="plan9"), f"was built for the system 'plan9', and this is '{sys.platform}'"),
    (lambda header: header["levels"][0].update(arch="vax"), "it is of another kind, vax"),
    (lambda header: header["levels"][0].update(features=["telepathy"]), "this machine has no telepathy"),
    (lambda header: header.pop("arrays"), "is not a package that mirstack wrote"),
    (lambda header: header.pop("bytes"), "is damaged or incomplete"),
    (lambda header: header.pop("system"), "is not a package that mirstack wrote"),
    (lambda header: header["levels"][0]["program"].pop("memory"), "is not a package that mirstack wrote"),
    (lambda header: header["levels"][0].update(constants=[99]), "is not a package that mirstack wrote"),
]


@pytest.mark.parametrize("change, message", REWRITTEN, ids=[message for _, message in REWRITTEN])
def test_foreign_packages_are_refused(tmp_path: Path, package: Path, change, message: str):
    rewritten(package, tmp_path / "other.mirpkg", change)
    with pytest.raises(mirstack.MirError, match=message):
        mirstack.Executable.load(tmp_path / "other.mirpkg")


def test_a_newer_format_is_refused(tmp_path: Path, package: Path):
    data = bytearray(package.read_bytes())
    data[len(MAGIC)] = FORMAT + 1
    (tmp_path / "new.mirpkg").write_bytes(data)
    with pytest.raises(
        mirstack.MirError, match=rf"is of format {FORMAT + 1}, and this version of mirstack reads format {FORMAT}"
    ):
        mirstack.Executable.load(tmp_path / "new.mirpkg")


def test_files_that_are_no_packages(tmp_path: Path):
    with pytest.raises(mirstack.MirError, match=r"cannot be read: No such file"):
        mirstack.Executable.load(tmp_path / "absent.mirpkg")
    (tmp_path / "text.mirpkg").write_text("def @main() { 1 }")
    with pytest.raises(mirstack.MirError, match=r"text.mirpkg: is not a package of mirstack"):
        mirstack.Executable.load(tmp_path / "text.mirpkg")


def test_what_a_package_holds_is_shown(package: Path):
    text = describe(read_package(package))
    assert text.startswith(f"// net{ENDING}: built by mirstack {mirstack.__version__} for {sys.platform}\n")
    assert "// 1 array of 128 bytes\n" in text
    assert "//   x: Tensor[(3, 8), float32]\n// result: Tensor[(3, 4), float32]\n" in text


def test_only_what_was_compiled_here_is_exported(tmp_path: Path, package: Path):
    interpreted = mirstack.compile(mirstack.parse(NET), target="interp")
    for exe in (interpreted, mirstack.Executable.load(package)):
        with pytest.raises(mirstack.MirError, match=r"main cannot be exported: it was not compiled here"):
            exe.export(tmp_path / "net.mirpkg")


def test_modules_are_exported_and_loaded_by_tvms_names(tmp_path: Path):
    module = mirstack.parse("def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }")
    built = mirstack.build(mirstack.IRModule.of_op(module))
    built.export_library(tmp_path / "relu.mirpkg")
    loaded = mirstack.runtime.load_module(tmp_path / "relu.mirpkg")
    np.testing.assert_array_equal(loaded["main"](np.array([-1, 2, -3, 4], np.float32)).numpy(), [0, 2, 0, 4])


def test_a_package_after_something_else(tmp_path: Path, package: Path):
    path = tmp_path / "net.so"
    path.write_bytes(b"\x7fELF" + bytes(5000))
    append_package(path, lambda file: shutil.copy(package, file))
    x = np.ones((3, 8), np.float32)
    np.testing.assert_array_equal(mirstack.Executable.load(path)(x), mirstack.Executable.load(package)(x))
    whole = path.read_bytes()
    assert whole.startswith(b"\x7fELF")
    for damaged in (whole[:-1], whole[:5001] + whole[5002:], whole[:-40] + b"x" + whole[-39:]):
        path.write_bytes(damaged)
        with pytest.raises(mirstack.MirError, match=r"is damaged or incomplete|is not a package of mirstack"):
            mirstack.Executable.load(path)


def test_the_machine_decides_where_code_runs(monkeypatch: pytest.MonkeyPatch):
    machine = named("haswell")
    monkeypatch.setattr(target_module, "named", lambda *_: machine)
    assert target_module.missing_here("x86_64", 32, frozenset({"bmi2"})) is None
    assert target_module.missing_here("x86_64", 64, frozenset()) == "this machine has no vectors of 64 bytes"
    assert target_module.missing_here("aarch64", 16, frozenset()) == "it is of another kind, aarch64"
