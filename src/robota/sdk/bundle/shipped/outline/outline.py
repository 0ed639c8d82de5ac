"""A tool that lists what a Python file defines: arguments as JSON on stdin, the list on stdout."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator

MAX_BYTES = 2_000_000


def list_definitions(node: ast.AST, depth: int = 0) -> Iterator[str]:
    """A line for each class and function, those inside of others below them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            about = (ast.get_docstring(child) or "").partition("\n")[0]
            yield f"{child.lineno:>5}  {'    ' * depth}{describe(child)}{f'  # {about}' if about else ''}"
            yield from list_definitions(child, depth + 1)


def describe(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return f"class {node.name}{f'({bases})' if bases else ''}"
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{kind} {node.name}({ast.unparse(node.args)}){returns}"


def main() -> int:
    path = json.load(sys.stdin)["file_path"]
    try:
        with open(path, "rb") as file:
            lines = list(list_definitions(ast.parse(file.read(MAX_BYTES))))
    except (OSError, SyntaxError, ValueError) as error:
        sys.stderr.write(f"{path} cannot be outlined: {error}\n")
        return 1
    sys.stdout.write("\n".join(lines) or f"{path} defines no classes or functions.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
