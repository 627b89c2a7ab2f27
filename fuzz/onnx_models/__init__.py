"""Random ONNX models, against onnxruntime."""
