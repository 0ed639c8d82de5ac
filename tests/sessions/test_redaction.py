"""What is redacted and what is not: the table that reads like the specification (L-02 … L-06)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from robota.sessions.redaction import REDACTED, Redactor, redact

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx7fGh2k9\nq83hdkeUw91=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"


def words(text: str) -> list[str]:
    return text.split()


SECRET_NAMES = words(
    """
    apiKey api_key API-KEY apikey xApiKey X-Api-Key x_api_key authorization Authorization
    proxy-authorization accessToken access_token refreshToken REFRESH_TOKEN secret Secret password PassWord
    DB_PASSWORD dbPassword client_secret clientSecret ANTHROPIC_API_KEY aws_secret_access_key private_key
    privateKey passphrase passwd cookie Set-Cookie credential credentials password_confirmation
    SECRET_KEY_BASE
    """
)
TEXT_NAMES = words(
    """
    AWS_SESSION_TOKEN github_token bot_token id_token authToken bearer_token x-auth-token signing_key
    encryption_key access_key db_pwd SMTP_PASS
    """
)
ORDINARY_NAMES = words(
    """
    tokens max_tokens maxTokens inputTokens total_tokens token_count tokenizer cache_read_tokens author
    authored keyword keywords keyboard key primary_key foreign_key public_key key_id cacheKey sort_key
    partition_key secretary passwordless password_policy has_password password_field authorizationUrl
    tokenType token_type token_endpoint next_page_token pageToken eos_token sessionId access_key_id
    """
)


@pytest.mark.parametrize("value", ["hunter2", 12345678, ["a", "b"], {"x": 1}])
def test_whatever_stands_under_a_secret_name_is_replaced(value: Any) -> None:
    answers = [redact({name: value, "other": value}) for name in SECRET_NAMES]
    assert answers == [{name: REDACTED, "other": value} for name in SECRET_NAMES]


@pytest.mark.parametrize("value", [None, True, False, "", [], {}])
def test_what_hides_nothing_stays_under_a_secret_name(value: Any) -> None:
    assert [name for name in SECRET_NAMES if redact({name: value}) != {name: value}] == []


def test_names_of_tokens_and_keys_hide_texts_but_not_counts() -> None:
    assert redact(dict.fromkeys(TEXT_NAMES, "9f8e7d6c5b4a")) == dict.fromkeys(TEXT_NAMES, REDACTED)
    assert redact(dict.fromkeys(TEXT_NAMES, 42)) == dict.fromkeys(TEXT_NAMES, 42)


@pytest.mark.parametrize("value", ["some words", "identifier", 42, ["a"]])
def test_counts_and_ordinary_words_stay(value: Any) -> None:
    records = [{name: value} for name in ORDINARY_NAMES]
    assert [record for record in records if redact(record) is not record] == []


TEXTS = [
    ("sk-ant-api03-Qm9vdGhzIGFyZSBvcGVu-x1", REDACTED),
    ("use ghp_16C7e42F292c6912E7710c838347Ae178B4a now", f"use {REDACTED} now"),
    (f"jwt {JWT} end", f"jwt {REDACTED} end"),
    (f"{PEM}\nrest", f"{REDACTED}\nrest"),
    (PEM.replace("\n", "\\n") + "\\nrest", f"{REDACTED}\\nrest"),
    ("AKIAIOSFODNN7EXAMPLE", REDACTED),
    ("Authorization: Bearer abc123def456", f"Authorization: Bearer {REDACTED}"),
    ("Basic dXNlcjpwYXNz", f"Basic {REDACTED}"),
    ("Cookie: a=1; sid=xyz", f"Cookie: {REDACTED}"),
    ("DB_PASSWORD=hunter2\nPORT=80", f"DB_PASSWORD={REDACTED}\nPORT=80"),
    ('export API_KEY="abc"', f'export API_KEY="{REDACTED}"'),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY", f"aws_secret_access_key = {REDACTED}"),
    ("password: hunter2\nuser: jane", f"password: {REDACTED}\nuser: jane"),
    ("postgres://bob:hunter2@db/x", f"postgres://bob:{REDACTED}@db/x"),
    ("https://x.y/?a=1&api_key=abc123&b=2", f"https://x.y/?a=1&api_key={REDACTED}&b=2"),
    ("curl -u bob:hunter2 https://x.y", f"curl -u bob:{REDACTED} https://x.y"),
    ("tool --password hunter2 --verbose", f"tool --password {REDACTED} --verbose"),
    ("machine x.y login bob password hunter2", f"machine x.y login bob password {REDACTED}"),
    ('gh secret set DEPLOY_KEY -b" 4b8f of it"', f'gh secret set DEPLOY_KEY -b"{REDACTED}"'),
    ('{"password": "hunter2", "n": 1}', f'{{"password": "{REDACTED}", "n": 1}}'),
    ('{"password": 12345, "n": 1}', f'{{"password": "{REDACTED}", "n": 1}}'),
    ('{"a": "{\\"password\\": \\"hunter2\\"}"}', f'{{"a": "{{\\"password\\": \\"{REDACTED}\\"}}"}}'),
    ('[["x-api-key","abc"],["accept","x"]]', f'[["x-api-key","{REDACTED}"],["accept","x"]]'),
    ('{"name":"x-api-key","value":"abc"}', f'{{"name":"x-api-key","value":"{REDACTED}"}}'),
    ('{"credentials": {"a": ["}", 1]}, "b": 2}', f'{{"credentials": "{REDACTED}", "b": 2}}'),
]


def test_recognisable_secrets_are_cut_out_of_texts() -> None:
    expected = [expected for _, expected in TEXTS]
    assert [redact(text) for text, _ in TEXTS] == expected
    assert redact([{"note": text} for text, _ in TEXTS]) == [{"note": text} for text in expected]


@pytest.mark.parametrize(
    "text",
    [
        "the password is required",
        "Bearer tokens are sent in the Authorization header",
        "basic authentication",
        "token: the next word",
        "token = next(tokens)",
        "password = getpass()",
        'api_key = os.environ["X"]',
        "API_KEY=$OTHER",
        "API_KEY=<your key here>",
        'TOKEN=""',
        "key=value",
        "--max-tokens=100",
        "PRIMARY_KEY=id",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "550e8400-e29b-41d4-a716-446655440000",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 jane@host",
        'if "-----BEGIN RSA PRIVATE KEY-----" in text:',
        "def login(user: str, password: str) -> Token: ...",
    ],
)
def test_programs_sentences_ids_and_hashes_stay(text: str) -> None:
    assert redact(text) is text


def test_the_schema_of_a_tool_keeps_its_shape() -> None:
    schema = {
        "type": "object",
        "properties": {
            "password": {"type": "string", "description": "The password of the account."},
            "token": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["password", "token"],
    }
    assert redact({"input_schema": schema}) == {"input_schema": schema}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([["Accept", "x"], ["X-Api-Key", "abc"]], [["Accept", "x"], ["X-Api-Key", REDACTED]]),
        ([("authorization", "abc")], [("authorization", REDACTED)]),
        ([{"name": "Cookie", "value": "a=b"}], [{"name": "Cookie", "value": REDACTED}]),
        ([{"key": "DB_PASSWORD", "value": "x"}], [{"key": "DB_PASSWORD", "value": REDACTED}]),
        (["--token", "abc123xyz", "--verbose"], ["--token", REDACTED, "--verbose"]),
        (["password", "name"], ["password", "name"]),
    ],
)
def test_lists_of_headers_and_arguments_are_understood(headers: Any, expected: Any) -> None:
    assert redact({"x": headers}) == {"x": expected}


def test_a_secret_the_process_holds_is_replaced_wherever_it_appears() -> None:
    redactor = Redactor(['own "secret" value/1'])
    assert redactor.text('a own "secret" value/1 b') == f"a {REDACTED} b"
    assert redactor.text("https://x/?q=own%20%22secret%22%20value%2F1") == f"https://x/?q={REDACTED}"
    assert redactor.json(b'{"a":"own \\"secret\\" value/1"}') == b'{"a":"[REDACTED]"}'
    assert redactor.value({'x own "secret" value/1 y': 1}) == {f"x {REDACTED} y": 1}


def test_a_held_value_shorter_than_eight_characters_is_ignored() -> None:
    assert Redactor(["short"]).text("a short word") == "a short word"


def test_plain_json_comes_back_as_the_same_object() -> None:
    for record in (
        b'{"event":"run_end","usage":{"inputTokens":12,"outputTokens":3},"key":"abc"}',
        b'{"event":"message","content":"' + b"The token estimator uses the key of the cache. " * 60 + b'"}',
    ):
        assert Redactor().json(record) is record


def test_json_is_redacted_as_its_value_is() -> None:
    redactor = Redactor()
    assert redactor.json(b'{"password":"hunter2","n":1.5}') == b'{"password":"[REDACTED]","n":1.5}'
    assert redactor.json(b'"hunter2"', "password") == b'"[REDACTED]"'
    assert redactor.json(b'{"password":"hunter2"') == b'{"password":"[REDACTED]"'


def test_patterns_are_compiled_when_a_text_needs_them() -> None:
    code = """
import re
import robota.core.messages
compile, compiled = re.compile, []
re.compile = lambda *given: compiled.append(given) or compile(*given)
from robota.sessions.redaction import redact
counts = [len(compiled)]
for text in ("I looked at the file: it is fine.", "DB_PASSWORD=hunter2"):
    redact(text)
    counts.append(len(compiled))
print(*counts)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    at_import, by_plain_text, by_secret = map(int, done.stdout.split())
    assert (at_import, by_plain_text) == (0, 0)
    assert 0 < by_secret < 30
