"""Defines the error of converters: why a node cannot be imported."""

from __future__ import annotations


class Refused(Exception):
    """Tells why a node cannot be imported; raised by converters, reported for all nodes at once."""

    def __init__(self, reason: str, *notes: str):
        super().__init__(reason)
        self.reason, self.notes = reason, notes
