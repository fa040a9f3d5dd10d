"""Headless Chromium, driven over its DevTools protocol: a page is opened, clicked and read as a
person does it."""

import base64
import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import urllib.parse

from waiting import PATIENCE_S, eventually

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
STARTS_WITHIN_S = 60
CONTINUATION, TEXT, CLOSE, PING, PONG = 0, 1, 8, 9, 10


class WebSocket:
    """A WebSocket client (RFC 6455) with what DevTools needs of it: text messages and pings."""

    def __init__(self, url):
        at = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((at.hostname, at.port), timeout=60)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            (
                f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
            ).encode()
        )
        status = self.file.readline()
        assert b" 101 " in status, status
        while self.file.readline().strip():
            pass

    def send(self, payload, opcode=TEXT):
        mask = os.urandom(4)
        size = len(payload)
        length = (
            struct.pack("!B", 128 | size)
            if size < 126
            else struct.pack("!BH", 254, size)
            if size < 1 << 16
            else struct.pack("!BQ", 255, size)
        )
        self.socket.sendall(
            struct.pack("!B", 128 | opcode)
            + length
            + mask
            + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        )

    def read(self, count):
        data = self.file.read(count)
        if len(data) < count:
            raise ConnectionError("the browser closed its connection")
        return data

    def receive(self):
        """Returns the next text message in full."""
        message = b""
        while True:
            first, second = self.read(2)
            size = second & 127
            if size == 126:
                (size,) = struct.unpack("!H", self.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self.read(8))
            payload, opcode = self.read(size), first & 15
            if opcode == PING:
                self.send(payload, PONG)
            elif opcode == CLOSE:
                raise ConnectionError("the browser closed its connection")
            elif opcode in (TEXT, CONTINUATION):
                message += payload
                if first & 128:
                    return message.decode()

    def close(self):
        self.file.close()
        self.socket.close()


class PageLeft(AssertionError):
    """The page left the document in which an expression was evaluated before its value was
    known."""


