"""`@requirement("id")` ties a test to a behaviour in requirements.yaml."""

from __future__ import annotations

import pytest

requirement = pytest.mark.requirement
