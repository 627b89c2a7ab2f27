"""Converts ONNX operators: indexing."""
