"""`robota provider list|check` and `robota model list --provider`, as a user types them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.command import robota

from robota.providers.catalog import known_models, shipped_catalog
from robota.providers.definitions import OURS
from robota.testing import HttpError, ModelServer

KEY = "key-that-nobody-may-show"
UNPUBLISHED = {"claude-fable-5-2"}
"""The vendor's client has the name, and nobody has said more about it yet."""


def test_every_type_is_listed_with_its_model_and_its_key(tmp_path: Path) -> None:
    done = robota("provider", "list", cwd=tmp_path, GEMINI_API_KEY=KEY)
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert (done.returncode, done.stderr, set(rows)) == (0, "", set(OURS))
    assert rows["anthropic"].split()[1:5] == ["claude-sonnet-4-6", "ANTHROPIC_API_KEY", "(not", "set)"]
    assert "GEMINI_API_KEY (set)" in rows["gemini"]
    assert "no key" in rows["ollama"]
    assert KEY not in done.stdout


def test_a_check_says_what_works_and_what_does_not(tmp_path: Path) -> None:
    with ModelServer(models=("large", "small")).in_thread() as server:
        check = ("provider", "check", "--base-url", f"{server.url}/v1")
        fine = robota(*check, "openai-compatible", "--model", "large", cwd=tmp_path)
        typo = robota(*check, "vllm", "--model", "lagre", cwd=tmp_path)
        methods = {request.method for request in server.requests}
    assert (fine.returncode, fine.stdout) == (
        0,
        "ok      openai-compatible: The OpenAI-compatible service answers and has large.\n",
    )
    assert (typo.returncode, typo.stdout) == (
        1,
        "failed  vllm: vLLM has no model 'lagre': the nearest is large.\n",
    )
    assert methods == {"GET"}


def test_without_a_name_every_service_with_a_key_is_checked(tmp_path: Path) -> None:
    with ModelServer(models=("m",)).in_thread() as server:
        keys = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
        more = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.url}/v1"}
        done = robota("provider", "check", "--model", "m", cwd=tmp_path, **keys, **more)
    assert (done.returncode, [line.split(":")[0] for line in done.stdout.splitlines()]) == (
        0,
        ["ok      anthropic", "ok      openai"],
    )
    assert KEY not in done.stdout + done.stderr


def test_a_check_of_nothing_and_of_nobody_says_so(tmp_path: Path) -> None:
    nothing = robota("provider", "check", cwd=tmp_path)
    nobody = robota("provider", "check", "antropic", cwd=tmp_path)
    assert (nothing.returncode, nobody.returncode) == (1, 1)
    assert nothing.stdout.startswith("No key is set, so there is nothing to check")
    assert nobody.stderr == "robota: There is no provider 'antropic': did you mean anthropic?\n"


def test_a_profile_is_listed_checked_and_named_like_a_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "robota"))
    with ModelServer("Hi.", models=("large", "small")).in_thread() as server:
        there = ("--type", "vllm", "--base-url", f"{server.url}/v1", "--model", "small")
        robota("provider", "add", "mine", *there, cwd=tmp_path)
        robota("provider", "use", "anthropic", cwd=tmp_path)
        listed = robota("provider", "list", cwd=tmp_path)
        named = robota("provider", "check", "mine", cwd=tmp_path)
        every = robota("provider", "check", cwd=tmp_path)
        models = robota("model", "list", "--provider", "mine", cwd=tmp_path)
        elsewhere = {"ROBOTA_BASE_URL": "http://127.0.0.1:9/v1"}
        said = robota("-p", "hi", "--provider", "mine", cwd=tmp_path, **elsewhere)

    rows = {line.split()[0]: line for line in listed.stdout.splitlines()}
    assert rows["mine"].endswith(f"Your profile of vllm at {server.url}/v1.")
    assert rows["anthropic"].endswith("Your profile of anthropic; answers now.")
    assert len(rows) == len(OURS) + 1
    assert (named.returncode, named.stdout) == (0, "ok      mine: vLLM answers and has small.\n")
    assert every.returncode == 1
    fine, failed = every.stdout.splitlines()
    assert fine == "ok      mine: vLLM answers and has small."
    assert failed.startswith('failed  anthropic: Provider profile "anthropic" needs a key')
    assert [line.split()[0] for line in models.stdout.splitlines()] == ["model", "large", "small"]
    assert (said.returncode, said.stdout) == (0, "Hi.\n")


