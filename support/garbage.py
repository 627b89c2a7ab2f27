"""Python's cycle collector, held back while much is built at once."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """While inside, the cycle collector does not run: IR is one great cycle, and looking at it again and again, as it
    grows, takes half of the time of building it. Nested uses and uses by several threads are fine."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        _set_aside()
        gc.enable()


_collections = -1
"""Full collections of this process when objects were last set aside."""


def _set_aside() -> None:
    """Has the collector take all objects for old ones, without looking at them: else the next allocation would have it look at
    everything that was built, which takes as long as many a pass. It does so at the next full collection, and until there was one
    nothing is set aside again, so that at most one program waits to be given back."""
    global _collections
    full: int = gc.get_stats()[-1]["collections"]
    # What the program itself froze shall stay so.
    if full != _collections and gc.get_freeze_count() == 0:
        _collections = full
        gc.freeze()
        gc.unfreeze()
