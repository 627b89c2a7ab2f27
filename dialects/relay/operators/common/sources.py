"""Lists the addresses of documents that define operators, with a placeholder for the operator's name.

The `source` of an entry is the document that defines what the operator computes: numpy's or ONNX's where it is the same
function, the paper that introduced it, C's library for functions of it; TVM's reference for TVM's own operators.
"""

from __future__ import annotations

_RELAY = "https://tvm.apache.org/docs/v0.16.0/reference/api/python/relay/"

TVM = _RELAY + "index.html#tvm.relay.{}"
"""An operator of TVM's Relay."""
TVM_NN = _RELAY + "nn.html#tvm.relay.nn.{}"
"""One of TVM's operators for neural networks."""
TVM_IMAGE = _RELAY + "image.html#tvm.relay.image.{}"
"""One of TVM's operators on images."""
TVM_DIALECT = "https://tvm.apache.org/docs/v0.16.0/arch/{}.html"
"""A page on TVM's architecture, for operators that are part of it."""
NUMPY = "https://numpy.org/doc/2.0/reference/generated/numpy.{}.html"
"""A function of numpy."""
ONNX = "https://onnx.ai/onnx/operators/onnx__{}.html"
"""An operator of ONNX."""
C = "https://en.cppreference.com/w/c/numeric/math/{}"
"""A function of C's mathematical library."""
ARXIV = "https://arxiv.org/abs/{}"
"""A paper on arXiv, by number."""
