"""Bundle plugins and marketplaces, from within a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from anyio import to_thread

from robota.core.questions import ChoiceAnswer, ChoiceQuestion, QuestionOption
from robota.sdk.bundle.desk import BundleDesk, Pending
from robota.sdk.commands.arguments import dispatch, split_first, usage
from robota.sdk.commands.effects import CommandResult, failure

if TYPE_CHECKING:
    from robota.sdk.bundle.bundle import Scope
    from robota.sdk.interactive import InteractiveSession

T = TypeVar("T")
YES = "Yes"
NO = "No"


async def plugin(host: InteractiveSession, args: str) -> CommandResult:
    actions = {
        "list": _list_plugins,
        "search": _search,
        "install": _install,
        "uninstall": _uninstall,
        "enable": _enable,
        "disable": _disable,
        "update": _update,
        "show": _show,
        "validate": _validate,
        "marketplace": _marketplace,
    }
    return await dispatch(host, "plugin", args, actions)


def _desk(host: InteractiveSession) -> BundleDesk:
    extra = host.project.settings.get("extraKnownMarketplaces")
    loop, notice = asyncio.get_running_loop(), host.session.log.notice

    def tell(sentence: str) -> None:
        loop.call_soon_threadsafe(notice, sentence)

    return BundleDesk(host.project.places, extra=extra, tell=tell)


async def _in_thread(work: Callable[..., T], *given: object) -> T:
    """Whoever gives up waiting leaves it to end by itself: nothing stays half done."""
    return await to_thread.run_sync(work, *given, abandon_on_cancel=True)


async def _decide(host: InteractiveSession, pending: Pending) -> CommandResult:
    """Show what there is to know, ask, and let the session have it at once."""
    told = "\n".join(pending.lines)
    if not pending.question:
        return CommandResult(told)
    try:
        question = ChoiceQuestion(
            question=f"{told}\n\n{pending.question}",
            header="Plugin",
            options=(
                QuestionOption(YES, "It may run what is listed."),
                QuestionOption(NO, "Nothing changes."),
            ),
            allow_free_text=False,
        )
        answer = await host.questions.ask(question)
        if not isinstance(answer, ChoiceAnswer) or answer.chosen != (YES,):
            asked = (
                "Nothing was changed."
                if answer is not None
                else "Nobody could be asked, so nothing was changed."
            )
            return failure(f"{told}\n{asked}")
        done = await _in_thread(pending.agree)
    finally:
        await to_thread.run_sync(pending.drop)
    await host.reload()
    return CommandResult("\n".join((*pending.lines, *done)))


def _table(rows: Sequence[Sequence[str]], nothing: str) -> CommandResult:
    return CommandResult("\n".join("  ".join(filter(None, row)) for row in rows) or nothing)


async def _list_plugins(host: InteractiveSession, args: str) -> CommandResult:
    return _table(await _in_thread(_desk(host).list_rows), "No plugins are installed: /plugin search")


async def _search(host: InteractiveSession, args: str) -> CommandResult:
    desk = _desk(host)
    found = _table(await _in_thread(desk.search_rows, args), "No marketplace offers that.")
    wrong = [str(problem) for problem in desk.marketplaces.problems]
    return CommandResult("\n".join((found.message, *wrong)))


async def _install(host: InteractiveSession, args: str) -> CommandResult:
    name, where = split_first(args)
    scopes: dict[str, Scope] = {"": "user", "--scope user": "user", "--scope project": "project"}
    if not name or where not in scopes:
        return usage("plugin", "install NAME@MARKETPLACE [--scope user | --scope project]")
    return await _decide(host, await _in_thread(_desk(host).prepare_install, name, scopes[where]))


async def _enable(host: InteractiveSession, args: str) -> CommandResult:
    return await _decide(host, await _in_thread(_desk(host).prepare_enable, args))


async def _update(host: InteractiveSession, args: str) -> CommandResult:
    desk = _desk(host)
    ids = [args] if args else await _in_thread(desk.list_updatable)
    answers = [await _decide(host, await _in_thread(desk.prepare_update, id)) for id in ids]
    told = "\n".join(answer.message for answer in answers)
    return CommandResult(told or "No plugins are installed.", all(answer.success for answer in answers))


async def _disable(host: InteractiveSession, args: str) -> CommandResult:
    return await _do(host, _desk(host).disable, args)


async def _uninstall(host: InteractiveSession, args: str) -> CommandResult:
    return await _do(host, _desk(host).uninstall, args)


async def _do(host: InteractiveSession, work: Callable[[str], list[str]], args: str) -> CommandResult:
    done = await _in_thread(work, args)
    await host.reload()
    return CommandResult("\n".join(done))


async def _show(host: InteractiveSession, args: str) -> CommandResult:
    return CommandResult("\n".join(await _in_thread(_desk(host).show, args)))


async def _validate(host: InteractiveSession, args: str) -> CommandResult:
    right, lines = await _in_thread(_desk(host).validate, args or ".")
    return CommandResult("\n".join(lines), right)


async def _marketplace(host: InteractiveSession, args: str) -> CommandResult:
    actions = {
        "list": _list_marketplaces,
        "add": _add_marketplace,
        "remove": _remove_marketplace,
        "update": _update_marketplaces,
    }
    return await dispatch(host, "plugin marketplace", args, actions)


async def _list_marketplaces(host: InteractiveSession, args: str) -> CommandResult:
    return _table(await _in_thread(_desk(host).marketplace_rows), "There are no marketplaces.")


async def _add_marketplace(host: InteractiveSession, args: str) -> CommandResult:
    return CommandResult("\n".join(await _in_thread(_desk(host).add_marketplace, args)))


async def _remove_marketplace(host: InteractiveSession, args: str) -> CommandResult:
    return await _do(host, _desk(host).remove_marketplace, args)


async def _update_marketplaces(host: InteractiveSession, args: str) -> CommandResult:
    return CommandResult("\n".join(await _in_thread(_desk(host).update_marketplaces, args or None)))


async def reload_plugins(host: InteractiveSession, args: str) -> CommandResult:
    """Read the files again, whether or not somebody saw them change."""
    await host.reload()
    project = host.project
    plugins = project.bundles.plugins
    counts = {
        "plugin": len(plugins),
        "skill": len(project.bundles.skills),
        "agent": len(project.bundles.agents),
        "hook": sum(len(group.hooks) for groups in project.bundles.hooks.values() for group in groups),
        "server": len(project.bundles.servers),
        "tool": len(project.bundles.tools),
    }
    told = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())
    ids = {plugin.id for plugin in plugins}
    wrong = [str(each) for each in project.bundles.problems]
    lines = [f"Reloaded: {told}.", *(f"  {id}" for id in sorted(ids)), *(f"  {each}" for each in wrong)]
    return CommandResult("\n".join(lines))
