"""`mirstack.target`: texts, dictionaries and tags; attributes; the current target; what is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import mirstack
import pytest
from mirstack import target
from mirstack.api.target import Target

FORMS: list[tuple[str | dict[str, Any], str]] = [
    ("llvm", "llvm -keys=cpu"),
    ("llvm -mcpu=skylake-avx512 -num-cores 4", "llvm -keys=cpu -mcpu=skylake-avx512 -num-cores=4"),
    ({"kind": "llvm", "mattr": ["+avx", "-fma"], "keys": ["x86", "cpu"]}, "llvm -keys=x86,cpu -mattr=+avx,-fma"),
    ("llvm -mtriple=aarch64-linux-gnu -device=arm_cpu", "llvm -keys=arm_cpu,cpu -device=arm_cpu -mtriple=aarch64-linux-gnu"),
    ('{"kind": "c", "mcpu": "cortex-m4"}', "c -keys=arm_cpu,cpu -mcpu=cortex-m4"),
    ("cuda -arch=sm_80", "cuda -keys=cuda,gpu -arch=sm_80 -max_num_threads=1024 -thread_warp_size=32"),
    ("vulkan -supports_int8", "vulkan -keys=vulkan,gpu -max_num_threads=256 -supports_float32=1 -supports_int32=1 -supports_int8=1 -thread_warp_size=1"),
    ("llvm --libs=cblas,mkl", "llvm -keys=cpu -libs=cblas,mkl"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "text"), FORMS)
def test_forms(given: str | Mapping[str, Any], text: str) -> None:
    made = Target(given)
    assert str(made) == repr(made) == text
    for again in (
        Target(text),
        Target(made.export()),
        Target(json.dumps(made.export())),
        Target(made),
        copy.copy(made),
    ):
        assert again == made and hash(again) == hash(made)
    assert made != Target("rocm") and made != text


def test_attributes() -> None:
    made = Target("llvm -mcpu=haswell -num-cores=4 -model=i5 -device=x -libs=a -mattr=+avx -mtriple=x86_64-linux-gnu")
    assert (made.kind.name, made.mcpu, made.num_cores, made.model) == ("llvm", "haswell", 4, "i5")
    assert (made.device_name, made.libs, made.mattr, made.mtriple) == ("x", ["a"], ["+avx"], "x86_64-linux-gnu")
    assert made.attrs["num-cores"] == 4 and made.get_target_device_type() == made.get_kind_attr("device_type") == 1
    plain = Target("llvm")
    assert (plain.mcpu, plain.num_cores, plain.model, plain.device_name, plain.arch) == ("", None, "unknown", "", "")
    gpu = Target("nvidia/nvidia-a100")
    assert (gpu.tag, gpu.arch, gpu.max_num_threads, gpu.thread_warp_size) == ("nvidia/nvidia-a100", "sm_80", 1024, 32)
    assert gpu.max_shared_memory_per_block == 49152 and gpu.max_function_args == gpu.vtcm_capacity == 0
    opencl = Target("opencl -texture_spatial_limit=8 -max_shared_memory_per_block=1024")
    assert (opencl.texture_spatial_limit, opencl.max_function_args) == (8, 128)
    vulkan = Target("vulkan -max_block_size_x=64 -max_block_size_y=32 -supports_integer_dot_product=1")
    assert (vulkan.max_block_size_x, vulkan.max_block_size_y) == (64, 32)
    assert vulkan.supports_integer_dot_product and not vulkan.supports_cooperative_matrix
    with pytest.raises(
        ValueError, match="the target 'llvm' says no thread_warp_size\nnote: give it: -thread_warp_size="
    ):
        plain.thread_warp_size  # noqa: B018


def test_features() -> None:
    arm = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n2 -mattr=-sve").features
    assert arm.is_aarch64 and arm.has_asimd and arm.has_dotprod and not arm.has_sve
    assert Target("c -mcpu=cortex-m7").features.has_dsp and not Target("c -mcpu=cortex-m7").features.has_mve
    assert Target("llvm").features.has_sve is None


def test_hosts() -> None:
    made = Target("cuda", "llvm -mcpu=haswell")
    assert made.host == Target("llvm -mcpu=haswell") and made.without_host().host is None
    assert Target({"kind": "cuda", "host": {"kind": "llvm"}}).host == Target("llvm")
    assert Target(made.export()) == made != made.with_host("llvm")
    board = Target("raspberry-pi/4b-aarch64")
    assert board.host is not None and board.host.num_cores == 4
    with pytest.raises(ValueError, match=r"the target 'cuda .*' has the host 'llvm -keys=cpu -mcpu=haswell' already"):
        Target(made, "c")
    assert Target.canon_target_and_host("cuda", "llvm") == (Target("cuda", "llvm"), Target("llvm"))
    assert Target.canon_target_and_host(None) == (None, None) and Target.canon_target(made) is made
    assert Target.canon_multi_target(["llvm", "c"]) == [Target("llvm"), Target("c")]
    assert Target.canon_multi_target({"cpu": "llvm", "gpu": "cuda"}) == [Target("llvm"), Target("cuda")]
    with pytest.raises(TypeError, match="a target is a text or a dictionary, not 5"):
        Target.canon_multi_target(5)  # type: ignore[arg-type]
    assert Target.canon_multi_target("c") == [Target("c")] and Target.canon_multi_target(None) == []


def test_the_current_target() -> None:
    assert Target.current() is None
    with pytest.raises(ValueError, match="no target is current\nnote: write with Target"):
        Target.current(allow_none=False)
    with pytest.raises(ValueError, match="a target is not given, and none is current"):
        Target.target_or_current(None)
    outer = Target("cuda")
    with outer, Target("llvm") as inner, outer:
        assert Target.current() is outer and Target.target_or_current("c") == Target("c")
        assert Target.target_or_current(None) == outer != inner
    assert Target.current() is None


def test_functions_of_targets() -> None:
    assert str(target.create("llvm")) == "llvm -keys=cpu" and {"llvm", "cuda", "hexagon"} <= set(Target.list_kinds())
    assert target.cuda(arch="sm_75", options="-max_num_threads=512").max_num_threads == 512
    assert target.arm_cpu("rasp4b64").mtriple == "aarch64-linux-gnu" and target.arm_cpu().model == "unknown"
    assert target.intel_graphics().thread_warp_size == 16 and target.intel_graphics().device_name == "intel_graphics"
    assert [f().kind.name for f in (target.mali, target.bifrost, target.adreno, target.rocm)] == ["opencl"] * 3 + [
        "rocm"
    ]
    assert target.hexagon("v68").vtcm_capacity == 4194304 and target.riscv_cpu().mcpu == "sifive-u54"
    assert target.stm32("stm32F7xx").mcpu == "cortex-m7" and target.stm32().mcpu == ""
    assert [str(Target(tag)) for tag in target.list_tags()] and "aws/cpu/c5.large" in target.list_tags()
    assert Target.from_device("cpu") == Target("llvm")
    with pytest.raises(ValueError, match=r"there is no device cuda\(0\) here"):
        Target.from_device(mirstack.cuda())


REFUSED: list[tuple[Any, str]] = [
    ("", "the text of a target is empty"),
    ("lvm", "there is no target 'lvm'; did you mean 'llvm'\\?\nnote: there are llvm, c, interp, cuda"),
    ({"mcpu": "x"}, "there is no target 'None'"),
    ("llvm -mcup=x", "the target 'llvm' has no option '-mcup'; did you mean '-?mcpu'\\?\nnote: it takes -caches"),
    ("llvm -mcpu=a -mcpu=b", "the target 'llvm' is given '-mcpu' twice"),
    ("llvm x", "'x' is not an option of a target\nnote: an option is -name=value"),
    ('llvm "', "'llvm \"' is not a target: No closing quotation"),
    ("{", "the target is not JSON"),
    ('{"a":' * 100_000, "the target is not JSON"),
    ("nvidia/nvidia-a101", "there is no tag 'nvidia/nvidia-a101'; did you mean 'nvidia/"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_not_a_target(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Target(given)
    assert isinstance(caught.value, mirstack.MirError)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "a target is a text or a dictionary, not 3"),
        ("llvm -num-cores=x", "the option '-num-cores' of the target 'llvm' is an integer, not 'x'"),
        ({"kind": "llvm", "mattr": [1]}, r"the option '-mattr' of the target 'llvm' is texts, not \[1\]"),
        ({"kind": "llvm", "mcpu": 1}, "the option '-mcpu' of the target 'llvm' is a text, not 1"),
        (
            "vulkan -supports_int8=maybe",
            "the option '-supports_int8' of the target 'vulkan' is true or false, not 'maybe'",
        ),
    ],
)
def test_values_of_another_type(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Target(given)
