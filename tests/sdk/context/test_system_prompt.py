"""The system prompt follows from its parts."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from robota.sdk.context.instructions import InstructionFile
from robota.sdk.context.project import ProjectFacts
from robota.sdk.context.system_prompt import (
    LEAST_LISTING,
    Listed,
    PromptParts,
    PromptSection,
    SystemPrompt,
    build_system_prompt,
)
from robota.sdk.places import Places

PLACES = Places(cwd="/home/u/p", home="/home/u", robota_home="/home/u/.robota", claude_home="/home/u/.claude")


def build(**parts: Any) -> SystemPrompt:
    return build_system_prompt(PromptParts(places=PLACES, **parts))


def sections(**parts: Any) -> dict[str, str]:
    return {section.name: section.text for section in build(**parts).sections}


def test_the_sections_stand_in_their_order_and_empty_ones_are_left_out() -> None:
    assert list(sections()) == ["Role", "Working Directory", "Permission Mode"]
    whole = build(
        git=True,
        project=ProjectFacts(type="node", language="typescript", name="shop", package_manager="pnpm"),
        instructions=[
            InstructionFile(path="/home/u/p/AGENTS.md", kind="agents", source="project", text="Use tabs."),
            InstructionFile(path="/home/u/.claude/CLAUDE.md", kind="notes", source="user", text="Be brief."),
            InstructionFile(path="/home/u/p/.claude/rules/r.md", kind="rule", source="project", text="No."),
        ],
        memory="The user likes tea.",
        web_search=True,
        tools=["Read", "Bash"],
        skills=[Listed("audit", "Find flaws.")],
        additions=[PromptSection("From a plugin", "Hello.")],
    )
    assert [section.name for section in whole.sections] == [
        "Role", "Git", "Working Directory", "Current Project", "Permission Mode", "Agent Instructions",
        "Project Notes", "Memory", "Web Search", "Available Tools", "Skills", "From a plugin",
    ]  # fmt: skip
    assert whole.text.startswith("You are robota, a coding assistant")
    assert (
        '## Agent Instructions\n<instructions path="AGENTS.md">\nUse tabs.\n</instructions>\n\n'
        "## Project Notes\n"
        '<instructions path="~/.claude/CLAUDE.md">\nBe brief.\n</instructions>\n\n'
        '<instructions path=".claude/rules/r.md">\nNo.\n</instructions>\n\n## Memory\nThe user likes tea.'
    ) in whole.text
    assert (
        "## Current Project\nName: shop\nType: node\nLanguage: typescript\nPackage manager: pnpm\n"
        in whole.text
    )
    assert "- audit: Find flaws." in whole.text


def test_the_response_language_is_part_of_the_role() -> None:
    assert "Always answer in Korean" in sections(language="ko")["Role"]
    assert "Always answer in Chinese" in sections(language="zh-TW")["Role"]
    assert "Always answer in Klingon" in sections(language="Klingon")["Role"]
    assert "Always answer" not in sections()["Role"]
    assert sections(role="You are a pirate.", language="en")["Role"].startswith("You are a pirate.\n\nAlways")


def test_each_mode_is_explained() -> None:
    modes = ("plan", "default", "acceptEdits", "bypassPermissions")
    texts = [sections(permission_mode=mode)["Permission Mode"] for mode in modes]
    assert [text.partition(":")[0] for text in texts] == list(modes)
    assert len(set(texts)) == 4


def test_place_and_time_are_told() -> None:
    assert sections(platform="linux", date="2026-11-16", additional_dirs=["/srv"])["Working Directory"] == (
        "/home/u/p\nFurther directories of the workspace: /srv\nPlatform: linux\n"
        "Date when the session began: 2026-11-16"
    )


def test_tokens_are_those_of_the_shared_estimate() -> None:
    section = PromptSection("x", "한국어 and\nEnglish")
    assert section.tokens == math.ceil(len(msgspec.json.encode(section.text)) / 4)


def test_a_long_list_of_skills_is_shortened_alike_and_says_what_is_missing() -> None:
    few = sections(skills=[Listed("a", "x" * 5_000), Listed("b", "y" * 100)])["Skills"]
    assert few.splitlines()[1:] == [f"- a: {'x' * 1_535}…", f"- b: {'y' * 100}"]
    many = sections(skills=[Listed(f"skill-{n}", "z" * 300) for n in range(100)])["Skills"]
    lines = many.splitlines()[1:]
    assert len(many) < LEAST_LISTING + 200
    assert len(lines) == 100
    assert {len(line.partition(": ")[2]) for line in lines} == {len(lines[0].partition(": ")[2])}
    masses = sections(skills=[Listed(f"skill-{n:05}", "z" * 300) for n in range(5_000)])["Skills"]
    assert len(masses) < LEAST_LISTING + 1_000
    assert masses.splitlines()[1] == "- skill-00000"
    assert masses.endswith("more, which are not listed for want of room")
    wide = sections(
        skills=[Listed(f"skill-{n}", "z" * 300) for n in range(100)],
        context_window=1_000_000,
        skill_fraction=0.05,
    )["Skills"]
    assert wide.count("z" * 300) == 100


@given(
    st.lists(st.builds(Listed, st.text(min_size=1, max_size=30), st.text(max_size=400)), max_size=80),
    st.integers(1, 2_000),
)
def test_the_list_of_skills_keeps_to_its_budget(skills: list[Listed], longest: int) -> None:
    text = sections(skills=skills, skill_characters=longest).get("Skills", "")
    assert len(text) <= LEAST_LISTING + 80 * 2 + 200
