"""A real Chromium, headless, driven over WebDriver's plain HTTP: Debian's packages `chromium` and `chromium-driver`."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
STARTS_WITHIN_S = 60.0


class Browser:
    """One session; every method waits for its answer."""

    def __init__(self, url: str, downloads: Path) -> None:
        self._url, self._downloads = url, downloads

    def open(self, page: Path, *, width: int = 1100, height: int = 900, dark: bool = False) -> None:
        """Load a page of this disk. What it logs and asks for from now on is its own."""
        self.media("", dark=dark)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._devtools("Emulation.setDeviceMetricsOverride", **size)
        self.console(), self.requested()
        self._call("POST", "/url", url=page.as_uri())

    def media(self, name: str, *, dark: bool = False) -> None:
        """Look at the page as on this medium: `screen` (or nothing), `print`."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._devtools("Emulation.setEmulatedMedia", media=name, features=scheme)

    def console(self) -> list[str]:
        """What the page (and the browser about it) logged since the last call: errors, broken policies, warnings."""
        return [f"{one['level']}: {one['message']}" for one in self._call("POST", "/se/log", type="browser")]

    def requested(self) -> list[str]:
        """Every address that was asked for since the last call."""
        events = [json.loads(one["message"])["message"] for one in self._call("POST", "/se/log", type="performance")]
        return [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]

    def run(self, script: str) -> Any:
        """What a script returns that a reader could run by hand; the page itself has none."""
        return self._call("POST", "/execute/sync", script=script, args=[])

    def click(self, css: str) -> None:
        """Click the first element that matches."""
        element = self._call("POST", "/element", using="css selector", value=css)
        self._call("POST", f"/element/{next(iter(element.values()))}/click")

    def downloaded(self, name: str, within_s: float = 10.0) -> bytes:
        """The file that a click brought."""
        path, until = self._downloads / name, time.monotonic() + within_s
        while not path.exists():
            found = [item.name for item in self._downloads.iterdir()]
            assert time.monotonic() < until, f"expected the download {name}, found: {found}"
            time.sleep(0.05)
        return path.read_bytes()

    def screenshot(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self._call("GET", "/screenshot"))

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self._call("POST", "/print"))

    def _devtools(self, method: str, **parameters: object) -> None:
        self._call("POST", "/goog/cdp/execute", cmd=method, params=parameters)

    def _call(self, verb: str, path: str, **body: object) -> Any:
        return call(verb, f"{self._url}{path}", body)


def call(verb: str, url: str, body: Mapping[str, object] | None = None) -> Any:
    """One WebDriver command. Raises AssertionError with what the driver says."""
    data = None if verb == "GET" else json.dumps(body or {}).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=verb)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=STARTS_WITHIN_S) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(f"{verb} {url}: {error.read()[:600]!r}") from None


@contextmanager
def running_browser(folder: Path) -> Iterator[Browser]:
    """A browser with an empty profile under `folder`, ended afterwards."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        raise AssertionError("these tests need Chromium: apt-get install chromium chromium-driver")
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    downloads = folder / "downloads"
    downloads.mkdir()
    log = (folder / "driver.log").open("wb")
    process = subprocess.Popen([driver, f"--port={port}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _wait(port, process)
        options = {
            "binary": chromium,
            "args": [*FLAGS, f"--user-data-dir={folder / 'profile'}"],
            "prefs": {"download.default_directory": str(downloads), "download.prompt_for_download": False},
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        base = f"http://127.0.0.1:{port}/session"
        session = call("POST", base, {"capabilities": {"alwaysMatch": wanted}})
        try:
            yield Browser(f"{base}/{session['sessionId']}", downloads)
        finally:
            call("DELETE", f"{base}/{session['sessionId']}")
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until:
        assert process.poll() is None, "chromedriver ended by itself"
        with suppress(OSError):
            call("GET", f"http://127.0.0.1:{port}/status")
            return
        time.sleep(0.05)
    raise AssertionError("chromedriver did not answer")
