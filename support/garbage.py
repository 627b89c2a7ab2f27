"""Python's cycle collector, held back while much is built at once."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """While inside, the cycle collector does not run.

    IR is one great cycle, and traversing it repeatedly, as it grows, takes half of the time of building it. Nested uses and uses by
    several threads are fine.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        _set_aside()
        gc.enable()


SMALL = 200_000
"""Objects that do not count as a program that waits: what parsing a model leaves."""

_collections = -1
"""Full collections of this process when objects were last set aside."""
_waiting = 0
"""Objects set aside since then."""


def _set_aside() -> None:
    """Moves all objects to the collector's old generation without traversing them.

    Otherwise the next allocation would have it traverse everything that was built, which takes as long as many a pass. Old objects
    are freed at the next full collection, and until there was one nothing is set aside beside a large program, so that at most one
    waits.
    """
    global _collections, _waiting
    full: int = gc.get_stats()[-1]["collections"]
    if full != _collections:
        _collections, _waiting = full, 0
    # What the program itself froze must stay so.
    if _waiting <= SMALL and gc.get_freeze_count() == 0:
        _waiting += sum(gc.get_count())
        gc.freeze()
        gc.unfreeze()
