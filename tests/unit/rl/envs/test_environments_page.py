"""The site's page of environments, which is made from the records of schedulers."""

import importlib.util
import re

import gymnasium
import pytest

import decision as d
from decision.rl.envs import EPISODE_METRICS
from decision.rl.schedulers.base import choosing

pytest.importorskip("mkdocs")
SCHEDULERS = [each for each in choosing() if type(each).__module__.startswith("decision.")]


@pytest.fixture(scope="module")
def page(root):
    spec = importlib.util.spec_from_file_location("generated", root / "docs/generated.py")
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)
    return dict(generated.pages())["reference/environments.md"]


def section(page, scheduler):
    return page.partition(f"## `decision/{scheduler.env_id}-v0`")[2].partition("\n## ")[0]


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=lambda each: each.name)
def test_each_environment_says_what_is_seen_done_rewarded_and_measured(page, scheduler):
    text = section(page, scheduler)
    for part in ("Observation", "Actions", "Reward", "Episode", "Masks"):
        assert f"\n**{part}**" in text
    rows = dict(re.findall(r"^\| `(\w+)` \| `.*?` \| (.+?) \|$", text, re.MULTILINE))
    assert set(rows) == set(scheduler.Settings.__struct_fields__)
    assert all(len(meaning) > 1 for meaning in rows.values())
    for metric in scheduler.metrics:
        assert f"`{metric}`" in text


def test_there_is_no_environment_besides(page):
    ids = {spec.id for spec in gymnasium.registry.values() if spec.namespace == "decision"}
    assert {f"decision/{each.env_id}-v0" for each in SCHEDULERS} <= ids
    assert all(f"\n| `{metric}` |" in page for metric in EPISODE_METRICS)


def test_shapes_are_those_of_the_page(page):
    env = d.make_env("dbf", "cluster256", "lublin_256", head=4, tail=2, jobs=10)
    assert env.observation_space.shape == (256 + 4 * 6,)
    assert env.action_space.n == 4 + 2 + 1
