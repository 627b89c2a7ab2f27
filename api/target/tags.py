"""Tags: short names of common machines, `Target("nvidia/nvidia-a100")`.

The figures are those that the makers publish.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...support.extensions import loaded
from ...support.target import DESCRIPTION

Config = Mapping[str, object]

_NVIDIA: Mapping[str, str] = {
    "nvidia/nvidia-a100": "sm_80",
    "nvidia/nvidia-a10g": "sm_86",
    "nvidia/nvidia-a30": "sm_80",
    "nvidia/nvidia-a40": "sm_86",
    "nvidia/nvidia-h100": "sm_90a",
    "nvidia/nvidia-t4": "sm_75",
    "nvidia/nvidia-v100": "sm_70",
    "nvidia/tesla-k80": "sm_37",
    "nvidia/tesla-m40": "sm_52",
    "nvidia/tesla-m60": "sm_52",
    "nvidia/tesla-p4": "sm_61",
    "nvidia/tesla-p40": "sm_61",
    "nvidia/tesla-p100": "sm_60",
    "nvidia/quadro-rtx-8000": "sm_75",
    "nvidia/quadro-rtx-6000": "sm_75",
    "nvidia/quadro-rtx-5000": "sm_75",
    "nvidia/quadro-rtx-4000": "sm_75",
    "nvidia/rtx-a6000": "sm_86",
    "nvidia/nvidia-titan-v": "sm_70",
    "nvidia/nvidia-titan-rtx": "sm_75",
    "nvidia/geforce-gtx-1060": "sm_61",
    "nvidia/geforce-gtx-1070": "sm_61",
    "nvidia/geforce-gtx-1080": "sm_61",
    "nvidia/geforce-gtx-1080-ti": "sm_61",
    "nvidia/geforce-rtx-2060": "sm_75",
    "nvidia/geforce-rtx-2070": "sm_75",
    "nvidia/geforce-rtx-2080": "sm_75",
    "nvidia/geforce-rtx-2080-ti": "sm_75",
    "nvidia/geforce-rtx-3060": "sm_86",
    "nvidia/geforce-rtx-3070": "sm_86",
    "nvidia/geforce-rtx-3080": "sm_86",
    "nvidia/geforce-rtx-3090": "sm_86",
    "nvidia/geforce-rtx-4090": "sm_89",
    "nvidia/jetson-nano": "sm_53",
    "nvidia/jetson-tx1": "sm_53",
    "nvidia/jetson-tx2": "sm_62",
    "nvidia/jetson-agx-xavier": "sm_72",
}
"""GPUs by their compute capability."""

_L2 = {
    "nvidia/nvidia-a100": 41943040,
    "nvidia/nvidia-h100": 52428800,
    "nvidia/nvidia-a10g": 6291456,
    "nvidia/geforce-rtx-3090": 6291456,
    "nvidia/geforce-rtx-4090": 75497472,
    "nvidia/geforce-rtx-2080-ti": 5767168,
}
"""Bytes of the second cache, of the GPUs for which it is known."""

_HOSTS: Mapping[str, tuple[str, int, str]] = {
    "nvidia/jetson-agx-xavier": ("carmel", 8, "aarch64-linux-gnu"),
    "nvidia/jetson-nano": ("cortex-a57", 4, "aarch64-linux-gnu"),
    "nvidia/jetson-tx2": ("cortex-a57", 4, "aarch64-linux-gnu"),
}
"""The processors of boards: mcpu, cores, triple."""

_AWS = {
    "c4.large": ("haswell", 1), "c4.xlarge": ("haswell", 2), "c4.2xlarge": ("haswell", 4), "c4.4xlarge": ("haswell", 8), "c4.8xlarge": ("haswell", 18),
    "c5.large": ("skylake-avx512", 1), "c5.xlarge": ("skylake-avx512", 2), "c5.2xlarge": ("skylake-avx512", 4), "c5.4xlarge": ("skylake-avx512", 8), "c5.9xlarge": ("skylake-avx512", 18),
    "c5.12xlarge": ("cascadelake", 24), "c5.18xlarge": ("skylake-avx512", 36), "c5.24xlarge": ("cascadelake", 48),
}  # fmt: skip
"""Machines for rent: the processor and its cores."""

_BOARDS: Mapping[str, Config] = {
    "raspberry-pi/4b-aarch64": {
        "kind": "llvm",
        "mtriple": "aarch64-linux-gnu",
        "mcpu": "cortex-a72",
        "mattr": ["+neon"],
        "num-cores": 4,
        "host": {
            "kind": "llvm",
            "mtriple": "aarch64-linux-gnu",
            "mcpu": "cortex-a72",
            "mattr": ["+neon"],
            "num-cores": 4,
        },
    },
    "apple/m1-gpu": {
        "kind": "metal",
        "max_threads_per_block": 1024,
        "max_shared_memory_per_block": 32768,
        "thread_warp_size": 32,
        "host": {"kind": "llvm", "mtriple": "arm64-apple-macos", "mcpu": "apple-latest"},
    },
}


def tags() -> Mapping[str, Config]:
    """Returns the configuration of each tag."""
    found: dict[str, Config] = dict(_BOARDS)
    # Processors that loaded extensions describe.
    found |= {each.name: {"kind": "llvm", "mcpu": each.name} for each in loaded(DESCRIPTION)}
    for name, arch in _NVIDIA.items():
        config: dict[str, object] = {
            "kind": "cuda",
            "arch": arch,
            "max_shared_memory_per_block": 49152,
            "max_threads_per_block": 1024,
            "thread_warp_size": 32,
            "registers_per_block": 32768 if name in _HOSTS and arch != "sm_72" else 65536,
        }
        if name in _L2:
            config["l2_cache_size_bytes"] = _L2[name]
        if name in _HOSTS:
            mcpu, cores, triple = _HOSTS[name]
            config["host"] = {"kind": "llvm", "mtriple": triple, "mcpu": mcpu, "num-cores": cores}
        found[name] = config
    for name, (mcpu, cores) in _AWS.items():
        found[f"aws/cpu/{name}"] = {"kind": "llvm", "keys": ["x86", "cpu"], "mcpu": mcpu, "num-cores": cores}
    return found
