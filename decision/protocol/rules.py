"""What each end may send in a version of the protocol: one rule for each kind of event and sender."""

from collections.abc import Mapping
from functools import cache

from .batsim_rules import BATSIM_RULES
from .decision_rules import DECISION_RULES
from .ledger import Rules
from .messages import Role
from .versions import Version

_RULES: Mapping[Role, Rules] = {Role.BATSIM: BATSIM_RULES, Role.DECISION: DECISION_RULES}


@cache
def rules_of(version: Version) -> Mapping[Role, Rules]:
    """The rules of a version's events."""
    return {
        role: {kind: rule for kind, rule in rules.items() if kind.__struct_config__.tag not in version.lacks}
        for role, rules in _RULES.items()
    }
