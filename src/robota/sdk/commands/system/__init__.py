"""The built-in commands, grouped by subject. Each is a function of a session and the words behind its name.

A new command is one such function and one row of `robota.sdk.commands.table`.
"""
