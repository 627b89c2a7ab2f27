"""Compiled code on disk: what is taken from there, and what never is."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver import build as building
from mirstack.lowering.driver.cache.keys import context_key, digest
from mirstack.lowering.driver.cache.programs import wait_for_writing
from mirstack.lowering.driver.cache.store import DEFAULT_LIMIT, Store, limit_of
from mirstack.lowering.driver.loading import relay_executable
from mirstack.lowering.driver.workers import workers_wanted
from mirstack.lowering.pipeline import Options
from mirstack.lowering.runtime import default_threads, pinning_wanted
from mirstack.support import external_names, settings
from mirstack.support.diagnostics import MirError

if TYPE_CHECKING:
    from conftest import Ran

MODEL = """#[version = "0.0.5"]
#[constants = "weights.npz"]
def @main(%x: Tensor[(3, 40), float32]) {
  %0 = nn.relu(nn.dense(%x, meta[relay.Constant]["w"], units=24));
  (add(%0, multiply(meta[relay.Constant]["b"], 2f)), sqrt(%x))
}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty cache that is in use."""
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MIRSTACK_CACHE_LIMIT")
    # Files of the compiler that somebody edits while tests run do not turn the cache off.
    monkeypatch.setattr("mirstack.lowering.driver.cache.keys.compiler", lambda: b"this one")
    found = Store.open()
    assert found is not None
    return found


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels and programs that are lowered, by the names of their functions."""
    names: list[str] = []
    emit = building._Build.emit  # pyright: ignore[reportPrivateUsage]

    def watch(self, module):  # type: ignore[no-untyped-def]
        names.append(next(op.sym_name.data for op in module.ops if op.name == "llvm.func"))
        return emit(self, module)

    monkeypatch.setattr(building._Build, "emit", watch)  # pyright: ignore[reportPrivateUsage]
    return names


def write_model(folder: Path, text: str = MODEL, seed: int = 0) -> Path:
    generator = np.random.default_rng(seed)
    w = generator.standard_normal((24, 40)).astype("float32")
    b = generator.standard_normal(24).astype("float32")
    np.savez(folder / "weights.npz", w=w, b=b)
    (folder / "m.mir").write_text(text)
    return folder / "m.mir"


X = np.random.default_rng(7).random((3, 40)).astype("float32")


def expected(folder: Path) -> list[np.ndarray]:
    arrays = np.load(folder / "weights.npz")
    return [np.maximum(X @ arrays["w"].T, 0) + arrays["b"] * 2, np.sqrt(X)]


