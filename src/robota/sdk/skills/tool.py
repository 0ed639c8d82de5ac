"""The Skill tool, by which a model gets the instructions of a skill, and what it is told of those there are.

What a model got of skills is part of the conversation. After a compaction the latest call of each is put in
again, word for word, as far as there is room.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from robota._lazy_pattern import lazy_pattern
from robota.core.context import BYTES_PER_TOKEN
from robota.core.errors import RobotaError
from robota.core.messages import Message, ToolMessage, UserMessage
from robota.core.tool import ToolContext, ToolResult
from robota.sdk.context.system_prompt import Listed
from robota.sdk.skills.calls import SkillCalls
from robota.sdk.skills.skill import Skill
from robota.sessions.compaction.kept_state import CompactionSection
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, string

NAME = "Skill"
PARAMETERS = arguments_schema(
    {
        "skill": string("The name of the skill.", minLength=1),
        "args": string(
            "What the skill is to work on, in the words that the user would type behind its name."
        ),
    },
    "skill",
)
SECTION = "Skills in use, as they were called last"
MAX_TOKENS = 5_000
"""Of one skill after a compaction."""
MAX_TOKENS_TOGETHER = 25_000
_SKILL = lazy_pattern(r'^<skill name="(?P<name>[^"\n]*)">\n.*?\n</skill>', re.DOTALL | re.MULTILINE)


def skill_tool(calls: SkillCalls) -> FunctionTool:
    async def use_skill(ctx: ToolContext, skill: str, args: str = "") -> ToolResult:
        try:
            return ToolResult(content=await calls.use(skill, args, ctx.rules), metadata={"skillName": skill})
        except RobotaError as error:
            return ToolResult.failure(str(error), error.code)

    aliases = {"name": "skill", "command": "skill", "arguments": "args"}
    return FunctionTool(
        NAME, text_beside(__file__), PARAMETERS, use_skill, tool_class="inspect", aliases=aliases
    )


def list_for_model(skills: Iterable[Skill]) -> list[Listed]:
    """What the system prompt says about each skill that a model may call. One that is about certain files is
    offered when they are touched."""
    return [
        Listed(skill.name, "" if skill.offer == "name-only" else describe(skill))
        for skill in skills
        if skill.for_model and not skill.paths
    ]


def describe(skill: Skill) -> str:
    return f"{skill.description} {skill.when_to_use}".strip()


def recall_skills(messages: Sequence[Message]) -> CompactionSection:
    """The skills that a conversation has used, each as it was called last, the latest first."""
    found: dict[str, str] = {}
    for message in reversed(messages):
        is_call = isinstance(message, ToolMessage) and message.name == NAME
        if is_call or (isinstance(message, UserMessage) and message.content.startswith("<skill name=")):
            for called in _SKILL.finditer(message.content):
                found.setdefault(called["name"], called[0])
    texts, room = [], MAX_TOKENS_TOGETHER * BYTES_PER_TOKEN
    for text in found.values():
        kept = text[: min(MAX_TOKENS * BYTES_PER_TOKEN, room)]
        if not kept:
            break
        room -= len(kept)
        texts.append(kept)
    return CompactionSection(SECTION, "\n\n".join(texts))
