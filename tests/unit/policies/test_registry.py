"""From names to policies."""

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from decision.model.errors import ConfigError
from decision.policies import find_agent, find_policy, list_options, register_loader, registry
from decision.policies.traits import traits_of

SOURCE = '''
class Mine:
    """A policy with options."""

    def __init__(self, depth: int = 3, share: float = 0.5, loud: bool = False, label: str = "x"):
        self.options = (depth, share, loud, label)

    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        pass


class Strict(Mine):
    def __init__(self, depth: int):
        super().__init__(depth)


class Half:
    def decide(self, cluster, plan):
        pass


class Broken(Mine):
    def __init__(self):
        raise ValueError("no luck")


number = 3
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def complaint_of(spec: str, **options: str) -> str:
    with pytest.raises(ConfigError) as raised:
        find_policy(spec, options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_class_in_a_file_is_a_policy(file):
    assert find_policy(f"{file}:Mine").options == (3, 0.5, False, "x")


def test_a_class_in_a_module_is_a_policy(file, monkeypatch):
    monkeypatch.syspath_prepend(file.parent)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    assert find_policy("mine:Mine").options == (3, 0.5, False, "x")


def test_options_are_converted_as_the_parameters_are_annotated(file):
    policy = find_policy(f"{file}:Mine,depth=5,loud=yes", {"share": "0.25", "label": "7"})
    assert policy.options == (5, 0.25, True, "7")


def test_a_policy_that_an_installed_package_names_is_found(file, monkeypatch):
    monkeypatch.syspath_prepend(file.parent)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    installed = EntryPoints([EntryPoint("mine-of-theirs", "mine:Mine", registry._ENTRY_POINTS)])
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: installed)
    assert find_policy("mine-of-theirs,depth=1").options[0] == 1
    assert "did you mean mine-of-theirs?" in complaint_of("mine-of-their")


def test_a_registered_form_of_name_goes_to_its_loader(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", [])
    register_loader("*.ckpt", lambda name, options: (name, dict(options)))
    assert find_policy("runs/best.ckpt,greedy=true") == ("runs/best.ckpt", {"greedy": "true"})


def in_a_fresh_interpreter(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_what_other_packages_ship_is_found_without_importing_them_first():
    code = "from decision.policies import find_policy; print(find_policy('dbf'))"
    pytest.importorskip("torch")
    assert in_a_fresh_interpreter(code) == "<policy dbf.ckpt>\n"


def test_heuristics_and_the_catalogue_load_nothing_that_learning_needs():
    code = """
import sys
from decision.policies import find_policy, list_policies
for name in ("easy", "kamelot", "sjf+conservative"):
    find_policy(name)
print("decision.rl.learning" in sys.modules)
names = [line.name for line in list_policies()]
print("dbf" in names, "FILE.ckpt" in names, "pybatsim:module:Class" in names, "torch" in sys.modules)
"""
    assert in_a_fresh_interpreter(code) == "False\nTrue True True False\n"


def test_a_scheduler_that_answers_messages_is_not_a_policy():
    assert "pybatsim:some.module:Class answers Batsim's messages" in complaint_of("pybatsim:some.module:Class")
    assert find_agent("easy") is None


def test_a_misspelt_name_of_a_shipped_policy_suggests_it():
    assert "did you mean rlscheduler?" in complaint_of("rl-scheduler")


def test_the_former_name_of_a_policy_is_refused_with_the_present_one():
    with pytest.raises(ConfigError, match="there is no policy 'green'; it is timetable now"):
        find_policy("green")


@pytest.mark.parametrize(
    ("name", "meant"), [("esy", "easy"), ("conservativ", "conservative"), ("sjf+eazy", "sjf+easy")]
)
def test_a_misspelt_name_suggests_the_nearest(name, meant):
    assert f"there is no policy {name!r}; did you mean {meant}?" in complaint_of(name)


def test_what_a_file_lacks_is_said(file, tmp_path):
    assert "has no 'Mime'; did you mean Mine?" in complaint_of(f"{file}:Mime")
    assert f"there is no file {tmp_path / 'absent.py'}" in complaint_of(f"{tmp_path / 'absent.py'}:Mine")
    assert "has no method reset" in complaint_of(f"{file}:Half")
    assert "that is not a class but 3" in complaint_of(f"{file}:number")
    assert "making it failed: ValueError: no luck" in complaint_of(f"{file}:Broken")


def test_a_file_that_cannot_be_run_is_said_with_its_line(tmp_path):
    (tmp_path / "bad.py").write_text("x = 1\ndef f(:\n")
    assert "bad.py:2: def f(:)" in complaint_of(f"{tmp_path / 'bad.py'}:Mine")
    (tmp_path / "worse.py").write_text("import nowhere_to_be_found\n")
    assert "No module named 'nowhere_to_be_found'" in complaint_of(f"{tmp_path / 'worse.py'}:Mine")


def test_a_module_that_is_none_is_said():
    assert "No module named 'nowhere_to_be_found'" in complaint_of("nowhere_to_be_found:Mine")
    assert "neither a module nor a file that ends in .py" in complaint_of("./mine:Mine")


def test_options_that_a_class_does_not_take_are_refused_with_those_it_does(file):
    assert "no option 'dept'; did you mean depth?" in complaint_of(f"{file}:Mine", dept="3")
    assert "its options are depth, share, loud, label" in complaint_of(f"{file}:Mine", x="3")
    assert "depth='deep' must be a whole number" in complaint_of(f"{file}:Mine", depth="deep")
    assert "loud='maybe' must be true or false" in complaint_of(f"{file}:Mine", loud="maybe")
    assert "needs the option depth" in complaint_of(f"{file}:Strict")
    assert "it has none" in complaint_of(f"{file}:Broken", x="3")


@pytest.mark.parametrize("name", ["easy", "wfp3", "saf+first-fit", "conservative", "kamelot"])
def test_every_policy_has_a_guard(name, file):
    for policy in (name, f"{file}:Mine"):
        assert traits_of(find_policy(f"{policy},guard=600")).needs_walltime
        assert traits_of(find_policy(policy, {"guard": "auto"})).needs_walltime
        assert list_options(policy)[-1].name == "guard"


@pytest.mark.parametrize("value", ["-1", "inf", "nan", "soon", ""])
def test_a_guard_that_makes_no_sense_is_refused(value, file):
    assert "guard=" in complaint_of(f"easy,guard={value}")
    assert "or seconds, finite" in complaint_of(f"{file}:Mine,guard={value}")


def test_a_scheduler_that_answers_messages_itself_has_a_guard_and_nothing_else_around_it():
    pytest.importorskip("batsim.batsim", reason="pybatsim 3.2.1 is not installed")
    spec = "pybatsim:schedulers.easyBackfill:EasyBackfill"
    assert find_agent(f"{spec},guard=60") is None
    assert traits_of(find_policy(f"{spec},guard=60")).needs_walltime
    with pytest.raises(ConfigError, match="cannot have the option estimate"):
        find_policy(f"{spec},guard=60,estimate=last2")


def test_an_option_may_not_contradict_the_name():
    with pytest.raises(ConfigError, match="the name says backfill=conservative, and the option backfill=easy"):
        find_policy("conservative,backfill=easy")
    with pytest.raises(ConfigError, match="the name says order=sjf"):
        find_policy("sjf+easy", {"order": "saf"})
    assert find_policy("filler,backfill=first-fit,order=sjf")
