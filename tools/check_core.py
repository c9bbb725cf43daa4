"""Check that core/ stays pure: it may import only itself and the standard library's pure parts.

A list of what is allowed, not of what is forbidden: whatever is new has to be argued for here.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ALLOWED = {"collections", "dataclasses", "enum", "math", "typing"}
CORE = Path(__file__).parents[1] / "src" / "holdfast" / "core"


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, module) for everything a module imports, wherever it does so."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, name.name) for name in node.names)
            case ast.ImportFrom(module=module, level=level):
                yield node.lineno, "." * level + (module or "")
            case ast.Call(func=ast.Name(id="__import__" | "eval" | "exec" | "open" as name)):
                yield node.lineno, f"{name}()"


def is_pure(module: str) -> bool:
    """True if core/ may import it: an allowed module, or one of its own."""
    if module.startswith("."):
        return not module.startswith("..")
    return module.split(".")[0] in ALLOWED


def offences(directory: Path) -> list[str]:
    """List what the modules of a directory should not import."""
    return [
        f"{path}:{line}: core/ must not import {module!r}: it should be given"
        for path in sorted(directory.rglob("*.py"))
        for line, module in imports(ast.parse(path.read_text(), str(path)))
        if not is_pure(module)
    ]


def main() -> int:
    """Print the offences; 1 if there are any."""
    found = offences(CORE)
    for offence in found:
        print(offence)
    if not found:
        print("core/ is pure")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
