"""Passes that overlap the iterations of TIR's loops: software pipelines and double buffers."""
