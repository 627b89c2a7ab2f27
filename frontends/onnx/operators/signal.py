"""Converts ONNX operators: signal."""
