"""Converts ONNX operators: by rules (`*.mir`) where one expression says it, otherwise in Python."""
