"""Names become tools."""

import pytest

from pi_rpc.core.errors import Missing
from pi_rpc.tools.choose import KNOWN, tool_set


def test_a_session_begins_with_four_tools() -> None:
    assert list(tool_set()) == ["read", "write", "edit", "bash"]


def test_the_named_tools_come_in_the_order_named() -> None:
    assert list(tool_set(["ls", "read"])) == ["ls", "read"]
    assert tool_set([]) == {}
    assert list(tool_set(KNOWN)) == list(KNOWN)


def test_a_tool_nobody_knows_is_missing() -> None:
    with pytest.raises(Missing) as raised:
        tool_set(["read", "telepathy"])
    assert (raised.value.reason, raised.value.data) == ("tool_not_found", {"name": "telepathy"})
