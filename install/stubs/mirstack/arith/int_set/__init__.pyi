"""Integer sets: `IntervalSet`, and the regions that indices cover while loops run.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.arith.int_set import IntSet as IntSet
from mirstack.api.arith.int_set import IntervalSet as IntervalSet
from mirstack.api.arith.int_set import estimate_region_lower_bound as estimate_region_lower_bound
from mirstack.api.arith.int_set import estimate_region_strict_bound as estimate_region_strict_bound
from mirstack.api.arith.int_set import estimate_region_upper_bound as estimate_region_upper_bound
from mirstack.api.arith.int_set import evaluate as evaluate
from mirstack.api.arith.int_set import neg_inf as neg_inf
from mirstack.api.arith.int_set import pos_inf as pos_inf
