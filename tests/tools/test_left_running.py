"""What commands left running is found, and nothing else."""

import os
import subprocess
import sys

import pytest

from pi_rpc.tools.left_running import left_running

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="found by /proc"),
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_process_is_found_by_its_variable_even_out_of_its_group() -> None:
    value = f"one-{os.getpid()}"
    environment = {**os.environ, "PI_SESSION_ID": value}
    with subprocess.Popen(  # noqa: ASYNC220
        ["sh", "-c", "echo ready; read line"],
        env=environment,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = await left_running("PI_SESSION_ID", value)
        assert found is not None
        assert [(one.pid, one.command) for one in found] == [
            (process.pid, "sh -c echo ready; read line")
        ]
        assert await left_running("PI_SESSION_ID", value[:-1]) == []
        process.communicate(b"\n", timeout=5)
    assert await left_running("PI_SESSION_ID", value) == []
