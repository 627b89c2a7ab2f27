"""`mirstack.testing` and `relay.testing`: marks, fixtures, the plugin, gradients by differences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack import relay, testing, transform

x, y = relay.var("x", shape=(2, 3), dtype="float64"), relay.var("y", shape=(2, 3), dtype="float64")

TESTS = """
import mirstack
from mirstack import testing

pytest_plugins = ["mirstack.api.testing.plugin"]
size = testing.parameter(1, 2)
named = testing.parameter(by_dict={"small": 3, "large": 4})
a, b = testing.parameters((1, 10), (2, 20))

@testing.fixture
def doubled(size): return size * 2

def test_fixtures(doubled, size, named): assert doubled == 2 * size and named in (3, 4)
def test_groups(a, b): assert b == 10 * a
def test_one_of_a_group(b): assert b in (10, 20)
def test_targets(target, dev): assert target == "llvm" and dev == mirstack.cpu()
@testing.parametrize_targets("llvm", "c", "cuda")
def test_named_targets(target, dev): assert dev == mirstack.cpu()
@testing.parametrize_targets
def test_enabled(target, dev): assert dev == mirstack.cpu()
@testing.requires_gpu
def test_gpu(): assert False
@testing.requires_llvm
@testing.uses_gpu
@testing.slow
def test_marked(): pass
@testing.requires_package("numpy", "no_such_package")
def test_package(): assert False

if __name__ == "__main__":
    testing.main()
"""


def test_fixtures_and_marks(tmp_path: Path) -> None:
    file = tmp_path / "test_of_a_user.py"
    file.write_text(TESTS)
    command = [sys.executable, str(file), "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "13 passed, 3 skipped" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_wrong_parameters() -> None:
    with pytest.raises(TypeError, match="parameter takes values, or by_dict, not both"):
        testing.parameter(1, by_dict={"a": 1})
    with pytest.raises(TypeError, match="the tuples of parameters have different lengths"):
        testing.parameters((1, 2), (1,))


def test_arrays_are_compared() -> None:
    testing.assert_allclose(mirstack.nd.array([1.0, 2.0]), [1.0, 2.0 + 1e-9])
    for other in ([1.0, 2.1], [1.0], [[1.0, 2.0]]):
        with pytest.raises(AssertionError):
            testing.assert_allclose(np.array([1.0, 2.0]), other)


def test_targets_that_are_enabled() -> None:
    assert testing.enabled_targets() == [("llvm", mirstack.cpu())]
    assert testing.device_enabled("llvm") and not testing.device_enabled("cuda") and not testing.device_enabled("?")


def test_types_and_passes_of_expressions() -> None:
    assert relay.testing.run_infer_type(x + y).checked_type == relay.TensorType((2, 3), "float64")
    function = relay.testing.run_infer_type(relay.Function([x], x * x))
    assert isinstance(function, relay.Function) and function.checked_type is not None
    folded = relay.testing.run_opt_pass(
        relay.const(1) + relay.const(2), [transform.InferType(), transform.FoldConstant()]
    )
    assert isinstance(folded, relay.Constant) and folded.data.numpy() == 3
    assert relay.testing.rand("float32", 2, 3).shape == (2, 3)


def test_workloads() -> None:
    data, weight, bias = (
        relay.var("data", shape=(1, 8)),
        relay.var("fc_weight", shape=(4, 8)),
        relay.var("fc_bias", shape=(4,)),
    )
    gamma = relay.var("bn_gamma", shape=(4,))
    net = relay.Function([data, weight, bias, gamma], relay.nn.bias_add(relay.nn.dense(data, weight), bias) * gamma)
    module, params = relay.testing.create_workload(net)
    assert list(params) == ["fc_weight", "fc_bias", "bn_gamma"] and "main" in module
    assert (params["fc_bias"].numpy() == 0).all() and (params["bn_gamma"].numpy() == 1).all()
    assert 0 < np.abs(params["fc_weight"].numpy()).max() <= np.sqrt(3 / 6)
    again = relay.testing.create_workload(net)[1]
    assert (again["fc_weight"].numpy() == params["fc_weight"].numpy()).all()


def test_gradients_by_differences() -> None:
    relay.testing.check_grad(relay.Function([x, y], relay.sin(x) * y), scale=1.0, eps=1e-4)
    relay.testing.check_grad(relay.Function([x], relay.exp(x)), [np.ones((2, 3))], executor_kind="vm", eps=1e-4)
    # A step of the function between the two points, which the gradient does not see.
    steps = relay.Function([x], relay.floor(x))
    with pytest.raises(AssertionError):
        relay.testing.check_grad(steps, [np.ones((2, 3))])
