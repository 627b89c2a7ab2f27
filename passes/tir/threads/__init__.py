"""Passes on TIR's threads: bindings, virtual threads, and which memory threads share."""
