from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from robota.testing import ErrorEvent, HttpError, ModelServer, call

pytest_plugins = ["pytester"]

QUIET = ("-q", "-p", "no:cacheprovider")
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
CONFTEST = """
import os
import pytest
from robota.providers.openai_compatible import OpenAICompatibleProvider

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.fixture
def ask(robota_cassette):
    '''Asks the model and gives its words.'''
    from robota import Robota

    async def ask(prompt, **options):
        async with robota_cassette.provider(
            OpenAICompatibleProvider, api_key=os.environ.get("KEY"), base_url=os.environ["SERVICE"] + "/v1"
        ) as provider:
            return await Robota(provider, model="m", **options).run(prompt)

    return ask
"""
HELLO = """
import pytest
pytestmark = pytest.mark.anyio

async def test_hello(ask):
    assert (await ask("Hello")).text == "Good day."
"""


class Loaded:
    """The modules that runs in this process have loaded. `pytester` forgets them after every run and again
    after the test, and with the next import there would be two of each."""

    def __init__(self, project: Path) -> None:
        self.project = f"{project}/"
        self.modules: dict[str, ModuleType] = {}

    def pytest_sessionfinish(self) -> None:
        self.modules |= sys.modules

    def keep(self) -> None:
        for name, module in self.modules.items():
            if not (getattr(module, "__file__", None) or "/").startswith(self.project):
                sys.modules.setdefault(name, module)


@pytest.fixture
def loaded(tmp_path):
    loaded = Loaded(tmp_path.parent)
    yield loaded
    loaded.keep()


@pytest.fixture
def project(loaded, pytester, monkeypatch):
    """A user's project: `run` runs its tests, with a service when replies are given."""
    monkeypatch.delenv("CI", raising=False)
    # Python takes a file of the same second and size for the one that it compiled.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    pytester.makeconftest(CONFTEST)

    class Project:
        path = pytester.path
        service = "http://127.0.0.1:1"

        def write(self, **files: str) -> None:
            pytester.makepyfile(**files)

        def record(self, *replies, arguments=(), key=KEY):
            with ModelServer(*replies, strict=False).in_thread() as server:
                self.service = server.url
                monkeypatch.setenv("SERVICE", server.url)
                monkeypatch.setenv("KEY", key)
                done = self.run(*arguments)
                self.requests = server.requests
            return done

        def run(self, *arguments: str):
            """Nobody answers any more, and there is no key."""
            done = pytester.runpytest_inprocess(*QUIET, *arguments, plugins=[loaded])
            loaded.keep()
            monkeypatch.delenv("KEY", raising=False)
            return done

        def cassette(self, name: str):
            return self.path / "cassettes" / name

    return Project()


# --- recording and replaying -------------------------------------------------------------------------

WIRES = """
import os
import pytest
from robota.core.messages import UserMessage
from robota.core.provider import ChatRequest, TextChunk
from robota.providers.anthropic import AnthropicProvider
from robota.providers.gemini import GeminiProvider
from robota.providers.openai import OpenAIProvider

pytestmark = pytest.mark.anyio
HELLO = ChatRequest(model="m", messages=(UserMessage("Hello"),))
WIRES = [
    (OpenAIProvider, "/v1", {"api": "chat"}), (OpenAIProvider, "/v1", {"api": "responses"}),
    (AnthropicProvider, "", {}), (GeminiProvider, "", {}),
]

@pytest.mark.parametrize("wire", WIRES, ids=["chat", "responses", "messages", "gemini"])
async def test_stream(robota_cassette, wire):
    factory, path, options = wire
    key, url = os.environ.get("KEY"), os.environ["SERVICE"] + path
    async with robota_cassette.provider(factory, api_key=key, base_url=url, **options) as provider:
        chunks = [chunk async for chunk in provider.stream(HELLO)]
    assert [chunk.text for chunk in chunks if isinstance(chunk, TextChunk)] == ["Hel", "lo 🐢"]
"""


