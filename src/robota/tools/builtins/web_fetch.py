"""The WebFetch tool: one web page as text for a model.

What the page says is framed as data with its origin. Whatever goes wrong is a sentence with advice on whether
to try again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from robota.core.tool import ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, string

if TYPE_CHECKING:  # the network modules are loaded with the first page
    from ssl import SSLContext

    from robota.http.address import Resolve
    from robota.tools.web.fetch import Elsewhere, Fetcher, Page

MAX_OUTPUT_CHARACTERS = 100_000
TIMEOUT_SECONDS = 30.0
MAX_PAGE_BYTES = 5_000_000
ALLOWED_HEADERS = ("Accept", "Accept-Language")
"""Headers a model may choose: they say what it would like to get, and nothing about who asks."""

PARAMETERS = arguments_schema(
    {
        "url": string("The address, http or https.", minLength=1),
        "prompt": string("What you are looking for on the page."),
        "headers": {
            "type": "object",
            "additionalProperties": {"type": "string", "maxLength": 200},
            "description": f"Request headers; only {' and '.join(ALLOWED_HEADERS)}.",
        },
    },
    "url",
)


def web_fetch_tool(
    *,
    allowed_hosts: Sequence[str] = (),
    may_follow: Callable[[str], bool] | None = None,
    timeout: float = TIMEOUT_SECONDS,
    max_bytes: int = MAX_PAGE_BYTES,
    resolve: Resolve | None = None,
    tls: SSLContext | None = None,
) -> FunctionTool:
    """The tool.

    `allowed_hosts` (names, `*.example.org`) may be contacted whatever their address. `may_follow` is asked
    before a redirect on the same host is followed. `resolve` and `tls` replace the system's.
    """

    async def fetch_page(url: str, prompt: str = "", headers: dict[str, str] | None = None) -> ToolResult:
        from robota.http.address import AddressPolicy  # noqa: PLC0415 - see above
        from robota.tools.web.fetch import Fetcher  # noqa: PLC0415 - see above

        if wrong := _find_wrong_header(headers or {}):
            return ToolResult.failure(wrong, "invalid_arguments")
        fetcher = Fetcher(
            policy=AddressPolicy(tuple(allowed_hosts)),
            may_follow=may_follow,
            timeout=timeout,
            max_bytes=max_bytes,
            resolve=resolve,
            tls=tls,
        )
        return await _report(fetcher, url, {name.title(): text for name, text in (headers or {}).items()})

    return FunctionTool("WebFetch", text_beside(__file__), PARAMETERS, fetch_page, tool_class="inspect")


def _find_wrong_header(headers: Mapping[str, str]) -> str | None:
    for name, value in headers.items():
        if name.title() not in ALLOWED_HEADERS:
            return f"The header {name[:40]!r} cannot be set; only {' and '.join(ALLOWED_HEADERS)} can."
        if not (value.isascii() and value.isprintable()):
            return f"The value of the header {name!r} must be printable ASCII."
    return None


async def _report(fetcher: Fetcher, address: str, headers: Mapping[str, str]) -> ToolResult:
    from robota.tools.web.failure import FetchError  # noqa: PLC0415 - see above
    from robota.tools.web.fetch import Page  # noqa: PLC0415 - see above

    try:
        answer = await fetcher.fetch(address, headers)
        return await _show(answer) if isinstance(answer, Page) else _point(answer)
    except FetchError as error:
        return ToolResult.failure(str(error), error.code)


def _point(elsewhere: Elsewhere) -> ToolResult:
    return ToolResult(
        content=(
            f"The page was not read: the server redirects (HTTP {elsewhere.status}) to\n{elsewhere.url}\n"
            f"and that was not followed because {elsewhere.reason}. "
            "If it is where you want to go, call WebFetch with that address."
        ),
        metadata={"redirect": str(elsewhere.url), "status": elsewhere.status},
    )


async def _show(page: Page) -> ToolResult:
    from anyio import to_thread  # noqa: PLC0415 - loaded with the network modules

    from robota.tools.web.frame import frame_page  # noqa: PLC0415 - see above

    text, cut = await to_thread.run_sync(_read_page, page, abandon_on_cancel=True)
    notes = []
    if len(text) > MAX_OUTPUT_CHARACTERS:
        notes.append(f"[The first {MAX_OUTPUT_CHARACTERS:,} of {len(text):,} characters are shown.]")
    elif cut:
        notes.append("[The page is very long; its end was left out.]")
    framed = frame_page(text[:MAX_OUTPUT_CHARACTERS] or "(The page is empty.)", str(page.url))
    return ToolResult(
        content="\n".join([framed, *notes]),
        metadata={
            "url": str(page.url),
            "status": page.status,
            "contentType": page.content_type,
            "bytes": len(page.body),
        },
    )


def _read_page(page: Page) -> tuple[str, bool]:
    """The text of a page, and whether its end is missing. Runs in a thread."""
    from robota.tools.web.failure import FetchError  # noqa: PLC0415 - see above
    from robota.tools.web.markdown import convert_page  # noqa: PLC0415 - see above
    from robota.tools.web.text import decode_body, kind_of, looks_like_html  # noqa: PLC0415 - see above

    kind = kind_of(page.content_type)
    text = decode_body(page.body, page.content_type)
    if text is None:
        raise FetchError("binary", f"{page.url} holds binary data, and only text can be shown.")
    if kind != "html" and not (kind == "unknown" and looks_like_html(text)):
        return text, False
    converted = convert_page(text, str(page.url))
    title = f"Title: {converted.title}\n\n" if converted.title else ""
    return f"{title}{converted.text}".strip(), converted.cut
