"""Converts ONNX operators: image."""
