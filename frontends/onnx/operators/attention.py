"""Converts ONNX operators: attention."""
