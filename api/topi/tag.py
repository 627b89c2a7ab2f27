"""`topi.tag`: what kind of operator a compute is, as its `tag` says."""

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
