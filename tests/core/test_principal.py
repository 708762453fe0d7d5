"""Scopes, ids and times."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolyard.core.clock import SystemClock, rfc3339
from toolyard.core.errors import Forbidden
from toolyard.core.ids import new_id
from toolyard.core.principal import LOCAL_OPERATOR, Principal, PrincipalKind, Scope

CI = Principal(PrincipalKind.KEY, "key_1", "ci", frozenset({Scope.CALL}))


def test_a_principal_may_do_what_its_scopes_say_and_an_admin_everything() -> None:
    admin = Principal(PrincipalKind.OPERATOR, "op_1", "ada", frozenset({Scope.ADMIN}))
    assert [scope for scope in Scope if CI.may(scope)] == [Scope.CALL]
    assert all(admin.may(scope) and LOCAL_OPERATOR.may(scope) for scope in Scope)


def test_a_missing_scope_is_named() -> None:
    CI.require(Scope.CALL)
    with pytest.raises(Forbidden) as refusal:
        CI.require(Scope.MANAGE)
    assert str(refusal.value) == (
        "This needs the scope 'manage', which key:ci does not have. Ask an operator for a key with that scope."
    )


def test_ids_say_of_what_they_are_and_never_repeat_in_any_thread() -> None:
    together = threading.Barrier(4)

    def make(_: int) -> list[str]:
        together.wait(10)
        return [new_id("call") for _ in range(5000)]

    with ThreadPoolExecutor(4) as threads:
        ids = [made for several in threads.map(make, range(4)) for made in several]
    assert len(set(ids)) == 20_000
    assert all(re.fullmatch(r"call_[0-9a-f]{32}", made) for made in ids)


def test_a_forked_process_makes_other_ids_than_its_parent() -> None:
    """In a process of its own: this one has threads, and must not fork."""
    script = (
        "import os; from toolyard.core.ids import new_id; new_id('x'); os.fork(); os.write(1, new_id('x').encode())"
    )
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert len(set(re.findall(r"x_[0-9a-f]{32}", made))) == 2


def test_times_are_written_as_rfc_3339_in_utc() -> None:
    assert rfc3339(1763631000.1239) == "2025-11-20T09:30:00.123Z"
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"


def test_the_systems_clock_goes_forward() -> None:
    clock = SystemClock()
    assert abs(clock.now() - time.time()) < 5
    assert clock.monotonic() <= clock.monotonic()
