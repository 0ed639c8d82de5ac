"""Which lines of a transcript are its conversation, and in which order the model saw them.

A transcript is a tree: rewinding makes a fork, and the results of parallel calls hang on the piece of the
reply that asked for them. The conversation is the way from the newest entry back to the root, together with
what belongs to the replies on it.
"""

from __future__ import annotations

from msgspec import Struct

from robota.sessions.transcripts.lines import Problems, TranscriptIndex, TranscriptLine


class ChainLine(Struct, frozen=True):
    line: TranscriptLine
    results_only: bool = False
    """Found beside the way: only the tool results on it belong to the conversation."""


def conversation_lines(index: TranscriptIndex, problems: Problems) -> list[ChainLine]:
    """The conversation from its first line to its last; empty when the file has no message."""
    leaf = _newest(index)
    if leaf is None:
        return []
    return _add_parallel(index, _move_kept(_walk(index, leaf, problems)))


def _newest(index: TranscriptIndex) -> TranscriptLine | None:
    messages = [line for line in reversed(index.lines) if line.kind in ("user", "assistant")]
    own = [line for line in messages if not line.aside]
    # What a hook or a command added without the user does not make a branch the current one.
    said = next((line for line in own if not line.meta), None)
    return said or next(iter(own or messages), None)


def _walk(index: TranscriptIndex, leaf: TranscriptLine, problems: Problems) -> list[TranscriptLine]:
    line, chain = leaf, [leaf]
    seen, lowest = {leaf.uuid}, index.by_uuid[leaf.uuid]
    while line.parent is not None:
        parent = index.find(line.parent)
        if parent is None or parent.uuid in seen:
            wrong = "is not in the file" if parent is None else "follows it in turn (a circle)"
            parent = _nearest_before(index, lowest, aside=leaf.aside)
            went_on = "nothing is before it" if parent is None else f"line {parent.number} is taken instead"
            problems.add(f"The entry that line {line.number} follows {wrong}; {went_on}.")
            if parent is None:
                break
        line = parent
        chain.append(line)
        seen.add(line.uuid)
        lowest = min(lowest, index.by_uuid[line.uuid])
    chain.reverse()
    return chain


def _nearest_before(index: TranscriptIndex, place: int, *, aside: bool) -> TranscriptLine | None:
    """A lost entry was most likely written right after the one before it in the file."""
    while place > 0:
        place -= 1
        if index.lines[place].aside == aside:
            return index.lines[place]
    return None


def _move_kept(chain: list[TranscriptLine]) -> list[TranscriptLine]:
    """Put the last compaction that kept messages before those, where the model sees its summary."""
    places = {line.uuid: place for place, line in enumerate(chain)}
    boundary = next((line for line in reversed(chain) if line.kept_from is not None), None)
    if boundary is None:
        return chain
    place = places[boundary.uuid]
    first = places.get(boundary.kept_from or "", place)
    last = max(places.get(boundary.kept_behind or "", place), place)
    if first >= place:
        return chain
    return chain[:first] + chain[place : last + 1] + chain[first:place] + chain[last + 1 :]


def _add_parallel(index: TranscriptIndex, chain: list[TranscriptLine]) -> list[ChainLine]:
    """Add the pieces of replies on the way, and results of their calls, that hang beside the way."""
    on_the_way = {line.uuid for line in chain}
    last_piece = {line.response: line.uuid for line in chain if line.response is not None}
    owner = {line.uuid: line.response for line in index.lines if line.response in last_piece}
    beside: dict[str, list[ChainLine]] = {}
    for line in index.lines:
        if line.uuid in on_the_way:
            continue
        is_piece = line.uuid in owner
        response = owner.get(line.uuid if is_piece else line.parent or "")
        if response is not None and (is_piece or line.kind == "user"):
            beside.setdefault(last_piece[response], []).append(ChainLine(line, not is_piece))
    return [found for line in chain for found in (ChainLine(line), *beside.get(line.uuid, ()))]
