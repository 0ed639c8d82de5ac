"""Loading the protocol's library, which takes most of a second: in a thread, when a server is wanted."""

from __future__ import annotations

from robota.core.errors import ConfigurationError


def load_library() -> None:
    """Import what connections need."""
    import logging  # noqa: PLC0415 - with the library

    try:
        import robota.tools.mcp.client  # noqa: PLC0415
        import robota.tools.mcp.transports  # noqa: F401, PLC0415
    except ImportError as error:
        sentence = f"MCP servers need a package that is not here ({error}): pip install 'robota[mcp]'."
        raise ConfigurationError(sentence) from error
    for name in ("mcp", "client", "httpx2"):  # they would speak on our terminal
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
