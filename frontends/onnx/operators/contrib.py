"""Converts ONNX operators: contrib."""