def check(path: Path) -> None:
    for got, wanted in zip(mirstack.compile(path)(X), expected(path.parent), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    wait_for_writing()


def test_a_program_is_written_while_it_runs(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path, may_write = write_model(tmp_path), threading.Event()
    write = Store.write

    def late(self: Store, kind: str, *rest: Any) -> None:
        if kind == "program":
            may_write.wait(20)
        write(self, kind, *rest)

    monkeypatch.setattr(Store, "write", late)
    for got, wanted in zip(mirstack.compile(path)(X), expected(path.parent), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    assert "program" not in store.usage().files
    may_write.set()
    # The next compilation waits for it.
    with mirstack.timing() as times:
        mirstack.compile(path)
    assert times.find("parse") is None and store.usage().files["program"] == 1


def test_a_process_that_ends_has_written(tmp_path: Path, store: Store) -> None:
    code = f"import mirstack; mirstack.compile({str(write_model(tmp_path))!r})"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "MIRSTACK_CACHE": str(store.folder.parent)}
    )
    assert store.usage().files["program"] == 1


def test_who_measures_sees_the_writing(tmp_path: Path, store: Store) -> None:
    with mirstack.timing() as times:
        mirstack.compile(write_model(tmp_path))
    assert times.find("cache, beside", "keep") is not None and store.usage().files["program"] == 1


def test_a_program_is_lowered_once(tmp_path: Path, store: Store, lowered: list[str]) -> None:
    path = write_model(tmp_path)
    check(path)
    first = len(lowered)
    assert first >= 2
    check(path)
    assert len(lowered) == first
    kinds = store.usage().files
    assert kinds["program"] == 1 and kinds["kernel"] >= 1
    assert mirstack.compile(path)(X)[0].shape == (3, 24)


def test_a_module_is_found_too_and_its_places_count(tmp_path: Path, store: Store, lowered: list[str]) -> None:
    module = mirstack.load(write_model(tmp_path))
    mirstack.compile(module)
    first = len(lowered)
    mirstack.compile(module)
    assert len(lowered) == first
    moved = mirstack.parse("\n" + MODEL, str(tmp_path / "m.mir"), directory=tmp_path)
    mirstack.compile(moved)
    # Its messages tell other lines, so the program is another; the kernels are not.
    assert len(lowered) == first + 1


def test_other_weights_or_options_make_another_program(tmp_path: Path, store: Store, lowered: list[str]) -> None:
    path = write_model(tmp_path)
    check(path)
    write_model(tmp_path, seed=1)
    check(path)
    assert store.usage().files["program"] == 2
    mirstack.compile(path, opt_level=1)
    mirstack.compile(path, threads=1)
    wait_for_writing()
    assert store.usage().files["program"] >= 3


def test_a_change_of_the_model_compiles_what_changed(tmp_path: Path, store: Store, lowered: list[str]) -> None:
    path = write_model(tmp_path)
    check(path)
    lowered.clear()
    path.write_text(MODEL.replace("sqrt(%x)", "exp(%x)"))
    result = mirstack.compile(path)(X)
    np.testing.assert_allclose(result[1], np.exp(X), rtol=1e-5)
    assert len(lowered) == 2, lowered  # exp, and the program


OPEN = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, 8), float32]) {
  let %p = nn.max_pool1d(expand_dims(add(%x, %y), axis=0), pool_size=[2], strides=[2]);
  nn.softmax(reshape(%p, newshape=[-1, 4]))
}
"""


def test_kernels_of_open_sizes_are_kept(tmp_path: Path, store: Store, lowered: list[str]) -> None:
    """Another program finds them; it computes and checks their sizes as the first does."""
    path = tmp_path / "m.mir"
    for text in (OPEN, OPEN.replace("nn.softmax(reshape", "negative(reshape")):
        path.write_text(text)
        lowered.clear()
        run = mirstack.compile(path, specialize=False)
        for rows in (1, 3):
            x = np.random.default_rng(rows).random((rows, 8)).astype("float32")
            largest = (2 * x).reshape(rows, 4, 2).max(2)
            if "softmax" in text:
                powers = np.exp(largest)
                largest = powers / powers.sum(1, keepdims=True)
            else:
                largest = -largest
            np.testing.assert_allclose(run(x, x), largest, rtol=1e-5)
        for shape, message in (((2, 7), "dimension 1 of 'lhs' is 7, but must be 8"), ((3, 8), "they are 3 and 2")):
            with pytest.raises(MirError, match=f"m.mir:3:38: error: add: .*{message}"):
                run(np.zeros(shape, "float32"), np.zeros((2, 8), "float32"))
        wait_for_writing()
    # Of the second program only the kernel that is another, and the program.
    assert len(lowered) == 2 and any("negative" in name for name in lowered)


def test_messages_tell_where_it_is_now(tmp_path: Path, store: Store, lowered: list[str]) -> None:
    text = """def @main(%x: Tensor[(?, 4), float32], %y: Tensor[(?, 4), float32]) { add(%x, %y) }"""
    ok = np.ones((2, 4), "float32")
    for lines in (0, 0, 3):
        module = mirstack.parse("\n" * lines + text, "m.mir")
        function = mirstack.compile(module)
        np.testing.assert_array_equal(function(ok, ok), ok + ok)
        with pytest.raises(MirError, match=rf"m\.mir:{lines + 1}:"):
            function(ok, np.ones((3, 4), "float32"))


def test_small_arrays_are_with_the_program_and_large_ones_apart(tmp_path: Path, store: Store) -> None:
    text = MODEL.replace('multiply(meta[relay.Constant]["b"], 2f)', 'multiply(meta[relay.Constant]["big"], 2f)')
    path = write_model(tmp_path, text)
    big = np.random.default_rng(3).random((1000, 3, 24)).astype("float32")
    arrays = dict(np.load(tmp_path / "weights.npz"))
    np.savez(tmp_path / "weights.npz", **arrays, big=big)
    for _ in range(2):
        result = mirstack.compile(path)(X)
        np.testing.assert_allclose(result[0], np.maximum(X @ arrays["w"].T, 0) + big * 2, rtol=1e-5, atol=1e-5)
    wait_for_writing()
    assert store.usage().files["array"] == 1
    (array,) = store.folder.glob("*.array")
    array.unlink()
    result = mirstack.compile(path)(X)
    np.testing.assert_allclose(result[0], np.maximum(X @ arrays["w"].T, 0) + big * 2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("computed", [False, True])
def test_weights_that_were_computed_are_kept_as_kernels_read_them(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, computed: bool
) -> None:
    """Those of the source are prepared again: they are there, and take no room in the cache."""
    w = np.random.default_rng(0).standard_normal((256, 512)).astype("float32")
    np.savez(tmp_path / "weights.npz", w=w)
    weight = 'multiply(meta[relay.Constant]["w"], 2f)' if computed else 'meta[relay.Constant]["w"]'
    (tmp_path / "m.mir").write_text(f"""#[version = "0.0.5"]
