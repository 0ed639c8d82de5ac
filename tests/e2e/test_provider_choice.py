from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.support import command
from tests.support.command import model_requests

from robota.testing import HttpError
from robota.testing.model_server import ModelServer

KEY = "key-that-nobody-may-write-down"


def robota(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return command.robota("-p", "hello", *arguments, cwd=cwd, **variables)


@pytest.mark.parametrize(
    ("provider", "key", "address", "path", "header"),
    [
        ("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "/v1/messages", "authorization"),
        ("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1/chat/completions", "authorization"),
        (
            "google",
            "GEMINI_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "/v1/models/some-model:streamGenerateContent",
            "x-goog-api-key",
        ),
        ("deepseek", "DEEPSEEK_API_KEY", "ROBOTA_BASE_URL", "/v1/chat/completions", "authorization"),
        ("qwen", "DASHSCOPE_API_KEY", "ROBOTA_BASE_URL", "/v1/chat/completions", "authorization"),
        ("openrouter", "OPENROUTER_API_KEY", "ROBOTA_BASE_URL", "/v1/chat/completions", "authorization"),
    ],
)
def test_a_named_provider_is_asked_in_its_own_words_with_its_own_key(
    tmp_path: Path, provider: str, key: str, address: str, path: str, header: str
) -> None:
    with ModelServer("Hello from there.").in_thread() as server:
        variables = {key: KEY, address: f"{server.url}/v1"}
        done = robota("--provider", provider, "--model", "some-model", cwd=tmp_path, **variables)
        asked = model_requests(server)[0]

    assert (done.returncode, done.stdout) == (0, "Hello from there.\n"), done.stderr
    assert asked.path.partition("?")[0] == path
    assert KEY in asked.headers[header]


@pytest.mark.parametrize("provider", ["ollama", "lmstudio", "vllm", "gemma", "openai-compatible"])
def test_a_server_of_ones_own_needs_no_key(tmp_path: Path, provider: str) -> None:
    with ModelServer("Hello from home.").in_thread() as server:
        done = robota(
            "--provider", provider, "--base-url", f"{server.url}/v1", "--model", "mine", cwd=tmp_path
        )

    assert (done.returncode, done.stdout) == (0, "Hello from home.\n"), done.stderr


@pytest.mark.parametrize(
    ("model", "variables", "path"),
    [
        ("claude-opus-4-6", {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "{url}"}, "/v1/messages"),
        ("claude-opus-99", {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "{url}"}, "/v1/messages"),
        ("gpt-5.2", {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "{url}/v1"}, "/v1/chat/completions"),
    ],
)
def test_the_name_of_a_model_picks_its_provider_among_all_keys(
    tmp_path: Path, model: str, variables: dict[str, str], path: str
) -> None:
    others = {"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "x", "DEEPSEEK_API_KEY": "x"}
    with ModelServer("Yes.").in_thread() as server:
        here = {name: value.format(url=server.url) for name, value in variables.items()}
        done = robota("--model", model, cwd=tmp_path, **{**others, **here})
        asked = model_requests(server)[0]

    assert (done.returncode, done.stdout) == (0, "Yes.\n"), done.stderr
    assert (asked.path, asked.body["model"]) == (path, model)


def test_a_key_alone_is_enough_and_says_who_answers(tmp_path: Path) -> None:
    with ModelServer("Yes.").in_thread() as server:
        done = robota(cwd=tmp_path, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=server.url)

    assert done.stdout == "Yes.\n"
    assert done.stderr == "Anthropic answers with claude-sonnet-4-6, because ANTHROPIC_API_KEY is set.\n"


def test_of_several_keys_the_one_taken_is_named_and_how_to_choose(tmp_path: Path) -> None:
    keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "GOOGLE_API_KEY": KEY}
    with ModelServer("Yes.").in_thread() as server:
        done = robota(cwd=tmp_path, ANTHROPIC_BASE_URL=server.url, **keys)

    assert done.stderr == (
        "Anthropic answers with claude-sonnet-4-6, as ANTHROPIC_API_KEY and OPENAI_API_KEY and "
        "GOOGLE_API_KEY are set; choose with --provider or --model.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "variables", "words"),
    [
        (
            ["--provider", "anthropic"],
            {},
            "Anthropic needs an API key: set ANTHROPIC_API_KEY or give the profile a key.",
        ),
        (
            ["--provider", "openai"],
            {"OPENAI_API_KEY": KEY},
            "OpenAI has no default model: give one with --model",
        ),
        ([], {"OPENAI_API_KEY": KEY}, "OpenAI has no default model: give one with --model"),
        (
            ["--model", "claude-opus-4-6"],
            {"OPENAI_API_KEY": KEY},
            "claude-opus-4-6 is a model of Anthropic: set ANTHROPIC_API_KEY",
        ),
        (["--model", "claude-opsu-4-6"], {}, "nearest names known here are claude-opus-4-6"),
        (["--base-url", "http://[::1/v1", "--model", "m"], {}, "web address"),
        (["--base-url", "http://[::1/v1", "--provider", "ollama"], {}, "web address"),
        (["--model", "my-own"], {}, "There is no service to ask for the model 'my-own'"),
        (["--provider", "remote"], {}, "No model is named for Remote"),
        (["--provider", "remote", "--model", "m"], {}, "needs the option 'provider'"),
    ],
)
def test_what_cannot_work_is_one_sentence_and_exit_code_1(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], words: str
) -> None:
    done = robota(*arguments, cwd=tmp_path, **variables)

    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert KEY not in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("antropic", "There is no provider 'antropic': did you mean anthropic?"),
        ("xyz", "use anthropic (alias: claude), openai, gemini (alias: google), "),
    ],
)
def test_a_provider_that_there_is_not_is_a_mistake_on_the_command_line(
    tmp_path: Path, name: str, words: str
) -> None:
    done = robota("--provider", name, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_model_is_asked_for_but_not_without_a_word(tmp_path: Path) -> None:
    with ModelServer("Yes.").in_thread() as server:
        done = robota(
            "--model", "claude-opsu-4-6", cwd=tmp_path, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=server.url
        )

    assert done.stdout == "Yes.\n"
    assert "Anthropic is asked for the unknown model 'claude-opsu-4-6'" in done.stderr
    assert "claude-opus-4-6" in done.stderr


def test_a_key_is_not_sent_to_an_address_that_stands_alone(tmp_path: Path) -> None:
    with ModelServer("Yes.", "Yes.").in_thread() as server:
        where = ("--base-url", f"{server.url}/v1", "--model", "m")
        alone = robota(*where, cwd=tmp_path, OPENAI_API_KEY=KEY)
        named = robota(*where, "--provider", "openai", cwd=tmp_path, OPENAI_API_KEY=KEY)
        first, second = (KEY in str(request.headers) for request in model_requests(server))

    assert (first, second) == (False, True)
    assert "OPENAI_API_KEY is not sent to 127.0.0.1: add --provider openai" in alone.stderr
    assert "OPENAI_API_KEY" not in named.stderr


def test_a_moment_of_weakness_is_waited_out_and_shown(tmp_path: Path) -> None:
    with ModelServer(
        HttpError(529), HttpError(429, headers={"retry-after": "0"}), "Yes."
    ).in_thread() as server:
        done = robota("--base-url", f"{server.url}/v1", "--model", "m", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, "Yes.\n")
    assert "Trying again in" in done.stderr
    assert "(attempt 3)" in done.stderr


def test_the_only_model_of_a_service_is_taken_and_named(tmp_path: Path) -> None:
    with ModelServer("Yes.", models=("only-one",)).in_thread() as server:
        done = robota("--base-url", f"{server.url}/v1", cwd=tmp_path)
        asked = model_requests(server)[-1].body["model"]

    assert (done.returncode, asked) == (0, "only-one")
    assert "only-one answers, the only model of" in done.stderr


def test_an_address_of_the_environment_is_asked_for_its_only_model(tmp_path: Path) -> None:
    with ModelServer("Yes.", models=("only-one",)).in_thread() as server:
        done = robota(cwd=tmp_path, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=f"{server.url}/v1")

    assert done.stdout == "Yes.\n"
    assert "OpenAI answers, because OPENAI_API_KEY is set.\nonly-one answers" in done.stderr


def test_of_several_models_of_a_service_one_must_be_named(tmp_path: Path) -> None:
    with ModelServer("Yes.", models=("one", "two")).in_thread() as server:
        done = robota("--base-url", f"{server.url}/v1", cwd=tmp_path)

    assert done.returncode == 1
    assert "give one with --model or ROBOTA_MODEL; there are one, two." in done.stderr


def test_the_scripted_model_can_be_named(tmp_path: Path) -> None:
    done = robota("--provider", "scripted", cwd=tmp_path, ANTHROPIC_API_KEY=KEY)

    assert "I am the scripted offline model" in done.stdout
    assert done.stderr == ""


def test_keys_of_the_environment_are_written_nowhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    project = tmp_path / "project"
    project.mkdir()
    with ModelServer(f"Your key is {KEY}.").in_thread() as server:
        done = robota(
            cwd=project, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=server.url, ROBOTA_HOME=str(home)
        )

    assert done.returncode == 0
    written = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert written
    assert not any(KEY.encode() in text for text in written)


def test_a_local_server_is_not_asked_for_where_nobody_can_be_asked(tmp_path: Path) -> None:
    with ModelServer("Yes.").in_thread() as server:
        done = robota(cwd=tmp_path, OLLAMA_HOST=server.url)

        assert server.requests == []
    assert "scripted offline model" in done.stderr


@pytest.mark.parametrize("place", ["{host}", "http://{host}", "http://{host}/"])
def test_the_variable_of_ollama_says_where_it_is(tmp_path: Path, place: str) -> None:
    with ModelServer("Yes.").in_thread() as server:
        where = place.format(host=server.url.removeprefix("http://"))
        done = robota("--provider", "ollama", "--model", "m", cwd=tmp_path, OLLAMA_HOST=where)

    assert done.stdout == "Yes.\n", done.stderr


CLOUD = """
from robota.core.provider_definition import CredentialRequirement, ProviderConfig, ProviderDefinition
from robota.testing import ScriptedProvider

CLOUD = ProviderDefinition(
    type="cloud",
    create=lambda config: ScriptedProvider("The cloud has $KEY."),
    defaults=ProviderConfig(model="mist", api_key="$ENV:CLOUD_KEY"),
)
"""


def test_a_provider_of_another_package_answers_by_its_name_and_its_key_stays_secret(tmp_path: Path) -> None:
    package, home = tmp_path / "cloud-1.0.dist-info", tmp_path / "home"
    package.mkdir()
    (tmp_path / "cloud.py").write_text(CLOUD.replace("$KEY", KEY))
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: cloud\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[robota.providers]\ncloud = cloud:CLOUD\nbroken = storm:ANY\n")

    done = robota(
        "--provider", "cloud", cwd=tmp_path, PYTHONPATH=str(tmp_path), CLOUD_KEY=KEY, ROBOTA_HOME=str(home)
    )

    assert (done.returncode, done.stdout) == (0, f"The cloud has {KEY}.\n"), done.stderr
    assert "The provider 'broken' of cloud is left out: ModuleNotFoundError" in done.stderr
    assert not any(KEY.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("arguments", "variables", "advice"),
    [
        (
            ["--provider", "openai"],
            {"OPENAI_API_KEY": KEY},
            "set OPENAI_API_KEY to a key that is good there.",
        ),
        (
            ["--provider", "anthropic"],
            {"ANTHROPIC_API_KEY": KEY},
            "set ANTHROPIC_API_KEY to a key that is good",
        ),
        (
            ["--provider", "gemini"],
            {"GOOGLE_API_KEY": KEY},
            "set GOOGLE_API_KEY to a key that is good there.",
        ),
        (["--provider", "deepseek"], {}, "set DEEPSEEK_API_KEY."),
        ([], {"OPENAI_API_KEY": KEY}, "set OPENAI_API_KEY and use --provider openai --base-url {url}/v1."),
        (["--provider", "vllm"], {}, "set OPENAI_API_KEY and use --provider openai --base-url {url}/v1."),
    ],
)
def test_a_refused_key_is_told_with_the_variable_and_the_option_that_help(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], advice: str
) -> None:
    refusal = HttpError(401, {"error": {"message": "no", "code": 401}})
    with ModelServer(refusal, refusal).in_thread() as server:
        done = robota(*arguments, "--model", "m", "--base-url", f"{server.url}/v1", cwd=tmp_path, **variables)
        wanted = advice.format(url=server.url)

    assert done.returncode == 1
    assert wanted in done.stdout + done.stderr
    assert "api_key" not in done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr
