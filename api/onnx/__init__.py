"""`mirstack.onnx`: ONNX' own interface to runtimes, in `mirstack.onnx.backend`."""
