"""Shell commands as data: what a text consists of, which programs it starts, and what they do to files.

`grammar.parse_shell` reads a text, `invocations.find_invocations` finds every program in it, `effects` says
what is read, written and deleted. Permission rules and undo are built on these; nothing here knows of either.
"""
