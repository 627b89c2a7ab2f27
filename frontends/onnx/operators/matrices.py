"""Converts ONNX operators: matrices."""