#[constants = "weights.npz"]
def @main(%x: Tensor[(3, 512), float32]) {{ nn.dense(%x, {weight}, units=256) }}
""")
    x = np.random.default_rng(1).standard_normal((3, 512)).astype("float32")
    first = mirstack.compile(tmp_path / "m.mir")
    assert first.prepared_bytes == w.nbytes  # pyright: ignore[reportAttributeAccessIssue]
    wait_for_writing()
    assert store.usage().files.get("array", 0) == computed
    prepared: list[str] = []
    whole = relay_executable.prepare_constants
    monkeypatch.setattr(
        relay_executable, "prepare_constants", lambda program, *rest: prepared.append(program.entry) or whole(program, *rest)
    )  # fmt: skip
    again = mirstack.compile(tmp_path / "m.mir")
    np.testing.assert_array_equal(again(x), first(x))
    np.testing.assert_allclose(again(x), x @ (w * (1 + computed)).T, rtol=1e-4, atol=1e-4)
    assert prepared == ([] if computed else ["main"])


def test_what_was_read_stays_whatever_becomes_of_the_file(store: Store) -> None:
    key, data = digest("one"), bytes(range(256)) * 256
    store.write("array", key, [data])
    found = store.read("array", key)
    assert found is not None
    # In place: a mapping of the file would show the zeros, and end the process where the file was cut.
    with store.path("array", key).open("r+b") as file:
        file.write(bytes(len(data) // 2))
    assert bytes(found) == data


@pytest.mark.parametrize("at", [0, 9, 20, 40, 60, 130, 200, -5])
def test_damaged_files_are_made_again(tmp_path: Path, store: Store, lowered: list[str], at: int) -> None:
    path = write_model(tmp_path)
    check(path)
    first = len(lowered)
    for file in store.folder.iterdir():
        data = bytearray(file.read_bytes())
        data[at] ^= 0x10
        file.write_bytes(data)
    check(path)
    assert len(lowered) == 2 * first
    check(path)
    assert len(lowered) == 2 * first


@pytest.mark.parametrize("length", [0, 7, 127, 128, 300])
def test_short_files_and_others_files_are_not_read(tmp_path: Path, store: Store, length: int) -> None:
    key, other = digest("one"), digest("other")
    store.write("program", key, [b"abc" * 100, b"def"])
    found = store.read("program", key)
    assert found is not None and bytes(found) == b"abc" * 100 + b"def"
    data = store.path("program", key).read_bytes()
    store.path("program", other).write_bytes(data)  # under a wrong name
    assert store.read("program", other) is None
    store.path("kernel", key).write_bytes(data)  # of a wrong kind
    assert store.read("kernel", key) is None
    store.path("program", key).write_bytes(data[:length])
    assert store.read("program", key) is None
    assert store.read("program", digest("absent")) is None


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, store: Store) -> None:
    store.folder.chmod(0o777)
    assert Store.open() is None
    store.folder.chmod(0o700)
    assert Store.open() is not None


def test_what_was_used_last_stays(tmp_path: Path) -> None:
    store = Store(tmp_path, 5000)
    keys = [digest(str(number)) for number in range(8)]
    for number, key in enumerate(keys):
        store.write("kernel", key, [bytes(900)])
        os.utime(store.path("kernel", key), ns=(number, number))
    assert store.read("kernel", keys[0]) is not None  # which renews it
    store.trim()
    assert store.has("kernel", keys[0]) and store.has("kernel", keys[7]) and not store.has("kernel", keys[1])
    assert store.usage().bytes <= 5000
    store.write("kernel", digest("large"), [bytes(4000)])
    assert not store.has("kernel", digest("large"))
    count = sum(store.usage().files.values())
    assert store.clear() == count and store.usage().bytes == 0


@pytest.mark.parametrize(
    ("text", "limit"),
    [(None, DEFAULT_LIMIT), ("0", 0), ("512M", 512 << 20), ("2G", 2 << 30), ("3kb", 3 << 10), ("much", DEFAULT_LIMIT)],
)
def test_limits(text: str | None, limit: int) -> None:
    assert limit_of(text) == limit


def test_turned_off(tmp_path: Path, store: Store, lowered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_model(tmp_path)
    mirstack.compile(path, cache=False)
    assert store.usage().files == {}
    mirstack.compile(path, observers=(lambda step, module: None,))
    assert store.usage().files == {}
    monkeypatch.setenv("MIRSTACK_CACHE_LIMIT", "0")
    mirstack.compile(path)
    monkeypatch.delenv("MIRSTACK_CACHE_LIMIT")
    monkeypatch.setenv("MIRSTACK_CACHE", "off")
    mirstack.compile(path)
    assert store.usage().files == {}


def test_the_command_shows_and_clears_it(
    tmp_path: Path, store: Store, mir_run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, lowered: list[str]
) -> None:
    path = write_model(tmp_path)
    assert mir_run(path, "--random", 0).code == 0
    first = len(lowered)
    assert mir_run(path, "--random", 0).code == 0 and len(lowered) == first
    assert mir_run(path, "--random", 0, "--no-cache").code == 0 and len(lowered) == 2 * first
    ran = mir_run("--cache-info")
    assert ran.code == 0 and f"{store.folder}: 0.0 MiB of at most 1024.0 MiB" in ran.out
    assert "1 of kind program" in ran.out
    count = sum(store.usage().files.values())
    assert mir_run("--clear-cache").out == f"{store.folder}: {count} files deleted\n"
    assert store.usage().files == {}
    for variable, value, why in (
        ("MIRSTACK_CACHE", "off", "MIRSTACK_CACHE is off"),
        ("MIRSTACK_CACHE_LIMIT", "0", "MIRSTACK_CACHE_LIMIT is 0"),
        ("MIRSTACK_CACHE", "/dev/null/x", "/dev/null/x/compiled cannot be written to, or others can write to it, too"),
    ):
        with monkeypatch.context() as changed:
            changed.setenv(variable, value)
            for option in ("--cache-info", "--clear-cache"):
                assert mir_run(option).out == f"the cache is turned off: {why}\n"


def test_the_command_tells_where_time_goes(tmp_path: Path, store: Store, mir_run: Callable[..., Ran]) -> None:
    path = write_model(tmp_path)
    ran = mir_run(path, "--random", 0, "--timing", "--repeat", 2)
    lines = {line.split()[0] for line in ran.err.splitlines() if line.split()}
    assert {"start", "compile", "parse", "fuse-ops", "translate", "optimize", "link", "first", "run", "total"} <= lines
    assert "parse" not in mir_run(path, "--random", 0, "--timing").err


def test_keys_tell_machines_apart() -> None:
    keys = {context_key(Options(cpu=cpu, threads=threads)) for cpu in (None, "haswell") for threads in (1, 2)}
    keys |= {context_key(Options(caches="16K,256K,4M", threads=1)), context_key(Options(opt_level=1, threads=1))}
    assert None in keys or len(keys) == 6


def test_a_compiler_edited_while_it_runs_uses_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from mirstack.lowering.driver.cache import keys

    monkeypatch.setattr(keys, "IMPORTED_AT", 0)
    keys.compiler.cache_clear()
    assert context_key(Options()) is None
    keys.compiler.cache_clear()


def test_te_and_tir_entries(store: Store, lowered: list[str]) -> None:
    text = """
