"""Every operator of the table, by sampled uses: type relation, numpy meaning and TE compute agree with a reference.

The samples and the references stand in `fuzz/operators/cases`, registered by operator name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mirstack.dialects.array import numpy_dtype
from mirstack.dialects.relay.interpreter import fits
from mirstack.dialects.relay.operator import Operator, all_operators
from mirstack.dialects.relay.operators import TOPICS
from mirstack.dialects.relay.operators.common import relations
from mirstack.dialects.te import builder as te
from mirstack.dialects.te.interpreter import interpret_te_func
from mirstack.fuzz.operators.relation import infer, type_of
from mirstack.fuzz.operators.sampling import CASES, OperatorCase, flat, is_simple, load_cases, simple_uses
from mirstack.support.diagnostics import MirError
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, TensorType, TupleType

load_cases()

NAMES = sorted(all_operators())
SETTINGS = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    phases=(Phase.generate, Phase.shrink),
)


def test_every_operator_has_a_case() -> None:
    missing = sorted(set(NAMES) - set(CASES))
    assert not missing, f"write samples and a reference in a module of fuzz/operators/cases for {', '.join(missing)}"
    assert sorted(set(CASES) - set(NAMES)) == []


@pytest.mark.parametrize("name", ["exp", "add", "less", "clip", "nn.dense", "sum"])
def test_simple_operators_need_no_case(name: str) -> None:
    """What `load_cases` would derive for an operator that has no case, where it can."""
    operator = all_operators()[name]
    assert is_simple(operator) == (name in ("exp", "add", "less"))
    if is_simple(operator):
        run(operator, [OperatorCase(simple_uses(operator), CASES[name][0].reference if name != "exp" else None)])


def test_every_topic_is_listed() -> None:
    folder = Path(relations.__file__).parents[1]
    topics = {f: f"{f.parent.name}.{f.stem}" for f in folder.glob("*/*.py")}
    registering = {name for f, name in topics.items() if "define(" in f.read_text() or name in TOPICS}
    assert registering == set(TOPICS) and len(set(TOPICS)) == len(TOPICS)


def assert_close(got: Any, wanted: Any, case: OperatorCase, what: str) -> None:
    got, wanted = flat(got), flat(wanted)
    assert len(got) == len(wanted), what
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape, f"{what}: shape {a.shape} instead of {b.shape}"
        wide = numpy_dtype("float64") if a.dtype.kind not in "iub" else a.dtype
        rtol, atol = case.tolerance(a.dtype.name)
        np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol, err_msg=what)


@pytest.mark.parametrize("name", NAMES)
def test_operator(name: str) -> None:
    cases = CASES.get(name, [])
    assert cases, f"{name} has no case"
    run(all_operators()[name], cases)


def run(operator: Operator, cases: list[OperatorCase]) -> None:
    """Draws uses of an operator and checks them."""

    @SETTINGS
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(st.sampled_from(cases)) if len(cases) > 1 else cases[0]
        attrs, arguments = data.draw(case.samples)
        with np.errstate(all="ignore"):
            check_use(operator, case, attrs, list(arguments), data)

    check()


def check_use(operator: Operator, case: OperatorCase, attrs: dict[str, Any], arguments: list[Any], data: Any) -> None:
    types = [type_of(a) for a in arguments]
    filled = operator.attrs(attrs)
    result_type = infer(operator, attrs, types)
    copies = [[np.array(a) for a in flat(x)] for x in arguments]
    result = operator.numpy(filled, *(tuple(a) if isinstance(a, list) else a for a in arguments))
    for before, after in zip(copies, arguments, strict=True):
        for old, new in zip(before, flat(after), strict=True):
            assert old.tobytes() == new.tobytes(), "the meaning wrote to its argument"
    result = tuple(map(np.asarray, result)) if isinstance(result, tuple) else np.asarray(result)
    assert fits(result, result_type), f"{[(a.shape, a.dtype) for a in flat(result)]} is not of type {result_type}"
    if case.reference is not None:
        assert_close(result, case.reference(filled, *arguments), case, "numpy meaning against reference")
    if case.unknown:
        check_unknown_dimensions(operator, attrs, types, result, data)
    if operator.compute is not None:
        # What depends on values has a compute only where the program states its type.
        check_compute(operator, filled, arguments, type_of(result), result, case)


def check_unknown_dimensions(
    operator: Operator, attrs: dict[str, Any], types: list[Any], result: Any, data: Any
) -> None:
    """With some dimensions unknown the relation holds still, and says nothing false."""

    def blurred(type: Any) -> Any:
        if isinstance(type, TupleType):
            return TupleType(ArrayAttr([blurred(t) for t in type.types.data]))
        dims = [DYNAMIC_INDEX if data.draw(st.booleans()) else d for d in type.get_shape()]
        return TensorType(type.element_type, dims)

    try:
        found = infer(operator, attrs, [blurred(t) for t in types])
    except MirError as error:
        # The length of a shape argument is the rank of the result, which every tensor type has.
        assert "must have a known length" in str(error)
        return
    assert fits(result, found), "with unknown dimensions"


def check_compute(
    operator: Operator, attrs: Any, arguments: list[Any], type: Any, result: Any, case: OperatorCase
) -> None:
    arrays = flat(arguments)
    placeholders = [te.placeholder(a.shape, a.dtype.name, f"p{n}") for n, a in enumerate(arrays)]
    assert operator.compute is not None
    outputs = operator.compute(attrs, placeholders, type)
    # An output that is an input, or the same as another, is not a compute of its own.
    outputs = [te.compute(t.shape, lambda *i, t=t: t(*i), name=f"out{n}") for n, t in enumerate(outputs)]
    function = te.func("f", [*placeholders, *outputs])
    named = interpret_te_func(function, {f"p{n}": a for n, a in enumerate(arrays)})
    values = [named[f"out{n}"] for n in range(len(outputs))]
    for value, wanted in zip(values, flat(result), strict=True):
        assert value.dtype == wanted.dtype, f"the TE compute gives {value.dtype}, not {wanted.dtype}"
    assert_close(values, result, case, "TE compute against numpy meaning")
