"""Devices by TVM's names and numbers: `mirstack.device("cuda", 1)`, `mirstack.cpu()`.

Programs run on the processor, `cpu()`, the only device that is there; the others can be named, compared and written in Relay's text.
"""

from __future__ import annotations

from ..support.arguments import check, integer

DEVICE_NAMES = {
    1: "cpu", 2: "cuda", 4: "opencl", 5: "aocl", 6: "sdaccel", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm", 12: "ext_dev", 14: "hexagon",
    15: "webgpu",
}  # fmt: skip
"""The names of the numbers in TVM's and DLPack's files."""

DEVICE_TYPES = {
    **{name: number for number, name in DEVICE_NAMES.items()},
    **dict.fromkeys(("llvm", "stackvm", "c", "test", "hybrid", "composite", "interp"), 1),
    **dict.fromkeys(("gpu", "nvptx"), 2),
    "cl": 4,
    "aocl_sw_emu": 5,
}
"""The numbers of devices by their names, and by kinds of targets."""


class Device:
    """A device: a kind by its number, `device_type`, and which of that kind; equal to another of both."""

    __slots__ = ("device_id", "device_type")

    def __init__(self, device_type: int | str = 1, device_id: int = 0):
        check(device_type, "device_type", "the number or the name of a kind of device, such as 'cpu'", int, str)
        self.device_type: int = _number(device_type) if isinstance(device_type, str) else int(device_type)
        if self.device_type not in DEVICE_NAMES:
            known = ", ".join(map(str, DEVICE_NAMES))
            raise ValueError(f"no kind of device has the number {device_type}; there are {known}")
        self.device_id = integer(device_id, "device_id", 0)

    @staticmethod
    def of(device: Device | str) -> Device:
        """Returns the device of a name, or the device itself. Raises TypeError for anything else."""
        check(device, "device", "a device, such as mirstack.cpu(0)", Device, str)
        return Device(device) if isinstance(device, str) else device

    @property
    def type(self) -> str:
        """The name of the kind."""
        return DEVICE_NAMES[self.device_type]

    @property
    def exist(self) -> bool:
        """Returns whether programs can run on it: every number is a name of the same processors."""
        return self.device_type == 1

    def _none(self) -> None:
        """Only GPUs have these, and there is none."""

    max_threads_per_block = warp_size = max_shared_memory_per_block = compute_version = property(_none)
    device_name = max_clock_rate = max_thread_dimensions = api_version = driver_version = property(_none)
    l2_cache_size_bytes = total_global_memory = available_global_memory = texture_spatial_limit = property(_none)

    @property
    def multi_processor_count(self) -> int | None:
        """The number of processors that this process may use; None for another device."""
        from ..support.target import processors

        return processors() if self.exist else None

    def sync(self, stream: object = None) -> None:
        """Waits for nothing: what runs on the device is done when the call of it returns."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{self.type}({self.device_id})"


def _number(name: str) -> int:
    number = DEVICE_TYPES.get(name.split(" ", 1)[0])
    if number is None:
        raise ValueError(f"there is no device {name!r}; there are {', '.join(DEVICE_TYPES)}")
    return number


def device(dev_type: int | str, dev_id: int = 0) -> Device:
    """Returns the device of a number, a name, or the text of a target; `cuda:1` is cuda(1).

    Raises ValueError for a name that is not a device's.
    """
    if isinstance(dev_type, str) and ":" in dev_type:
        name, _, number = dev_type.partition(":")
        if number.isdecimal():
            return Device(name, int(number))
    return Device(dev_type, dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The processor."""
    return Device(1, dev_id)


def cuda(dev_id: int = 0) -> Device:
    """A GPU of NVIDIA's."""
    return Device(2, dev_id)


gpu = cuda


def cl(dev_id: int = 0) -> Device:
    """A device of OpenCL."""
    return Device(4, dev_id)


opencl = cl


def vulkan(dev_id: int = 0) -> Device:
    """A device of Vulkan."""
    return Device(7, dev_id)


def metal(dev_id: int = 0) -> Device:
    """A device of Metal."""
    return Device(8, dev_id)


def vpi(dev_id: int = 0) -> Device:
    """A device of the simulator VPI."""
    return Device(9, dev_id)


def rocm(dev_id: int = 0) -> Device:
    """A GPU of AMD's."""
    return Device(10, dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """A device of another maker."""
    return Device(12, dev_id)


def hexagon(dev_id: int = 0) -> Device:
    """A signal processor of Qualcomm's."""
    return Device(14, dev_id)


def webgpu(dev_id: int = 0) -> Device:
    """A device of WebGPU."""
    return Device(15, dev_id)


def require_here(given: Device | str | None) -> Device:
    """Returns the device, the processor for None. Raises ValueError for one that is not there."""
    found = Device() if given is None else Device.of(given)
    if not found.exist:
        raise ValueError(f"there is no device {found} here; programs run on cpu()")
    return found


__all__ = [
    "DEVICE_NAMES", "DEVICE_TYPES", "Device", "cl", "cpu", "cuda", "device", "ext_dev", "gpu", "hexagon", "metal", "opencl", "require_here", "rocm", "vpi",
    "vulkan", "webgpu",
]  # fmt: skip
