"""A page printed to PDF by a browser of this computer."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from decision.model.errors import ConfigError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "brave-browser")
_FLAGS = (
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-pdf-header-footer"),
)
_LONGEST = 120.0  # seconds for a page


def print_page(page: Path) -> Path:
    """Print a page to the PDF file of its name, with the first of `BROWSERS` that is here.

    Args:
        page: in HTML.

    Returns:
        The PDF file, next to the page.

    Raises:
        ConfigError: if there is no such browser, or it fails; it says how else the page is printed.
    """
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise ConfigError(f"no Chromium or Chrome is here to print it; {_by_hand(page)}")
    target = page.with_suffix(".pdf")
    with tempfile.TemporaryDirectory(prefix="decision-") as profile:
        printed = Path(profile) / "page.pdf"
        rights = ["--no-sandbox"] if os.geteuid() == 0 else []  # its sandbox refuses root, and the page is our own
        places = [f"--user-data-dir={profile}/profile", f"--print-to-pdf={printed}", page.resolve().as_uri()]
        try:
            subprocess.run([program, *_FLAGS, *rights, *places], capture_output=True, timeout=_LONGEST, check=False)
            content = printed.read_bytes()
        except (OSError, subprocess.TimeoutExpired):
            raise ConfigError(f"{Path(program).name} did not print it; {_by_hand(page)}") from None
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(target)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written ({error.strerror})") from None
    finally:
        part.unlink(missing_ok=True)
    return target


def _by_hand(page: Path) -> str:
    return f"open {page} in a browser and print it there (Ctrl-P), to paper or to PDF"
