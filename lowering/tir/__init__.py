"""From TIR to the standard dialects: statements and expressions to scf, memref, vector, arith, math and func."""
