"""Algebraic data types and matches in Python, with TVM's names.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.adt import Clause as Clause
from mirstack.api.relay.adt import Constructor as Constructor
from mirstack.api.relay.adt import Match as Match
from mirstack.api.relay.adt import Pattern as Pattern
from mirstack.api.relay.adt import PatternConstructor as PatternConstructor
from mirstack.api.relay.adt import PatternTuple as PatternTuple
from mirstack.api.relay.adt import PatternVar as PatternVar
from mirstack.api.relay.adt import PatternWildcard as PatternWildcard
from mirstack.api.relay.adt import TypeData as TypeData
from mirstack.api.relay.adt import pattern_vars as pattern_vars