@T.prim_func
def twice(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] * T.float32(2)
"""
    module = mirstack.parse(text)
    for _ in range(2):
        a, b = np.arange(5, dtype="float32"), np.zeros(5, "float32")
        mirstack.compile(module)(a, b)
        np.testing.assert_array_equal(b, a * 2)
    assert len(lowered) == 1


def test_several_processes_and_threads_at_once(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    code = textwrap.dedent(f"""
        import mirstack, numpy as np
        x = np.ones((3, 40), "float32")
        for _ in range(3):
            out = mirstack.compile({str(path)!r})(x)
            assert out[0].shape == (3, 24)
    """)
    environment = {**os.environ, "MIRSTACK_CACHE": str(tmp_path / "cache"), "MIRSTACK_CACHE_LIMIT": "64M"}
    with ThreadPoolExecutor(2) as pool:
        done = list(
            pool.map(
                lambda _: subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True),
                range(2),
            )
        )
    assert [(process.returncode, process.stderr) for process in done] == [(0, "")] * 2
    left = [file.name for file in (tmp_path / "cache" / "compiled").iterdir() if file.name.startswith(".new-")]
    assert left == []


OUTSIDE = """
import sys
import mirstack, numpy as np
from mirstack import rules
from mirstack.dialects.relay import operators
from mirstack.dialects.relay.operators.nn import activations as basic

