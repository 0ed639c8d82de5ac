from __future__ import annotations

from tests.http.certificates import authority, fresh_trust

__all__ = ["authority", "fresh_trust"]
