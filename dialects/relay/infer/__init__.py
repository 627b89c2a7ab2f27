"""Type inference: every value of a module's Relay functions gets its type."""

from .inference import infer_types, require_types

__all__ = ["infer_types", "require_types"]
