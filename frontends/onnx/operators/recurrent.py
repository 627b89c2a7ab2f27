"""Converts ONNX operators: recurrent."""
