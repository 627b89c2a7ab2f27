"""Uses of the Python interface that once ended in an exception from the inside."""

from __future__ import annotations

import copy
import pickle
import runpy
from pathlib import Path

import mirstack
import pytest
from mirstack import ir, relay
from mirstack.support.diagnostics import MirError


def _module() -> mirstack.IRModule:
    return relay.parse("def @main(%x: Tensor[(4), float32]) { add(%x, 1f) }")


def test_modules_are_copied():
    module = _module()
    for made in (copy.copy(module), copy.deepcopy(module), copy.deepcopy([module])[0]):
        assert made is not module and ir.structural_equal(made, module)
    changed = copy.deepcopy(module)
    changed.update_func("other", changed["main"])
    assert "other" not in module


def test_modules_are_not_pickled():
    with pytest.raises(TypeError, match="an IRModule is not pickled: keep its text"):
        pickle.dumps(_module())


def test_modules_of_xdsl_become_modules_by_of_op():
    with pytest.raises(TypeError, match=r"becomes one by IRModule\.of_op\(module\)"):
        mirstack.IRModule(_module().op)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_operators_have_a_hash():
    assert ir.structural_hash(ir.Op.get("add")) == ir.structural_hash(ir.Op.get("add"))
    assert ir.structural_hash(ir.Op.get("add")) != ir.structural_hash(ir.Op.get("subtract"))


LATER = """
from mirstack.script import ir as I, tir as T

def make():
    @I.ir_module
    class mod:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            mod.sub(A.data)

        @T.prim_func
        def sub(a: T.handle):
            T.evaluate(0)

    return mod

made = make()
"""


def test_a_script_may_name_what_is_bound_later(tmp_path: Path):
    program = tmp_path / "later.py"
    program.write_text(LATER)
    assert "sub" in runpy.run_path(str(program))["made"]


@pytest.mark.parametrize(("name", "near"), [("complie", "; did you mean 'compile'?"), ("qqqqqq", ""), ("_private", "")])
def test_attributes_that_are_nearly_there(name: str, near: str):
    with pytest.raises(AttributeError) as refused:
        getattr(mirstack, name)
    assert str(refused.value) == f"module 'mirstack' has no attribute '{name}'{near}"


def test_free_variables_read_back():
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    text = relay.astext(x + y)
    assert "free_var %x" in text
    assert ir.structural_equal(relay.parse_expr(text), x + y, True)
    constant = x + relay.const([1.0, 2.0, 3.0, 4.0])
    assert ir.structural_equal(relay.parse_expr(relay.astext(constant)), constant, True)


def test_the_least_int32_and_handles_read_back():
    text = (
        "# from tvm.script import tir as T\n\n@T.prim_func\ndef func():\n    T.evaluate(T.int32(-2147483648))\n"
        '    T.evaluate(T.int64(-2147483648))\n    data_ptr = T.handle("float32")\n'
        "    buf = T.decl_buffer((1,), data=data_ptr)\n    T.evaluate(buf[0])\n"
    )
    from mirstack.parser import parse_mir, print_mir

    assert print_mir(parse_mir(text)) == text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "compile takes the path of a file, or a program, and this is the empty text"),
        ("a\0b.mir", "cannot be read: embedded null byte"),
        ("m" * 9000, "cannot be read: File name too long"),
    ],
)
def test_compile_refuses_a_path(source: str, message: str):
    with pytest.raises(MirError, match=message):
        mirstack.compile(source)


LATE = """@T.prim_func
def f(a: T.Buffer((4,), "float32")):
    T.call_extern("int32", "secret", 3)
"""


@pytest.mark.parametrize("kind", ["file", "text"])
def test_what_cannot_be_compiled_is_shown(kind: str, tmp_path: Path) -> None:
    """The line is shown whatever the program was read from, as long as the module is that which was parsed."""
    file = tmp_path / "late.mir"
    file.write_text(LATE)
    source = str(file) if kind == "file" else mirstack.parse(LATE, str(file))
    with pytest.raises(mirstack.MirError) as caught:
        mirstack.compile(source)
    shown = '    T.call_extern("int32", "secret", 3)\n    ^\n'
    assert f"{file}:3:5: error: the C function 'secret' may not be used here\n{shown}" in str(caught.value)
