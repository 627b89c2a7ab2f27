"""Converts ONNX operators: neural_network."""
