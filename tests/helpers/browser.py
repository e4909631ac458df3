"""A browser without a screen: a few calls of the WebDriver protocol to Debian's chromedriver."""

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromedriver")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
    "--window-size=1200,1000",
]


def missing() -> str:
    """What keeps the browser from starting, or nothing."""
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"needs {' and '.join(lacking)}: apt install chromium chromium-driver" if lacking else ""


class Browser:
    """One window."""

    def __init__(self, port: int, profile: Path) -> None:
        self._root = f"http://127.0.0.1:{port}/session"
        options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={profile}"]}
        asked = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self._root += "/" + self._post("", {"capabilities": {"alwaysMatch": asked}})["sessionId"]

    def open(self, path: Path) -> None:
        self._post("/url", {"url": path.as_uri()})

    def run(self, script: str) -> Any:
        """What the script, a function's body, returns."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def waits_for(self, script: str, value: Any, seconds: float = 10.0) -> bool:
        """Whether the script returns `value` before long: events reach a page late on a busy machine."""
        end = time.monotonic() + seconds
        while (found := self.run(script)) != value and time.monotonic() < end:
            self.settle()
        return bool(found == value)

    def settle(self) -> None:
        """Wait until what was asked to be drawn is drawn."""
        script = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));"
        self._post("/execute/async", {"script": script, "args": []})

    def point(self, x: float, y: float, *then: dict[str, Any]) -> None:
        """Move the pointer to a place in the window, in pixels, and do more with it."""
        move = {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
        self._act({"type": "pointer", "id": "mouse", "actions": [move, *then]})

    def wheel(self, x: float, y: float, turn: int) -> None:
        scroll = {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": turn, "duration": 0}
        self._act({"type": "wheel", "id": "wheel", "actions": [scroll]})

    def lay_out(self, width: int, medium: str = "screen") -> None:
        """Lay the page out for a width in pixels, on a screen or, as ``print``, on paper."""
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        for command, values in (
            ("Emulation.setDeviceMetricsOverride", size),
            ("Emulation.setEmulatedMedia", {"media": medium}),
        ):
            self._post("/goog/cdp/execute", {"cmd": command, "params": values})
        self.settle()

    def messages(self) -> list[str]:
        """What the page has complained about."""
        return [entry["message"] for entry in self._post("/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("/screenshot")))

    def close(self) -> None:
        self._call("", method="DELETE")

    def _act(self, source: dict[str, Any]) -> None:
        self._post("/actions", {"actions": [source]})
        self.settle()

    def _post(self, path: str, body: Any) -> Any:
        return self._call(path, json.dumps(body).encode(), "POST")

    def _call(self, path: str, body: bytes | None = None, method: str = "GET") -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._root + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["value"]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A window of a fresh browser, which keeps what it must in the folder."""
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        port = next(
            int(found[1]) for line in driver.stdout if (found := re.search(r"successfully on port (\d+)", line))
        )
        window = Browser(port, folder)
        yield window
        window.close()
    finally:
        driver.terminate()
        driver.wait(10)
        driver.stdout and driver.stdout.close()
