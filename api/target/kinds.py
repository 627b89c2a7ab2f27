"""The kinds of targets: attributes with their types and defaults, keys, and the number of the device.

A line of the table is a kind: `Kind(name, device_type, keys, attributes)`. An attribute's default is None where it has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Attribute: TypeAlias = "tuple[type, int | str | bool | None]"
"""The type of a value (`list` is of texts), and its default."""

TEXT: Attribute = (str, None)
NUMBER: Attribute = (int, None)
TRUTH: Attribute = (bool, None)
TEXTS: Attribute = (list, None)


@dataclass(frozen=True)
class TargetKind:
    """A kind of target, such as llvm; equal to one of the same name."""

    name: str
    device_type: int = field(compare=False)
    default_keys: tuple[str, ...] = field(compare=False)
    attributes: Mapping[str, Attribute] = field(compare=False, repr=False)

    @property
    def options(self) -> list[str]:
        """The names of the attributes that a target of this kind takes."""
        return sorted({*self.attributes, *COMMON})

    def __str__(self) -> str:
        return self.name


COMMON: Mapping[str, Attribute] = {
    "device": TEXT,
    "from_device": NUMBER,
    "keys": TEXTS,
    "libs": TEXTS,
    "model": TEXT,
    "tag": TEXT,
    "target_device_type": NUMBER,
}
"""What targets of every kind take."""

_PROCESSOR: Mapping[str, Attribute] = {
    "caches": TEXT,
    "cl-opt": TEXTS,
    "fast-math": TRUTH,
    "fast-math-arcp": TRUTH,
    "fast-math-contract": TRUTH,
    "fast-math-ninf": TRUTH,
    "fast-math-nnan": TRUTH,
    "fast-math-nsz": TRUTH,
    "fast-math-reassoc": TRUTH,
    "jit": TEXT,
    "mabi": TEXT,
    "mattr": TEXTS,
    "mcpu": TEXT,
    "mfloat-abi": TEXT,
    "mtriple": TEXT,
    "num-cores": NUMBER,
    "opt-level": NUMBER,
    "vector-width": NUMBER,
}

_C: Mapping[str, Attribute] = {
    "caches": TEXT,
    "constants-byte-alignment": NUMBER,
    "executor": TEXT,
    "interface-api": TEXT,
    "march": TEXT,
    "mcpu": TEXT,
    "unpacked-api": NUMBER,
    "workspace-byte-alignment": NUMBER,
}


def _gpu(threads: int, warp: int | None = None, **more: Attribute) -> dict[str, Attribute]:
    """Returns the attributes that every kind of GPU has, with the defaults of this one."""
    return {"max_num_threads": (int, threads), "thread_warp_size": (int, warp), **more}


_VULKAN_TRUTHS = {
    "supports_16bit_buffer": None,
    "supports_8bit_buffer": None,
    "supports_cooperative_matrix": None,
    "supports_float16": None,
    "supports_float32": True,
    "supports_float64": None,
    "supports_int16": None,
    "supports_int32": True,
    "supports_int64": None,
    "supports_int8": None,
    "supports_integer_dot_product": None,
    "supports_push_descriptor": None,
    "supports_dedicated_allocation": None,
    "supports_storage_buffer_storage_class": None,
}

_VULKAN_NUMBERS = (
    "driver_version",
    "max_block_size_x",
    "max_block_size_y",
    "max_block_size_z",
    "max_per_stage_descriptor_storage_buffer",
    "max_push_constants_size",
    "max_shared_memory_per_block",
    "max_spirv_version",
    "max_storage_buffer_range",
    "max_threads_per_block",
    "max_uniform_buffer_range",
    "supported_subgroup_operations",
    "vulkan_api_version",
)

_OPEN = ("opencl", "gpu")

KINDS: Mapping[str, TargetKind] = {
    kind.name: kind
    for kind in (
        TargetKind("llvm", 1, ("cpu",), _PROCESSOR),
        TargetKind("c", 1, ("cpu",), _C),
        TargetKind("interp", 1, ("cpu",), {"caches": TEXT, "mcpu": TEXT}),
        TargetKind(
            "cuda",
            2,
            ("cuda", "gpu"),
            _gpu(
                1024,
                32,
                arch=(str, "sm_50"),
                l2_cache_size_bytes=NUMBER,
                max_shared_memory_per_block=NUMBER,
                max_threads_per_block=NUMBER,
                mcpu=TEXT,
                registers_per_block=NUMBER,
            ),
        ),
        TargetKind("nvptx", 2, ("cuda", "gpu"), _gpu(1024, 32, mcpu=(str, "sm_50"), mtriple=TEXT)),
        TargetKind(
            "rocm",
            10,
            ("rocm", "gpu"),
            _gpu(
                256,
                64,
                mattr=TEXTS,
                max_shared_memory_per_block=(int, 65536),
                max_threads_per_block=(int, 256),
                mcpu=(str, "gfx900"),
                mtriple=(str, "amdgcn-amd-amdhsa-hcc"),
            ),
        ),
        TargetKind(
            "opencl",
            4,
            _OPEN,
            _gpu(
                256,
                1,
                max_function_args=(int, 128),
                max_shared_memory_per_block=(int, 16384),
                max_threads_per_block=NUMBER,
                texture_spatial_limit=(int, 16384),
            ),
        ),
        TargetKind(
            "metal",
            8,
            ("metal", "gpu"),
            _gpu(
                256,
                16,
                max_function_args=(int, 31),
                max_shared_memory_per_block=(int, 32768),
                max_threads_per_block=NUMBER,
            ),
        ),
        TargetKind(
            "vulkan",
            7,
            ("vulkan", "gpu"),
            _gpu(
                256,
                1,
                device_name=TEXT,
                device_type=TEXT,
                driver_name=TEXT,
                mattr=TEXTS,
                **{name: (bool, default) for name, default in _VULKAN_TRUTHS.items()},
                **dict.fromkeys(_VULKAN_NUMBERS, NUMBER),
            ),
        ),
        TargetKind("webgpu", 15, ("webgpu", "gpu"), _gpu(256)),
        TargetKind("sdaccel", 6, ("sdaccel", "hls"), {}),
        TargetKind("aocl", 5, ("aocl", "hls"), {}),
        TargetKind("aocl_sw_emu", 5, ("aocl", "hls"), {}),
        TargetKind(
            "hexagon",
            14,
            ("hexagon",),
            {
                "llvm-options": TEXTS,
                "mattr": TEXTS,
                "mcpu": TEXT,
                "mtriple": TEXT,
                "num-cores": NUMBER,
                "vtcm-capacity": NUMBER,
            },
        ),
        TargetKind("stackvm", 1, (), {}),
        TargetKind("ext_dev", 12, (), {}),
        TargetKind("hybrid", 1, (), {}),
        TargetKind("composite", 1, (), {"devices": TEXTS}),
    )
}
"""The kinds by name. `interp` is this project's: its interpreters."""

ALIASES = {"cpu": "llvm"}
"""Other names of kinds."""