def test_every_protocol_is_recorded_once_and_replayed_offline_piece_by_piece(project):
    project.write(test_wires=WIRES)
    recorded = project.record(*[["Hel", "lo 🐢"]] * 4)
    recorded.assert_outcomes(passed=4)
    recorded.stdout.fnmatch_lines(["*robota cassettes*", "*test_stream-chat.yaml: recorded 1 request"])
    before = {path: path.read_bytes() for path in project.cassette("test_wires").iterdir()}
    assert {path.name for path in before} == {
        f"test_stream-{wire}.yaml" for wire in ("chat", "responses", "messages", "gemini")
    }
    replayed = project.run()
    replayed.assert_outcomes(passed=4)
    assert "robota cassettes" not in replayed.stdout.str()
    assert before == {path: path.read_bytes() for path in project.cassette("test_wires").iterdir()}
    assert all(KEY.encode() not in text for text in before.values())


def test_a_cassette_can_be_read_and_has_no_keys(project):
    project.write(test_hello=HELLO)
    project.record(["Good", " day."]).assert_outcomes(passed=1)
    assert project.requests[0].headers["authorization"] == f"Bearer {KEY}"
    text = project.cassette("test_hello/test_hello.yaml").read_text()
    assert text.startswith("# Recorded by robota_cassette")
    assert KEY not in text
    (exchange,) = yaml.safe_load(text)["exchanges"]
    request, response = exchange["request"], exchange["response"]
    assert (request["method"], request["url"]) == ("POST", f"{project.service}/v1/chat/completions")
    assert request["body"]["messages"] == [{"role": "user", "content": "Hello"}]
    assert response["headers"] == {"content-type": "text/event-stream; charset=utf-8"}
    assert response["body"][-1] == "data: [DONE]\n\n"
    assert all(piece.startswith("data: ") and piece.endswith("\n\n") for piece in response["body"])


CLIENTS = """
import os
import anthropic, openai, pytest
from google import genai

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]
MESSAGES = [{"role": "user", "content": "Hello"}]

async def test_openai(robota_cassette):
    url, http = os.environ["SERVICE"] + "/v1", robota_cassette.client()
    async with openai.AsyncOpenAI(api_key="x", base_url=url, http_client=http) as client:
        whole = await client.chat.completions.create(model="m", messages=MESSAGES)
        stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        said = [choice.delta.content or "" async for chunk in stream for choice in chunk.choices]
    assert whole.choices[0].message.content == "".join(said) == "Good day."

async def test_anthropic(robota_cassette):
    url, http = os.environ["SERVICE"], robota_cassette.client()
    async with anthropic.AsyncAnthropic(api_key="x", base_url=url, http_client=http) as client:
        async with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
            assert "".join([text async for text in stream.text_stream]) == "Good day."

async def test_gemini(robota_cassette):
    options = {"base_url": os.environ["SERVICE"], "httpx_async_client": robota_cassette.client()}
    client = genai.Client(api_key="x", http_options=options).aio
    stream = await client.models.generate_content_stream(model="m", contents="Hello")
    assert "".join([chunk.text async for chunk in stream]) == "Good day."
    await client.aclose()
"""


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_vendors_clients_are_recorded_too(project):
    project.write(test_clients=CLIENTS)
    project.record(*["Good day."] * 4).assert_outcomes(passed=3)
    project.run().assert_outcomes(passed=3)
    gc.collect()  # theirs leave connections open, which is told of when they are put away


def test_tools_run_for_real_in_a_replay(project):
    project.write(
        test_tools="""
        import pytest
        from robota import tool

        @pytest.mark.anyio
        async def test_sum(ask):
            ran = []

            @tool
            async def add(a: int, b: int) -> int:
                "Add."
                ran.append((a, b))
                return a + b

            assert (await ask("1 + 2?", tools=[add])).text == "Three."
            assert ran == [(1, 2)]
        """
    )
    project.record([call("add", a=1, b=2)], "Three.").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)


# --- what differs ------------------------------------------------------------------------------------


