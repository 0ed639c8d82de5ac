"""A web server for one file that misbehaves on request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class FileServer:
    """`cuts`: after how many bytes each answer breaks off; `None`, and all further ones: not at all."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.etag = '"v1"'
        self.cuts: list[int | None] = []
        self.ranges = True
        self.says_length = True
        self.ignores_if_range = False
        self.status: int | None = None
        self.more = b""
        """Sent after the file."""
        self.asked: list[dict[str, str]] = []
        self.url = ""


@contextmanager
def serving(data: bytes) -> Iterator[FileServer]:
    site = FileServer(data)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append({name.lower(): value for name, value in self.headers.items()})
            answer(self, site, site.asked[-1])
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_port}/model.gguf"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(handler: BaseHTTPRequestHandler, site: FileServer, asked: dict[str, str]) -> None:
    if site.status is not None:
        handler.send_error(site.status)
        return
    first, whole = 0, len(site.data)
    wanted = asked.get("range", "").removeprefix("bytes=").rstrip("-")
    same = site.ignores_if_range or asked.get("if-range", site.etag) == site.etag
    if wanted and site.ranges and same:
        first = int(wanted)
        if first >= whole:
            handler.send_response(416)
            handler.send_header("content-range", f"bytes */{whole}")
            handler.end_headers()
            return
        handler.send_response(206)
        handler.send_header("content-range", f"bytes {first}-{whole - 1}/{whole}")
    else:
        handler.send_response(200)
    if site.etag:
        handler.send_header("etag", site.etag)
    if site.says_length:
        handler.send_header("content-length", str(whole - first))
    handler.end_headers()
    cut = site.cuts.pop(0) if site.cuts else None
    body = site.data[first:] + site.more
    handler.wfile.write(body if cut is None else body[:cut])
