"""Every Python block of the guides runs as it stands, on real nodes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.embedded import ThrowawayNodes

GUIDE = Path(__file__).parents[1] / "docs" / "lost-leases.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, object]]:
    with ThrowawayNodes(3) as nodes, holdfast.connect(*nodes.urls) as hf:
        yield {"hf": hf, "nodes": nodes.urls, "holdfast": holdfast}


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(names: dict[str, object], code: str) -> None:
    if "async def main" in code:
        code += "\nimport asyncio\nasyncio.run(main())\n"
    exec(compile(code, GUIDE.name, "exec"), dict(names))
