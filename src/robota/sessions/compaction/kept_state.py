"""The part of a summary that code writes, word for word: the rules that the user typed, instructions it came
to, the plan that was agreed on, the open todos, the files in use.

What is found in a conversation is read from the whole timeline, of which a compaction hides a part and
deletes nothing. So it survives any number of compactions, and the end of the process.

Each section stands between tags with a number that occurs in none of the texts, and no such tag is left in
the model's own words. So a summary can neither forge a section nor end one, and a section's text can be
anything, tags included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.messages import AssistantMessage, Json, Message, ToolCall, ToolMessage, UserMessage
from robota.core.permissions.subjects import PATHS
from robota.sessions.inbox import KEPT
from robota.sessions.journal.decoding import parse_arguments

PROJECT_RULES = "Project rules"
OPEN_TODOS = "Open todos"
PLAN = "The plan"
USER_RULES = "What the user asked for, always or never, in their own words"
FILES_IN_USE = "Files in use, the latest first"

TAG = "kept-state"
NOTE = (
    "What stands in the tags below was put here by the program, not by the author of the summary above. It "
    "is current and complete; where the summary says something else, this counts."
)
_LOOSE_TAG = lazy_pattern(rf"<(\s*(?:/\s*)?{TAG})", re.IGNORECASE)
_NUMBER = lazy_pattern(rf"{TAG}-(\d{{1,9}})", re.IGNORECASE)
_SECTION = lazy_pattern(rf'<{TAG}-(\d+) title="([^"]*)">\n(.*?)\n</{TAG}-\1>', re.DOTALL)


class CompactionSection(Struct, frozen=True):
    """Something the model must know after a compaction, whatever its summary says."""

    title: str
    text: str


def write_sections(sections: Sequence[CompactionSection]) -> str:
    """The sections as they stand at the end of a summary; empty when there is nothing to keep."""
    kept = [section for section in sections if section.text.strip()]
    if not kept:
        return ""
    taken = {int(number) for section in kept for number in _NUMBER.findall(section.text)}
    number = next(number for number in count(1) if number not in taken)
    blocks = [NOTE]
    for section in kept:
        title = disarm(" ".join(section.title.split()).replace('"', "'"))
        blocks.append(f'<{TAG}-{number} title="{title}">\n{section.text}\n</{TAG}-{number}>')
    return "\n\n".join(blocks)


def add_sections(summary: str, sections: str) -> str:
    """A summary with what `write_sections` made."""
    return f"{summary}\n\n{sections}" if sections else summary


def disarm(summary: str) -> str:
    """The model's words with every tag of ours made harmless."""
    return _LOOSE_TAG.sub(r"&lt;\1", summary)


def read_sections(text: str) -> tuple[CompactionSection, ...]:
    """The sections of a summary that `add_sections` put together."""
    return tuple(CompactionSection(found[2], found[3]) for found in _SECTION.finditer(text))


def drop_sections(text: str) -> str:
    """The summary alone: what code wrote is written anew each time."""
    first = _SECTION.search(text)
    return text if first is None else text[: first.start()].removesuffix(f"{NOTE}\n\n").rstrip()


# --- what is found in a conversation -----------------------------------------------------------------------

MAX_FILES = 50
MAX_RULES = 100
LONGEST_RULE = 2_000
"""Characters; what is longer is a text that happens to hold such a word."""


def find_sections(messages: Sequence[Message]) -> list[CompactionSection]:
    """The sections that follow from the messages alone; those without text are left out when written."""
    return [
        CompactionSection(PROJECT_RULES, "\n\n".join(find_kept(messages))),
        CompactionSection(USER_RULES, "\n".join(f"- {rule}" for rule in find_rules(messages))),
        CompactionSection(PLAN, find_plan(messages)),
        CompactionSection(FILES_IN_USE, "\n".join(find_files(messages))),
    ]


# --- rules ----------------------------------------------------------------------------------------------

