"""A headless Chromium that is driven over the DevTools protocol: lines of JSON through two pipes, nothing to install."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Chromium:
    """One browser with one page. Everything that the page logs, asks for or opens is kept."""

    def __init__(self, executable="chromium"):
        to_browser, commands = os.pipe()
        answers, from_browser = os.pipe()
        self.profile = tempfile.mkdtemp(prefix="kbench-chromium-")
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
                 "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"]

        def wire():
            # The browser reads commands from descriptor 3 and writes answers to 4, whatever they were before.
            ends = os.dup(to_browser), os.dup(from_browser)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen([executable, *flags], close_fds=False, preexec_fn=wire,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.commands, self.answers = commands, answers
        self.buffer, self.number, self.session = b"", 0, None
        self.complaints, self.requests, self.dialogs = [], [], []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method, **parameters):
        """Gives a command, and waits for its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        own = self.number
        while True:
            answer = self.receive(60)
            if answer.get("id") == own:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def receive(self, seconds):
        """The next message; events are noted."""
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise TimeoutError("the browser says nothing")
            received = os.read(self.answers, 1 << 20)
            if not received:
                raise ConnectionError("the browser is gone")
            self.buffer += received
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self.note(message)
        return message

    def note(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled" and what["type"] in ["error", "warning", "assert"]:
            self.complaints.append(str(what["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(what["exceptionDetails"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ["error", "warning"]:
            self.complaints.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not what["request"]["url"].startswith(("data:", "about:")):
            self.requests.append(what["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(what["message"])
            os.write(self.commands, json.dumps({"id": 10**9, "sessionId": self.session, "params": {"accept": True},
                                                "method": "Page.handleJavaScriptDialog"}).encode() + b"\0")

    def open(self, path):
        """Opens a file, waits until it is loaded, and gives the seconds that it took."""
        self.complaints, self.requests, self.dialogs = [], [], []
        started = time.monotonic()
        self.send("Page.navigate", url="file://" + os.path.abspath(path))
        while self.receive(60).get("method") != "Page.loadEventFired":
            pass
        return time.monotonic() - started

    def run(self, expression):
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def key(self, name):
        """Presses and releases a key."""
        codes = {"Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "Escape": 27, "Enter": 13}
        for kind in ["keyDown", "keyUp"]:
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=codes[name])

    def look(self, scheme="light", width=1280, height=900, media="", script=True):
        """Sets theme, width, medium, and whether scripts run."""
        self.send("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.send("Emulation.setScriptExecutionDisabled", value=not script)

    def screenshot(self, path, clip=None):
        """The window, or a part of the page as (x, y, width, height)."""
        extra = {}
        if clip:
            extra = {"clip": dict(zip(["x", "y", "width", "height"], clip), scale=1), "captureBeyondViewport": True}
        data = self.send("Page.captureScreenshot", format="png", **extra)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path):
        data = self.send("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
