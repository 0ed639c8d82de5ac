"""What people do with the page beside a plain turn, in Debian's Chromium; all on one server."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.terminal import idle, leave, ready, robota_terminal
from tests.support.page import Stage, chromium, staged

from robota.core.provider import ReasoningChunk
from robota.providers.scripted import call
from robota.testing.model_script import Gate

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPj/HwADAgH/p9sZ3QAAAABJRU5ErkJggg=="
)
PASTE = """([type, target, data]) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))
    const given = new DataTransfer()
    given.items.add(new File([bytes], 'dot.png', {type: 'image/png'}))
    const made = type === 'paste'
        ? new ClipboardEvent(type, {clipboardData: given, bubbles: true, cancelable: true})
        : new DragEvent(type, {dataTransfer: given, bubbles: true, cancelable: true})
    document.querySelector(target).dispatchEvent(made)
}"""
DRAWN = """() => {
    const images = [...document.querySelectorAll('.thumb img')]
    return images.length === 2 && images.every((image) => image.naturalWidth === 1)
}"""
CUT_OFF = """() => {
    const {scrollHeight, clientHeight} = document.getElementById('scroll')
    return scrollHeight - clientHeight
}"""
FOCUSED = """() => {
    const {id, dataset, className} = document.activeElement
    return id || dataset.tab || dataset.id || className
}"""
AT_THE_END = """() => {
    const {scrollTop, scrollHeight, clientHeight} = document.getElementById('scroll')
    return scrollHeight - scrollTop - clientHeight < 60
}"""
FITS = "() => document.scrollingElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    place = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place / "home"))
        with chromium() as browser, staged(browser, place / "shop") as made:
            yield made


def test_those_who_watch_see_each_other_and_who_writes_and_who_answered(stage: Stage) -> None:
    stage.play("Make a file", [call("Bash", command="touch made")], "It is made.")
    with stage.tab() as one:
        one.page.click("#me")
        one.page.fill("#ask-words", "Anna 안나")
        one.page.keyboard.press("Enter")
        one.prompt("Make a file")
        one.page.locator("#question").wait_for()
        with stage.tab(390, session=one.session) as two:
            two.page.locator("#people[title='Also here: Anna 안나']").wait_for()
            one.page.type("#prompt", "and then")
            two.see("Anna 안나 is writing", "#doing")
            one.page.locator("#question").focus()
            one.page.keyboard.press("y")
            two.see("Allowed once by Anna 안나.", "#question")
            two.see("It is made.")
        one.page.locator("#people").wait_for(state="hidden")


def test_a_terminal_and_the_page_show_one_session(stage: Stage) -> None:
    stage.play("typed on the page", "Said to the page.")
    stage.play("typed in the terminal", "Said to the terminal.")
    with stage.tab() as it:
        it.prompt("typed on the page")
        it.see("Said to the page.")
        it.rest()
        with robota_terminal(stage.cwd, "--attach", stage.server.page, "-r", it.session) as terminal:
            ready(terminal)
            terminal.until("Said to the page.")
            terminal.type("typed in the terminal\r")
            terminal.until("Said to the terminal.")
            it.see("typed in the terminal")
            it.see("Said to the terminal.")
            idle(terminal)
            it.rest()
            stage.play("and once more", "Said to both.")
            it.prompt("and once more")
            it.see("Said to both.")
            terminal.until("Said to both.")
            idle(terminal)
            assert "> and once more" in terminal.lines
            assert leave(terminal) == 0


def test_a_directory_that_wants_something_is_asked_about_before_the_first_prompt(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"permissions": {"allow": ["Bash(make test)"]}}')
    stage.play("Begin", "I begin.")
    id = stage.post("/sessions", cwd=str(tmp_path))["id"]
    with stage.tab(session=id) as it:
        it.see("Bash(make test)", "#question")
        assert "not trusted" in it.page.inner_text("#place")
        it.prompt("Begin")
        it.see("First: may this directory", "#fault")
        assert it.page.locator(".prompt").count() == 0
        it.page.get_by_role("button", name="Trust it").click()
        it.see("I begin.")
        assert "not trusted" not in it.page.inner_text("#place")
        assert it.page.input_value("#prompt") == ""


def test_images_are_pasted_and_dropped_and_drawn_again_after_a_reload(stage: Stage) -> None:
    stage.play("What is this?", "Two dots.")
    with stage.tab() as it:
        data = base64.b64encode(DOT).decode()
        it.page.evaluate(PASTE, ["paste", "#prompt", data])
        it.page.evaluate(PASTE, ["drop", "#scroll", data])
        it.page.locator("#attached li:nth-child(2)").wait_for()
        it.page.evaluate(PASTE, ["paste", "#prompt", data])
        it.page.locator("#attached li:nth-child(3) button").click()
        it.prompt("What is this?")
        it.see("Two dots.")
        for _ in range(2):
            it.page.wait_for_function(DRAWN)
            it.page.reload()
    # A model that nobody knows is told that it was not given them.
    assert ["left out" in part["text"] for part in stage.asked("What is this?")] == [False, True, True]


def test_choices_and_plans_are_answered_with_keys(stage: Stage) -> None:
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue"}]
    several = [{"question": "Which days?", "options": options, "multiSelect": True}]
    stage.play(
        "Ask me",
        [call("AskUserQuestion", questions=[{"question": "Which colour?", "options": options}])],
        [call("AskUserQuestion", questions=several)],
        [call("EnterPlanMode")],
        [call("ExitPlanMode", plan="# First\n\nThen the rest.")],
        "All answered.",
    )
    with stage.tab() as it:
        it.prompt("Ask me")
        it.see("Which colour?", "#question h2")
        it.page.keyboard.press("2")
        it.see("Which days?", "#question h2")
        for key in "12y":
            it.page.keyboard.press(key)
        it.see("Go to work on this plan?", "#question h2")
        it.page.fill("#question .reply", "Mind the gap.")
        it.page.locator("#question").focus()
        it.page.keyboard.press("y")
        it.see("All answered.")
        said = it.page.inner_text("#transcript")
        assert "Blue" in said
        assert "Red, Blue" in said
        assert "Mind the gap." in said


def test_a_form_gives_values_of_the_kinds_that_were_asked_for(stage: Stage) -> None:
    with stage.tab() as it:
        given = it.page.evaluate(
            """async () => {
                const {start, draw} = await import('/question.js')
                const schema = {
                    properties: {
                        name: {type: 'string', title: 'Name'}, size: {type: 'integer', default: 3},
                        kind: {enum: ['a', 'b']}, sure: {type: 'boolean'},
                    },
                    required: ['name'],
                }
                const question = {id: 'f', kind: 'form', message: 'Who?', schema, server: 'desk'}
                const answers = []
                start((_, answer) => answers.push(answer))
                draw(new Map([['f', question]]), null, true)
                const find = (words) => document.querySelector(`#question ${words}`)
                find('[data-key=y]').click()
                find('input:not([type=number],[type=checkbox])').value = 'Bo'
                find('select').value = 'b'
                find('[type=checkbox]').click()
                find('[data-key=y]').click()
                return answers
            }"""
        )
        content = {"name": "Bo", "size": 3, "kind": "b", "sure": True}
        assert given == [{"action": "accept", "content": content}]


def test_a_long_conversation_has_few_elements_until_it_is_printed(stage: Stage) -> None:
    steps = [step for n in range(200) for step in (ReasoningChunk(f"thought {n}"), f"answer {n}\n")]
    stage.play("Talk long", steps)
    with stage.tab() as it:
        page = it.page
        it.prompt("Talk long")
        it.see("answer 199")
        it.rest()
        blocks = page.locator(".block")
        page.wait_for_function("() => document.querySelectorAll('.block').length < 250")
        page.evaluate("() => document.getElementById('scroll').scrollTo(0, 0)")
        it.see("Talk long")
        it.see("answer 3")
        assert page.evaluate("() => document.getElementById('scroll').scrollTop") == 0
        assert blocks.count() < 300
        page.click("#pill")
        it.see("answer 199")
        page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert blocks.count() > 400
        assert page.locator("#composer").is_hidden()
        assert page.evaluate(CUT_OFF) < 2
        seq = page.locator(".block").filter(has_text="answer 7").first.get_attribute("data-seq")
        page.emulate_media(media="screen")
        page.evaluate("() => dispatchEvent(new Event('afterprint'))")
        page.wait_for_function("() => document.querySelectorAll('.block').length < 250")
        page.goto(f"{page.url.split('&')[0]}&event={seq}")
        page.locator(f".found[data-seq='{seq}']").wait_for()


@pytest.mark.parametrize(("width", "height", "scale"), [(320, 640, 1), (640, 400, 2)])
def test_nothing_is_cut_off_on_a_narrow_or_enlarged_page(
    stage: Stage, width: int, height: int, scale: int
) -> None:
    command = "echo " + "word" * 60
    table = f"| {'a |' * 30}\n|{'---|' * 30}\n\n`{'x' * 400}`"
    stage.play(f"Wide {width}", [table, call("Bash", command=command)], "Wide.")
    with stage.tab(width, height, device_scale_factor=scale) as it:
        page = it.page
        it.prompt(f"Wide {width}")
        page.locator("#question").wait_for()
        page.wait_for_function(AT_THE_END)  # though the card has taken its place
        assert page.evaluate(FITS)
        for name in ("Allow once", "Refuse", "Edit"):
            button = page.locator("#question").get_by_role("button", name=name)
            button.scroll_into_view_if_needed()
            assert button.bounding_box()["y"] + 20 < height
        page.locator("#question").get_by_role("button", name="Allow once").click()
        it.see("Wide.")
        page.click("#show-replay")
        for tab in ("context", "cost", "files", "tasks"):
            page.locator(f"[data-tab={tab}]").click()
            assert page.evaluate(FITS)


def test_everything_is_reached_with_the_keyboard(stage: Stage) -> None:
    gate = Gate()
    stage.play(
        "Look", [call("Glob", pattern="*.py"), "See `code`:\n\n```py\nx = 1\n\ty\n```\n"], ["Seen.", gate]
    )
    with stage.tab(permissions=["clipboard-read", "clipboard-write"]) as it:
        page = it.page
        page.keyboard.type("Look")
        page.keyboard.press("Enter")
        it.see("Seen.")
        page.keyboard.press("Escape")
        it.see("Stopped.")
        gate.open()
        page.locator("#new").focus()
        seen = ["new"]
        while "panel-body" not in seen:
            page.keyboard.press("Tab")
            seen.append(page.evaluate(FOCUSED))
            assert len(seen) < 80, seen
        wanted = ["new", "search", it.session, "me", "name", "mode", "show-replay", "theme", "show-panel"]
        assert [
            each for each in (*wanted, "scroll", "prompt", "tab-context", "cost") if each not in seen
        ] == []
        page.locator(".call summary").focus()
        page.keyboard.press("Enter")
        page.locator(".call-body dl").wait_for()
        page.locator(".answer .copy").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("async () => (await navigator.clipboard.readText()) === 'x = 1\\n\\ty'")
        page.locator("#tab-context").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Conversation").focus()
        page.keyboard.press("Enter")
        it.see("Prompts", "#panel-body .parts")
        assert page.evaluate("() => document.activeElement.textContent.startsWith('Conversation')")
        page.get_by_role("button", name="Role").click()
        it.see("You are robota", "#panel-body")
        page.locator("#scroll").focus()
        for key in "r,":
            page.keyboard.press(key)
        page.locator("#replay-now").wait_for()
        page.keyboard.press("End")
        page.locator("#replay-now").wait_for(state="hidden")
        page.locator("#scroll").focus()
        page.keyboard.press("r")
        for key, place in (("/", "search"), ("Escape", ""), ("i", "prompt")):
            page.keyboard.press(key)
            assert page.evaluate("() => document.activeElement.id") == place
