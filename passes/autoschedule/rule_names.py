"""Names the attributes by which kernels say which written schedule rules are for them."""

RULE = "schedule_rule"
"""The attribute of a kernel that lists the rules for it, in the order in which they are tried."""
RULE_TEXT = "schedule_rule_text"
"""The attribute that holds the text of these rules, where the function is in a module without them."""
