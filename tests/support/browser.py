"""A headless Chromium for tests of pages: reads the page, its console messages and its network
requests. Standard library only.

    with browser.tab() as page:
        page.open(path_or_url)
        page.wait("document.querySelectorAll('.chart').length > 0")
        script = "[...document.querySelectorAll('h3')].map((title) => title.textContent)"
        titles = page.evaluate(script)
        page.screenshot("page.png")
        assert page.complaints() == [] and page.requests() == []

The browser is controlled by the DevTools protocol over a pipe, so it needs no port and no driver.
Every wait has a time limit.
"""

import atexit
import base64
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

CHROMIUM = os.environ.get("PELAB_CHROMIUM") or next(
    (found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
     if found), None)
MISSING = "no chromium on PATH (deploy/install-deps.sh installs it): the pages were not looked at"

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--disable-extensions",
         "--hide-scrollbars", "--mute-audio", "--remote-debugging-pipe"]


class BrowserError(AssertionError):
    """The browser answered with an error, or a script of the page threw an exception."""


class Navigated(BrowserError):
    """The tab loaded another page while a script ran in it."""


class Thrown(BrowserError):
    """A script of the test has thrown an exception."""


# The browser's words for a script whose page went away.
NAVIGATED = ("Inspected target navigated or closed", "Execution context was destroyed",
             "Cannot find context with specified id")


@contextlib.contextmanager
def tab():
    """The Page that all tests of this process have, one after another, because a browser takes
    over a second of processor time to start: as a new one, without what earlier ones stored."""
    page = _one_page()
    if page.used:
        page.blank()
    page.used = True
    yield page


@functools.cache
def _one_page():
    page = Page()
    atexit.register(page.close)
    return page


