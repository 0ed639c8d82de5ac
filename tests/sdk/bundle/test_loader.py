"""Reading plugins: what of them counts, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sdk.bundle.workbench import SERVER, skill, whole_plugin, write_files

from robota.sdk import BundlePlugin, BundlePluginLoader


def load(root: Path, **options: Any) -> tuple[list[BundlePlugin], list[str]]:
    loader = BundlePluginLoader(root, **options)
    return loader.load_all(), [str(problem) for problem in loader.problems]


def test_a_plugin_brings_skills_commands_agents_hooks_servers_tools_and_words(tmp_path: Path) -> None:
    root = write_files(tmp_path / "helper", whole_plugin() | SERVER)

    (plugin,), problems = load(tmp_path)

    assert plugin.name == "helper"
    assert plugin.version == "1.0.0"
    assert [each.name for each in plugin.skills] == ["helper:audit", "helper:tidy"]
    assert [each.name for each in plugin.commands] == ["helper:tidy"]
    assert [each.name for each in plugin.agents] == ["helper:scout"]
    assert plugin.agents[0].system_prompt == f"Scout with {root}."
    assert plugin.agents[0].permission_mode is None
    (group,) = plugin.hooks["PreToolUse"]
    assert group.hooks[0].command == f'bash "{root}/note.sh"'
    assert group.env["CLAUDE_PLUGIN_ROOT"] == group.env["CLAUDE_PLUGIN_PATH"] == str(root)
    assert group.env["CLAUDE_PLUGIN_DATA"] == str(tmp_path / "data" / "helper")
    assert plugin.servers["words"]["command"] == f"{root}/server"
    assert plugin.servers["words"]["env"]["CLAUDE_PLUGIN_ROOT"] == str(root)
    assert [each.name for each in plugin.tools] == ["plugin__helper__count"]
    assert plugin.system_prompt == "Count words with the tool of the plugin."
    assert len(problems) == 1
    assert "`permissionMode`: agents of plugins have none" in problems[0]


def test_a_broken_manifest_is_named_and_the_plugin_beside_it_loads(tmp_path: Path) -> None:
    write_files(tmp_path / "broken", {".claude-plugin/plugin.json": '{"name": "broken",\n "version": }'})
    write_files(tmp_path / "numbered", {".claude-plugin/plugin.json": {"name": "numbered", "version": 1}})
    write_files(tmp_path / "good", whole_plugin("good"))

    plugins, problems = load(tmp_path)

    assert [each.name for each in plugins] == ["good"]
    assert any("broken/.claude-plugin/plugin.json:2: It is not JSON" in each for each in problems)
    assert any("version: A text was expected" in each for each in problems)


def test_version_description_and_manifest_itself_may_be_missing(tmp_path: Path) -> None:
    write_files(tmp_path / "bare", {"skills/audit/SKILL.md": skill("audit")})
    write_files(tmp_path / "short", {".claude-plugin/plugin.json": {"name": "brief"}, "commands/a.md": "Do."})

    plugins, _ = load(tmp_path)

    assert [(each.name, each.version, each.description) for each in plugins] == [
        ("bare", "", ""),
        ("brief", "", ""),
    ]


def test_a_skill_file_at_the_root_alone_is_a_plugin_of_one_skill(tmp_path: Path) -> None:
    write_files(tmp_path / "alone", {"SKILL.md": skill("alone")})

    (plugin,), _ = load(tmp_path)

    assert [each.name for each in plugin.skills] == ["alone:alone"]


def test_the_last_version_of_the_cache_loads_and_numbers_count_as_numbers(tmp_path: Path) -> None:
    for version in ("1.9.0", "1.10.0"):
        write_files(tmp_path / "cache" / "market" / "helper" / version, whole_plugin(version=version))

    (plugin,), _ = load(tmp_path)

    assert plugin.id == "helper@market"
    assert plugin.version == "1.10.0"


@pytest.mark.parametrize("id", ["helper@market", "helper"])
def test_a_plugin_is_off_by_its_whole_id_and_by_its_name(tmp_path: Path, id: str) -> None:
    write_files(tmp_path / "cache" / "market" / "helper" / "1.0.0", whole_plugin())

    assert load(tmp_path, enabled={id: False})[0] == []
    assert load(tmp_path, enabled={"other": False})[0] != []


def test_one_that_is_off_unless_asked_for_waits_for_that(tmp_path: Path) -> None:
    write_files(tmp_path / "helper", whole_plugin(defaultEnabled=False))

    assert load(tmp_path)[0] == []
    assert [each.name for each in load(tmp_path, enabled={"helper": True})[0]] == ["helper"]


def test_paths_of_the_manifest_add_skills_and_replace_commands(tmp_path: Path) -> None:
    files = whole_plugin(
        skills=["./more/review", "./group"], commands=["./other/clean.md"], hooks="./other/hooks.json"
    )
    more = {
        "more/review/SKILL.md": skill("review"),
        "group/first/SKILL.md": skill("first"),
        "other/clean.md": "Clean.",
        "other/hooks.json": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]},
    }
    write_files(tmp_path / "helper", {**files, **more})

    (plugin,), _ = load(tmp_path)

    names = [each.name for each in plugin.skills]
    assert names == ["helper:audit", "helper:review", "helper:first", "helper:clean"]
    assert set(plugin.hooks) == {"PreToolUse", "Stop"}


@pytest.mark.parametrize("path", ["../outside", "/etc", "./link"])
def test_no_path_leads_out_of_the_plugin(tmp_path: Path, path: str) -> None:
    write_files(tmp_path / "outside", {"evil/SKILL.md": skill("evil")})
    root = write_files(tmp_path / "plugins" / "helper", whole_plugin(skills=[path]))
    (root / "link").symlink_to(tmp_path / "outside")

    (plugin,), problems = load(tmp_path / "plugins")

    assert [each.name for each in plugin.skills] == ["helper:audit", "helper:tidy"]
    assert any(f"{path!r} leads out of the plugin" in each for each in problems)


def test_what_a_manifest_with_features_does_not_declare_is_left_out_and_named(tmp_path: Path) -> None:
    write_files(
        tmp_path / "helper",
        whole_plugin(features={"skills": True, "commands": True, "hooks": "yes"}) | SERVER,
    )

    (plugin,), problems = load(tmp_path)

    assert plugin.skills
    assert not any((plugin.hooks, plugin.agents, plugin.servers))
    for component in ("hooks", "agents", "mcpServers"):
        assert any(f"does not declare {component}" in each for each in problems)


def test_skills_lend_no_rules_beyond_the_declared_permissions(tmp_path: Path) -> None:
    files = whole_plugin(
        permissions={"allow": ["Bash(git log *)", "Bash", "Edit(**)"], "deny": ["Write(/etc/**)"]}
    )
    files["skills/audit/SKILL.md"] = (
        "---\ndescription: Look.\nallowed-tools: Bash(git log *), Bash(rm *)\n---\nLook.\n"
    )
    write_files(tmp_path / "helper", files)

    (plugin,), problems = load(tmp_path)

    assert plugin.permissions.allow == ("Bash(git log *)",)
    assert plugin.permissions.deny == ("Write(/etc/**)",)
    assert plugin.skills[0].allowed_tools == ("Bash(git log *)",)
    assert any("ask for more than the plugin's `permissions`: Bash(rm *)" in each for each in problems)
    assert sum("allows more than a plugin may have" in each for each in problems) == 2


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"name": "a b", "description": "x", "command": "x"}, "cannot be the name of a tool"),
        ({"name": "a", "description": "x"}, "missing required field `command`"),
        ({"name": "a", "description": "x", "command": " "}, "`command` is empty"),
        ({"name": "a" * 60, "description": "x", "command": "x"}, "longer than 64"),
        ({"name": "a", "description": "x", "command": "x", "inputSchema": {"type": "string"}}, "not of type"),
        ("a", "Expected `object`"),
    ],
)
def test_a_tool_that_cannot_be_offered_is_named(tmp_path: Path, tool: Any, said: str) -> None:
    write_files(tmp_path / "helper", whole_plugin(tools=[tool]))

    (plugin,), problems = load(tmp_path)

    assert plugin.tools == ()
    assert any(said in each for each in problems)


def test_a_manifest_may_name_the_files_of_skills_that_lie_in_the_usual_place(tmp_path: Path) -> None:
    files = {
        ".claude-plugin/plugin.json": {"name": "pack", "skills": ["skills/one/SKILL.md", "./skills/two"]},
        "skills/one/SKILL.md": skill("one"),
        "skills/two/SKILL.md": skill("two"),
    }
    write_files(tmp_path / "pack", files)
    loader = BundlePluginLoader(tmp_path)
    [plugin] = loader.load_all()

    assert [each.name for each in plugin.skills] == ["pack:one", "pack:two"]
    assert loader.problems == ()


def test_what_is_wrong_with_hooks_is_named_with_its_line(tmp_path: Path) -> None:
    hooks = """{
  "hooks": {
    "Setup": [{"hooks": [{"type": "command", "command": "true"}]}],
    "PreToolUse": [
      {"matcher": "Write(docs/**)", "hooks": [{"type": "command", "command": "true"}]},
      {"hooks": [{"type": "telepathy", "thought": "stop"}]}
    ]
  }
}"""
    pack = {".claude-plugin/plugin.json": {"name": "pack"}, "hooks/hooks.json": hooks}
    write_files(tmp_path / "pack", pack)
    listed = {
        ".claude-plugin/plugin.json": {"name": "list"},
        "hooks/hooks.json": {"hooks": [{"event": "Stop"}]},
    }
    write_files(tmp_path / "list", listed)
    loader = BundlePluginLoader(tmp_path)
    loader.load_all()

    assert [(each.line, each.subject, each.message) for each in loader.problems] == [
        (1, "list: hooks", "expected an object of events, got a list."),
        (3, "pack: hooks.Setup", "its hooks never run: there is no such event here."),
        (
            5,
            "pack: hooks.PreToolUse[0].matcher",
            "'Write(docs/**)' is neither a list of names nor a regular expression "
            "(multiple repeat at position 12).",
        ),
        (
            6,
            "pack: hooks.PreToolUse[1].hooks[0]",
            "it never runs: nothing here can execute the type 'telepathy'.",
        ),
    ]


def test_what_nothing_here_uses_is_named(tmp_path: Path) -> None:
    files = whole_plugin(lspServers={"go": {"command": "gopls"}}, unknown={"is": "ignored"})
    write_files(tmp_path / "helper", {**files, "themes/dark.json": {}, "bin/tool": "#!/bin/sh\n"})

    _, problems = load(tmp_path)

    for name in ("lspServers", "themes", "bin"):
        assert any(f"{name}: It takes no effect" in each for each in problems)
    assert not any("unknown" in each for each in problems)


def test_options_of_the_user_reach_commands_and_secrets_reach_nothing_else(tmp_path: Path) -> None:
    config = {
        "word": {"type": "string", "default": "hello"},
        "token": {"type": "string", "sensitive": True},
        "count": {"type": "number", "required": True},
    }
    files = whole_plugin(
        userConfig=config, systemPrompt="Say ${user_config.word}, never ${user_config.token}."
    )
    files[".mcp.json"] = {"words": {"command": "x", "args": ["${user_config.token}"]}}
    write_files(tmp_path / "helper", files)

    (plugin,), problems = load(tmp_path, options={"helper": {"token": "t0p", "other": 1}})

    assert plugin.system_prompt == "Say hello, never ${user_config.token}."
    assert plugin.servers["words"]["args"] == ["t0p"]
    assert plugin.hooks["PreToolUse"][0].env["CLAUDE_PLUGIN_OPTION_TOKEN"] == "t0p"
    assert any("userConfig.count: It needs a value" in each for each in problems)
    assert any("pluginConfigs.other: The plugin has no such option" in each for each in problems)
