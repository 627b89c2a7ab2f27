"""`TempOpAttr`: an attribute of an operator for the duration of a `with`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.temp_op_attr import TempOpAttr as TempOpAttr
