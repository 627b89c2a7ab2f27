"""TE to TIR: a block for each tensor (`create_prim_func`), or the loops that a schedule says (`schedule`, `emit`)."""
