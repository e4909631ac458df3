"""Tasks for other processes, which import them from here."""

import os
import signal
import time
from pathlib import Path

import msgspec

from decision.model.errors import ConfigError


class Square(msgspec.Struct, frozen=True):
    """A task; each time that it is done leaves a line in a file."""

    number: int
    folder: str

    @property
    def title(self):
        return f"the square of {self.number}"

    def definition(self):
        return {"square": self.number}


class SquareOfFile(Square):
    """A task that reads a file."""

    digest: str

    def files(self):
        return [(Path(self.folder) / "input.txt", self.digest)]


def square(task):
    with (Path(task.folder) / "done.txt").open("a") as file:
        file.write(f"{task.number} {os.getpid()}\n")
    return {"square": task.number**2}


def squares(numbers):
    return [number**2 for number in numbers]


def together(task):
    """As `square`, once two workers have begun; task 4 does not wait for a second one."""
    begun = Path(task.folder) / "begun"
    begun.mkdir(exist_ok=True)
    (begun / str(os.getpid())).touch()
    deadline = time.monotonic() + 60
    while task.number != 4 and len(list(begun.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    return square(task)


def slowly(task):
    time.sleep(0.3)
    return square(task)


def fail_at_three(task):
    if task.number == 3:
        raise ConfigError("three")
    return square(task)


def interrupt_at_three(task):
    if task.number == 3:
        os.kill(os.getpid(), signal.SIGINT)
    return square(task)


def die_at_three(task):
    found = square(task)
    if task.number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return found


def die_once_at_three(task):
    once = Path(task.folder) / "died"
    if task.number == 3 and not once.exists():
        once.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(task)


def hang_at_three(task):
    if task.number == 3:
        os.kill(os.getpid(), signal.SIGSTOP)
    return square(task)


def look_at_the_clock(task):
    return {"square": task.number**2, "at": time.time()} if task.number == 3 else square(task)


def change_the_file(task):
    (Path(task.folder) / "input.txt").write_text("changed")
    return square(task)


def sleep_at_three(task):
    if task.number == 3:
        time.sleep(1000)
    return square(task)
