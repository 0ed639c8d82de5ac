"""What is to be done: the plan and the list of things to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.effects import CommandResult, ModeSet, SubmitPrompt, failure

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


def todos(host: InteractiveSession, args: str) -> CommandResult:
    return CommandResult(host.kit.todos.text or "There is nothing on the list.")


async def plan(host: InteractiveSession, args: str) -> CommandResult:
    state, wish = host.kit.plan, args.strip()
    if not wish:
        mode = "Plan mode is on." if state.active else "Plan mode is off."
        agreed = "The plan that was agreed on:" if state.approved else "The last plan, not agreed on:"
        return CommandResult(f"{mode}\n{agreed}\n{state.plan}" if state.plan else f"{mode} There is no plan.")
    if wish == "off":
        if not state.active:
            return failure("Plan mode is not on.")
        await host.switch_mode(None)
        mode = host.permission_mode
        return CommandResult(f"Plan mode is off. Permission mode set to: {mode}", effect=ModeSet(mode))
    await host.switch_mode("plan")
    if wish == "on":
        return CommandResult("Plan mode is on.", effect=ModeSet("plan"))
    return CommandResult(f"Planning: {wish}", effect=SubmitPrompt(wish, f"/plan {wish}", f"/plan {wish}"))
