"""Imports models of other frameworks as Relay: `onnx/`; the builder that they share is in `common/`."""
