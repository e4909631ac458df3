"""Docstrings as Markdown: what ends in ``::`` is followed by code, and so ends in one colon."""

import re
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Takes the second colon away, which only reStructuredText needs."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Each module, class, function and attribute."""
        if obj.docstring is not None:
            text = re.sub(r"^::\n", "", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"::$", ":", text, flags=re.MULTILINE)
