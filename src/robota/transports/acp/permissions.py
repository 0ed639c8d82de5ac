"""Questions of a session, as an editor puts them to its user: may this run, is this plan good, which one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp.schema import PermissionOption, PermissionOptionKind, ToolCallUpdate

from robota.core.questions import (
    ChoiceAnswer,
    ChoiceQuestion,
    FormAnswer,
    FormQuestion,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanQuestion,
    Question,
)
from robota.sdk.view.neutral import neutralise
from robota.transports.acp.client import AcpClient
from robota.transports.acp.forms import make_form, read_form
from robota.transports.acp.peer import Disconnected, RpcError
from robota.transports.acp.tool_calls import (
    Content,
    find_diff,
    find_locations,
    kind_of_call,
    read_before,
    say,
    title_of_call,
)
from robota.transports.trust_question import find_trust_question

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

ALLOW, SESSION, PROJECT, REJECT = "allow", "allow-session", "allow-project", "reject"
ACCEPT_EDITS, DEFAULT, KEEP_PLANNING = "acceptEdits", "default", "plan"
SKIP = "skip"
TRUST = "trust"


def option(id: str, name: str, kind: PermissionOptionKind) -> PermissionOption:
    return PermissionOption(option_id=id, name=name, kind=kind)


class Desk:
    """Puts questions to the client and reads its answers. What fails is a no."""

    def __init__(self, session: InteractiveSession, client: AcpClient) -> None:
        self._session = session
        self._client = client
        self._declined = ""
        """The trust question that was asked."""

    async def answer(self, question: Question) -> object:
        """The handler for `session.questions`."""
        match question:
            case PermissionQuestion():
                return await self._permit(question)
            case PlanQuestion():
                return await self._approve(question)
            case ChoiceQuestion() | FormQuestion() if self._client.shows_forms:
                return await self._fill_in(question)
            case ChoiceQuestion(options=options) if options:
                return await self._choose(question)
            case ChoiceQuestion():
                return ChoiceAnswer(dismissed=True)  # a list of options has no place for words of one's own
            case _:
                return None

    async def settle_trust(self) -> None:
        """Ask once whether the user trusts what the directory wants. Whatever is not a yes is a no."""
        await self._session.ready()
        question = find_trust_question(self._session)
        if question is None or question.id == self._declined:
            return
        self._declined = question.id
        head, *lines = (neutralise(line) for line in question.lines)
        call = ToolCallUpdate(
            tool_call_id=f"trust-{question.id}",
            status="pending",
            title=head,
            content=[say("\n".join(lines))],
        )
        options = [
            option(TRUST, "Trust it: what its files want counts from now on", "allow_always"),
            option(REJECT, "Not now", "reject_once"),
        ]
        chosen, _ = await self._ask(call, options)
        if chosen == TRUST:
            await self._session.trust_project(question.trust)

    async def _fill_in(self, question: ChoiceQuestion | FormQuestion) -> ChoiceAnswer | FormAnswer:
        message, schema = make_form(question)
        call = question.call_id if isinstance(question, ChoiceQuestion) else ""
        try:
            given = await self._client.fill_in(self._session.session_id, call, message, schema)
        except (RpcError, Disconnected):
            given = None
        return read_form(question, given)

    async def _permit(self, question: PermissionQuestion) -> PermissionAnswer:
        options = [option(ALLOW, "Allow", "allow_once")]
        if question.rule:
            options += [
                option(SESSION, f"Allow {question.rule} for this session", "allow_always"),
                option(PROJECT, f"Always allow {question.rule} in this project", "allow_always"),
            ]
        options.append(option(REJECT, "Reject", "reject_once"))
        chosen, trouble = await self._ask(self._describe(question), options)
        if chosen == SESSION:
            return PermissionAnswer(allow=True, scope="session")
        if chosen == PROJECT:
            return PermissionAnswer(allow=True, scope="project")
        return PermissionAnswer(allow=chosen == ALLOW, message=trouble)

    def _describe(self, question: PermissionQuestion) -> ToolCallUpdate:
        tool, given, cwd = question.tool_name, question.tool_input, question.cwd or self._session.cwd
        content: list[Content] = []
        if question.reason:
            content.append(say(neutralise(question.reason)))
        diff = find_diff(tool, given, cwd, read_before(tool, given, cwd))
        if diff is not None:
            content.append(diff)
        return ToolCallUpdate(
            tool_call_id=question.call_id or question.id,
            kind=kind_of_call(tool),
            status="pending",
            title=title_of_call(tool, given),
            content=content,
            locations=find_locations(tool, given, cwd),
            raw_input=given,
        )

    async def _approve(self, question: PlanQuestion) -> PlanAnswer:
        call = ToolCallUpdate(
            tool_call_id=question.call_id or question.id,
            kind="switch_mode",
            status="pending",
            title="Go to work on this plan?",
            content=[say(neutralise(question.plan))],
        )
        options = [
            option(ACCEPT_EDITS, "Yes, and edit files without asking", "allow_always"),
            option(DEFAULT, "Yes, and ask before changes", "allow_once"),
            option(KEEP_PLANNING, "No, keep planning", "reject_once"),
        ]
        chosen, trouble = await self._ask(call, options)
        if chosen in (ACCEPT_EDITS, DEFAULT):
            return PlanAnswer(approve=True, mode=chosen)
        return PlanAnswer(approve=False, feedback=trouble)

    async def _choose(self, question: ChoiceQuestion) -> ChoiceAnswer:
        """One of the options; the protocol has no way to choose several, or to answer in other words."""
        described = [f"**{each.label}**: {each.description}" for each in question.options if each.description]
        call = ToolCallUpdate(
            tool_call_id=question.call_id or question.id,
            status="pending",
            title=neutralise(question.question),
            content=[say(neutralise("\n\n".join(described)))] if described else [],
        )
        options = [
            option(str(at), neutralise(each.label), "allow_once") for at, each in enumerate(question.options)
        ]
        chosen, _ = await self._ask(call, [*options, option(SKIP, "Skip", "reject_once")])
        if chosen is None or not chosen.isdecimal() or int(chosen) >= len(question.options):
            return ChoiceAnswer(dismissed=True)
        return ChoiceAnswer(chosen=(question.options[int(chosen)].label,))

    async def _ask(self, call: ToolCallUpdate, options: Sequence[PermissionOption]) -> tuple[str | None, str]:
        """What was chosen, and what the model is told if that failed."""
        try:
            return await self._client.choose(self._session.session_id, call, options), ""
        except (RpcError, Disconnected) as error:
            return None, f"Nobody could be asked: {error}"
