"""The models are a tool beside the package: they are imported from where they are."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
