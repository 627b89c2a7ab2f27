"""Random sets of rewrite rules, some of them wrong."""
