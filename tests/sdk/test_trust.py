"""Which directories are trusted, with which wishes, and what is asked."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from robota.core.errors import ConfigurationError
from robota.sdk.places import Places, find_places
from robota.sdk.trust import Trust, TrustStore
from robota.sdk.wishes import Wishes, find_wishes

TRAPS: dict[str, Any] = {
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [
                    {"type": "command", "command": "./guard.sh\n\u202eevil"},
                    {"type": "http", "url": "https://example.com/hook"},
                ],
            }
        ]
    },
    "mcpServers": {"db": {"command": "npx", "args": ["-y", "db-server"], "env": {"A": "1"}}},
    "permissions": {
        "allow": ["Bash(make *)"],
        "deny": ["Read(.env)"],
        "additionalDirectories": ["../other"],
        "defaultMode": "acceptEdits",
    },
    "env": {"NODE_ENV": "test"},
    "enabledPlugins": {"tools@market": True},
    "extraKnownMarketplaces": {"market": {"source": {"source": "github", "repo": "a/b"}}},
    "statusLine": {"type": "command", "command": "./status.sh"},
    "apiKeyHelper": "./key.sh",
    "providers": {"p": {"type": "anthropic", "baseURL": "https://example.com", "apiKey": "sk-project"}},
    "sandbox": {"excludedCommands": ["docker"]},
    "model": "some-model",
}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    return find_places(tmp_path / "project", {"HOME": str(tmp_path / "home")})


@pytest.fixture
def store(places: Places) -> TrustStore:
    return TrustStore(places.robota_home, home=places.home)


def write(path: str, content: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content)


def wishes_of(places: Places, settings: dict[str, Any] | None = None) -> Wishes:
    return find_wishes(places, [(places.project(".claude", "settings.json"), settings or {})])


def test_everything_a_project_wants_is_found_and_only_that(places: Places) -> None:
    write(places.project(".mcp.json"), '{"mcpServers": {"web": {"type": "http", "url": "https://mcp"}}} // x')
    write(places.project(".claude", "agents", "deep", "reviewer.md"), "---\nname: r\n---\nReview.")
    write(places.project(".claude", "skills", "a", "SKILL.md"), "---\ndescription: a\n---\nSee !`git log`.")
    write(places.project(".agents", "skills", "b", "SKILL.md"), "---\nallowed-tools: Bash(rm *)\n---\nBody")
    write(places.project(".claude", "commands", "c.md"), "Do:\n```!\nls\npwd\n```\n")
    write(places.project(".claude", "skills", "plain", "SKILL.md"), "---\ndescription: d\n---\nNothing! `x`")

    wishes = wishes_of(places, TRAPS)

    here = "  [.claude/settings.json]"
    assert wishes.of("hooks") == (
        f"PreToolUse (Bash): ./guard.sh\\n\\u202eevil{here}",
        f"PreToolUse (Bash): https://example.com/hook{here}",
    )
    assert wishes.of("servers") == (f"db: npx -y db-server (sets A){here}", "web: https://mcp  [.mcp.json]")
    assert wishes.of("allow") == (f"Bash(make *){here}",)
    assert wishes.of("directories") == (f"../other{here}",)
    assert wishes.of("mode") == (f"acceptEdits{here}",)
    assert wishes.of("env") == (f"NODE_ENV=test{here}",)
    assert wishes.of("commands") == (f"statusLine: ./status.sh{here}",)
    assert [text.partition(":")[0] for text in wishes.of("plugins")] == [
        "extraKnownMarketplaces",
        "tools@market",
    ]
    assert wishes.of("addresses") == (
        f"apiKeyHelper: ./key.sh{here}",
        f"providers.p.apiKey: …{here}",
        f"providers.p.baseURL: https://example.com{here}",
    )
    assert wishes.of("agents") == ("deep/reviewer  [.claude/agents/deep/reviewer.md]",)
    assert wishes.of("skills") == (
        "allowed-tools: Bash(rm *)  [.agents/skills/b/SKILL.md]",
        "git log  [.claude/skills/a/SKILL.md]",
        "instructions for the model  [.claude/skills]",
        "ls\\npwd  [.claude/commands/c.md]",
    )
    assert wishes.of("settings") == (f'sandbox: {{"excludedCommands":["docker"]}}{here}',)
    assert not any("some-model" in line or ".env" in line for line in wishes.describe())


def test_a_project_without_wishes_asks_nothing(places: Places, store: TrustStore) -> None:
    trust = store.look(places.cwd, wishes_of(places, {"model": "m", "permissions": {"deny": ["Bash"]}}))

    assert (trust.state, trust.trusted, trust.asks) == ("untrusted", False, False)
    assert trust.describe() == []
    assert trust.notice == ""


def test_the_question_shows_every_wish_and_the_answer_is_kept_for_the_real_path(
    places: Places, store: TrustStore, tmp_path: Path
) -> None:
    wishes = wishes_of(places, TRAPS)
    (tmp_path / "link").symlink_to(places.cwd)
    asked = store.look(places.cwd, wishes)

    assert asked.describe()[0] == f"Do you trust {os.path.realpath(places.cwd)}? Its files want this:"
    assert all(f"  - {wish.text}" in asked.describe() for wish in wishes.all)
    assert "is not trusted" in asked.notice

    store.trust(str(tmp_path / "link"), wishes)

    assert store.look(places.cwd, wishes).trusted
    assert store.directories == {os.path.realpath(places.cwd): False}
    file = Path(store.path)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)] == [0o600, 0o700]
    assert "sk-project" not in file.read_text()


@pytest.mark.parametrize(
    "change",
    [
        {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./new.sh"}]}]}},
        {"mcpServers": {"db": {"command": "npx", "args": ["-y", "db-server"], "env": {"A": "2"}}}},
        {"permissions": {"allow": ["Bash"]}},
        {"env": {"NODE_ENV": "production"}},
        {"providers": {}},
        {"hooks": {}},
    ],
)
def test_any_change_is_asked_with_its_difference(
    places: Places, store: TrustStore, change: dict[str, Any]
) -> None:
    before = wishes_of(places, TRAPS)
    store.trust(places.cwd, before)
    after = wishes_of(places, {**TRAPS, **change})

    trust = store.look(places.cwd, after)

    assert trust.state == "changed"
    assert set(trust.added) == set(after.all) - set(before.all)
    assert set(trust.removed) == set(before.all) - set(after.all)
    assert trust.describe()[0].endswith("has changed since you trusted it:")
    assert all(f"  + {wish.text}" in trust.describe() for wish in trust.added)
    assert after.digest != before.digest
    assert "has changed" in trust.notice


def test_what_stays_hidden_from_the_eye_counts_as_a_change_too(places: Places, store: TrustStore) -> None:
    path = places.project(".claude", "agents", "a.md")
    write(path, "---\nname: a\n---\nBe kind.")
    store.trust(places.cwd, wishes_of(places))
    write(path, "---\nname: a\n---\nBe evil.")

    trust = store.look(places.cwd, wishes_of(places))

    assert trust.state == "changed"
    assert [wish.text for wish in trust.added] == ["a  [.claude/agents/a.md]"]


def test_the_order_of_a_file_and_harmless_settings_are_no_change(places: Places, store: TrustStore) -> None:
    store.trust(places.cwd, wishes_of(places, TRAPS))

    assert store.look(places.cwd, wishes_of(places, dict(reversed(TRAPS.items())) | {"model": "x"})).trusted


def test_a_rule_that_the_user_lets_us_write_is_no_change_and_nothing_else_slips_in(
    places: Places, store: TrustStore
) -> None:
    path = places.project(".robota", "settings.local.json")
    wishes = wishes_of(places, TRAPS)
    store.trust(places.cwd, wishes)

    assert store.add_rule(store.look(places.cwd, wishes), places, path, "Bash(ls *)")

    ours = (path, {"permissions": {"allow": ["Bash(ls *)"]}})
    theirs = (places.project(".claude", "settings.json"), TRAPS)
    assert store.look(places.cwd, find_wishes(places, [theirs, ours])).trusted
    more = (path, {"permissions": {"allow": ["Bash(ls *)", "Bash"]}})
    trust = store.look(places.cwd, find_wishes(places, [theirs, more]))
    assert [wish.text for wish in trust.added] == ["Bash  [.robota/settings.local.json]"]


def test_a_rule_written_where_nothing_was_wanted_is_trusted_and_where_others_wait_it_waits(
    places: Places, store: TrustStore
) -> None:
    path = places.project(".robota", "settings.local.json")
    ours = (path, {"permissions": {"allow": ["Bash(ls *)"]}})

    assert not store.add_rule(store.look(places.cwd, wishes_of(places, TRAPS)), places, path, "Bash(ls *)")
    assert store.directories == {}

    assert store.add_rule(store.look(places.cwd, Wishes()), places, path, "Bash(ls *)")
    assert store.look(places.cwd, find_wishes(places, [ours])).trusted


def test_trusting_a_parent_is_said_and_covers_the_first_look_only(places: Places, store: TrustStore) -> None:
    parent = os.path.dirname(os.path.realpath(places.project()))
    projects = os.path.join(parent, "projects")
    inside = find_places(parent, {"HOME": places.home})
    os.makedirs(os.path.join(projects, "one"))
    wishes = wishes_of(inside, TRAPS)
    store.trust(projects, Wishes())
    assert not store.look(os.path.join(projects, "one"), wishes).trusted

    store.trust(projects, Wishes(), below=True)

    assert store.look(os.path.join(projects, "one"), wishes).trusted
    changed = wishes_of(inside, {**TRAPS, "env": {"X": "1"}})
    assert store.look(os.path.join(projects, "one"), changed).state == "changed"
    assert not store.look(places.cwd, wishes).trusted


@pytest.mark.parametrize("which", ["home", "above", "root"])
def test_home_and_what_holds_it_are_never_trusted_as_parents(
    places: Places, store: TrustStore, which: str
) -> None:
    directory = {"home": places.home, "above": os.path.dirname(places.home), "root": os.sep}[which]

    with pytest.raises(ConfigurationError, match="holds your home directory"):
        store.trust(directory, Wishes(), below=True)

    assert store.directories == {}


def test_trust_is_taken_back(places: Places, store: TrustStore) -> None:
    wishes = wishes_of(places, TRAPS)
    store.trust(places.cwd, wishes)

    assert store.forget(places.cwd)
    assert not store.forget(places.cwd)
    assert store.look(places.cwd, wishes).state == "untrusted"


def test_a_damaged_ledger_is_refused_and_kept(places: Places, store: TrustStore) -> None:
    write(store.path, '{"directories": [')

    with pytest.raises(ConfigurationError, match=r"trust\.json is damaged .*remove it"):
        store.look(places.cwd, Wishes())
    with pytest.raises(ConfigurationError, match="is damaged"):
        store.trust(places.cwd, Wishes())

    assert Path(store.path).read_text() == '{"directories": ['


def test_nothing_inside_the_directory_says_anything_about_its_trust(
    places: Places, store: TrustStore, tmp_path: Path
) -> None:
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    store.trust(str(trusted), Wishes(), below=True)
    write(places.project(".git"), f"gitdir: {trusted}/.git/worktrees/x\n")
    write(places.project(".git-x", "commondir"), f"{trusted}/.git\n")
    write(places.project(".robota", "trust.json"), json.dumps({"directories": {places.cwd: {"below": True}}}))

    assert not store.look(places.cwd, wishes_of(places, TRAPS)).trusted


def test_a_broken_server_file_is_named_and_the_rest_is_found(places: Places) -> None:
    write(places.project(".mcp.json"), '{\n "mcpServers": {')

    wishes = wishes_of(places, TRAPS)

    assert wishes.of("allow")
    assert [(str(problem).partition(": ")[0], problem.line) for problem in wishes.problems] == [
        (".mcp.json:2", 2)
    ]


@pytest.mark.parametrize("value", [None, [], "x", 3, {"a": []}, {"PreToolUse": [None, {"hooks": [4]}]}])
def test_files_of_any_shape_are_read_as_data(places: Places, value: Any) -> None:
    keys = ("hooks", "mcpServers", "permissions", "env", "providers", "enabledPlugins", "sandbox")

    wishes = wishes_of(places, dict.fromkeys(keys, value))

    assert len(wishes.digest) == 32


def test_a_skill_that_only_tells_is_no_change_and_one_that_runs_something_is(
    places: Places, store: TrustStore
) -> None:
    write(places.project(".claude", "skills", "a", "SKILL.md"), "---\ndescription: a\n---\nBody")
    store.trust(places.cwd, wishes_of(places))
    write(places.project(".claude", "skills", "a", "SKILL.md"), "---\ndescription: a\n---\nOther body")
    write(places.project(".claude", "skills", "b", "SKILL.md"), "---\ndescription: b\n---\nBody")
    assert store.look(places.cwd, wishes_of(places)).trusted

    write(places.project(".claude", "skills", "b", "SKILL.md"), "---\ndescription: b\n---\n!`id`")

    trust = store.look(places.cwd, wishes_of(places))
    assert [wish.text for wish in trust.added] == ["id  [.claude/skills/b/SKILL.md]"]


def test_a_skill_behind_a_link_is_found_like_the_others(places: Places, tmp_path: Path) -> None:
    write(str(tmp_path / "elsewhere" / "SKILL.md"), "!`id`")
    os.makedirs(places.project(".claude", "skills"))
    os.symlink(tmp_path / "elsewhere", places.project(".claude", "skills", "linked"))

    assert wishes_of(places).of("skills") == ("id  [.claude/skills/linked/SKILL.md]",)


def test_the_users_own_files_are_no_wishes_of_a_project(places: Places) -> None:
    at_home = find_places(places.home, {"HOME": places.home})
    write(at_home.project(".claude", "agents", "mine.md"), "---\nname: mine\n---\nMine.")
    write(at_home.project(".agents", "skills", "s", "SKILL.md"), "!`date`")

    assert not find_wishes(at_home, [])


def test_whoever_starts_a_session_may_decide_for_it(places: Places) -> None:
    for word in (True, False):
        trust = Trust(directory=places.cwd, state="untrusted", wishes=wishes_of(places, TRAPS), given=word)

        assert (trust.trusted, trust.asks, trust.describe(), trust.notice) == (word, False, [], "")
