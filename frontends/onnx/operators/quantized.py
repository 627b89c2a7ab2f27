"""Converts ONNX operators: quantized."""