def test_models_of_a_service_are_listed_as_it_has_them_now_with_their_facts(tmp_path: Path) -> None:
    with ModelServer(models=("gpt-4o", "brand-new")).in_thread() as server:
        there = ("--base-url", f"{server.url}/v1")
        done = robota("model", "list", "--provider", "openai", *there, cwd=tmp_path, OPENAI_API_KEY=KEY)
    head, known, new = (line.split() for line in done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, "2 models, as OpenAI lists them now.\n")
    assert (head[:2], known[:5]) == (["model", "window"], ["gpt-4o", "128,000", "16,384", "2.5", "10"])
    assert new[:5] == ["brand-new", "-", "-", "-", "-"]


def test_models_of_a_service_that_cannot_be_asked_are_those_known_here(tmp_path: Path) -> None:
    done = robota("model", "list", "--provider", "gemini", cwd=tmp_path)
    listed = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert (done.returncode, listed) == (0, [entry.id for entry in shipped_catalog("gemini").entries])
    assert "as they are known here, last compared on " in done.stderr
    assert "set GEMINI_API_KEY" in done.stderr


def test_a_service_without_a_list_and_without_a_catalogue_is_one_sentence(tmp_path: Path) -> None:
    with ModelServer(HttpError(500)).in_thread() as server:
        address = server.url.replace("http://", "http://127.0.0.1.nowhere.invalid/")
    done = robota("model", "list", "--provider", "openai-compatible", "--base-url", address, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("model", sorted(set(known_models()) - UNPUBLISHED))
def test_every_listed_model_has_its_facts(model: str) -> None:
    catalogs = (shipped_catalog(name) for name in ("anthropic", "openai", "gemini", "deepseek", "qwen"))
    entry = next(entry for catalog in catalogs for entry in catalog.entries if entry.id == model)
    assert entry.display_name
    assert entry.capabilities
    assert entry.context_window is not None
    assert entry.max_output is not None
    assert 0 < entry.max_output <= entry.context_window


def test_a_key_is_kept_without_being_shown_and_used_at_its_own_host_only(tmp_path: Path) -> None:
    home = {
        "ROBOTA_HOME": str(tmp_path / "robota"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
    kept = robota("auth", "set", "anthropic", cwd=tmp_path, stdin=f"{KEY}\n", **home)
    listed = robota("provider", "list", cwd=tmp_path, **home)
    with ModelServer(models=("m",)).in_thread() as server:
        elsewhere = robota(
            "provider", "check", "anthropic", "--model", "m", "--base-url", server.url, cwd=tmp_path, **home
        )
        sent = [request.headers for request in server.requests]
    forgotten = robota("auth", "rm", "anthropic", cwd=tmp_path, **home)
    again = robota("auth", "rm", "anthropic", cwd=tmp_path, **home)
    wrong = robota("auth", "set", "anthropic", cwd=tmp_path, **home)

    file = tmp_path / "robota" / "auth.json"
    assert (kept.returncode, kept.stdout) == (0, f"The key of anthropic is kept in {file}.\n")
    assert "kept" in next(line for line in listed.stdout.splitlines() if line.startswith("anthropic"))
    assert KEY not in kept.stdout + kept.stderr + listed.stdout + elsewhere.stdout + elsewhere.stderr
    assert KEY not in str(sent)
    assert (forgotten.returncode, forgotten.stdout) == (0, "The key of anthropic is forgotten.\n")
    assert (again.returncode, again.stdout) == (1, "No key is kept for anthropic; there are no others.\n")
    assert wrong.returncode != 0
    assert wrong.stderr.startswith("robota: No key came: run robota auth set anthropic in a terminal")
    assert KEY not in file.read_text()


def test_a_key_for_nobody_is_kept_and_said_to_be(tmp_path: Path) -> None:
    kept = robota(
        "auth", "set", "opnai", cwd=tmp_path, stdin=f"{KEY}\n", ROBOTA_HOME=str(tmp_path / "robota")
    )

    assert kept.returncode == 0
    assert "There is no provider 'opnai' yet, so nobody uses it" in kept.stderr


def test_a_service_with_a_kept_key_is_served_like_one_with_a_variable(tmp_path: Path) -> None:
    home = {
        "ROBOTA_HOME": str(tmp_path / "robota"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
    robota("auth", "set", "anthropic", cwd=tmp_path, stdin=f"{KEY}\n", **home)

    done = robota("provider", "check", cwd=tmp_path, HTTPS_PROXY="http://127.0.0.1:9", **home)

    assert done.stdout.startswith("failed  anthropic:")  # it is served, and cannot be reached from here
    assert KEY not in done.stdout + done.stderr