class Page:
    """One tab in a browser of its own with an empty profile. `width` and `height` are in CSS
    pixels."""

    def __init__(self, width=1440, height=900, dark=False, mobile=False, timeout=30):
        self.timeout = timeout
        self.used = False
        self._next_id = 0
        self._buffer = b""
        self._complaints = []
        self._requests = []
        self._profile = tempfile.mkdtemp(prefix="pelab-chromium-")
        try:
            self._start()
            self._attach(width, height, dark, mobile)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self):
        if CHROMIUM is None:
            raise BrowserError(MISSING)
        theirs, self._send = os.pipe()
        self._receive, their_answers = os.pipe()
        # The browser expects the protocol's pipe at its descriptors 3 and 4. bash moves it there,
        # from higher numbers that do not overlap.
        to_browser, from_browser = (fcntl.fcntl(descriptor, fcntl.F_DUPFD, 20)
                                    for descriptor in (theirs, their_answers))
        os.close(theirs)
        os.close(their_answers)
        command = (
            f"exec 3<&{to_browser} 4>&{from_browser} {to_browser}<&- {from_browser}>&-; exec "
            "\"$@\"")
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", CHROMIUM, *FLAGS,
             f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "HOME": self._profile, "TMPDIR": self._profile})
        os.close(to_browser)
        os.close(from_browser)

    def _attach(self, width, height, dark, mobile):
        self._session = None
        targets = self._until(lambda: [target
                                       for target in self.call("Target.getTargets")["targetInfos"]
                                       if target["type"] == "page"],
                              "a tab")
        self._session = self.call("Target.attachToTarget", targetId=targets[0]["targetId"],
                                  flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height, mobile)
        self.colors(dark)

    def size(self, width, height=900, mobile=False):
        # Touch is first, because charts that draw themselves again at the new size ask for it.
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=mobile)

    def colors(self, dark):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def blank(self):
        """Leaves the page and forgets what it has stored, its messages and how it was shown."""
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank' && document.readyState === 'complete'")
        self.call("Storage.clearDataForOrigin", origin="file://", storageTypes="all")
        self.size(1440)
        self.colors(False)
        self._complaints.clear()
        self._requests.clear()

    def close(self):
        process = getattr(self, "_process", None)
        if process is not None and process.poll() is None:
            # the session holds the browser and the processes that it started
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for descriptor in ("_send", "_receive"):
            if getattr(self, descriptor, None) is not None:
                os.close(getattr(self, descriptor))
                setattr(self, descriptor, None)
        shutil.rmtree(self._profile, ignore_errors=True)

    # The DevTools protocol.

    def call(self, method, **params):
        """Sends one command of the DevTools protocol and returns its result."""
        self._next_id += 1
        message = {"id": self._next_id, "method": method, "params": params}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._send, data):]
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self._message(deadline, method)
            if answer.get("id") == self._next_id:
                if "error" in answer:
                    gone = answer["error"].get("message", "").startswith(NAVIGATED)
                    raise (Navigated if gone else BrowserError)(f"{method}: {answer['error']}")
                return answer["result"]

    def _message(self, deadline, what):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receive], [], [],
                                        max(0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError(f"{what}: no answer from the browser")
            more = os.read(self._receive, 1 << 20)
            if not more:
                raise BrowserError(f"{what}: the browser ended")
            self._buffer += more
        message, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(message)
        self._note(message)
        return message

    def _note(self, message):
        params = message.get("params", {})
        method = message.get("method")
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self._complaints.append(
                "exception: " + details.get("exception", {}).get("description", details["text"]))
        elif (method == "Runtime.consoleAPICalled"
              and params["type"] in ("error", "warning", "assert")):
            self._complaints.append(f"console {params['type']}: " +
                                    " ".join(str(argument.get("value", argument.get("description")))
                                             for argument in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self._complaints.append(
                f"log: {params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self._requests.append(params["request"]["url"])
        elif method == "Network.webSocketCreated":
            self._requests.append(params["url"])

    def _until(self, condition, what):
        """Waits until the condition is true, also over a load of the page. A script that throws is
        not true yet: a page draws itself after it has loaded, so an element may still be missing.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            why = ""
            try:
                value = condition()
                if value:
                    return value
            except (Navigated, Thrown) as error:
                why = f": {error}"
            if time.monotonic() > deadline:
                raise BrowserError(f"gave up after {self.timeout} s waiting for {what}{why}")
            time.sleep(0.02)

    # Functions for tests.

    def open(self, where):
        """Loads a file or an address. Forgets earlier console messages and requests."""
        url = where if "://" in str(where) else pathlib.Path(where).resolve().as_uri()
        self._complaints.clear()
        self._requests.clear()
        self._own = url
        answer = self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: {answer['errorText']}")
        self.wait("document.readyState === 'complete'")

    def evaluate(self, script):
        """Returns the value of a JavaScript expression. A promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Thrown(
                f"{script}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def wait(self, script, what=None):
        """Waits until the expression is true."""
        self._until(lambda: self.evaluate(f"Boolean({script})"), what or script)

    def press(self, key, text=""):
        """Presses a key: "Tab", "Enter", "ArrowLeft", "+"."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38,
                 "ArrowRight": 39, "ArrowDown": 40}
        text = text or {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text,
                  windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def complaints(self):
        """The errors and warnings so far: those of the page's scripts, and the browser's about the
        page."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => done(true)))")
        return list(self._complaints)

    def requests(self):
        """Every address that the page has requested, except its own, blobs and inline data (data:).
        """
        self.evaluate("true")
        return [url for url in self._requests
                if url != self._own and not url.startswith(("data:", "blob:"))]

    def screenshot(self, path, whole=True):
        """Writes a PNG of the page. With `whole` it shows the whole page, not only the window."""
        more = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            more = {"clip": {"x": 0, "y": 0, "width": size["width"],
                             "height": min(size["height"], 16000), "scale": 1},
                    "captureBeyondViewport": True}
        pathlib.Path(path).write_bytes(
            base64.b64decode(self.call("Page.captureScreenshot", format="png", **more)["data"]))
        return path

    def overflow(self):
        """How many pixels the page is wider than the window; 0 if nothing scrolls sideways."""
        return self.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth")
