"""What one session knows of its project, kept up to date: the system prompt and what was told later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from anyio import to_thread
from msgspec.structs import replace

from robota.core.errors import ValidationError
from robota.core.events import ContextLoaded, SubagentEvent
from robota.core.messages import HistoryEntry, Prompt, prompt_text
from robota.core.ports import timestamp
from robota.sdk.context.active_references import ContextReferences
from robota.sdk.context.nested import NestedInstructions
from robota.sdk.context.system_prompt import PromptParts, build_system_prompt
from robota.sessions.journal.records import KeptField
from robota.sessions.session import Session

if TYPE_CHECKING:
    from robota.sdk.context.loading import ProjectContext

LANGUAGE: KeptField = "language"


class PromptReferenceError(ValidationError):
    """A prompt refers to files that cannot be sent with it."""

    code: ClassVar[str] = "PROMPT_REFERENCE"


class SessionContext:
    """Made with a session and for it."""

    def __init__(self, session: Session, context: ProjectContext, parts: PromptParts) -> None:
        """`parts` are those that the session's system message was made of."""
        self._session = session
        self._parts = parts
        self._read = parts
        """As the files say."""
        self.prompt = build_system_prompt(parts)
        """The system prompt, section by section."""
        self.nested = NestedInstructions(session, context)
        self.references = ContextReferences(session)
        self._children: WeakSet[Session] = WeakSet()
        session.events.on(SubagentEvent, self._meet_child)
        self._report(context)
        for chosen in session.kept.get(LANGUAGE):
            self.change(language=chosen)

    def choose_language(self, language: str) -> None:
        """The model is to answer in this one, also when the session is resumed."""
        self.change(language=language)
        self._session.kept.put(LANGUAGE, [language])

    def reload(self, context: ProjectContext, **parts: Any) -> None:
        """Take what was read anew. What the files say as before stays as somebody may have chosen since."""
        known, self.nested.context = self.nested.context, context
        if (context.files, context.rules) != (known.files, known.rules):
            self._report(context)
        news = {name: value for name, value in parts.items() if value != getattr(self._read, name)}
        self._read = replace(self._read, **news)
        self.change(**news)

    def change(self, **parts: Any) -> None:
        """Take other parts of the system prompt: for the next request."""
        known = self._parts
        for name, value in parts.items():
            if getattr(known, name) != value:
                break
        else:
            return
        self._parts = replace(known, **parts)
        self.prompt = build_system_prompt(self._parts)
        self._session.agent.system_message = self.prompt.text or None

    def refresh(self, memory: str) -> None:
        """Have the next prompt sent with a system prompt that is right now, with what is remembered in it,
        and with the files that are kept and have changed since."""
        session, known = self._session, self._parts
        rules = session.rules
        mode, dirs = rules.rules.mode, rules.additional_dirs
        window = session.tracker.max_tokens
        if (memory, mode, dirs, window) != (
            known.memory,
            known.permission_mode,
            known.additional_dirs,
            known.context_window,
        ):
            self.change(memory=memory, permission_mode=mode, additional_dirs=dirs, context_window=window)
        if self.references.active:
            self.references.refresh()

    async def expand(self, prompt: Prompt, *, lenient: bool = False, others: tuple[str, ...] = ()) -> Prompt:
        """The prompt with the files that it names. References that cannot be followed raise, each with a
        sentence, unless `lenient`; those that begin like one of `others` are no files."""
        if "@" not in prompt_text(prompt):
            return prompt
        from robota.sdk.context.references import (  # noqa: PLC0415 - few prompts name files
            ENTRY,
            ReferenceScope,
            expand_references,
        )

        session = self._session
        scope = ReferenceScope(
            cwd=session.cwd,
            home=self._parts.places.home,
            additional_dirs=session.rules.additional_dirs,
            is_denied=session.rules.path_filter(session.cwd),
            lenient=lenient,
            others=others,
        )
        expanded = await to_thread.run_sync(expand_references, prompt, scope)
        if expanded.failures:
            raise PromptReferenceError(" ".join(expanded.failures), field="prompt")
        if expanded.references:
            ports = session.options.ports
            identity: Any = {"id": ports.new_id(), "timestamp": timestamp(ports.now())}
            entry = HistoryEntry(category="event", type=ENTRY, data=expanded.describe(), **identity)
            session.add_history_entry(entry)
            for reference in expanded.references:
                if reference.version:
                    session.agent.files.remember(reference.real, reference.version)
            self.nested.touch(reference.path for reference in expanded.references)
        return expanded.prompt

    def _meet_child(self, event: SubagentEvent) -> None:
        """A subagent is told what concerns the directories that it comes to, too."""
        child = self._session.resources.children.get(event.agent_id)
        if isinstance(child, Session) and child not in self._children:
            self._children.add(child)
            context = self.nested.context
            places = replace(context.reading.places, cwd=child.cwd)
            NestedInstructions(child, replace(context, reading=replace(context.reading, places=places)))

    def _report(self, context: ProjectContext) -> None:
        log = self._session.log
        log.when_open(lambda: log.report(ContextLoaded, data=context.describe()))
