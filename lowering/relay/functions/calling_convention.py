"""Defines how Python calls a Relay program: the functions' names and the layout of a call's context.

It is apart from the code that emits such functions, so that running a compiled program does not import the compiler.
"""

from __future__ import annotations

ENTRY = "mirstack_entry"
"""The function that Python calls: one pointer to a table of the context, the inputs' and the outputs' addresses."""

FINISH = "mirstack_finish"
"""The function that Python calls, with the context, when it has taken results of dynamic shape from the heap."""

PREPARE = "mirstack_prepare"
"""The function that Python calls once: as the entry, but it takes the context and the results' addresses only."""

NOW = "mirstack_profile_now"
"""The runtime's function that a program that is profiled calls before each kernel: returns the time, or 0 where nobody records."""

RECORD = "mirstack_profile_record"
"""The one that it calls after each kernel: takes the call site's number, that time, the address and the number of sizes."""

WORD = 8
"""Bytes of a pointer and of an extent."""

# Byte offsets in the context (`heap.py` says what for).
TOP = 0
END = 8
CONSTANTS = 16
STACK_LIMIT = 24
CHUNK = 32
DEPTH = 40
GROWN = 48
SIZES = 56  # two words
BASE = 72  # two words
PREPARED = 88
TAKEN = 96
CONTEXT_BYTES = 104

NO_MEMORY = "out of memory for the tensors"
"""The beginning of the message for a call whose tensors find no memory."""


def no_memory_for(function: str) -> str:
    """Returns the message for a call of a Relay function whose tensors find no memory."""
    return f"{NO_MEMORY} of @{function}"
