"""The web page in a real browser, served by the real command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from msgspec import Struct
from tests.support.command import environment, place

from robota.testing.http_server import ReceivedRequest
from robota.testing.model_script import ModelReply
from robota.testing.model_server import ModelServer

ROOT = Path(__file__).parent.parent.parent
BROWSER = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

FRAMES = """() => Promise.race([
    new Promise(done => requestAnimationFrame(() => done("frames come"))),
    new Promise(done => setTimeout(() => done("no frames come"), 2000)),
])"""


class Served(Struct):
    """A server that runs, and the address of its page."""

    process: subprocess.Popen[str]
    url: str
    token: str
    port: int

    @property
    def page(self) -> str:
        return f"{self.url}/#token={self.token}"


@contextmanager
def served(
    model: ModelServer, cwd: Path, *arguments: str, port: int = 0, token: str = ""
) -> Iterator[Served]:
    """`robota serve` in a process of its own, until the block ends."""
    words = ["serve", "--json", "--port", str(port), *(("--token", token) if token else ()), *arguments]
    with open(cwd.parent / "serve.log", "a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "robota", *words],
            cwd=cwd, env=environment(**place(model)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=log, text=True,
        )  # fmt: skip
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said, (cwd.parent / "serve.log").read_text()
        facts = json.loads(said)
        url = str(facts["url"]).split("/#")[0].rstrip("/")
        yield Served(process, url, facts["token"], int(url.rsplit(":", 1)[1]))
    finally:
        process.terminate()
        process.communicate(timeout=30)


@contextmanager
def chromium() -> Iterator[Any]:
    """Debian's browser, without a screen."""
    sys.path.append(str(ROOT / ".venv" / "page"))
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    assert found, "chromium is missing: run `make test-system`, which installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=BROWSER)
        try:
            yield browser
        finally:
            browser.close()


class Watched(Struct):
    """A tab, and everything it did that it should not."""

    page: Any
    faults: list[str]

    def prompt(self, text: str) -> None:
        self.page.fill("#prompt", text)
        self.page.press("#prompt", "Enter")

    def see(self, text: str, where: str = "#transcript") -> None:
        """Wait until it is shown."""
        self.page.locator(where).get_by_text(text).first.wait_for()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Whatever fails inside, tell what was on the page."""
        try:
            yield
        except Exception as error:
            error.add_note(f"{self.page.url} {self.faults} {self.page.evaluate(FRAMES)}")
            error.add_note(self.page.evaluate("() => document.body.innerText")[-2000:])
            raise

    @property
    def session(self) -> str:
        return str(self.page.url.split("session=")[1].split("&")[0])

    def rest(self) -> None:
        """Wait until no turn is under way."""
        self.page.wait_for_function(
            "() => /idle|failed|stored/.test(document.getElementById('state').className)"
        )


class Stage(Struct):
    """A server and a browser for many tests: what the model says is told by the prompt it is asked."""

    browser: Any
    server: Served
    cwd: Path
    replies: dict[str, list[ModelReply]]
    requests: list[ReceivedRequest]

    def play(self, prompt: str, *replies: ModelReply) -> None:
        self.replies[prompt] = list(replies)

    def answer(self, request: ReceivedRequest) -> ModelReply:
        self.requests.append(request)
        said = json.dumps(read_prompts(request), ensure_ascii=False)
        return next(replies.pop(0) for prompt, replies in self.replies.items() if prompt in said and replies)

    def asked(self, prompt: str) -> Any:
        """What the model was given as the prompt."""
        found = [read_prompts(each)[-1] for each in self.requests]
        return next(each for each in found if prompt in json.dumps(each))

    def post(self, path: str, **fields: Any) -> Any:
        request = Request(
            self.server.url + path,
            json.dumps(fields).encode(),
            {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"},
        )
        with urlopen(request) as reply:
            return json.load(reply)

    @contextmanager
    def tab(
        self, width: int = 1440, height: int = 900, *, session: str = "", **options: Any
    ) -> Iterator[Watched]:
        """The page with a new session, or with one that is there; nothing may go wrong in it."""
        size: Any = {"width": width, "height": height}
        page = self.browser.new_context(viewport=size, **options).new_page()
        it = watch(page, self.server.url)
        page.goto(f"{self.server.page}{f'&session={session}' if session else ''}")
        page.wait_for_selector("body.arrived")
        if not session:
            page.evaluate("() => document.getElementById('new').click()")
        with it.told():
            yield it
        page.context.close()
        assert it.faults == []


def read_prompts(request: ReceivedRequest) -> list[Any]:
    body: Any = request.body
    return [each["content"] for each in body["messages"] if each["role"] == "user"]


@contextmanager
def staged(browser: Any, cwd: Path) -> Iterator[Stage]:
    """A stage whose server has a directory of its own."""
    cwd.mkdir(parents=True)
    played: list[Stage] = []
    model = ModelServer(lambda request: played[0].answer(request), repeat=True)
    with model.in_thread(), served(model, cwd) as server:
        played.append(Stage(browser, server, cwd, {}, []))
        yield played[0]


def watch(page: Any, url: str) -> Watched:
    """Note what fails, what the content policy stops, and requests to other hosts."""
    page.set_default_timeout(150_000)  # a disk that is busy with others stops everything for a minute
    found = Watched(page, [])
    page.on("pageerror", lambda error: found.faults.append(f"error: {error}"))
    page.on(
        "console",
        lambda said: (
            said.type == "error"
            and "ERR_INCOMPLETE" not in said.text
            and found.faults.append(f"console: {said.text}")
        ),
    )
    page.on(
        "request",
        lambda asked: asked.url.startswith((url, "data:", "blob:")) or found.faults.append(asked.url),
    )
    page.add_init_script(
        "addEventListener('securitypolicyviolation', (e) => console.error('policy', e.blockedURI))"
    )
    return found
