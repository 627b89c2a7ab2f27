"""`topi.tag`: what kind of operator a compute is, as its `tag` says."""

from ...support.public_names import public_names

__all__ = [
    "BROADCAST", "COMM_REDUCE", "COMM_REDUCE_IDX", "CONV2D_NCHW", "ELEMWISE", "INJECTIVE", "is_broadcast", "is_injective",
]  # fmt: skip

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"
CONV2D_NCHW = "conv2d_nchw"


def is_broadcast(tag: str) -> bool:
    """Returns whether each element depends on one of each input, at the same place or repeated."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """Returns whether each element depends on one of each input."""
    return is_broadcast(tag) or tag.startswith(INJECTIVE)


__dir__ = public_names(__name__)
