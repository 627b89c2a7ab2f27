"""`relay.create_executor`: every kind, what it takes and returns, and what it refuses."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import relay
from mirstack.api.relay.backend.interpreter import ConstructorValue, RefValue
from mirstack.api.relay.executor import GraphExecutor, Interpreter, VMExecutor
from mirstack.api.runtime import ADT

KINDS = ("debug", "interpreter", "graph", "vm", "aot")
x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
ONES = np.ones((2, 3), "float32")

LISTS = """
type List[A] { Cons(A, List[A]), Nil }
def @ones(%n: int32) -> List[float32] { if (equal(%n, 0)) { Nil } else { Cons(1f, @ones(subtract(%n, 1))) } }
def @sum(%l: List[float32]) -> float32 { match (%l) { Cons(%x, %t) => add(%x, @sum(%t)), Nil => 0f } }
def @main(%x: Tensor[(2), float32]) { (%x, (add(%x, 1f),)) }
"""


@pytest.mark.parametrize("kind", KINDS)
def test_functions_and_expressions(kind: Any) -> None:
    executor = relay.create_executor(kind)
    add = executor.evaluate(relay.Function([x, y], x - y))
    for result in (add(ONES, y=ONES * 3), add(ONES, mirstack.nd.array(ONES * 3)), add(y=ONES * 3, x=ONES)):
        assert isinstance(result, mirstack.nd.NDArray) and (result.numpy() == -2).all()
    assert executor.evaluate(relay.const(1.0) + relay.const(2.0)).numpy() == 3
    bound = executor.evaluate(x * y, {x: relay.const(ONES * 2), y: relay.const(ONES * 3)})
    assert (bound.numpy() == 6).all()
    assert repr(executor) == f"Executor({kind}, IRModule())"


@pytest.mark.parametrize("kind", KINDS)
def test_tuples(kind: Any) -> None:
    executor = relay.create_executor(kind, relay.parse(LISTS))
    first, (second,) = result = executor.evaluate()([1.0, 2.0])
    assert first.numpy().tolist() == [1, 2] and second.numpy().tolist() == [2, 3]
    assert type(result) is (tuple if kind in ("graph", "aot") else ADT)
    t = relay.var("t", relay.TupleType([relay.TensorType((2,)), relay.TensorType((2,))]))
    pair = np.array([1, 2], "float32")
    swapped = executor.evaluate(relay.Function([t], relay.TupleGetItem(t, 1)))
    assert swapped((pair, pair * 2)).numpy().tolist() == [2, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_data_types(kind: Any) -> None:
    module = relay.parse(LISTS)
    cons, nil = constructors(module)
    executor = relay.create_executor(kind, module)
    made = executor.evaluate(module.get_global_var("ones"))(3)
    assert made.tag == cons.tag != nil.tag and cons.tag > 0
    assert isinstance(made, ADT if kind == "vm" else ConstructorValue)
    head, tail = made.fields if isinstance(made, ConstructorValue) else made
    assert head.numpy() == 1 and tail.tag == cons.tag
    total = executor.evaluate(module.get_global_var("sum"))
    assert total(made).numpy() == 3
    assert total(cons(relay.const(5.0), nil())).numpy() == 5
    assert executor.evaluate(module.get_global_var("sum")(nil())).numpy() == 0


def constructors(module: mirstack.IRModule) -> tuple[relay.Constructor, relay.Constructor]:
    _, cons, nil = module.get_type("List")
    assert isinstance(cons, relay.Constructor) and isinstance(nil, relay.Constructor)
    return cons, nil


def test_long_lists() -> None:
    module = relay.parse(LISTS)
    executor = relay.create_executor("debug", module)
    made = executor.evaluate(module.get_global_var("ones"))(3000)
    assert repr(made) == "ConstructorValue(Cons, 2 fields)"
    assert executor.evaluate(module.get_global_var("sum"))(made).numpy() == 3000


def test_references() -> None:
    module = relay.parse("def @main(%r: ref(float32)) { let %u = ref_write(%r, 2f); %r }")
    cell = relay.create_executor(mod=module).evaluate()(RefValue(1.0))
    assert (
        isinstance(cell, RefValue)
        and cell.value.numpy() == 2
        and repr(cell) == "RefValue(NDArray(array(2., dtype=float32)))"
    )


def test_arrays_of_other_dtypes() -> None:
    add = relay.Function([x], x + x)
    whole = np.arange(6).reshape(2, 3)
    assert relay.create_executor("graph").evaluate(add)(whole).numpy().tolist() == (whole * 2).tolist()
    assert relay.create_executor("graph").evaluate(add)(ONES.T.reshape(3, 2).T).numpy().tolist() == (ONES * 2).tolist()
    with pytest.raises((TypeError, mirstack.MirError), match="float32"):
        relay.create_executor("vm").evaluate(add)(whole)
    with pytest.raises(mirstack.MirError, match="float32"):
        relay.create_executor("debug").evaluate(add)(whole)
    int32 = relay.var("n", "int32")
    assert relay.create_executor("vm").evaluate(relay.Function([int32], int32 + relay.const(1)))(4).numpy() == 5


def test_parameters_become_constants() -> None:
    module = mirstack.IRModule.from_expr(relay.Function([x, y], x + y))
    executor = relay.create_executor("vm", module, mirstack.cpu(), "llvm", {"y": ONES, "unused": ONES})
    assert (executor.evaluate()(ONES * 2).numpy() == 3).all() and len(executor.mod["main"].params) == 1
    assert len(module["main"].params) == 2
    same = relay.Function([relay.var("a"), relay.var("a")], relay.const(1))
    with pytest.raises(ValueError, match="several parameters are called a"):
        relay.build_module.bind_params_by_name(same, {"a": ONES})


def test_executors_by_class() -> None:
    module = mirstack.IRModule.from_expr(relay.Function([x], x + x))
    for made in (Interpreter(module), GraphExecutor(module, mirstack.cpu()), VMExecutor(module, "cpu", "llvm")):
        assert (made.evaluate()(ONES).numpy() == 2).all()


def test_what_executors_refuse() -> None:
    with pytest.raises(ValueError, match=r"there is no executor 'grap'; did you mean 'graph'\?\nnote: there are debug"):
        relay.create_executor("grap")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="mod is an IRModule, not 3"):
        relay.create_executor(mod=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"there is no device cuda\(0\) here"):
        relay.create_executor(device=mirstack.cuda())
    with pytest.raises(ValueError, match="there is no code for the target 'cuda'"):
        relay.create_executor("graph", target="cuda").evaluate(relay.const(1))
    executor = relay.create_executor()
    with pytest.raises(ValueError, match="the expression has the free variables %x, %y\nnote: give their values"):
        executor.evaluate(x + y)
    with pytest.raises(ValueError, match="the expression has the free variables %y"):
        executor.evaluate(relay.Function([x], x + y))
    with pytest.raises(ValueError, match="the module has no function @main"):
        executor.evaluate()
    function = executor.evaluate(relay.Function([x, y], x + y))
    calls: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((ONES,), {}, "the function needs a value for y"),
        ((ONES, ONES, ONES), {}, r"the function takes 2 arguments \(x, y\), not 3"),
        ((ONES,), {"x": ONES}, "the function is given 'x' twice, in its place and by its name"),
        ((ONES,), {"z": ONES}, "the function has no parameter 'z'; it has x, y"),
        ((ONES, "text"), {}, "str is not a value of Relay\nnote: programs take arrays, numbers, tuples"),
    ]
    for args, named, message in calls:
        with pytest.raises(TypeError, match=message):
            function(*args, **named)
    module = relay.parse(LISTS)
    with pytest.raises(ValueError, match="no constructor of the module has the tag 5"):
        relay.create_executor(mod=module).evaluate(module.get_global_var("sum"))(ADT(5, []))
