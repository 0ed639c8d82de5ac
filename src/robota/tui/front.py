"""What a front end is to the parts that the interface and line mode share: turns, questions, lists."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from robota.core.errors import RobotaError

if TYPE_CHECKING:
    from robota.sdk.view.presenter import Presenter
    from robota.sdk.view.shown_session import ShownSession
    from robota.tui.asking import Asking
    from robota.tui.dialogs import Dialog
    from robota.tui.host import TerminalHost
    from robota.tui.turns import Turns
    from robota.tui.words import Words


class Asks(Protocol):
    """Puts dialogs to the user."""

    async def ask(self, dialog: Dialog, /) -> Any: ...


class Edits(Protocol):
    """Where the user types."""

    def refill(self, text: str, /) -> None: ...


class FrontEnd(Protocol):
    """One terminal; the session in it may be changed for another."""

    presenter: Presenter
    session: ShownSession
    host: TerminalHost
    words: Words

    @property
    def dialogs(self) -> Asks: ...
    @property
    def editing(self) -> Edits: ...
    @property
    def asking(self) -> Asking: ...
    @property
    def turns(self) -> Turns: ...

    def adopt(self, session: ShownSession, *, recap: bool = False) -> None: ...
    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...
    def notify(self, text: str) -> None: ...
    def turn_ended(self) -> None: ...
    def leave(self, code: int) -> None: ...


async def begin(app: FrontEnd, session: ShownSession, *, recap: bool) -> None:
    """What a session has to say first, and what it has to ask."""
    try:
        await session.ready()
    except RobotaError as error:
        app.presenter.error(str(error))
        return
    if recap:
        app.presenter.show_history(session.full_history)
    app.presenter.refresh()
    if session.is_ready_made:
        return
    asked = session.describe_trust()
    if asked and await app.asking.confirm(app.words("trust.question"), lines=asked):
        await session.trust_project()
    asked = session.describe_outside_imports()
    if asked and await app.asking.confirm(app.words("trust.imports"), lines=asked):
        await session.allow_outside_imports()
