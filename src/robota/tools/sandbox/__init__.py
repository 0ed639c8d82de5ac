"""Commands in a sandbox of the operating system: bubblewrap where it works, else Landlock.

A command may write in the workspace and in a private temporary directory, and nowhere else. Files that decide
what runs later (`permissions/paths.py`) stay as they are, also those that do not exist. There is no
network unless it is allowed. What the two can and cannot do:

bubblewrap  Names that are missing are covered by empty placeholders while a command runs, removed with the
            last one that needs them. A protected name that is a symbolic link is protected where it leads;
            the link itself can be replaced. `/run` is empty and `/tmp` is the private directory, so that
            sockets of other programs are out of reach; sockets elsewhere are not.
Landlock    (Linux 6.2 or later.) It knows directories that are allowed, no exceptions from them. So nothing
            can be created, renamed or removed directly in a directory that holds a protected name, which the
            top of the workspace and `.git` do; existing files there can be changed in place, and below other
            directories everything works. Changes of mode, owner and time stamps are not held back. With
            `deny_read` names can still be listed. 32-bit programs do not run, and sockets of the file system
            cannot be used.
both        Protected names deeper in the tree (`vendor/x/.git/hooks`) are not covered, only those of a
            workspace directory itself, of its git directory and of the home directory. The git directory of
            a linked worktree lies outside and is read-only unless it is added. What a command leaves in the
            workspace can still be run later by somebody else.
"""
