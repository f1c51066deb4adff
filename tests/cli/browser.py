"""Headless Chromium, started once and driven through a pair of pipes (Chrome DevTools protocol)."""

import base64
import json
import os
import shutil
import signal
import subprocess

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Browser:
    """One tab. `console` holds what the current page has written there, and its exceptions."""

    def __init__(self, profile):
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()

        def connect():
            # Chromium reads commands from descriptor 3 and writes answers to 4. The copies lie
            # above both, so that neither dup2() overwrites the other's source.
            above = [os.dup(fd) for fd in (to_read, to_write, to_read, to_write)][2:]
            os.dup2(above[0], 3)
            os.dup2(above[1], 4)

        command = [
            CHROMIUM,
            "--headless=new",
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            f"--user-data-dir={profile}",
        ]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium's sandbox refuses to run as root
        self._process = subprocess.Popen(
            command,
            preexec_fn=connect,
            close_fds=False,
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._number, self._rest, self._session = 0, b"", None
        self.console = []
        self._loaded = False
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # This ends the browser's helpers too, which would go on writing into the profile.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def _message(self):
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            if not more:
                raise RuntimeError("chromium has ended")
            self._rest += more
        text, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(text)
        method, given = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(a.get("value", a)) for a in given["args"]))
        elif method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            self.console.append(given["entry"]["text"])
        return message

    def _call(self, method, **given):
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._out, rest) :]
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, page, width=1360, height=2000, dark=False):
        """Loads a page on a screen of this size."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                   deviceScaleFactor=1, mobile=False)  # fmt: skip
        scheme = "dark" if dark else "light"
        self._call("Emulation.setEmulatedMedia",
                   features=[{"name": "prefers-color-scheme", "value": scheme}])  # fmt: skip
        self.console, self._loaded = [], False
        self._call("Page.navigate", url=f"file://{os.path.abspath(page)}")
        while not self._loaded:
            self._message()

    def value(self, expression):
        """Of an expression, promises awaited, on the page."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True,
                            awaitPromise=True)  # fmt: skip
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key, code, text=""):
        """One key, pressed and released."""
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                       windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")  # fmt: skip

    def picture(self, path=None, whole=False):
        """A PNG of the screen, or of the whole page."""
        data = base64.b64decode(
            self._call("Page.captureScreenshot", captureBeyondViewport=whole,
                       **({"clip": self._whole()} if whole else {}))["data"])  # fmt: skip
        if path:
            with open(path, "wb") as file:
                file.write(data)
        return data

    def _whole(self):
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def paper(self):
        """The page as a PDF."""
        return base64.b64decode(self._call("Page.printToPDF", printBackground=True)["data"])
