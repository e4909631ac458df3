"""``decision policies``: what can be run."""


def policies() -> None:
    """List the policies: name, what it does, where it comes from.

    Example:

      decision policies
    """
    from decision.policies import CATALOGUE

    from .tables import print_catalogue

    print_catalogue(CATALOGUE)
