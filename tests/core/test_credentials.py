"""What commands and hooks get of our environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from robota.core.credentials import is_credential, resolve_env_reference
from robota.core.hooks import CommandExecutor, run_hooks
from robota.core.process import clean_environment, run_process
from robota.core.tool import ToolContext
from robota.tools.builtins.bash import bash_tool

CREDENTIALS = """
    PGPASSWORD MYSQL_PWD GITHUB_PAT AZURE_DEVOPS_EXT_PAT OPENAI_API_KEY OPENAI_API_KEY_2 API_KEY1 APIKEY
    AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN GITHUB_TOKEN TOKEN SLACK_BOT_TOKEN_PROD
    DB_PASS SSHPASS REDISCLI_AUTH SECRET_KEY_BASE DJANGO_SECRET_KEY SSH_PASSPHRASE NPM_CONFIG__AUTH
    RESTIC_PASSWORD VAULT_TOKEN TF_VAR_db_password AZURE_STORAGE_CONNECTION_STRING SIGNING_KEY_BASE64
    CARGO_REGISTRIES_PRIVATE_TOKEN SMTP_PASSWD npm_config_password ANSIBLE_VAULT_PASSWORD MAPBOX_SECRET
    SERVICE_CREDENTIALS SUPABASE_JWT KEYS
""".split()  # fmt: skip  # noqa: SIM905
ORDINARY = """
    PATH HOME PWD OLDPWD SHELL TERM LANG EDITOR SSH_AUTH_SOCK GIT_ASKPASS SSH_ASKPASS XAUTHORITY KEYBOARD
    PASSWORD_STORE_DIR TOKENIZERS_PARALLELISM KEY_PATH GPG_TTY COMPASS BYPASS MONKEY TURKEY PATTERN
    SECRET_NAME TOKEN_FILE PYTHONPATH PS1 AUTHOR AUTH_URL SSH_KEY_PATH
""".split()  # fmt: skip  # noqa: SIM905


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_credential_is_known_by_its_name(name: str) -> None:
    assert is_credential(name, "hunter2")
    assert is_credential(name, "123456")


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_variable_is_passed_on(name: str) -> None:
    assert not is_credential(name, "hunter2")


@pytest.mark.parametrize(
    ("name", "value", "credential"),
    [
        ("DATABASE_URL", "postgres://app:hunter2@db/shop", True),
        ("REDIS_URL", "redis://:hunter2@cache:6379", True),
        ("DATABASE_URL", "postgres://db/shop", False),
        ("CLONE_URL", "https://git@example.org/x.git", False),
        ("HTTPS_PROXY", "http://me:hunter2@proxy:3128", False),
        ("MAX_TOKENS", "4096", False),
        ("SHOW_TOKEN", "false", False),
        ("USE_AUTH", "1", False),
        ("API_KEY", "", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", __file__, False),
        ("DEPLOY_KEY", os.path.dirname(__file__), False),
        ("DEPLOY_KEY", "/9j/4AAQSkZJRgABAQ", True),
    ],
)
def test_what_it_holds_counts_too(name: str, value: str, credential: bool) -> None:
    assert is_credential(name, value) is credential


@pytest.mark.anyio
async def test_commands_hooks_and_processes_follow_one_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that a reference was resolved to is a key's, whatever it looks like."""
    for name in ("PGPASSWORD", "SHARED_PASSWORD", "MY_WORDS", "ORDINARY"):
        monkeypatch.setenv(name, f"value of {name}")
    assert resolve_env_reference("$ENV:MY_WORDS") == "value of MY_WORDS"
    show = 'printf "%s|" "$PGPASSWORD" "$SHARED_PASSWORD" "$MY_WORDS" "$ORDINARY"'
    expected = "|value of SHARED_PASSWORD||value of ORDINARY|"

    tool = bash_tool(keep_variables=["SHARED_PASSWORD"])
    result = await tool.run({"command": show}, ToolContext(cwd=str(tmp_path)))
    assert result.content == expected
    executor = CommandExecutor(keep_variables=["SHARED_PASSWORD"])
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": show}]}]}
    outcome = await run_hooks(hooks, "Stop", {"cwd": str(tmp_path)}, executors=[executor])
    assert outcome.stdout == expected
    plain = await run_process(["sh", "-c", show])
    assert plain.stdout == "|||value of ORDINARY|"


def test_a_credential_can_be_kept_or_given() -> None:
    base = {"A_TOKEN": "a", "B_TOKEN": "b", "HOME": "/h"}
    assert clean_environment(base, keep=["A_TOKEN"], extra={"C_KEY": "c"}) == {
        "A_TOKEN": "a",
        "HOME": "/h",
        "C_KEY": "c",
    }
