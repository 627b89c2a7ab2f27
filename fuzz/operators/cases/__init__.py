"""Samples and reference results of each operator, by topic; `sampling.load_cases` imports all."""
