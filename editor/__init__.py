"""The language server of `.mir` files, `mir-lsp`, and what it knows of a text.

`server` speaks the protocol; all others are functions of the text, which need no editor: `analysis` reads and verifies it part by
part, `names` resolves names, and each feature is a module of its own. Positions are offsets into the text.
"""

from ..support.xdsl_patches import apply

apply()
