"""A case without the names of people: users, accounts, jobs and what they typed."""

import msgspec

from .accounts import ROOT
from .case import Case


def hide_names(case: Case) -> Case:
    """The same case with ``user1``, ``account1``, ... in place of names; nothing that is simulated changes."""
    users, accounts, names = _Names("user"), _Names("account"), _Names("job")
    jobs = tuple(
        msgspec.structs.replace(
            job, user=users.of(job.user), account=accounts.of(job.account), singleton=names.of(job.singleton)
        )
        for job in case.jobs
    )
    associations = tuple(
        msgspec.structs.replace(
            each, user=users.of(each.user), account=accounts.of(each.account), parent=accounts.of(each.parent)
        )
        for each in case.associations
    )
    return msgspec.structs.replace(case, jobs=jobs, associations=associations)


class _Names:
    """Other names, in order of appearance."""

    def __init__(self, kind: str) -> None:
        self._kind, self._known = kind, {"": "", ROOT: ROOT}

    def of(self, name: str) -> str:
        """What stands for a name."""
        return self._known.setdefault(name, f"{self._kind}{len(self._known) - 1}")
