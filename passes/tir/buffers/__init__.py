"""Passes on TIR's buffers: where memory is allocated, its size, which buffers share it, flat indices."""