factor = float(sys.argv[1])
basic.define(
    "my.scale", ("data",), basic.identity, basic.OpPattern.ELEMWISE, numpy=lambda attrs, x: x * np.float32(factor),
    compute=lambda attrs, xs, out: [basic.elementwise(lambda x: x * mirstack.te.const(factor, x.dtype), xs[0])],
    attributes=(), doc="", source="",
)
module = mirstack.parse("def @main(%x: Tensor[(3), float32]) { my.scale(%x) }")
print(*mirstack.compile(module, threads=1)(np.ones(3, "float32")))
"""


def test_an_operator_from_outside_is_not_known_by_its_name(store: Store) -> None:
    for factor in ("2", "3"):
        ran = subprocess.run([sys.executable, "-c", OUTSIDE, factor], capture_output=True, text=True, check=True)
        assert set(ran.stdout.split()) == {f"{factor}.0"}


def test_names_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    from mirstack.dialects.relay.operator import get_operator
    from mirstack.dialects.rule import FUNCTIONS, named_function

    monkeypatch.setattr(external_names, "_NAMES", set[str]())
    assert get_operator("nn.conv2d") is not None and not external_names.names_one("nn.conv2d(%x, %w)")

    @named_function("three_more", arity=1)
    def more(x: int) -> int:
        return x + 3

    del FUNCTIONS["three_more"]
    assert more(1) == 4
    assert external_names.names_one("rewrite { where three_more(%x) == 4 }") and not external_names.names_one("three")


def test_each_option_makes_another_key() -> None:
    """An option that is added later, too."""
    first = context_key(Options(threads=1))
    other = {"opt_level": 2, "cpu": "x86-64", "triple": "x86_64-unknown-linux-gnu", "threads": 2, "caches": "16K"}
    for field in fields(Options):
        default = getattr(Options(), field.name)
        value = other.get(field.name, not default if isinstance(default, bool) else (str(field.name),))
        same = field.name == "entry"
        assert (context_key(replace(Options(threads=1), **{field.name: "f" if same else value})) == first) == same


def test_a_cache_that_cannot_be_written_is_told_once(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "_SAID", set[str]())
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, and no folder")
    monkeypatch.setenv("MIRSTACK_CACHE", str(blocked))
    x = np.ones(3, np.float32)
    for _ in range(2):
        assert mirstack.compile(mirstack.parse("def @main(%x: Tensor[(3), float32]) { exp(%x) }"), threads=1)(x).size
    assert capsys.readouterr().err == (
        f"mirstack: warning: nothing is kept in {blocked / 'compiled'}, which cannot be written to, or others can write to it, too; "
        "MIRSTACK_CACHE=off does without\n"
    )


def test_a_disk_that_is_full_is_told_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "_SAID", set[str]())

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    for key in (b"1" * 32, b"2" * 32):
        store.write("program", key, [b"contents"])
    assert capsys.readouterr().err == (
        f"mirstack: warning: nothing is kept in {store.folder}: No space left on device; MIRSTACK_CACHE=off does without\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "read", "wanted"),
    [
        ("MIRSTACK_CACHE_LIMIT", "lots", Store.open, "a number of bytes such as 512M or 2G"),
        ("MIRSTACK_THREADS", "0", default_threads, "a whole number from 1 to 256"),
        ("MIRSTACK_THREADS", "two", default_threads, "a whole number from 1 to 256"),
        ("MIRSTACK_WORKERS", "-1", workers_wanted, "a whole number from 0 to 64"),
        ("MIRSTACK_PINNING", "maybe", pinning_wanted, "off or on"),
    ],
)
def test_settings_that_mean_nothing_are_told(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    name: str, value: str, read: Callable[[], object], wanted: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(settings, "_SAID", set[str]())
    monkeypatch.delenv(name, raising=False)
    default = read()
    monkeypatch.setenv(name, value)
    for _ in range(2):
        found = read()
        assert found == default or isinstance(found, Store)
    said = f"mirstack: warning: {name} is {value!r}, which counts as absent: it takes {wanted}\n"
    assert capsys.readouterr().err == said
