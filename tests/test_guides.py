"""Every Python block of the guides runs as it stands, on real nodes."""

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

import holdfast
from holdfast.embedded import ThrowawayNodes

DOCS = Path(__file__).parents[1] / "docs"
GUIDES = ["lost-leases.md", "fencing.md", "waiting.md"]
BLOCKS = [
    pytest.param(guide, code, id=f"{guide}-{number}")
    for guide in GUIDES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```$", (DOCS / guide).read_text(), re.MULTILINE | re.DOTALL)
    )
]


@pytest.fixture(scope="module")
def nodes() -> Iterator[ThrowawayNodes]:
    with ThrowawayNodes(3) as nodes:
        yield nodes


@pytest.fixture
def names(nodes: ThrowawayNodes, tmp_path: Path) -> Iterator[dict[str, object]]:
    """Return what the guides take for granted: clients of locks and of resources."""
    url = nodes.urls[0]
    with (
        holdfast.connect(*nodes.urls) as hf,
        redis.Redis.from_url(url) as client,
        contextlib.closing(sqlite3.connect(tmp_path / "resource.db")) as connection,
    ):
        resources = {"client": client, "connection": connection, "url": url}
        yield {"hf": hf, "nodes": nodes.urls, "holdfast": holdfast, **resources}


@pytest.mark.parametrize(("guide", "code"), BLOCKS)
def test_a_block_runs(names: dict[str, object], guide: str, code: str) -> None:
    if "async def main" in code:
        code += "\nimport asyncio\nasyncio.run(main())\n"
    exec(compile(code, guide, "exec"), dict(names))