def test_another_request_fails_with_a_diff(project):
    project.write(test_hello=HELLO)
    project.record("Good day.")
    project.write(test_hello=HELLO.replace('ask("Hello")', 'ask("Goodbye")'))
    done = project.run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*Not in *test_hello.yaml: POST http://*/v1/chat/completions is none of the 1 recorded*",
            "*--- recorded request 1",
            "*+++ sent now",
            "*-  - content: Hello",
            "*+  - content: Goodbye",
            "*To record anew, delete the file or run pytest with --robota-cassette=all.",
        ]
    )


def test_a_difference_that_the_code_swallowed_fails_the_test(project):
    project.write(test_hello=HELLO)
    project.record("Good day.")
    project.write(
        test_hello="""
        import pytest

        @pytest.mark.anyio
        async def test_hello(ask):
            try:
                await ask("Goodbye")
            except Exception:
                pass
        """
    )
    done = project.run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*+  - content: Goodbye"])


def test_what_was_recorded_must_be_asked_for(project):
    twice = HELLO + '    await ask("Thanks")\n'
    project.write(test_hello=twice)
    project.record("Good day.", "Welcome.").assert_outcomes(passed=1)
    project.write(test_hello=HELLO)
    done = project.run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*and not asked for:", "*2. POST http://127.0.0.1:*/v1/chat/completions"])


TWICE = """
import pytest

@pytest.mark.anyio
async def test_it(ask):
    await ask("{}")
    await ask("{}")
"""


def test_requests_come_in_order_and_as_often_as_recorded(project):
    project.write(test_order=TWICE.format("a", "b"))
    project.record("A", "B").assert_outcomes(passed=1)
    project.write(test_order=TWICE.format("b", "a"))
    done = project.run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*is request 2 of the recording and was sent too early: request 1 has not*"])
    project.write(test_order=TWICE.format("a", "a"))
    done = project.run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*was sent once more than it was recorded (1 times)."])


PARALLEL = """
import anyio, pytest

@pytest.mark.anyio
async def test_it(ask):
    answers = {}

    async def put(prompt):
        answers[prompt] = (await ask(prompt)).text

    await put("first")
    async with anyio.create_task_group() as tasks:
        for prompt in PROMPTS:
            tasks.start_soon(put, prompt)
    assert answers == {prompt: prompt.upper() for prompt in ("first", "a", "b", "c")}
"""


def test_requests_that_were_under_way_together_match_in_any_order(project):
    def shout(request):
        return request.conversation.texts("user")[-1].upper()

    project.write(test_parallel=PARALLEL.replace("PROMPTS", "('a', 'b', 'c')"))
    project.record(*[shout] * 4).assert_outcomes(passed=1)
    project.write(test_parallel=PARALLEL.replace("PROMPTS", "('c', 'a', 'b')"))
    project.run().assert_outcomes(passed=1)


# --- modes -------------------------------------------------------------------------------------------


def test_nothing_is_recorded_where_ci_is_set(project, monkeypatch):
    project.write(test_hello=HELLO)
    monkeypatch.setenv("CI", "true")
    done = project.record("Good day.")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*there is no cassettes/test_hello/test_hello.yaml*Run the test once*"])
    assert project.requests == []
    project.record("Good day.", arguments=["--robota-cassette=once"]).assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)


def test_everything_is_recorded_anew_when_told(project):
    project.write(test_hello=HELLO)
    project.record("Good day.")
    project.write(test_hello=HELLO.replace("Good day.", "Good night."))
    again = project.record("Good night.", arguments=["--robota-cassette=all"])
    again.assert_outcomes(passed=1)
    assert "Good night." in project.cassette("test_hello/test_hello.yaml").read_text()


