from __future__ import annotations

import subprocess
import sys


def test_numpy_is_imported_with_the_first_search_and_not_before() -> None:
    program = """
import sys
from toolyard.catalog import Catalog, Server
from toolyard.core.tool import Tool
catalog = Catalog()
catalog.publish("a", [Tool("a", "x", "Ping.")])
catalog.snapshot.view(Server("all")).fingerprint
assert "numpy" not in sys.modules
assert catalog.snapshot.search("ping")
assert "numpy" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
