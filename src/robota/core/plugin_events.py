"""Named events for plugins: noted as they happen, delivered where the run may wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.bus import HandlerTable
from robota.core.event_names import NAMED_EVENTS, owner_path, plugin_events
from robota.core.events import TurnEvent

if TYPE_CHECKING:
    from robota.core.bus import Unsubscribe
    from robota.core.plugin import PluginChain
    from robota.core.robota import Robota


class PluginEvents:
    """Notes the named events of one run."""

    __slots__ = ("_agent", "_plugins")

    def __init__(self, agent: Robota, plugins: PluginChain) -> None:
        self._agent = agent
        self._plugins = plugins

    def note(self, event: TurnEvent) -> None:
        for name in plugin_events(event):
            self._plugins.later("on_event", name, event, owner_path(event, self._agent.agent_id))


_NAMED: HandlerTable = dict.fromkeys(NAMED_EVENTS, PluginEvents.note)


def watch_for_plugins(agent: Robota, plugins: PluginChain) -> Unsubscribe | None:
    """Have plugins hear of the run that begins, if one of them wants to."""
    return agent.events.on_each(_NAMED, PluginEvents(agent, plugins)) if plugins.has("on_event") else None
