"""The commands `mir-opt` and `mir-run`.

xDSL is patched first: its dialects read the formats of their ops when they are imported.
"""

from ..support.xdsl_patches import apply

apply()
