"""`relay.param_dict`: weights by name as bytes.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.runtime.params import load_param_dict as load_param_dict
from mirstack.api.runtime.params import save_param_dict as save_param_dict
