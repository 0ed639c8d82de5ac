"""What an engineer does in the first hour: `help`, completion, and asking a name for its signature."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import robota
from robota import Plugin, Robota, Session, _stubs, run_sync, tool
from robota.core import ConfigurationError, RetryingProvider, SessionBusyError
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions import SessionStore
from robota.testing import ScriptedProvider
from robota.tools import bash_tool
from robota.transports.http.server import bind, running

HAVE_NONE = (BaseException, dict)
"""Types whose constructors are not ours to describe."""


def public_names() -> list[tuple[str, str]]:
    return [(package, name) for package in _stubs.PACKAGES for name in sorted(import_module(package)._HOMES)]


@pytest.mark.parametrize("package", _stubs.PACKAGES)
def test_help_of_a_package_names_what_it_has(package: str) -> None:
    text = pydoc.plain(pydoc.render_doc(import_module(package)))

    assert all(name in text for name in import_module(package).__all__)


def test_help_and_signature_of_every_public_name() -> None:
    failed = []
    named = ((package, name, getattr(import_module(package), name)) for package, name in public_names())
    for package, name, value in {id(each[2]): each for each in named}.values():
        try:
            if not isinstance(value, str):
                assert pydoc.render_doc(value)
            if inspect.isfunction(value) or (inspect.isclass(value) and not issubclass(value, HAVE_NONE)):
                inspect.signature(value)
        except Exception as error:  # noqa: BLE001 - all failures are listed at once
            failed.append(f"{package}.{name}: {error!r}")
    assert failed == []


def test_every_public_class_and_function_says_what_it_is() -> None:
    silent = [
        f"{package}.{name}"
        for package, name in public_names()
        if inspect.isclass(value := getattr(import_module(package), name)) or inspect.isfunction(value)
        if not (value.__doc__ or "").strip() or (value.__doc__ or "").startswith(name + "(")
    ]
    assert silent == []


def test_a_tool_keeps_its_signature() -> None:
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 2) -> 'int'"
    assert add(1) == 3


def test_code_without_a_loop_closes_what_it_used() -> None:
    disposed = []

    class Watch(Plugin):
        name = "watch"

        async def dispose(self) -> None:
            disposed.append(self.name)

    with Robota(ScriptedProvider("hello"), plugins=[Watch()]) as agent:
        assert agent.run_sync("hi").text == "hello"
    assert disposed == ["watch"]

    with Session(provider=ScriptedProvider("hello")) as session:
        assert session.run_sync("hi") == "hello"
    with pytest.raises(SessionBusyError, match="was shut down"):
        session.run_sync("again")
    assert run_sync(asyncio.sleep(0, "done")) == "done"


class Misspelt(Plugin):
    name = "misspelt"

    async def before_tool_excution(self, *_: Any) -> None: ...

    async def on_call(self) -> None:
        """A method of its own."""


PROVIDER = ScriptedProvider("hello", repeat=True)
R: Any = robota  # what is given wrongly, a type checker would refuse
MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "the name of a provider": (lambda: R.Robota("openai"), "'openai' is not a provider: pass an instance"),
    "a class": (lambda: R.Robota(ScriptedProvider), "ScriptedProvider'> is not a provider"),
    "one tool": (lambda: R.Robota(PROVIDER, tools="Bash"), "tools must be a list of tools, not 'Bash'."),
    "a maker of tools": (
        lambda: R.Robota(PROVIDER, tools=[bash_tool]),
        "bash_tool is not a tool: decorate it with @tool, or call it if it makes one.",
    ),
    "a tool's name with a blank": (
        lambda: R.Robota(PROVIDER).as_tool("my tool", "Helps."),
        "Tool name 'my tool' cannot be used: take 1 to 128 letters, digits, `_` or `-`.",
    ),
    "a misspelt hook": (
        lambda: R.Robota(PROVIDER, plugins=[Misspelt()]),
        "Misspelt.before_tool_excution is no hook and would never be called; did you mean "
        "'before_tool_execution'?",
    ),
    "words as messages": (lambda: R.Robota(PROVIDER, messages=["hi"]), "A message must be a UserMessage"),
    "a word for a number": (
        lambda: R.ModelSettings(temperature="hot"),
        "ModelSettings.temperature takes a number or None, not a string.",
    ),
    "one text to stop at": (lambda: R.ModelSettings(stop="END"), "write stop=('END',)."),
    "a word for seconds": (lambda: R.RunLimits(idle_timeout="60"), "RunLimits.idle_timeout takes a number"),
    "the path of a store": (
        lambda: R.Session(provider=PROVIDER, store="sessions"),
        "'sessions' is not a session store: create_project_session_store(path) opens one in a directory.",
    ),
    "the path of an assistant's store": (
        lambda: R.InteractiveSession(provider=PROVIDER, session_store="sessions"),
        "'sessions' is not a session store",
    ),
    "no handler": (
        lambda: R.Session(provider=PROVIDER, permission_handler=True),
        "A handler is a function that takes a question, not True.",
    ),
    "a mode": (
        lambda: R.InteractiveSession(provider=PROVIDER, permission_mode="yolo"),
        "There is no permission mode 'yolo'",
    ),
    "one source": (
        lambda: R.InteractiveSession(provider=PROVIDER, setting_sources="user"),
        "write setting_sources=('user',).",
    ),
    "a short name for an option": (
        lambda: R.RunLimits(total=3),
        "RunLimits has no option 'total'; did you mean 'total_timeout'?",
    ),
    "dollars as a budget": (
        lambda: R.InteractiveSession(provider=PROVIDER, budget=5),
        "budget takes Budget, not a value of type int.",
    ),
    "no listener": (
        lambda: R.InteractiveSession(provider=PROVIDER).on("text_delta", None),
        "A listener is a function that takes an event, not None.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_sentence_where_it_is_made(mistake: str) -> None:
    make, sentence = MISTAKES[mistake]
    with pytest.raises((ConfigurationError, TypeError)) as refusal:
        make()
    assert sentence in str(refusal.value)


class FullDisk(SessionStore):
    def open_journal(self, *_: Any, **__: Any) -> Any:
        raise OSError("no space left")


@pytest.mark.anyio
async def test_a_store_that_fails_leaves_nobody_waiting(tmp_path: Path) -> None:
    session = Session(provider=ScriptedProvider("hello"), store=FullDisk(str(tmp_path)))
    with pytest.raises(OSError, match="no space left"):
        await session.run("hi")
    assert not session.is_running
    with pytest.raises(OSError, match="no space left"):
        await session.shutdown()


@pytest.mark.anyio
async def test_a_server_that_cannot_start_says_so() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None: ...

    listener = bind("127.0.0.1", 0)
    listener.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        async with running(app, listener):
            pass


def test_a_missing_extra_is_named_with_the_command_that_installs_it() -> None:
    program = (
        "import sys; sys.modules['websockets'] = None\nfrom robota.transports import create_http_transport"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: create_http_transport needs the package websockets: "
        "pip install 'robota[server]'"
    )


def test_what_is_printed_says_what_it_is(tmp_path: Path) -> None:
    agent = Robota(PROVIDER, model="m")
    assert repr(agent) == "<Robota 'm' of scripted, 0 messages>"
    assert repr(agent.as_tool("search", "Finds things.")) == f"<AgentTool 'search' of {agent!r}>"
    assert repr(ScriptedProvider("a")) == "<ScriptedProvider 'scripted', 0 requests, 1 replies>"
    assert repr(RetryingProvider(ScriptedProvider())).startswith("<RetryingProvider around <Scripted")
    provider = OpenAICompatibleProvider("sk-secret", "http://127.0.0.1:1/v1", "any")
    assert repr(provider) == "<OpenAICompatibleProvider 'openai-compatible', model 'any'>"
    store = SessionStore(str(tmp_path))
    assert repr(store) == f"<SessionStore in {tmp_path}>"
    session = Session(provider=PROVIDER, model="m", session_id="s-1")
    assert repr(session) == "<Session s-1, 'm' of scripted, 0 messages>"
    whole = R.InteractiveSession(provider=PROVIDER, cwd=tmp_path, session_id="s-2")
    assert repr(whole) == f"<InteractiveSession s-2 in {tmp_path}>"


def test_python_says_which_name_was_meant() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import robota.core\nrobota.core.TextDeltta"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1].endswith("Did you mean: 'TextDelta'?")
