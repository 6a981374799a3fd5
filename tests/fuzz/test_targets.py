"""Hostile bytes, made up by hypothesis; `run.py` gives the same targets what atheris finds."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import HEADER, TARGETS

slowly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ODD_NUMBERS = st.sampled_from([1e308, -0.0, 2**64, -(2**70), 10**400, float("inf"), float("nan")])
ODD_TEXTS = st.sampled_from(
    [
        "",
        "\ud83d",
        "\x00",
        "\u2028",
        "\x85",
        "é" * 300,
        "text",
        "toolCall",
        "read",
        "0000000a",
        "../x",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ODD_NUMBERS | ODD_TEXTS | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXTS, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.fixed_dictionaries(
    {"type": st.just("toolCall")},
    optional={"id": ODD_TEXTS | VALUES, "name": ODD_TEXTS | VALUES, "arguments": VALUES},
)
BLOCKS = CALLS | st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "image", "odd"]) | VALUES},
    optional=dict.fromkeys(
        ("text", "thinking", "data", "mimeType", "thinkingSignature", "redacted"),
        ODD_TEXTS | VALUES,
    ),
)
USAGE = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("input", "output", "cacheRead", "cost", "totalTokens"), VALUES)
)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(
            ["user", "assistant", "toolResult", "system", "bashExecution", "custom", "odd"]
        )
        | VALUES
    },
    optional={
        "content": VALUES | st.lists(BLOCKS, max_size=3),
        "toolCallId": ODD_TEXTS | VALUES,
        "toolName": ODD_TEXTS | VALUES,
        "usage": USAGE | VALUES,
        "stopReason": st.sampled_from(["stop", "toolUse", "error", "aborted"]) | VALUES,
        "api": st.sampled_from(["anthropic-messages", "google-generative-ai"]) | VALUES,
        **dict.fromkeys(
            ("model", "provider", "timestamp", "details", "sections", "tools", "output"), VALUES
        ),
    },
)
IDS = st.sampled_from(["0000000a", "0000000b", "0000000c", "odd"])
ENTRIES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                *("message", "message", "compaction", "context_edit", "label", "session_info"),
                *("custom", "custom_message", "branch_summary", "model_change", "usage", "session"),
                "thinking_level_change",
            ]
        ),
        "id": IDS | VALUES,
        "parentId": IDS | VALUES,
        "timestamp": st.just("2026-01-01T00:00:00.000Z") | VALUES,
    },
    optional={
        "message": MESSAGES | VALUES,
        "summary": VALUES,
        "firstKeptEntryId": IDS | VALUES,
        "targetId": IDS | VALUES,
        "customType": st.sampled_from(
            ["pi_rpc.cursor", "pi_rpc.fork", "pi_rpc.pin", "pi_rpc.workspace", "x"]
        )
        | VALUES,
        "data": VALUES
        | st.dictionaries(
            st.sampled_from(
                ["type", "entryId", "pinned", "text", "at", "version", "to", "effects"]
            ),
            IDS | VALUES,
        ),
        **dict.fromkeys(
            (
                *("name", "label", "content", "details", "usage", "omit", "replacement"),
                *("provider", "modelId", "thinkingLevel", "tokensBefore", "fromId", "display"),
            ),
            VALUES,
        ),
    },
)


def written(entry: dict[str, Any], shuffles: bool = False) -> bytes:
    """As another program would write it: escaped, with words for endless numbers."""
    items = reversed(entry.items()) if shuffles else entry.items()
    return json.dumps(dict(items), separators=(",", ":")).encode()


LINES = st.one_of(
    st.builds(written, ENTRIES, st.booleans()),
    st.builds(written, ENTRIES),
    st.binary(max_size=20),
    st.sampled_from([b"", b"null", b"[]", b"{}", b"\x00" * 9, b"[" * 3000, b'{"id":1e999}']),
)


@slowly
@given(st.lists(LINES, max_size=7), st.sampled_from([b"", b"\n", b"\r\n"]))
def test_any_lines_below_a_header_make_a_tree_that_answers(lines: list[bytes], end: bytes) -> None:
    TARGETS["file"](HEADER + b"\n".join(lines) + end)


PATH = ["0000000a", "0000000b", "0000000c", "0000000d"]


@slowly
@given(st.lists(ENTRIES, min_size=1, max_size=4))
def test_any_entries_on_one_path_make_a_context(entries: list[dict[str, Any]]) -> None:
    linked = [
        entry | {"id": PATH[place], "parentId": PATH[place - 1] if place else None}
        for place, entry in enumerate(entries)
    ]
    TARGETS["file"](HEADER + b"".join(written(entry) + b"\n" for entry in linked))


@pytest.mark.parametrize("name", ["wire", "sse", "settings", "texts", "file", "history"])
@slowly
@given(st.binary(max_size=300))
def test_any_bytes_are_taken(name: str, data: bytes) -> None:
    TARGETS[name](data)


SECRET_PARTS = st.sampled_from(
    [
        *(
            "password",
            "api_key",
            "token",
            "--token",
            "Authorization",
            "Bearer",
            "cookie",
            "-u",
            "login",
        ),
        *("sk-", "ghp_", "AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9.", "https://", "-----BEGIN"),
        *(" PRIVATE KEY-----", "-----END", "[redacted]", "abcdefghij", "x", "0123456789", "me"),
        *(":", "=", " ", "\n", '"', "'", "\\", "@", "/", ".", "_", "-", ",", "(", "{", "}", "é"),
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(SECRET_PARTS, max_size=12))
def test_what_was_redacted_holds_nothing_more_to_redact(parts: list[str]) -> None:
    TARGETS["texts"]("".join(parts).encode())


@slowly
@given(
    st.recursive(
        VALUES,
        lambda inner: st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "providers",
                        "models",
                        "id",
                        "cost",
                        "compat",
                        "retry",
                        "provider",
                        "compaction",
                    ),
                    *(
                        "replies",
                        "default",
                        "tools",
                        "piRpc",
                        "permissions",
                        "rules",
                        "baseUrl",
                        "api",
                    ),
                ]
            ),
            inner | st.lists(inner, max_size=2),
            max_size=4,
        ),
        max_leaves=12,
    )
)
def test_any_settings_hold_or_are_told_of(value: Any) -> None:
    TARGETS["settings"](json.dumps(value).encode())


def deep_list(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def deep_object(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize("nested", [deep_list, deep_object])
@pytest.mark.parametrize("depth", [200, 500, 900, 3000, 20_000])
@pytest.mark.parametrize(
    "place",
    [
        b'"message":{"role":"toolResult","content":[{"type":"text","text":"x"}],"details":%b}',
        b'"message":{"role":"user","content":%b}',
        b'"message":{"role":"user","content":[{"type":"text","text":"x","more":%b}]}',
        b'"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"read",'
        b'"arguments":{"path":%b}}]}',
        b'"message":{"role":"system","content":"","tools":[{"name":"t","parameters":%b}]}',
        b'"data":%b',
    ],
)
def test_depth_is_borne_wherever_it_stands(
    nested: Callable[[int], bytes], depth: int, place: bytes
) -> None:
    kind = b"custom" if place.startswith(b'"data') else b"message"
    head = b'{"type":"%b","id":"%b","parentId":%b,"timestamp":"2026-01-01T00:00:00.000Z",'
    first = head % (kind, b"0000000a", b"null") + place % nested(depth) + b"}\n"
    below = head % (b"message", b"0000000b", b'"0000000a"')
    below += b'"message":{"role":"user","content":"hello"}}\n'
    TARGETS["file"](HEADER + first)
    TARGETS["file"](HEADER + first + below)