def test_a_test_that_fails_leaves_the_cassette_as_it_was(project):
    project.write(test_hello=HELLO)
    project.record("Bad day.").assert_outcomes(failed=1)
    assert not project.cassette("test_hello/test_hello.yaml").exists()
    project.record("Good day.").assert_outcomes(passed=1)
    before = project.cassette("test_hello/test_hello.yaml").read_bytes()
    project.record("Bad day.", arguments=["--robota-cassette=all"]).assert_outcomes(failed=1)
    assert project.cassette("test_hello/test_hello.yaml").read_bytes() == before
    assert [path.name for path in project.cassette("test_hello").iterdir()] == ["test_hello.yaml"]


def test_a_test_without_traffic_needs_no_cassette(project):
    project.write(test_quiet="def test_quiet(robota_cassette):\n    assert robota_cassette.recording\n")
    project.run("--robota-cassette=once").assert_outcomes(passed=1)
    assert not project.cassette("test_quiet").exists()


def test_workers_of_xdist_record_and_say_so(project, monkeypatch):
    # Every worker would load all the plugins that are installed here.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    needed = "xdist.plugin", "anyio.pytest_plugin", "robota.testing.cassette_plugin"
    plugins = [word for name in needed for word in ("-p", name)]
    project.write(test_hello=HELLO + HELLO.replace("test_hello", "test_again").partition("pytestmark")[0])
    body = "\n".join(f'async def test_{n}(ask):\n    await ask("{n}")\n' for n in "abc")
    project.write(test_many=f"import pytest\npytestmark = pytest.mark.anyio\n\n{body}")
    done = project.record(*["Good day."] * 4, arguments=[*plugins, "-n", "2"])
    done.assert_outcomes(passed=4)
    done.stdout.fnmatch_lines(["*test_many/test_a.yaml: recorded 1 request"])
    project.run(*plugins, "-n", "1").assert_outcomes(passed=4)


# --- errors ------------------------------------------------------------------------------------------

REFUSED = """
import pytest
pytestmark = [pytest.mark.anyio, MARK]

async def test_refused(ask):
    result = await ask("Hello")
    assert result.error is not None
    assert (await ask("Hello")).text == "Good day."
"""


def test_errors_are_left_out_and_the_summary_says_so(project):
    project.write(test_refused=REFUSED.replace("MARK", "pytest.mark.filterwarnings('default')"))
    done = project.record(HttpError(401), "Good day.")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*recorded 1 request", "*left out status 401; *(errors=True) keeps*"])


def test_errors_are_kept_when_the_test_is_about_them(project):
    project.write(test_refused=REFUSED.replace("MARK", "pytest.mark.robota_cassette(errors=True)"))
    project.record(HttpError(401), "Good day.").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)


def test_a_recording_of_errors_alone_is_none(project):
    project.write(
        test_refused=REFUSED.rpartition("    assert (await")[0].replace("MARK", "pytest.mark.anyio")
    )
    project.record(["Hi", ErrorEvent("No.")]).assert_outcomes(passed=1)
    assert project.cassette("test_refused/test_refused.yaml").exists()
    project.cassette("test_refused/test_refused.yaml").unlink()
    project.record(HttpError(400)).assert_outcomes(passed=1)
    assert not project.cassette("test_refused/test_refused.yaml").exists()


# --- secrets -----------------------------------------------------------------------------------------


def test_secrets_of_the_environment_are_hidden_in_requests_and_replies(project, monkeypatch):
    monkeypatch.setenv("MY_DB_PASSWORD", "correct horse battery")
    project.write(
        test_secret="""
        import os
        import pytest

        @pytest.mark.anyio
        async def test_it(ask):
            secret = os.environ.get("MY_DB_PASSWORD", "another one")
            await ask(f"It is {secret}, isn't it?")
        """
    )
    project.record("Yes: correct horse battery.").assert_outcomes(passed=1)
    text = project.cassette("test_secret/test_it.yaml").read_text()
    assert "correct horse" not in text
    assert text.count("[REDACTED]") == 2
    monkeypatch.delenv("MY_DB_PASSWORD")
    project.run().assert_outcomes(passed=1)


