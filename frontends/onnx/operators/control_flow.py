"""Converts ONNX operators: control_flow."""
