"""A session on another host: `RemoteSession`, with the methods and events of a local one."""

from robota.client.connection import RemoteSessionError
from robota.client.remote_session import RemoteSession
from robota.sdk.session_facts import SessionDetails, SessionFacts

__all__ = ["RemoteSession", "RemoteSessionError", "SessionDetails", "SessionFacts"]
