"""Lowers TIR to MLIR's standard dialects: scf, memref, vector, arith, math and func."""
