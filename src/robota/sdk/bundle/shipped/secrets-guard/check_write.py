"""A hook that refuses to write keys, and to change files that hold them. The call comes as JSON on stdin."""

from __future__ import annotations

import json
import os
import re
import sys
from fnmatch import fnmatch

FILES = (".env", ".env.*", "*.pem", "*.key", "id_rsa", "id_ed25519", ".netrc", ".pgpass", "credentials.json")
HARMLESS = (".env.example", ".env.sample", ".env.template")
KEYS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "an AWS key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a GitHub token": r"\bgh[pousr]_[A-Za-z0-9]{36,}\b",
    "a Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a key of a model service": r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}",
}


def find_reason(call: dict[str, object]) -> str:
    """Why a call is refused; empty when it is not."""
    given = call.get("tool_input")
    arguments = given if isinstance(given, dict) else {}
    name = os.path.basename(str(arguments.get("file_path") or ""))
    if name not in HARMLESS and any(fnmatch(name, pattern) for pattern in FILES):
        return f"{name} holds secrets: ask the user to change it."
    text = " ".join(str(arguments.get(key) or "") for key in ("content", "new_string"))
    for what, pattern in KEYS.items():
        if re.search(pattern, text):
            return f"This would write {what} into a file: read it from the environment instead."
    return ""


if __name__ == "__main__":
    reason = find_reason(json.load(sys.stdin))
    if reason:
        sys.stderr.write(reason)
        sys.exit(2)
