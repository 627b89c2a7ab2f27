"""Rules as patterns of MLIR's PDL dialect."""
