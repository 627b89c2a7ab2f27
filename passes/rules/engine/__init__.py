"""The engine of rewrite rules: compiles rules to closures, finds them by root op, and applies them."""