def test_a_secret_in_pieces_is_not_recorded(project, monkeypatch):
    monkeypatch.setenv("MY_DB_PASSWORD", "correct horse battery")
    project.write(test_hello=HELLO.replace("Good day.", "correct horse battery"))
    done = project.record(["correct ho", "rse battery"])
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["*holds the value of the environment variable MY_DB_PASSWORD, so that nothing*"]
    )
    assert not project.cassette("test_hello").exists()


# --- names and options -------------------------------------------------------------------------------


def test_each_test_has_a_file_of_its_own(project):
    project.write(
        test_names="""
        import pytest
        pytestmark = pytest.mark.anyio

        class TestGroup:
            async def test_it(self, ask):
                await ask("Hello")

        @pytest.mark.parametrize("value", ["plain", "a/b", "a-b", "x" * 300])
        async def test_values(ask, value):
            await ask("Hello")

        @pytest.mark.robota_cassette(name="shared/one")
        async def test_named(ask):
            await ask("Hello")
        """
    )
    project.record(*["Good day."] * 6).assert_outcomes(passed=6)
    names = {path.name for path in project.cassette("test_names").iterdir()}
    assert len(names) == 5
    assert {"TestGroup.test_it.yaml", "test_values-plain.yaml", "test_values-a-b.yaml"} <= names
    assert max(map(len, names)) < 160
    assert project.cassette("shared/one.yaml").exists()
    project.run().assert_outcomes(passed=6)


def test_what_changes_from_run_to_run_can_be_named_or_ignored(project):
    project.write(
        test_paths="""
        import os
        import pytest
        import httpx2

        @pytest.mark.robota_cassette(ignore=["metadata.at", "user"])
        @pytest.mark.anyio
        async def test_it(robota_cassette, tmp_path):
            robota_cassette.replace(str(tmp_path), "tmp_path")
            robota_cassette.replace(os.environ["SERVICE"], "service")
            body = {
                "model": "m", "metadata": {"at": os.getpid()}, "user": str(os.getpid()),
                "messages": [{"role": "user", "content": f"look at {tmp_path}/a.txt"}],
            }
            async with robota_cassette.client() as client:
                answer = await client.post(os.environ["SERVICE"] + "/v1/chat/completions", json=body)
            assert answer.json()["choices"][0]["message"]["content"] == f"look at {tmp_path}/a.txt"
        """
    )
    echo = project.record(lambda request: request.conversation.texts("user")[-1])
    echo.assert_outcomes(passed=1)
    text = project.cassette("test_paths/test_it.yaml").read_text()
    assert text.count("<tmp_path>/a.txt") == 2
    assert "url: <service>/v1/chat/completions" in text
    project.run().assert_outcomes(passed=1)


def test_a_marker_with_a_mistake_is_one_sentence(project):
    project.write(
        test_marked="""
        import pytest

        @pytest.mark.robota_cassette(eror=True)
        def test_it(robota_cassette):
            pass
        """
    )
    done = project.run()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*does not know eror; it takes name, errors, ignore by name."])


def test_a_cassette_that_cannot_be_read_is_one_sentence(project):
    project.write(test_hello=HELLO)
    project.record("Good day.")
    project.cassette("test_hello/test_hello.yaml").write_text("exchanges: 1\n")
    done = project.run()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*ConfigurationError: The cassette *test_hello.yaml cannot be read: *"])


def test_a_run_that_uses_no_cassette_loads_nothing_of_ours(tmp_path):
    (tmp_path / "test_theirs.py").write_text(
        "import sys\n\ndef test_it():\n"
        "    ours = ('robota', 'msgspec', 'yaml', 'httpx2', 'anyio')\n"
        "    loaded = [name for name in sys.modules if name.startswith(ours)]\n"
        "    own = ['robota', 'robota._lazy', 'robota._version', 'robota.testing',"
        " 'robota.testing.cassette_plugin']\n"
        "    assert sorted(loaded) == own\n"
    )
    plugins = ["-p", "no:cacheprovider", "-p", "no:anyio"]
    arguments = [sys.executable, "-m", "pytest", "-q", *plugins, "--rootdir", str(tmp_path)]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout
