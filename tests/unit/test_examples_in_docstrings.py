"""The examples in the docstrings of `import decision` do what they say."""

import doctest

import pytest

import decision as d

NEEDS = dict.fromkeys(("train", "evaluate", "gates"), "torch") | {"search": "optuna"}
NEEDS |= dict.fromkeys(("make_env", "policy_from", "Environment"), "gymnasium")
FORM = doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", [name for name in d.__all__ if name != "__version__"])
def test_every_public_name_has_an_example_that_holds(name, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    pytest.importorskip(NEEDS.get(name, "numpy"))
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder(recurse=False).find(getattr(d, name), name, globs={})
    assert test.examples
    said: list[str] = []
    doctest.DocTestRunner(optionflags=FORM).run(test, out=said.append)
    assert not said, "".join(said)
