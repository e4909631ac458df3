"""Modules, files and names that texts name are there: in the pages, in README files, and in docstrings and comments."""

import ast
import re
from functools import cache

import pytest

MADE = {"decision/compiled"}  # by scripts/wheel
PATH = re.compile(r"(?<![\w./-])((?:decision|tests|scripts|docs)/[a-z_][\w./]*\w)(?![\w*{-])")
DOTTED = re.compile(r"(?<![\w./-])(decision(?:\.[A-Za-z_]\w*)+)(?!\w|\()")
QUOTED = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.\w+)*)`(?!`)")


@pytest.fixture(scope="module")
def texts(root) -> dict[str, str]:
    """The texts that people read, by their place."""
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "decision").rglob("*.md")]
    files = [file for file in (*pages, *(root / "decision").rglob("*.py")) if file.name != "CHANGELOG.md"]
    return {str(file.relative_to(root)): file.read_text("utf-8") for file in files}


def in_text(pattern, texts) -> set[tuple[str, str]]:
    return {(place, name) for place, text in texts.items() for name in pattern.findall(text)}


def test_files_that_are_named_are_there(root, texts):
    named = {(place, path) for place, path in in_text(PATH, texts) if "NAME" not in path and path not in MADE}
    assert len(named) > 100
    assert {(place, path) for place, path in named if not (root / path).exists()} == set()


@cache
def words(path) -> set[str]:
    """What a module or all of a package has names for."""
    files = path.rglob("*.py") if path.is_dir() else [path]
    return {word for file in files for word in (file.stem, *re.findall(r"\w+", file.read_text("utf-8")))}


def is_there(folder, parts) -> bool:
    """Whether a name with dots leads from a package's folder to a module of it, or to what this one names."""
    for at, part in enumerate(parts):
        if (module := folder / f"{part}.py").is_file():
            return set(parts[at + 1 :]) <= words(module)
        if not (folder / part).is_dir():
            return set(parts[at:]) <= words(folder if at == 0 else folder / "__init__.py")
        folder /= part
    return True


def test_modules_that_are_named_are_there(root, texts):
    named = in_text(DOTTED, texts)
    files = (".toml", ".ckpt", ".ini", ".run", ".svg")
    named = {(place, name) for place, name in named if not name.endswith(files)}
    assert len(named) > 1000, "imports, too"
    assert {(place, name) for place, name in named if not is_there(root / "decision", name.split(".")[1:])} == set()


def test_what_a_packages_docstring_names_is_in_it(root):
    """Else a page that explains the house (docs/design/packages.md) speaks of rooms that were left."""
    gone = set()
    for file in (root / "decision").rglob("__init__.py"):
        known = {path.name for path in file.parent.rglob("*")}.union(*map(code_words, file.parent.rglob("*.py")))
        for name in QUOTED.findall(ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""):
            parts = name.split(".")
            foreign = parts[0] in ("decision", "numpy")
            if not foreign and not (known.issuperset(parts) and is_there(file.parent, parts)):
                gone.add((str(file.parent.relative_to(root)), name))
    assert gone == set()


@cache
def code_words(file) -> set[str]:
    """A module's own name, and the words of its code."""
    return {file.stem, *re.findall(r"\w+", re.sub(r'""".*?"""|#[^\n]*', "", file.read_text("utf-8"), flags=re.DOTALL))}
