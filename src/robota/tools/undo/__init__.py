"""Undo: what a tool call is about to change is saved first, and can be put back exactly.

`guarded` goes in front of the function that runs tools, `UndoStore` keeps what was saved. Everything but
`guarded` blocks and belongs into a worker thread. Needs a POSIX system.
"""
