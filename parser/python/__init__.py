"""Python as a syntax: one grammar, lexer, tree and its syntax errors for TVMScript, TE and schedules.

`lexer` makes tokens, `builder` (grammar: `python.lark`) a tree of them (`tree`), `errors` says what is wrong in the user's terms.
A `lexer.Language` says what of Python a format has.
"""
