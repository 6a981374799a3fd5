"""A model of random numbers, small enough to be made in a second, for a real server to load.

It writes noise in readable letters, and ends by itself after some thirty of them. The file is
written here, byte for byte in the GGUF form (version 3): the package that does it brings four times
as much along as this test needs.
"""

import struct
from array import array
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from random import Random
from typing import Any

DIM = 64
LAYERS = 2
HEADS = 4
CONTEXT = 4096
PAD = "▁"

TEMPLATE = """\
{%- if tools %}<|im_start|>system
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
A call is a JSON object in these tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{%- endif %}
{%- for m in messages %}
{%- if m.role == "tool" %}
<|im_start|>user
<tool_response>
{{ m.content }}
</tool_response><|im_end|>
{%- elif m.tool_calls %}
<|im_start|>assistant
{{ m.content or "" }}
{%- for c in m.tool_calls %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{%- else %}
<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""
"""In the form that many models have, which the server knows by its tags."""


class _Kind(IntEnum):
    """Of a token, as the file form numbers them."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    BYTE = 6


class _File:
    """A GGUF file being put together: facts by name, then tensors of 32-bit floats."""

    _ALIGNED_BYTES = 32

    def __init__(self) -> None:
        self._facts: list[bytes] = []
        self._tensors: list[tuple[str, tuple[int, ...], bytes]] = []

    def fact(self, name: str, value: Any) -> None:
        self._facts.append(self._text(name.encode()) + self._typed(value))

    def tensor(self, name: str, shape: tuple[int, ...], numbers: Iterator[float]) -> None:
        """Numbers row by row; the last part of the shape is the length of a row."""
        self._tensors.append((name, shape, array("f", numbers).tobytes()))

    def written(self) -> bytes:
        head = [b"GGUF", struct.pack("<IQQ", 3, len(self._tensors), len(self._facts))]
        head += self._facts
        at = 0
        for name, shape, stored in self._tensors:
            sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
            head.append(self._text(name.encode()) + sizes + struct.pack("<IQ", 0, at))
            at += len(self._filled(stored))
        parts = [self._filled(b"".join(head))]
        parts += [self._filled(stored) for _, _, stored in self._tensors]
        return b"".join(parts)

    def _filled(self, stored: bytes) -> bytes:
        return stored + bytes(-len(stored) % self._ALIGNED_BYTES)

    @staticmethod
    def _text(text: bytes) -> bytes:
        return struct.pack("<Q", len(text)) + text

    def _typed(self, value: Any) -> bytes:
        match value:
            case bool():
                return struct.pack("<I?", 7, value)
            case int():
                return struct.pack("<II", 4, value)
            case float():
                return struct.pack("<If", 6, value)
            case bytes():
                return struct.pack("<I", 8) + self._text(value)
            case [bytes(), *_]:
                return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(self._text, value))
            case [int(), *_]:
                return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
            case _:
                return struct.pack(f"<IIQ{len(value)}f", 9, 6, len(value), *value)


def write_model(path: Path, seed: int = 1) -> None:
    """Write the model as a GGUF file; the same seed gives the same model."""
    chance = Random(seed)
    tokens: list[tuple[bytes, float, _Kind]] = [
        (b"<unk>", 0.0, _Kind.UNKNOWN),
        (b"<s>", 0.0, _Kind.CONTROL),
        (b"</s>", 0.0, _Kind.CONTROL),
        *((f"<0x{byte:02X}>".encode(), 0.0, _Kind.BYTE) for byte in range(256)),
        *((bytes([letter]), -1.0, _Kind.NORMAL) for letter in range(33, 127)),
        (PAD.encode(), -1.0, _Kind.NORMAL),
        (b"<tool_call>", 0.0, _Kind.USER_DEFINED),
        (b"</tool_call>", 0.0, _Kind.USER_DEFINED),
        (b"<|im_start|>", 0.0, _Kind.CONTROL),
        (b"<|im_end|>", 0.0, _Kind.CONTROL),
    ]
    names = [token for token, _, _ in tokens]
    file = _File()
    file.fact("general.architecture", b"llama")
    file.fact("general.file_type", 0)
    for name, fact in (
        ("context_length", CONTEXT),
        ("embedding_length", DIM),
        ("block_count", LAYERS),
        ("feed_forward_length", DIM * 3),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", HEADS),
        ("attention.layer_norm_rms_epsilon", 1e-5),
        ("rope.dimension_count", DIM // HEADS),
        ("vocab_size", len(tokens)),
    ):
        file.fact(f"llama.{name}", fact)
    for name, fact in (
        ("ggml.model", b"llama"),
        ("ggml.tokens", names),
        ("ggml.scores", [score for _, score, _ in tokens]),
        ("ggml.token_type", [int(kind) for _, _, kind in tokens]),
        ("ggml.bos_token_id", 1),
        ("ggml.eos_token_id", names.index(b"<|im_end|>")),
        ("ggml.unknown_token_id", 0),
        # With a space before each text no grammar of the server would ever match.
        ("ggml.add_space_prefix", False),
        ("ggml.add_bos_token", False),
        ("chat_template", TEMPLATE.encode()),
    ):
        file.fact(f"tokenizer.{name}", fact)

    def noise(rows: int, columns: int, firsts: list[float] | None = None) -> Iterator[float]:
        for row in range(rows):
            numbers = (chance.gauss(0, 1) / columns**0.5 for _ in range(columns))
            if firsts is not None:
                next(numbers)
                yield firsts[row]
            yield from numbers

    def ones() -> Iterator[float]:
        return iter([1.0] * DIM)

    # The first number of every token is the same and large: the first column of the output matrix
    # then says how likely each token is, whatever came before.
    likely = [-20.0] * 259 + [0.0] * (len(tokens) - 259)
    wanted = {b"<tool_call>": 4, b"</tool_call>": -2, b'"': 2, b"<|im_end|>": 2.5}
    for token, weight in (wanted | {b"<|im_start|>": -20, b"\\": -6, b"<": -6}).items():
        likely[names.index(token)] = weight
    whole = (len(tokens), DIM)
    file.tensor("token_embd.weight", whole, noise(*whole, [12.0] * len(tokens)))
    file.tensor("output_norm.weight", (DIM,), ones())
    file.tensor("output.weight", whole, noise(*whole, [one / DIM**0.5 for one in likely]))
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        for norm in ("attn_norm", "ffn_norm"):
            file.tensor(f"{block}.{norm}.weight", (DIM,), ones())
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            file.tensor(f"{block}.{part}.weight", (DIM, DIM), noise(DIM, DIM))
        for part in ("ffn_gate", "ffn_up"):
            file.tensor(f"{block}.{part}.weight", (DIM * 3, DIM), noise(DIM * 3, DIM))
        file.tensor(f"{block}.ffn_down.weight", (DIM, DIM * 3), noise(DIM, DIM * 3))
    path.write_bytes(file.written())
