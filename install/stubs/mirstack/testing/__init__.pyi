"""`mirstack.testing`: what tests of programs need, by the names of `tvm.testing`.

    @mirstack.testing.parametrize_targets("llvm", "cuda")
    def test_add(target, dev): …

    def test_sizes(size): …          with size = mirstack.testing.parameter(1, 16)

Tests that take `target` and `dev` without naming targets, and groups of `parameters`, need the plugin:
`pytest_plugins = ["mirstack.api.testing.plugin"]` in conftest.py. pytest is imported where it is used.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.testing import assert_allclose as assert_allclose
from mirstack.api.testing import assert_prim_expr_equal as assert_prim_expr_equal
from mirstack.api.testing import device_enabled as device_enabled
from mirstack.api.testing import enabled_targets as enabled_targets
from mirstack.api.testing import fixture as fixture
from mirstack.api.testing import main as main
from mirstack.api.testing import parameter as parameter
from mirstack.api.testing import parameters as parameters
from mirstack.api.testing import parametrize_targets as parametrize_targets
from mirstack.api.testing import requires_aarch64 as requires_aarch64
from mirstack.api.testing import requires_cuda as requires_cuda
from mirstack.api.testing import requires_gpu as requires_gpu
from mirstack.api.testing import requires_hexagon as requires_hexagon
from mirstack.api.testing import requires_llvm as requires_llvm
from mirstack.api.testing import requires_metal as requires_metal
from mirstack.api.testing import requires_opencl as requires_opencl
from mirstack.api.testing import requires_package as requires_package
from mirstack.api.testing import requires_rocm as requires_rocm
from mirstack.api.testing import requires_vulkan as requires_vulkan
from mirstack.api.testing import requires_x86 as requires_x86
from mirstack.api.testing import slow as slow
from mirstack.api.testing import uses_gpu as uses_gpu
from mirstack.api.testing.compare import CompareBeforeAfter as CompareBeforeAfter
