"""The benchmark is a tool beside the package: it is imported from where it is."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
