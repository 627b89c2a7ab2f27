"""Converts ONNX operators: reduction."""