_LEAD = r"(?:[-*•·]|\d+[.)]|and|but|also|so|please|ok(?:ay)?|note|rule|important|remember|btw)?[,:;]?\s*"
_ENGLISH = lazy_pattern(
    rf"""^{_LEAD}{_LEAD}(?:
        (?:always|never)\s+(?!mind\b|again\b\W*$|knew\b|thought\b|seen\b|heard\b|worked\b|happened\b|been\b)\w
      | (?:you\s+)?(?:must|should|shall|may|can|are\s+to|have\s+to)\s+(?:always|never)\b
      | (?:do\s+not|don['’]t)\s+(?:you\s+)?ever\b
      | (?:from\s+now\s+on|going\s+forward|in\s+(?:the\s+)?future|for\s+the\s+rest\s+of\s+this\s+session)\b
      | (?:under\s+no\s+circumstances|at\s+all\s+times|without\s+exception)\b
      | (?:make\s+sure|ensure|remember|be\s+sure)\s+(?:that\s+)?(?:you\s+|to\s+)*(?:always|never)\b
      | (?:every\s+time|whenever)\s+you\b
    )
    | \byou\s+(?:must|should|may|are\s+to)\s+(?:always|never)\b
    | [,;]\s*(?:and\s+|but\s+)?(?:always|never)\s+(?!mind\b)\w+
    | \b(?:always|never),?\s+(?:ever,?\s+)?(?:please\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_KOREAN_ALWAYS = lazy_pattern(
    r"항상|언제나|늘\s|매번|무조건|반드시|꼭\s|앞으로(?:는|도)?\s|지금부터|이제부터"
)
_KOREAN_NEVER = lazy_pattern(r"절대(?:로)?\s|결코\s|어떤\s*경우에도|두\s*번\s*다시|다시는\s")
_KOREAN_ORDER = lazy_pattern(
    r"(?:세요|십시오|시오|라|줘|달라|주길|주기|하자|합시다|것|하기|않기|말기|"
    r"마라|마세요|마십시오|말아(?:라|요|줘|주세요)?|말자|마|해|써|둬|놔|돼|안\s*됩니다|안\s*된다|바랍니다|바람|부탁해?(?:요|드립니다)?|합니다|한다)"
    r"[.!~…\s]*$"
)
_FENCE = lazy_pattern(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_REMINDER = lazy_pattern(
    r"<system-reminder>.*?(?:</system-reminder>|\Z)|\A<skill name=.*?</skill>\n", re.DOTALL
)
_BETWEEN = lazy_pattern(r"(?<=[.!?。！？])[\"'”’)]*\s+(?=[A-Z가-힣\"'“(*-])")


def find_rules(messages: Iterable[Message]) -> list[str]:
    """What the user wants to be so always or never, in their own words, each once, in order."""
    found: dict[str, None] = {}
    for message in messages:
        if isinstance(message, UserMessage) and "origin" not in message.metadata:
            for rule in rules_in(message.content):
                found.pop(rule, None)
                found[rule] = None
    return list(found)[-MAX_RULES:]


def rules_in(text: str) -> Iterator[str]:
    """The sentences of a prompt that are rules; quotations and code are not."""
    typed = _REMINDER.sub("\n", _FENCE.sub("\n", text))
    for line in typed.splitlines():
        if line.lstrip().startswith((">", "|", "$ ", "#!")):
            continue
        for sentence in map(str.strip, _BETWEEN.split(line)):
            if len(sentence) <= LONGEST_RULE and is_rule(sentence):
                yield sentence


def is_rule(sentence: str) -> bool:
    """Whether a sentence tells what to do, or not to do, every time; questions and reports do not."""
    if sentence.rstrip("\"'”’)").endswith(("?", "？")):
        return False
    if _ENGLISH.search(sentence):
        return True
    if _KOREAN_NEVER.search(sentence) or _KOREAN_ALWAYS.search(sentence):
        return bool(_KOREAN_ORDER.search(sentence.rstrip("\"'”’)")))
    return False


def find_kept(messages: Iterable[Message]) -> list[str]:
    """What the model was told to keep in mind, by a program and not by the user."""
    kept = (message.content for message in messages if message.metadata.get(KEPT) is True)
    return list(dict.fromkeys(kept))


# --- plan, todos, files -----------------------------------------------------------------------------------


def find_plan(messages: Iterable[Message]) -> str:
    """The plan that the user has agreed to last."""
    plan = ""
    for call, result in _results(messages):
        if result.metadata.get("approved") is True:
            arguments = parse_arguments(call.arguments)
            found = arguments.get("plan") if isinstance(arguments, dict) else None
            plan = found if isinstance(found, str) else plan
    return plan


def find_todos(messages: Iterable[Message]) -> list[Json]:
    """The list that a tool has written last, as it tells of it in the metadata of its results."""
    todos: list[Json] = []
    for _, result in _results(messages):
        if isinstance(found := result.metadata.get("todos"), list):
            todos = found
    return todos


def find_files(messages: Iterable[Message]) -> list[str]:
    """The files that tools were called with, the latest first."""
    found: dict[str, None] = {}
    for message in messages:
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            for path in _paths_in(call):
                found.pop(path, None)
                found[path] = None
    return list(reversed(found))[:MAX_FILES]


def _results(messages: Iterable[Message]) -> Iterator[tuple[ToolCall, ToolMessage]]:
    calls: dict[str, ToolCall] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = {call.id: call for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in calls:
            yield calls[message.tool_call_id], message


def _paths_in(call: ToolCall) -> list[str]:
    arguments = parse_arguments(call.arguments)
    if not isinstance(arguments, dict):
        return []
    return [path for name in PATHS if isinstance(path := arguments.get(name), str) and path]
