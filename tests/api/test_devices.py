"""Devices by names and numbers, and arrays on them."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import nd


def test_names_and_numbers() -> None:
    assert [d.device_type for d in (mirstack.cpu(), mirstack.cuda(), mirstack.opencl(), mirstack.vulkan())] == [
        1,
        2,
        4,
        7,
    ]
    assert [d.device_type for d in (mirstack.metal(), mirstack.rocm(), mirstack.hexagon(), nd.webgpu())] == [
        8,
        10,
        14,
        15,
    ]
    assert [d.device_type for d in (nd.vpi(), nd.ext_dev(), nd.gpu(), nd.cl())] == [9, 12, 2, 4]
    for given in ("llvm", "cpu", "c", "llvm -mcpu=haswell", 1, "cpu:0"):
        assert mirstack.device(given) == mirstack.cpu(0)
    second = mirstack.device("cuda", 1)
    assert str(second) == repr(second) == "cuda(1)" and second.device_id == 1 and second == mirstack.device("cuda:1")
    assert hash(second) == hash(mirstack.cuda(1)) and second != mirstack.cuda() and second != "cuda(1)"


def test_what_a_device_knows() -> None:
    assert mirstack.cpu().exist and mirstack.cpu(1).exist and not mirstack.cuda().exist
    assert (mirstack.cpu().multi_processor_count or 0) >= 1 and mirstack.cuda().multi_processor_count is None
    assert mirstack.cuda().warp_size is None and mirstack.cuda().compute_version is None
    mirstack.cpu().sync()


def test_no_device() -> None:
    with pytest.raises(ValueError, match="there is no device 'abacus'; there are cpu, cuda"):
        mirstack.device("abacus")
    with pytest.raises(ValueError, match="no kind of device has the number 3; there are 1, 2, 4"):
        mirstack.device(3)
    with pytest.raises(ValueError, match="device_id is an integer from 0 on, not -1"):
        mirstack.cpu(-1)
    with pytest.raises(TypeError, match="device_type is the number or the name of a kind of device"):
        mirstack.device(None)  # type: ignore[arg-type]
    for make in (lambda: nd.array([1.0], mirstack.cuda()), lambda: nd.empty((2,), device=mirstack.cuda())):
        with pytest.raises(ValueError, match=r"there is no device cuda\(0\) here; programs run on cpu\(\)"):
            make()
    with pytest.raises(TypeError, match=r"device is a device, such as mirstack\.cpu\(0\), not 3"):
        nd.array([1.0], 3)  # type: ignore[arg-type]


def test_arrays_share_memory() -> None:
    data = np.arange(6, dtype="float32").reshape(2, 3)
    shared = nd.from_numpy(data)
    shared[0] = [7, 8, 9]
    assert data[0].tolist() == [7, 8, 9]
    seen = nd.from_dlpack(shared)
    data[1] = 0
    assert seen.numpy().tolist() == [[7, 8, 9], [0, 0, 0]]
    assert np.from_dlpack(shared).tolist() == data.tolist() and shared.same_as(shared) and not shared.same_as(seen)
    assert shared.copyto(mirstack.cpu(1)).numpy().tolist() == data.tolist()
    with pytest.raises(TypeError, match="from_numpy takes a numpy array, not list"):
        nd.from_numpy([1])
    with pytest.raises(TypeError, match="from_dlpack takes a tensor with DLPack, not int"):
        nd.from_dlpack(1)

    class Far:
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("the memory is far away")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    with pytest.raises(ValueError, match="this Far cannot be read through DLPack: the memory is far away"):
        nd.from_dlpack(Far())
