"""Imports ONNX models: `model.py` reads files, `importer.py` converts nodes by `operators/`."""