class Page:
    """A tab. `problems` holds what the page complained about: exceptions, refused resources and
    errors of its console."""

    def __init__(self, connection, session):
        self.connection, self.session, self.number, self.problems, self.requests, self.frames = (
            connection,
            session,
            0,
            [],
            [],
            [],
        )
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # The browser runs a frame of another origin in a process of its own.
        self.call(
            "Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True
        )

    def call(self, method, session=None, **parameters):
        self.number += 1
        session = session or self.session
        self.connection.send(
            json.dumps(
                {"id": self.number, "method": method, "params": parameters, "sessionId": session}
            ).encode()
        )
        while True:
            message = json.loads(self.connection.receive())
            if message.get("id") == self.number and message.get("sessionId") == session:
                error = message.get("error")
                if error and "navigated or closed" in error["message"]:
                    raise PageLeft(f"{method}: {error}")
                assert not error, f"{method}: {error}"
                return message["result"]
            self.note(message)

    def note(self, message):
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(
                f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}"
            )
        elif message.get("method") == "Fetch.requestPaused":
            self.answer(parameters)
        elif message.get("method") == "Target.attachedToTarget":
            self.frames.append(parameters["sessionId"])
        elif message.get("method") == "Target.detachedFromTarget":
            self.frames = [frame for frame in self.frames if frame != parameters["sessionId"]]
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def serve(self, files):
        """Answers requests for other machines from files, by URL, and refuses all others."""
        self.files = files
        self.call("Fetch.enable", patterns=[{"urlPattern": "https://*"}])

    def answer(self, paused):
        file = self.files.get(paused["request"]["url"])
        call = {"method": "Fetch.failRequest", "params": {"errorReason": "AddressUnreachable"}}
        if file:
            answer = {"responseCode": 200, "body": base64.b64encode(file.read_bytes()).decode()}
            call = {"method": "Fetch.fulfillRequest", "params": answer}
        call["params"]["requestId"] = paused["requestId"]
        # The answer is not awaited, because another call is under way. No other call has the number
        # 0.
        self.connection.send(json.dumps({"id": 0, "sessionId": self.session, **call}).encode())

    def run(self, script, frame=None):
        """Evaluates an expression and returns its value; a promise is awaited. frame: one of
        `frames`."""
        answer = self.call(
            "Runtime.evaluate",
            session=frame,
            expression=script,
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def until(self, script, seconds=PATIENCE_S):
        """Waits for the first true value of an expression, in this document or in one that replaces
        it."""

        def value_now():
            with contextlib.suppress(PageLeft):
                return self.run(script)

        value = eventually(value_now, seconds)
        assert value, (
            f"never true: {script}\n{self.run('document.body.innerText')}\n{self.problems}"
        )
        return value

    def has(self, text, seconds=PATIENCE_S):
        self.until(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def click(self, selector, text=None, seconds=PATIENCE_S):
        """Clicks with the mouse in the middle of the first element that matches and has the text,
        after scrolling it into view. The element must lie still where the mouse hits it, and a
        click that came elsewhere, because the page moved or replaced it meanwhile, is made again.
        """
        find = (
            f"[...document.querySelectorAll({json.dumps(selector)})].find((one) => one.checkVisibility() && "
            f"({json.dumps(text)} === null || one.textContent.trim() === {json.dumps(text)}))"
        )
        point = f"""(async () => {{
            const place = () => {{
                const found = {find};
                if (!found) return null;
                found.scrollIntoView({{ block: "center", inline: "center" }});
                const box = found.getBoundingClientRect();
                const at = {{ found, x: box.x + box.width / 2, y: box.y + box.height / 2 }};
                const hit = document.elementFromPoint(at.x, at.y);
                return box.width && found.contains(hit) ? at : null;
            }};
            const before = place();
            await new Promise((done) => setTimeout(done, 20));
            const now = place();
            if (!before || !now) return null;
            if (Object.keys(now).some((key) => now[key] !== before[key])) return null;
            window.clickHit = false;
            const note = (event) => {{ window.clickHit ||= now.found.contains(event.target); }};
            document.addEventListener("click", note, {{ capture: true, once: true }});
            return {{ x: now.x, y: now.y }};
        }})()"""

        def is_clicked():
            place = self.until(point, seconds)
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                self.call(
                    "Input.dispatchMouseEvent",
                    type=kind,
                    button="none" if kind == "mouseMoved" else "left",
                    clickCount=1,
                    **place,
                )
            # A document that replaced the one with the element knows of no click.
            with contextlib.suppress(PageLeft):
                return self.run("window.clickHit !== false")
            return True

        assert eventually(is_clicked, seconds), f"every click missed {selector} {text or ''}"

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press_enter(self):
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key="Enter",
                code="Enter",
                windowsVirtualKeyCode=13,
                text="\r" if kind == "keyDown" else "",
            )

    def size(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(
            base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        )


class Browser:
    def __init__(self, directory):
        self.profile = pathlib.Path(directory) / "chromium"
        self.downloads = pathlib.Path(directory) / "downloads"
        self.downloads.mkdir()
        self.process = subprocess.Popen(
            [
                CHROMIUM,
                "--headless=new",
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-port=0",
                f"--user-data-dir={self.profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(directory)},
        )
        announced = self.profile / "DevToolsActivePort"
        assert eventually(
            lambda: (
                announced.exists()
                and announced.read_text().count("\n") >= 1
                or self.process.poll() is not None
            ),
            STARTS_WITHIN_S,
        ), "Chromium does not start"
        port, path = announced.read_text().split()
        self.connection = WebSocket(f"ws://127.0.0.1:{port}{path}")
        self.number = 0

    def call(self, method, **parameters):
        self.number += 1
        # The ids of the browser's questions must differ from the ids that a page uses.
        identity = 1_000_000 + self.number
        self.connection.send(
            json.dumps({"id": identity, "method": method, "params": parameters}).encode()
        )
        while True:
            message = json.loads(self.connection.receive())
            if message.get("id") == identity:
                error = message.get("error")
                if error and "navigated or closed" in error["message"]:
                    raise PageLeft(f"{method}: {error}")
                assert not error, f"{method}: {error}"
                return message["result"]

    def page(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        return Page(self.connection, session)

    def downloaded_file(self, seconds=PATIENCE_S):
        """Waits until a download is complete, and returns its path. Chromium reserves the name with
        an empty file, which the complete one then replaces."""
        found = eventually(
            lambda: [
                path
                for path in self.downloads.iterdir()
                if path.suffix != ".crdownload" and path.stat().st_size > 0
            ],
            seconds,
        )
        assert found, "nothing was downloaded"
        return found[0]

    def downloaded(self):
        """Waits until a download is complete, returns its text and removes the file."""
        file = self.downloaded_file()
        text = file.read_text()
        file.unlink()
        return text

    def close(self):
        with contextlib.suppress(ConnectionError, AssertionError, OSError):
            self.call("Browser.close")
        self.connection.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def browser(directory):
    made = Browser(directory)
    try:
        yield made
    finally:
        made.close()
