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
        gc.enable()
