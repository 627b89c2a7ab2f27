"""Operators that sort, search and add up, and the sorting networks and radix sorts that compute them."""
