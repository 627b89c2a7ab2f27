"""Converts ONNX operators: shape."""
