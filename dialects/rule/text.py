"""Types in messages about rules."""

from __future__ import annotations

from xdsl.ir import Attribute


def type_text(type: Attribute) -> str:
    """A type as the level that it belongs to writes it."""
    from ..relay.text import type_text as relay_text

    try:
        return relay_text(type)
    except (TypeError, KeyError, ValueError):
        return str(type)
