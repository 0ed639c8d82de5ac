"""Commands in a sandbox of the operating system: bubblewrap where it works, else Landlock.

A command may write in the workspace, in caches and in a private temporary directory, and nowhere else. Files
that decide what runs later (`permissions/paths.py`) stay as they are, also those that do not exist. What the
two kinds can and cannot do is in docs/sandbox.md.
"""
