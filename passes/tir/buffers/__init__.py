"""Passes on TIR's buffers: where memory is allocated, how large it is, which buffers share it, and flat indices."""
