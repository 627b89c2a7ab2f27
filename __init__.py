"""mirstack: Relay, TE and TIR as xDSL dialects, lowered to native code."""
