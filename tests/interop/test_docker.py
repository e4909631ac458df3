"""What Docker is asked to run, without Docker: the same commands, outside containers."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from decision.cli.app import app

BIN = Path(sys.executable).parent
FAKE = f"""#!{sys.executable}
import os, sys
words = sys.argv[1:]
image = words.index("oarteam/batsim:4.2.1")
print(*words[:image], sep="\\n", file=open(os.environ["SEEN"], "w"))
os.execv("{BIN / "decision-batsim"}", ["batsim", *words[image + 1 :]])
"""


@pytest.fixture
def docker(tmp_path, monkeypatch) -> Path:
    """A `docker` that writes down what it is told about the container and runs our engine in Batsim's place."""
    command = tmp_path / "bin" / "docker"
    command.parent.mkdir()
    command.write_text(FAKE)
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent), prepend=os.pathsep)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    return tmp_path / "seen"


def run(root, output, *options):
    toy = ["-p", root / "platforms/toy.xml", "-w", root / "workloads/toy.json", "--policy", "easy", "-o", output]
    return CliRunner().invoke(app, ["run", *map(str, toy), *options])


def test_a_batsim_in_a_container_gives_the_same_files(docker, root, tmp_path):
    inside = run(root, tmp_path / "inside", "--engine", "docker", "--image", "oarteam/batsim:4.2.1")
    outside = run(root, tmp_path / "outside")
    assert inside.exit_code == outside.exit_code == 0, inside.stderr
    assert inside.stdout == outside.stdout
    assert (tmp_path / "inside/out_jobs.csv").read_text() == (tmp_path / "outside/out_jobs.csv").read_text()


def test_the_container_sees_its_files_only_and_writes_as_the_user(docker, root, tmp_path):
    run(root, tmp_path / "out", "--engine", "docker", "--image", "oarteam/batsim:4.2.1")
    assert docker.read_text().split() == [
        "run",
        "--rm",
        "--init",
        "--network=host",
        f"--user={os.getuid()}:{os.getgid()}",
        f"--volume={root}/platforms/toy.xml:{root}/platforms/toy.xml:ro",
        f"--volume={root}/workloads/toy.json:{root}/workloads/toy.json:ro",
        f"--volume={tmp_path}/out:{tmp_path}/out",
    ]


def test_without_docker_the_mistake_is_one_line(root, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run(root, tmp_path / "out", "--engine", "docker")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: docker: command not found; install Docker, or choose the engine batsim (--engine)\n"
    )


# ------------------------------------------------------------------------------------- the shipped files


def test_the_warm_up_of_the_image_runs(root, tmp_path):
    """It names files of the image; here they are the repository's."""
    script = (root / "docker/warm-up").read_text().replace("/inputs/", f"{root}/")
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" easy ") == 4, "two runs, each with two tables"
    assert not list(tmp_path.iterdir())


def services(root) -> dict[str, list[str]]:
    """The words of each service's command, with the defaults of its variables, on paths of the repository."""
    text = (root / "docker/compose.yaml").read_text()
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text).replace("/inputs/", f"{root}/")
    blocks = dict(re.findall(r"^  (\w+):\n((?:    .*\n)+)", text, re.MULTILINE))
    commands = {name: re.findall(r"^      - (--?\S+|serve)$", block, re.MULTILINE) for name, block in blocks.items()}
    for name in ("analyse", "evalys"):
        (listed,) = re.findall(r"^    command: \[(.*)\]$", blocks[name], re.MULTILINE)
        commands[name] = [word.strip('" ') for word in listed.split(",")]
    return commands


def test_the_services_talk_outside_containers_as_inside(root, tmp_path):
    """The commands of the compose file as they stand, our engine in Batsim's place."""
    endpoint = f"ipc://{tmp_path}/session"
    words = services(root)
    serve = [word.replace("tcp://0.0.0.0:28000", endpoint) for word in words["decision"]]
    ask = [word.replace("tcp://decision:28000", endpoint) for word in words["batsim"] if word != "--energy"]
    ask = [word.replace("/data/", f"{tmp_path}/") for word in ask]
    assert len(serve) == 5 and len(ask) == 4
    with subprocess.Popen([BIN / "decision", *serve], stdout=subprocess.PIPE, text=True) as server:
        subprocess.run([BIN / "decision-batsim", *ask, "--energy"], check=True, timeout=300, capture_output=True)
        printed, _ = server.communicate(timeout=60)
    assert server.returncode == 0
    assert printed.startswith("answered 2,991 messages")
    subprocess.run([BIN / "decision", *in_place_of_data(words["analyse"], tmp_path)], check=True, timeout=300)
    assert (tmp_path / "report" / "report.html").is_file()


def test_the_last_service_leaves_pictures_of_evalys(root, tmp_path):
    pytest.importorskip("evalys.jobset")
    for file in (root / "tests/golden/sessions/kill").glob("out_*"):
        shutil.copy(file, tmp_path)
    command = in_place_of_data(services(root)["evalys"], tmp_path)
    subprocess.run([BIN / "decision", *command], check=True, timeout=300)
    assert len(list((tmp_path / "evalys").glob("*.png"))) == 4


def in_place_of_data(words: list[str], folder: Path) -> list[str]:
    """A command with a folder in the place of the container's ``/data``."""
    return [re.sub("^(--output=)?/data", rf"\1{folder}", word) for word in words]


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("hadolint", ["docker/Dockerfile"]), ("docker-compose", ["--file", "docker/compose.yaml", "config", "--quiet"])],
)
def test_the_files_pass_the_checks_of_programs_made_for_them(root, program, arguments):
    found = shutil.which(program) or shutil.which(program, path=str(BIN))
    if found is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run([found, *arguments], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
