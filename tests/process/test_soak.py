"""The soak in its short form: PI_RPC_SOAK_SECONDS makes it longer."""

import os

from tests.process.soak import soak

SECONDS = float(os.environ.get("PI_RPC_SOAK_SECONDS", "10"))


def test_faults_upon_faults_lose_nothing_that_was_told() -> None:
    found = soak(SECONDS, seed=6)
    assert found["files"] >= 3
    assert found["told entries"] > 0
