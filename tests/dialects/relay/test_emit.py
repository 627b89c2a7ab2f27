"""Operators created in Python: their place, location, types and attributes; and what the dialect imports."""

import subprocess
import sys

import pytest
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.emit import Emitter, dtype_of, shape_of
from mirstack.dialects.relay.infer import infer_types
from mirstack.dialects.relay.operator import OperatorOp, define, get_operator, register
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.locations import fuse_locations
from xdsl.dialects.builtin import f32

PROGRAM = """def @main(%x: Tensor[(2, 3), float32]) {
  let %a = sum(%x, axis=[1], keepdims=True);
  let %b = exp(%a);
  %b
}"""


def ops_of_main(text: str = PROGRAM) -> tuple[ir.FuncOp, list[OperatorOp]]:
    module = parse_mir(text)
    infer_types(module)
    (main,) = module.ops
    assert isinstance(main, ir.FuncOp)
    return main, [op for op in main.body.block.ops if isinstance(op, OperatorOp)]


def test_operators_are_typed_and_stand_before_the_op() -> None:
    main, (total, exp) = ops_of_main()
    make = Emitter(exp)
    value = make.call("multiply", exp.args[0], make.constant(2, "float32"))
    assert shape_of(value) == (2, 1) and dtype_of(value) == f32
    assert value.owner is exp.prev_op
    wide = make.like(total, [main.params[0]], keepdims=False)
    assert shape_of(wide) == (2,)
    assert isinstance(wide.owner, OperatorOp) and wide.owner.given()["axis"] == (1,)
    pair = make.let("pair", make.tuple([value, wide]))
    exp.operands = [make.field(pair, 0)]
    assert "exp(" in print_mir(main.parent_op()).split("multiply(")[1]  # type: ignore[arg-type]


def test_the_location_is_that_of_all_sources() -> None:
    _, (total, exp) = ops_of_main()
    assert Emitter(exp).location == exp.location
    assert Emitter(exp, [total]).location == total.location
    make = Emitter(exp, [total, exp])
    assert make.location == fuse_locations([total.location, exp.location])
    make.locate([total])
    assert make.call("log", exp.args[0]).owner.location == total.location  # type: ignore[union-attr]


def test_an_unknown_operator_is_an_error_at_the_location() -> None:
    _, (_, exp) = ops_of_main()
    with pytest.raises(MirError, match="there is no operator dence"):
        Emitter(exp).call("dence", exp.args[0])


def test_an_operator_is_defined_once() -> None:
    exp = get_operator("exp")
    assert exp is not None
    with pytest.raises(ValueError, match="operator exp is defined twice"):
        register(exp)
    with pytest.raises(ValueError, match="operator exp is defined twice"):
        define("exp", ("data",), exp.relation, exp.pattern, exp.numpy)


def test_the_dialect_imports_neither_gradients_nor_layout_rules_nor_inference() -> None:
    code = (
        "import sys; from mirstack.dialects.relay import get_operator, operator_class; operator_class(get_operator('exp'));"
        "print([name for name in sys.modules if name.endswith(('gradients', 'layout_rules', 'relay.verify', '.infer'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
