"""The file layer under Read, Write and Edit: opening safely, encodings, atomic replacement, diffs.

Everything here blocks and belongs into a worker thread. What the model is told about a failure is a
`FileProblem`; nothing else is raised to the tools.
"""
