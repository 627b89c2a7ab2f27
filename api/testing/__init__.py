"""`mirstack.testing`: what tests of programs need, by the names of `tvm.testing`.

    @mirstack.testing.parametrize_targets("llvm", "cuda")
    def test_add(target, dev): …

    def test_sizes(size): …          with size = mirstack.testing.parameter(1, 16)

Tests that take `target` and `dev` without naming targets, and groups of `parameters`, need the plugin:
`pytest_plugins = ["mirstack.api.testing.plugin"]` in conftest.py. pytest is imported where it is used.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...support.public_names import public_names
from ..device import Device, device
from ..nd import NDArray
from ..no_attribute import no_attribute
from ..target.target import Target, native_options

if TYPE_CHECKING:
    from pytest import MarkDecorator

    from ...dialects.tir.node import ExprLike
    from .compare import CompareBeforeAfter as CompareBeforeAfter

T = TypeVar("T")

_GROUP = "mirstack_parameters"
"""The attribute of a fixture of `parameters`: the names of the module's fixtures of one group are found by it."""


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Raises AssertionError unless two arrays have one shape and elements that are close."""
    first, second = _numpy(actual), _numpy(desired)
    np.testing.assert_allclose(first.shape, second.shape)
    np.testing.assert_allclose(first, second, rtol=rtol, atol=atol, verbose=True)


def _numpy(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    return value.storage if isinstance(value, NDArray) else np.asanyarray(value)


def assert_prim_expr_equal(lhs: ExprLike, rhs: ExprLike) -> None:
    """Raises AssertionError unless two expressions are proven to be equal."""
    from ..arith.analyzer import Analyzer

    if not Analyzer().can_prove_equal(lhs, rhs):
        raise AssertionError(f"{lhs} and {rhs} are not proven to be equal")


def __getattr__(name: str) -> Any:
    if name == "CompareBeforeAfter":
        # What is compared needs the scripts' reader.
        from .compare import CompareBeforeAfter

        return CompareBeforeAfter
    raise no_attribute("testing", name, __all__)


def device_enabled(target: str | Target) -> bool:
    """Returns whether programs for a target are compiled and run here."""
    try:
        native_options(target)
    except ValueError:
        return False
    return True


def enabled_targets() -> list[tuple[str, Device]]:
    """Returns the targets that programs are compiled for here by default, each with its device."""
    return [("llvm", device("cpu"))]


def uses_gpu(*functions: Callable[..., Any]) -> Any:
    """Returns a test as it is; without a test the marks for `pytest.param`, none. A mark of TVM's."""
    return functions[0] if functions else list[Any]()


def _requires(target: str, reason: str) -> Callable[..., Any]:
    def mark(*functions: Callable[..., Any]) -> Any:
        import pytest

        marks: list[MarkDecorator] = [pytest.mark.skipif(not device_enabled(target), reason=reason)]
        if not functions:
            return marks
        function = functions[0]
        for each in marks:
            function = each(function)
        return function

    mark.__doc__ = f"Marks a test that is skipped unless programs for {target} are compiled and run here."
    return mark


requires_llvm = _requires("llvm", "there is no code for llvm")
requires_x86 = _requires("llvm -mtriple=x86_64-linux-gnu", "this is not an x86-64 processor")
requires_aarch64 = _requires("llvm -mtriple=aarch64-linux-gnu", "this is not an AArch64 processor")
requires_gpu = requires_cuda = _requires("cuda", "there is no code for GPUs")
requires_opencl = _requires("opencl", "there is no code for opencl")
requires_rocm = _requires("rocm", "there is no code for rocm")
requires_metal = _requires("metal", "there is no code for metal")
requires_vulkan = _requires("vulkan", "there is no code for vulkan")
requires_hexagon = _requires("hexagon", "there is no code for hexagon")


def requires_package(*packages: str) -> MarkDecorator:
    """Returns a mark that skips a test unless these packages can be imported."""
    from importlib.util import find_spec

    import pytest

    missing = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} cannot be imported")


def slow(function: Callable[..., T]) -> Callable[..., T]:
    """Marks a test that takes long, by pytest's mark `slow`."""
    import pytest

    return pytest.mark.slow(function)


def parametrize_targets(*targets: Any) -> Any:
    """Returns a decorator that runs a test with each of these targets, as `target` and `dev`.

    Targets that there is no code for are skipped.
    Used as a decorator itself it runs the test with the targets that are enabled.
    """
    import pytest

    def parametrize(names: Sequence[str | Target]) -> MarkDecorator:
        return pytest.mark.parametrize(
            ("target", "dev"),
            [
                pytest.param(
                    each,
                    device(Target(each).kind.name),
                    marks=[] if device_enabled(each) else [pytest.mark.skip(reason=f"there is no code for {each}")],
                    id=str(each),
                )
                for each in names
            ],
        )

    if len(targets) == 1 and callable(targets[0]):
        return parametrize([name for name, _ in enabled_targets()])(targets[0])
    return parametrize(targets)


def parameter(*values: Any, ids: Sequence[str] | None = None, by_dict: dict[str, Any] | None = None) -> Any:
    """Returns a fixture that is each of the values; those of `by_dict` have its keys as names.

    Raises TypeError for values given in both ways.
    """
    import pytest

    if by_dict:
        if values or ids:
            raise TypeError("parameter takes values, or by_dict, not both")
        ids, values = list(by_dict), tuple(by_dict.values())

    @pytest.fixture(params=values, ids=ids)
    def fixture(*_owner: object, request: pytest.FixtureRequest) -> Any:
        # In a class it is called with the test's object first.
        return request.param

    return fixture


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Returns a fixture for each place of the tuples; a test has the values of one tuple.

    The plugin runs such tests. Raises TypeError for tuples of different lengths.
    """
    import pytest

    if len({len(values) for values in value_sets}) > 1:
        raise TypeError("the tuples of parameters have different lengths")
    group = object()
    fixtures: list[Any] = []
    for values in zip(*value_sets, strict=True):

        @pytest.fixture
        def fixture(*_owner: object, request: pytest.FixtureRequest) -> Any:
            return request.param

        setattr(fixture, _GROUP, (group, values, ids))
        fixtures.append(fixture)
    return fixtures


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """Returns pytest's fixture of a function; one whose value is cached is made once for a module."""
    import pytest

    make = pytest.fixture(scope="module" if cache_return_value else "function")
    return make if func is None else make(func)


def main() -> None:
    """Runs the tests of the file that calls it, and ends the process with pytest's status."""
    import pytest

    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    sys.exit(pytest.main([*([] if caller is None else [caller.f_code.co_filename]), *sys.argv[1:]]))


__all__ = [
    "CompareBeforeAfter", "assert_allclose", "assert_prim_expr_equal", "device_enabled", "enabled_targets", "fixture", "main", "parameter", "parameters", "parametrize_targets", "requires_aarch64",
    "requires_cuda", "requires_gpu", "requires_hexagon", "requires_llvm", "requires_metal", "requires_opencl", "requires_package", "requires_rocm",
    "requires_vulkan", "requires_x86", "slow", "uses_gpu",
]  # fmt: skip


__dir__ = public_names(__name__)
