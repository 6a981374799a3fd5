"""A summary of many lines at once is that of one line after the other."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.codec import encode
from pi_rpc.store.summary import Summary

HEADER = (
    b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}'
)
STAMP = "2026-01-02T00:00:00.000Z"

_times = st.sampled_from([None, -5, 0, 7, 10**12, 1.5, True, "soon", 10**30])
_roles = st.sampled_from(["user", "assistant", "toolResult", None, 3, ["user"]])
_contents = st.sampled_from(["words", "", [{"type": "text", "text": "more }{ words"}], 4])


def _entry(kind: str, **fields: Any) -> bytes:
    return encode({"type": kind, "id": "a", "parentId": None, "timestamp": STAMP, **fields})


_messages = st.builds(
    lambda role, content, at: _entry(
        "message", message={"role": role, "content": content, "timestamp": at}
    ),
    _roles,
    _contents,
    _times,
)
_names = st.builds(
    lambda name: _entry("session_info", name=name), st.sampled_from(["n", " m ", " ", None, 5])
)
_odd = st.sampled_from(
    [b"", b"  ", b"{", b"[]", b"7", b'{"type":"message"}', b'{"type":"message","message":"no"}']
)
_lines = st.one_of(_messages, _messages, _names, _odd)
_glued = st.tuples(_lines, _lines).map(b"".join)


@given(st.lists(st.one_of(_lines, _lines, _lines, _glued), max_size=12))
def test_lines_taken_together_say_what_they_say_one_by_one(lines: list[bytes]) -> None:
    single, together = Summary(), Summary()
    block = bytearray(b"".join(line + b"\n" for line in [HEADER, *lines]) + b"what follows")
    for line in [HEADER, *lines]:
        single.take(line)
    together.take_all(block, block.rindex(b"\n") + 1)
    assert vars(together) == vars(single)
