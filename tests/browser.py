"""A real Chromium for tests, driven over the DevTools protocol; tests that need it skip where there is none."""

import asyncio
import base64
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
)  # fmt: skip


class Browser:
    """One tab. `asked` collects the address of every request that the page made, the page itself included."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._number = 0
        self._scripts = True
        self.asked: list[str] = []
        self.said: list[str] = []  # dialogs and console messages
        self._loop.run_until_complete(self._connect())

    def open(
        self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False, fragment: str = ""
    ) -> float:
        """Load a file; the seconds until it was loaded and drawn."""
        return self.visit(path.as_uri() + fragment, width=width, height=height, dark=dark)

    def visit(self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> float:
        """Load an address; the seconds until it was loaded and drawn."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url="about:blank")
        self.asked.clear()  # also what the page before asked meanwhile
        self.said.clear()
        start = time.monotonic()
        self.call("Page.navigate", url=address)
        while self.run("document.readyState") != "complete" or self.run("location.href") == "about:blank":
            time.sleep(0.02)
        if self._scripts:
            self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - start

    @contextmanager
    def without_scripts(self) -> Iterator[None]:
        """Pages run no script, as with JavaScript switched off; `run` still evaluates, without promises."""
        self.call("Emulation.setScriptExecutionDisabled", value=True)
        self._scripts = False
        try:
            yield
        finally:
            self.call("Emulation.setScriptExecutionDisabled", value=False)
            self._scripts = True

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, promises awaited."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"])[:500])
        return found["result"].get("value")

    def pictures(self) -> list[bool]:
        """Which pictures of the page can be shown, those that load late included: all are waited for."""
        return list(
            self.run(
                "Promise.all([...document.images].map(each => {each.loading = 'eager';"
                " return each.decode().then(() => each.naturalWidth > 0, () => false)}))"
            )
        )

    def press(self, key: str) -> None:
        """Press and release a key."""
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "")

    def screenshot(self, path: Path, *, whole: bool = False) -> Path:
        """A PNG of the window, or of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))
        return path

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol."""
        return self._loop.run_until_complete(self._call(method, parameters))

    def close(self) -> None:
        """Let go of the tab."""
        self._loop.run_until_complete(self._leave())
        self._loop.close()

    async def _connect(self) -> None:
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{self._port}/json/list") as reply:
            tabs = await reply.json()
        address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
        self._socket = await self._session.ws_connect(address, max_msg_size=0)
        for domain in ("Page", "Runtime", "Network"):
            await self._call(f"{domain}.enable", {})

    async def _leave(self) -> None:
        await self._socket.close()
        await self._session.close()

    async def _call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json(timeout=60)
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])
            await self._note(message)

    async def _note(self, message: dict[str, Any]) -> None:
        kind, given = message.get("method"), message.get("params", {})
        if kind == "Network.requestWillBeSent":
            self.asked.append(given["request"]["url"])
        elif kind == "Runtime.consoleAPICalled":
            self.said.append(str([each.get("value") for each in given["args"]]))
        elif kind == "Page.javascriptDialogOpening":
            self.said.append(given["message"])
            await self._socket.send_json({"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}})


@contextmanager
def browser() -> Iterator[Browser]:
    """A fresh Chromium with an empty profile; it ends with the block."""
    assert CHROMIUM is not None
    profile = Path(tempfile.mkdtemp(prefix="dikast-chromium-"))
    process = subprocess.Popen(
        [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = profile / "DevToolsActivePort"
        for _ in range(600):
            if port.exists() and port.read_text().strip():
                break
            time.sleep(0.1)
        tab = Browser(int(port.read_text().split()[0]))
        try:
            yield tab
        finally:
            tab.close()
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(profile, ignore_errors=True)
