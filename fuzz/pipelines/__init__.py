"""Random pipelines of passes."""
