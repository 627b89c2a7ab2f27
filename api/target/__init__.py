"""`mirstack.target`: what programs are compiled for, by the names of `tvm.target`.

    target.cuda(arch="sm_80")      target.arm_cpu("rasp4b")      with target.Target("llvm"): …

Only targets of this machine's processor can be compiled for; the others describe, and may be asked for their attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...support.public_names import public_names
from ..no_attribute import no_attribute
from .tags import tags
from .target import Target, TargetFeatures, TargetKind, TargetLike

__all__ = [
    "Target", "TargetFeatures", "TargetKind", "adreno", "arm_cpu", "bifrost", "create", "cuda", "hexagon", "intel_graphics", "list_tags", "mali", "riscv_cpu",
    "rocm", "stm32",
]  # fmt: skip

Options = str | Sequence[str] | None


def create(target: TargetLike) -> Target:
    """Returns the target of a text, a dictionary or a tag."""
    return Target(target)


def list_tags() -> list[str]:
    """Returns the tags, short names of common machines."""
    return sorted(tags())


def _with(kind: str, defaults: Sequence[str], options: Options) -> Target:
    given = options.split() if isinstance(options, str) else list(options or ())
    return Target(" ".join([kind, *defaults, *given]))


def cuda(model: str = "unknown", arch: str | None = None, options: Options = None) -> Target:
    """The target of NVIDIA's GPUs."""
    return _with("cuda", [f"-model={model}", *([] if arch is None else [f"-arch={arch}"])], options)


def rocm(model: str = "unknown", options: Options = None) -> Target:
    """The target of AMD's GPUs."""
    return _with("rocm", [f"-model={model}"], options)


def mali(model: str = "unknown", options: Options = None) -> Target:
    """The target of Arm's GPUs called Mali."""
    return _with("opencl", ["-device=mali", f"-model={model}"], options)


def bifrost(model: str = "unknown", options: Options = None) -> Target:
    """The target of Arm's GPUs of the Bifrost family."""
    return _with("opencl", ["-device=bifrost", f"-model={model}"], options)


def adreno(model: str = "unknown", options: Options = None) -> Target:
    """The target of Qualcomm's GPUs."""
    return _with("opencl", ["-device=adreno", f"-model={model}"], options)


def intel_graphics(model: str = "unknown", options: Options = None) -> Target:
    """The target of Intel's integrated GPUs."""
    return _with("opencl", ["-device=intel_graphics", f"-model={model}", "-thread_warp_size=16"], options)


_ARM64 = "aarch64-linux-gnu"
_ARM_MODELS: dict[str, tuple[str, str, str]] = {
    "pixel2": ("snapdragon835", "arm64-linux-android", "+neon"),
    "mate10": ("kirin970", "arm64-linux-android", "+neon"),
    "mate10pro": ("kirin970", "arm64-linux-android", "+neon"),
    "p20": ("kirin970", "arm64-linux-android", "+neon"),
    "p20pro": ("kirin970", "arm64-linux-android", "+neon"),
    "rasp3b": ("bcm2837", "armv7l-linux-gnueabihf", "+neon"),
    "rasp4b": ("bcm2711", "armv8l-linux-gnueabihf", "+neon"),
    "rasp4b64": ("bcm2711", _ARM64, "+neon"),
    "rk3399": ("rk3399", _ARM64, "+neon"),
    "pynq": ("pynq", "armv7a-linux-eabi", "+vfp3,-d32,+fp16"),
    "ultra96": ("ultra96", _ARM64, "+neon"),
}
_ARM_CPUS = {"rasp4b": "cortex-a72", "rasp4b64": "cortex-a72"}


def arm_cpu(model: str = "unknown", options: Options = None) -> Target:
    """The target of Arm's processors; `model` is a board or a phone, such as rasp4b or pixel2, or unknown."""
    chip, triple, mattr = _ARM_MODELS.get(model, (model, "", ""))
    defaults = ["-keys=arm_cpu,cpu", "-device=arm_cpu", f"-model={chip}"]
    defaults += [f"-mtriple={triple}", f"-mattr={mattr}"] if triple else []
    defaults += [f"-mcpu={_ARM_CPUS[model]}"] if model in _ARM_CPUS else []
    return _with("llvm", defaults, options)


def riscv_cpu(model: str = "sifive-u54", options: Options = None) -> Target:
    """The target of processors of RISC-V; `model` is SiFive's name of one."""
    bits, march = ("32", "rv32imac") if "-e" in model else ("64", "rv64gc")
    defaults = ["-keys=arm_cpu,cpu", "-device=arm_cpu", f"-model={model}", f"-mtriple=riscv{bits}-unknown-linux-gnu"]
    defaults += [f"-mcpu={model}", f"-mabi={'ilp32' if march == 'rv32imac' else 'lp64d'}"]
    return _with("llvm", defaults, options)


def stm32(series: str = "unknown", options: Options = None) -> Target:
    """The target of ST's microcontrollers; `series` is such as stm32F4xx."""
    cores = {"F0": "m0", "F1": "m3", "F2": "m3", "F3": "m4", "F4": "m4", "F7": "m7", "H7": "m7", "L4": "m4", "L5": "m33", "U5": "m33"}  # fmt: skip
    core = cores.get(series.removeprefix("stm32")[:2])
    mcpu = [] if core is None else [f"-mcpu=cortex-{core}"]
    return _with("c", ["-keys=arm_cpu,cpu", "-device=arm_cpu", f"-model={series}", *mcpu], options)


def hexagon(cpu_ver: str = "v66", num_cores: int = 4, vtcm_capacity: int = 0, options: Options = None) -> Target:
    """The target of Qualcomm's signal processors."""
    capacity = vtcm_capacity or {"v65": 262144, "v66": 262144, "v68": 4194304, "v69": 8388608, "v73": 8388608}.get(
        cpu_ver, 0
    )
    defaults = [f"-mcpu=hexagon{cpu_ver}", "-mtriple=hexagon", f"-num-cores={num_cores}", f"-vtcm-capacity={capacity}"]
    return _with("hexagon", defaults, options)


if not TYPE_CHECKING:
    # Checkers of types report such a name themselves.
    def __getattr__(name: str) -> object:
        raise no_attribute("target", name, globals())


__dir__ = public_names(__name__)
