"""The memory of one session: what it knows from the start, what it recalls for a prompt, what it saves.

Off by default. What a project has that nobody trusts is read, as its instruction files are, but it cannot say
that things are saved without a question.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from anyio import to_thread

from robota.core.errors import RobotaError, ValidationError
from robota.core.messages import HistoryEntry, Json, JsonObject
from robota.core.ports import timestamp
from robota.sdk.context.reminders import Reminders, remind
from robota.sdk.memory.extraction import Candidate, find_candidates
from robota.sdk.memory.files import MemoryFiles, PendingNote, Saved
from robota.sdk.memory.note import clean_text, require_type
from robota.sdk.memory.policy import MemoryMode, decide, is_sensitive
from robota.sdk.memory.retrieval import Recalled, recall

if TYPE_CHECKING:
    from robota.sdk.project import Project
    from robota.sessions.session import Session

T = TypeVar("T")
ENTRY = "memory-event"
MemoryEvent: TypeAlias = Literal[
    "memory_candidate_extracted",
    "memory_candidate_queued",
    "memory_candidate_saved",
    "memory_candidate_skipped",
    "memory_candidate_approved",
    "memory_candidate_rejected",
    "memory_retrieved",
]
MAX_EVENTS = 100
"""How many of the latest the record of the session keeps; its timeline has all."""
_ABOUT = "Notes from earlier sessions in this project; `.robota/memory/topics` has more of them."
_RECALLED = "Notes from the project's memory that may matter for the next prompt:"


class Memory:
    def __init__(self, session: Session, project: Callable[[], Project]) -> None:
        self._session = session
        self._reminders = Reminders(session)
        self._project = project
        self.files = MemoryFiles(project().places, self._is_denied)

    @property
    def mode(self) -> MemoryMode:
        project = self._project()
        settings = project.settings
        if not settings.get("memory.enabled"):
            return "disabled"
        own = project.places.project("")
        agreed = project.trusted or not any(
            origin.startswith(own) for origin in settings.origins.get("memory.autoSave", ())
        )
        return "auto_save" if settings.get("memory.autoSave") and agreed else "approval_required"

    @property
    def used(self) -> list[Json]:
        """What was recalled for prompts of this session."""
        return self._session.kept.get("usedMemoryReferences")

    # --- around a prompt ----------------------------------------------------------------------------------

    async def prepare(self, words: str) -> str:
        """Note what a prompt asks to remember, recall what belongs to it, and give the text that the session
        knows from the start. Files that cannot be used are named once, and cost nothing but the memory."""
        try:
            for candidate in find_candidates(words):
                await self._consider(candidate)
            self._tell(await _work(self._recall, words))
            known = await _work(self.files.read_start)
        except RobotaError as error:
            self._session.log.notice(f"The project's memory is not used: {error}")
            return ""
        return f"{_ABOUT}\n\n{known}" if known else ""

    async def _consider(self, candidate: Candidate) -> None:
        sensitive = is_sensitive(candidate.text, self._redact)
        facts: JsonObject = {"id": candidate.id, "type": candidate.type, "topic": candidate.topic}
        facts |= {} if sensitive else {"text": candidate.text, "confidence": candidate.confidence}
        self._note("memory_candidate_extracted", facts)
        verdict = decide(self.mode, candidate.confidence, sensitive=sensitive)
        if verdict == "save":
            saved = await _work(self.files.save, candidate.type, candidate.topic, candidate.text)
            self._note("memory_candidate_saved", facts | {"deduplicated": saved.deduplicated})
        elif verdict == "queue":
            await _work(self.files.queue, self._pend(candidate))
            self._note("memory_candidate_queued", facts)
        else:
            self._note("memory_candidate_skipped", facts | {"reason": "sensitive"})

    def _recall(self, words: str) -> list[Recalled]:
        files = self.files
        return recall(words, ((topic, files.read_topic(topic)) for topic in files.topics()))

    def _tell(self, recalled: list[Recalled]) -> None:
        """Once: what the conversation has been told is not told again."""
        self._reminders.look()
        told = self._reminders.words
        news = [each for each in recalled if not any(each.text in words for words in told)]
        if not news:
            return
        remind(self._session, "\n".join([_RECALLED, *(f"\n{each.topic}:\n{each.text}" for each in news)]))
        found: list[Json] = [{"topic": each.topic, "score": each.score} for each in news]
        self._note("memory_retrieved", {"topics": found})
        known = {str(each["topic"]): each for each in (*self.used, *found) if isinstance(each, dict)}
        self._session.kept.put("usedMemoryReferences", list(known.values()))

    # --- what people do -----------------------------------------------------------------------------------

    async def add(self, text: str, type: str = "project", topic: str = "general") -> Saved:
        """Save a note of the user's own."""
        text = clean_text(text)
        if not text:
            raise ValidationError("There is nothing to remember: write the note behind /memory add.")
        if is_sensitive(text, self._redact):
            raise ValidationError(
                "That looks like a password, a key or the number of a person: it is not saved, because "
                "memory files are plain text in the project."
            )
        return await _work(self.files.save, require_type(type), topic, text)

    async def approve(self, id: str) -> Saved:
        waiting = await _work(self.files.find_pending, id)
        saved = await _work(self.files.save, waiting.type, waiting.topic, waiting.text)
        await _work(self.files.take, id)
        self._note("memory_candidate_approved", {"id": id, "deduplicated": saved.deduplicated})
        return saved

    async def reject(self, id: str) -> PendingNote:
        rejected = await _work(self.files.take, id)
        self._note("memory_candidate_rejected", {"id": id})
        return rejected

    # --- inside -------------------------------------------------------------------------------------------

    def _pend(self, candidate: Candidate) -> PendingNote:
        return PendingNote(
            id=candidate.id,
            text=candidate.text,
            type=candidate.type,
            topic=candidate.topic,
            confidence=candidate.confidence,
            created_at=timestamp(self._session.options.ports.now()).isoformat(),
        )

    def _note(self, event: MemoryEvent, facts: JsonObject) -> None:
        data = {"event": event, **facts}
        self._session.add_history_entry(HistoryEntry(category="event", type=ENTRY, data=data))
        kept = self._session.kept
        kept.put("memoryEvents", [*kept.get("memoryEvents"), data][-MAX_EVENTS:])

    def _is_denied(self, path: str) -> bool:
        is_denied = self._session.rules.path_filter(self._session.cwd)
        return is_denied is not None and is_denied(path)

    def _redact(self, text: str) -> str:
        return self._session.log.secrets.redactor.text(text)


async def _work(function: Callable[..., T], *arguments: object) -> T:
    return await to_thread.run_sync(partial(function, *arguments))
