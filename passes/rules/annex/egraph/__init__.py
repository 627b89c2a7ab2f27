"""Equality saturation: an e-graph of xDSL's ops, rules applied to it, and the cheapest form extracted."""
