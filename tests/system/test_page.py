"""The web page in Debian's Chromium, against `robota serve` with a scripted model."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.exported import HOSTILE
from tests.support.page import ROOT, Stage, Watched, chromium, served, staged, watch

from robota.core.provider import ReasoningChunk
from robota.providers.scripted import call
from robota.testing.model_script import Forever, Gate, ModelReply
from robota.testing.model_server import ModelServer

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

SOURCE = "def total(subtotal, discount):\n    return subtotal - discount\n"
CODE = "```python\nreturn max(0, total)\n```"
ANSWER = f"The total is **never** negative.\n\n{CODE}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def stage(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    place = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place / "home"))
        with staged(browser, place / "shop") as made:
            yield made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    made.mkdir()
    (made / "cart.py").write_text(SOURCE)
    return made


def tab(browser: Any, url: str, width: int = 1440, height: int = 900, **options: Any) -> Watched:
    page = browser.new_context(viewport={"width": width, "height": height}, **options).new_page()
    return watch(page, url)


def edit_script(project: Path) -> list[ModelReply]:
    path = str(project / "cart.py")
    return [
        [
            ReasoningChunk("I look first."),
            "Let me see.",
            call("Read", file_path=path),
            call("Glob", pattern="*.py"),
        ],
        [
            call(
                "Edit",
                file_path=path,
                old_string="subtotal - discount",
                new_string="max(0, subtotal - discount)",
            )
        ],
        ANSWER,
    ]


def test_a_prompt_is_sent_an_edit_approved_and_everything_found_again(browser: Any, project: Path) -> None:
    with ModelServer(*edit_script(project)).in_thread() as model, served(model, project) as server:
        it = tab(browser, server.url)
        page = it.page
        page.goto(server.page)
        it.prompt("Fix the total of the cart")

        page.locator("#question .diff tr.add").wait_for()
        asked = page.inner_text("#question")
        assert "max(0, subtotal - discount)" in asked
        assert "Edit(cart.py)" in asked
        assert (project / "cart.py").read_text() == SOURCE
        page.keyboard.press("y")
        it.see("never")
        it.rest()
        assert "max(0, subtotal - discount)" in (project / "cart.py").read_text()

        page.get_by_text("Edit", exact=True).click()
        page.locator("#transcript .diff tr.add").wait_for()
        assert (
            page.locator("#transcript .diff tr.del .words").inner_text().strip()
            == "return subtotal - discount"
        )
        page.click("[data-tab=files]")
        it.see("cart.py", "#panel-body")
        page.keyboard.press("Escape")
        before = page.inner_text("#transcript")
        assert server.token not in page.url

        page.reload()
        it.see("never")
        it.rest()
        assert page.locator(".prompt").count() == 1
        page.get_by_text("Edit", exact=True).click()
        page.locator("#transcript .diff tr.add").wait_for()
        assert page.inner_text("#transcript") == before

        look_back(page)
        page.context.close()
        assert it.faults == []


def look_back(page: Any) -> None:
    """The slider shows what was there then, and its right end is now."""
    page.click("#show-replay")
    last = int(page.get_attribute("#moment", "max"))
    page.fill("#moment", "1")
    page.wait_for_function("() => !document.querySelector('.answer')")
    assert page.locator(".prompt").count() == 1
    page.press("#moment", ".")
    page.fill("#moment", str(last - 1))
    page.locator(".answer .code").wait_for()
    page.click("#replay-now")
    page.locator(".answer table").wait_for()
    assert not page.is_visible("#replay")


FRAME = "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
"""Until what was asked for is on the screen: the transcript is drawn with the next frame."""


def test_a_moment_is_the_beginning_of_another_session(browser: Any, project: Path) -> None:
    with ModelServer("first answer", "second answer").in_thread() as model, served(model, project) as server:
        it = tab(browser, server.url)
        page = it.page
        page.goto(server.page)
        with it.told():
            for words in ("first", "second"):
                it.prompt(f"{words} prompt")
                it.see(f"{words} answer")
                it.rest()
            page.click("#show-replay")
            while "second prompt" in page.inner_text("#transcript"):
                page.click("#replay-back")
                page.evaluate(FRAME)
            page.click("#replay-fork")
            page.wait_for_function("() => document.querySelectorAll('#sessions a').length === 2")
            it.see("first answer")
        assert "second prompt" not in page.inner_text("#transcript")
        page.context.close()
        assert it.faults == []


def test_a_turn_is_stopped_and_one_prompt_waits(stage: Stage) -> None:
    stage.play("Go on forever", [Forever("word ")])
    stage.play("Once more", "An answer.")
    with stage.tab() as it:
        it.prompt("Go on forever")
        it.see("word word")
        it.prompt("And then?")
        it.page.locator("#ghost").get_by_text("And then?").wait_for()
        it.page.click("#cancel-queue")
        it.page.locator("#ghost").wait_for(state="hidden")
        it.page.keyboard.press("Escape")
        it.see("Stopped.")
        it.rest()
        it.prompt("Once more")
        it.see("An answer.")


def test_typing_answers_no_question(stage: Stage) -> None:
    gate = Gate()
    stage.play("Make it", [gate, call("Bash", command="touch made")], "I did not.")
    with stage.tab() as it:
        page = it.page
        it.prompt("Make it")
        page.locator("#stop").wait_for()
        page.type("#prompt", "any")
        gate.open()
        page.locator("#question").wait_for()
        page.keyboard.type("yay")
        assert page.input_value("#prompt") == "anyyay"
        assert page.is_visible("#question")
        page.locator("#question").focus()
        page.keyboard.press("n")
        it.see("I did not.")
        assert not (stage.cwd / "made").exists()


def test_two_tabs_see_the_same_and_one_of_them_answers(stage: Stage) -> None:
    stage.play("Write both", [call("Write", file_path="both.py", content=SOURCE)], ANSWER)
    with stage.tab() as one:
        one.prompt("Write both")
        one.page.locator("#question .diff").wait_for()
        with stage.tab(390, 844, session=one.session) as two:
            two.page.locator("#question .diff").wait_for()
            one.page.get_by_role("button", name="Allow once").click()
            two.page.locator("#question").get_by_text("Allowed once").wait_for()
            two.page.locator("#question").wait_for(state="hidden")
            for it in (one, two):
                it.see("never")
                it.rest()
            assert shown(one) == shown(two)


def shown(it: Watched) -> list[str]:
    """The blocks by their numbers, without what differs by width."""
    found: list[str] = it.page.evaluate(
        "() => [...document.querySelectorAll('.block')].map((e) => `${e.dataset.seq} ${e.classList[1]}`)"
    )
    return found


def test_a_server_that_was_killed_is_found_again_without_a_word(browser: Any, project: Path) -> None:
    token = "a-token-of-the-tests"
    with ModelServer("first answer", "second answer").in_thread() as model:
        it = tab(browser, "http://127.0.0.1")
        page = it.page
        with served(model, project, token=token) as server:
            page.goto(server.page)
            it.prompt("first prompt")
            it.see("first answer")
            it.rest()
            server.process.kill()
            page.locator("#lost").wait_for()
        with served(model, project, port=server.port, token=token):
            page.locator("#lost").wait_for(state="hidden")
            it.prompt("second prompt")
            it.see("second answer")
            it.rest()
            assert page.locator(".prompt").count() == 2
        page.context.close()


HELD_UNTIL_STORED = """() => {
    const send = window.fetch
    const stored = () => document.getElementById('state').classList.contains('stored')
    const open = async (path, {headers}) => {
        const answer = await send(path.replace('/submit', ''), {headers}).catch(() => null)
        return answer?.ok && (await answer.json()).state !== 'stored'
    }
    window.fetch = async (path, options) => {
        while (path.endsWith('/submit') && !stored() && !(await open(path, options)))
            await new Promise(requestAnimationFrame)
        return send(path, options)
    }
}"""
"""Has a prompt reach the server after the page has heard that the session is not open there; unless the panel
beside the conversation was faster, whose questions open it."""


def test_a_prompt_that_was_on_its_way_while_the_server_began_anew_is_answered(
    browser: Any, project: Path
) -> None:
    token = "a-token-of-the-tests"
    with ModelServer("first answer", "second answer").in_thread() as model:
        it = tab(browser, "http://127.0.0.1")
        page = it.page
        with served(model, project, token=token) as server:
            page.goto(server.page)
            it.prompt("first prompt")
            it.see("first answer")
            it.rest()
            page.evaluate(HELD_UNTIL_STORED)
            server.process.kill()
            page.locator("#lost").wait_for()
            it.prompt("second prompt")
        with served(model, project, port=server.port, token=token):
            it.see("second answer")
            it.rest()
            assert page.locator(".prompt").count() == 2
        page.context.close()


OLD_NEWS = """() => {
    const send = window.fetch
    const frames = async count => {
        while (count--) await new Promise(requestAnimationFrame)
    }
    let submitted
    const done = new Promise(resolve => (submitted = resolve))
    window.fetch = async (path, options) => {
        const answer = await send(path, options)
        if (path.endsWith('/submit')) frames(20).then(submitted) // what follows it is done by then
        if (/[/]sessions[/][^/?]+$/.test(path)) await done
        return answer
    }
}"""
"""Has the page hear that the session is not open there after a prompt has opened it."""


def test_a_prompt_that_overtakes_the_news_that_the_server_began_anew_is_answered(
    browser: Any, project: Path
) -> None:
    token = "a-token-of-the-tests"
    with ModelServer("first answer", "second answer").in_thread() as model:
        it = tab(browser, "http://127.0.0.1")
        page = it.page
        with served(model, project, token=token) as server:
            page.goto(server.page)
            it.prompt("first prompt")
            it.see("first answer")
            it.rest()
            page.evaluate(OLD_NEWS)
            server.process.kill()
            page.locator("#lost").wait_for()
        with served(model, project, port=server.port, token=token), it.told():
            with page.expect_request(re.compile(r"/sessions/[^/?]+$")):
                pass
            it.prompt("second prompt")
            it.see("second answer")
            it.rest()
            assert page.locator(".prompt").count() == 2
        page.context.close()


def test_hostile_text_is_text(browser: Any, project: Path) -> None:
    attacks = [
        *HOSTILE,
        "turned \u202e order \u200b and \x1b[31mred\x07",
        "x" * 300_000,
        "# " * 2000,
        "[" * 5000,
        "*" * 5000,
    ]
    hostile = "\n\n".join(attacks)
    (project / "bad.txt").write_text(hostile)
    script = [
        [
            hostile,
            call("Bash", command="cat bad.txt # \u202e\u200b"),
            call("Read", file_path=str(project / "bad.txt")),
        ],
        hostile,
    ]
    with ModelServer(*script).in_thread() as model, served(model, project) as server:
        it = tab(browser, server.url)
        page = it.page
        page.goto(server.page)
        it.prompt(hostile[:5000])
        page.locator("#question").wait_for()
        assert "\\u202e\\u200b" in page.inner_text("#question")
        page.keyboard.press("y")
        it.rest()
        page.evaluate("() => document.querySelectorAll('.call').forEach((each) => (each.open = true))")
        page.locator(".call-body .code").first.wait_for()
        facts = page.evaluate(
            """() => ({
                title: document.title,
                scripts: document.querySelectorAll('script').length,
                images: document.querySelectorAll('#transcript img').length,
                links: [...document.querySelectorAll('a[data-leave]')].map((each) => each.protocol),
                forged: document.querySelectorAll('#transcript h1').length,
                text: document.querySelector('#transcript').textContent,
            })"""
        )
        assert "owned" not in facts["title"].split("<")[0]
        assert (facts["scripts"], facts["images"], facts["forged"]) == (1, 0, 0)
        assert set(facts["links"]) <= {"http:", "https:"}
        assert "\\u202e order" in facts["text"]
        assert not any(sign in facts["text"] for sign in "\u202e\x1b\x07")
        page.locator("#transcript a[data-leave]").first.click()
        assert "https://" in page.inner_text("#leave-url")
        page.click("#leave-stay")
        page.context.close()
        assert it.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_serious_is_found_by_axe(stage: Stage, scheme: str, width: int) -> None:
    axe = (ROOT / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js").read_text()
    prompt, name = f"Write {scheme} {width}", f"{scheme}{width}.py"
    look = [
        ReasoningChunk("I look first."),
        "Let me see.",
        call("Read", file_path="a"),
        call("Glob", pattern="*"),
    ]
    stage.play(prompt, look, [call("Write", file_path=name, content=SOURCE)], ANSWER)
    with stage.tab(width, 844, color_scheme=scheme, reduced_motion="reduce") as it:
        page = it.page
        page.locator("#welcome").wait_for()
        assert serious(page, axe) == []
        it.prompt(prompt)
        page.locator("#question .diff").wait_for()
        assert serious(page, axe) == []
        page.keyboard.press("y")
        it.see("never")
        it.rest()
        page.click("#show-replay")
        page.evaluate("() => document.querySelectorAll('details').forEach((each) => (each.open = true))")
        for tab in ("context", "cost", "files", "tasks"):
            page.click(f"[data-tab={tab}]")
            assert serious(page, axe) == []


def serious(page: Any, axe: str) -> list[str]:
    page.evaluate(axe)  # by the debugger, which the content policy does not concern
    found = page.evaluate("async () => (await axe.run()).violations")
    return [
        f"{each['id']}: {node['target']} {node.get('failureSummary', '')}"
        for each in found if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]  # fmt: skip


def test_twenty_thousand_deltas_make_no_long_task(browser: Any, project: Path) -> None:
    words = [f"word{number} " for number in range(20_000)]
    for number in range(0, 20_000, 40):
        kind = number // 40 % 5
        words[number] = ["\n\n", "\n\n## Heading\n\n", "\n\n```python\n", "\n```\n\n- ", "\n- "][kind]
    tasks = stream_words(browser, project, words)
    for _ in range(2):  # what the page itself makes long is long every time; a pause of the browser is not
        tasks = tasks and stream_words(browser, project, words)
    assert tasks == []


def stream_words(browser: Any, project: Path, words: list[str]) -> list[str]:
    """Have them all said and drawn; the long tasks meanwhile."""
    gate = Gate()
    with (
        ModelServer([gate, *words, "\n\nThe very end."]).in_thread() as model,
        served(model, project) as server,
    ):
        it = tab(browser, server.url)
        page = it.page
        page.goto(server.page)
        it.prompt("Talk")
        page.locator("#stop").wait_for()
        browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline", "__metadata"])
        gate.open()
        # Asked cheaply, because the question itself is a task of the page.
        last = "document.querySelector('.answer > :last-child')?.lastChild.textContent"
        with it.told():
            page.wait_for_function(f"() => {last} === 'The very end.'")
        tasks = long_tasks(browser.stop_tracing())
        heard = page.evaluate("() => document.querySelector('.answer').textContent.match(/word/g).length")
        page.context.close()
        assert heard == 20_000 - 500
        assert it.faults == []
        return tasks


def long_tasks(trace: bytes) -> list[str]:
    """The tasks of the page's main thread that took more than 50 ms of the processor: how long a busy machine
    let one wait says nothing about the page."""
    events = json.loads(trace)["traceEvents"]
    main = {
        (each["pid"], each["tid"]) for each in events
        if each.get("name") == "thread_name" and each["args"].get("name") == "CrRendererMain"
    }  # fmt: skip
    tasks = [
        each for each in events
        if (each["pid"], each["tid"]) in main and each.get("name", "").endswith("RunTask") and "tdur" in each
    ]  # fmt: skip
    assert len(tasks) > 100
    return [f"{each['tdur'] / 1000:.0f} ms" for each in tasks if each["tdur"] > 50_000]


def test_the_parts_that_need_no_browser() -> None:
    tests = ROOT / "tests" / "system" / "page" / "modules.test.mjs"
    web = ROOT / "src" / "robota" / "transports" / "web"
    done = subprocess.run(
        ["node", "--test", str(tests)],
        env={**os.environ, "WEB": str(web)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
