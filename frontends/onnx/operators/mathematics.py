"""Converts ONNX operators: mathematics."""
