"""The engine of rewrite rules: a rule compiled to closures, found through an index by root op, applied."""
