"""Convert ATen operators by topic: rules in `.mir` files, Python beyond one expression."""
