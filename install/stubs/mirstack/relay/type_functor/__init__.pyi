"""Walks over types by a class of the user: `TypeVisitor` visits, `TypeMutator` rebuilds.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.type_functor import TypeFunctor as TypeFunctor
from mirstack.api.relay.type_functor import TypeMutator as TypeMutator
from mirstack.api.relay.type_functor import TypeVisitor as TypeVisitor
