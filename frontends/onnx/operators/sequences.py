"""Converts ONNX operators: sequences."""
