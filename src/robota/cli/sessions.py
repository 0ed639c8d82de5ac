"""`robota sessions`: the conversations that are kept. Lists and exports go to stdout, remarks to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import click

from robota.cli.progress import progress
from robota.cli.table import print_table
from robota.core.errors import StorageError
from robota.core.jsontext import encode
from robota.sdk.kept_sessions import SessionStore, create_project_session_store, find_session
from robota.sdk.past_sessions import ExportFormat, export_session, load_record
from robota.sdk.places import find_places
from robota.sdk.view.neutral import neutral_line

if TYPE_CHECKING:
    from robota.sdk.kept_sessions import SessionSummary

LISTED = 30


@click.group(
    help="The sessions that are kept. SESSION is an id or a name.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def command() -> None: ...


everywhere = click.option("--all", "everywhere", is_flag=True, help="Those of all directories.")


@command.command("list")
@everywhere
@click.option("-n", "--number", type=click.IntRange(1), default=LISTED, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with all fields, one session per line.")
def list_sessions(everywhere: bool, number: int, as_json: bool) -> None:
    """Show the sessions of this directory, the last one first."""
    cwd = find_places().cwd
    known = _store().list(cwd=None if everywhere else cwd)
    if as_json:
        for summary in known[:number]:
            print(encode(summary).decode())
        return
    print_table([_describe(summary, everywhere) for summary in known[:number]])
    if len(known) > number:
        print(f"{len(known) - number} more: -n {len(known)} shows them.", file=sys.stderr)
    if not known:
        where = "kept here" if everywhere else f"of {cwd}; --all shows those of other directories"
        print(f"There are no sessions {where}.", file=sys.stderr)


def _describe(summary: SessionSummary, everywhere: bool) -> Sequence[str]:
    count = "?" if summary.message_count is None else str(summary.message_count)
    what = summary.problem or (f"{summary.name}: " if summary.name else "") + summary.preview
    place = (find_places().shown(summary.cwd),) if everywhere else ()
    when = summary.updated_at[:16].replace("T", " ")
    return (summary.id, when, f"{count:>4}", *place, neutral_line(what))  # or a name could pass for a row


@command.command()
@click.argument("session")
def show(session: str) -> None:
    """Show what is known of a session, and what was said in it."""
    store = _store()
    id = _find(store, session)
    record = load_record(store, id)
    print_table([
        ("id", id), ("name", record.name or "-"), ("directory", record.cwd), ("model", record.model or "-"),
        ("begun", record.created_at), ("used last", record.updated_at),
        ("messages", str(len(record.messages))), ("file", store.path_of(id)),
    ])  # fmt: skip
    for problem in record.problems:
        print(problem, file=sys.stderr)
    print()
    print(export_session(store, id))


@command.command()
@click.argument("words", nargs=-1, required=True)
@everywhere
@click.option("-n", "--number", type=click.IntRange(1), default=20, help="How many at most.")
def search(words: tuple[str, ...], everywhere: bool, number: int) -> int:
    """Find what was said: messages with all WORDS, the newest first. Exit code 1: there are none."""
    cwd = None if everywhere else find_places().cwd
    with progress("index") as advance:
        hits = _store().search(" ".join(words), cwd=cwd, limit=number, on_step=advance)
    for hit in hits:
        print(f"{hit.session_id}  {hit.timestamp[:16].replace('T', ' ')}  {hit.role}: {hit.snippet}")
    if not hits:
        elsewhere = "" if everywhere else "; --all looks in those of other directories"
        print(f"No message has all of these words{elsewhere}.", file=sys.stderr)
    return 0 if hits else 1


@command.command()
@click.argument("session")
@click.option(
    "--format", "form", type=click.Choice(get_args(ExportFormat)), default="markdown", show_default=True
)
@click.option("-o", "--output", metavar="FILE", help="Write it there; an existing file is not replaced.")
@click.option("--with-secrets", is_flag=True, help="Do not look for secrets and remove them.")
def export(session: str, form: ExportFormat, output: str | None, with_secrets: bool) -> None:
    """Write a session for others: as text, as a page, or as JSON that `sessions import` reads."""
    store = _store()
    id = _find(store, session)
    with progress("export") as advance:
        text = export_session(store, id, form, redact=not with_secrets, on_step=advance)
    if output is None and sys.stdout.isatty():
        print(text)
        return
    if output is None:  # as it is, for files and programs
        sys.stdout.buffer.write(text.encode())
        return
    try:
        with open(output, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(f"{output} cannot be written ({error.strerror}): name another file.") from error
    print(f"Written: {output}", file=sys.stderr)


@command.command("import")
@click.argument("paths", nargs=-1)
@click.option("--claude", is_flag=True, help="Those that Claude Code kept for this directory, too.")
def import_sessions(paths: tuple[str, ...], claude: bool) -> int:
    """Take sessions of other programs into the store: files or directories with exports, records and logs of
    the original robota, or transcripts of Claude Code. Without PATHS: those in .robota/sessions and
    .robota/logs here. Exit code 1: one could not be read.
    """
    from robota.sdk.session_import import expand, find_foreign, import_session  # noqa: PLC0415 - on request

    places = find_places()
    found = [file for path in paths for file in expand(os.path.join(places.cwd, path))]
    if not paths or claude:
        found += find_foreign(places, claude=claude)
    if not found:
        hint = "name a file." if claude else "name a file, or add --claude."
        print(f"There is nothing to import {'there' if paths else 'here'}: {hint}", file=sys.stderr)
        return 1
    store, taken = _store(), []
    with progress("import") as advance:
        for number, path in enumerate(found):
            taken.append(import_session(store, path, places.cwd))
            advance(number + 1, len(found))
    print_table([(each.id, f"{each.messages:>4}", places.shown(each.path)) for each in taken if each.id])
    for each in taken:
        for problem in each.problems:
            print(problem, file=sys.stderr)
    count = sum(bool(each.id) for each in taken)
    print(f"{count} of {len(found)} imported.", file=sys.stderr)
    return 0 if all(each.id or each.is_known for each in taken) else 1


@command.command()
def migrate() -> int:
    """Write the timeline into records of old versions that have none. Exit code 1: one could not be read."""
    done = _store().migrate()
    for id in done.migrated:
        print(id)
    for problem in done.problems:
        print(problem, file=sys.stderr)
    print(f"{len(done.migrated)} migrated, {done.unchanged} as they were.", file=sys.stderr)
    return 1 if done.problems else 0


@command.command()
@click.argument("sessions", nargs=-1, required=True)
def rm(sessions: tuple[str, ...]) -> None:
    """Delete sessions. Their files stay in .trash beside the others for thirty days."""
    store = _store()
    for id in [_find(store, session) for session in sessions]:
        store.delete(id)
        print(f"Deleted: {id}")


@command.command()
def gc() -> None:
    """Remove for good what was deleted, and the index, which is made anew."""
    store = _store()
    store.empty_trash()
    print(f"The trash of {store.base_dir} is empty.", file=sys.stderr)


def _store() -> SessionStore:
    return create_project_session_store()


def _find(store: SessionStore, session: str) -> str:
    return find_session(store, session, find_places().cwd)
