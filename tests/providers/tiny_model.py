"""A model of random numbers, small enough to be made in a second, for a real server to load.

It writes noise in readable letters, and ends by itself after some thirty of them. Packages: gguf
and numpy.
"""

from pathlib import Path
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


def write_model(path: Path, seed: int = 1) -> None:
    """Write the model as a GGUF file; the same seed gives the same model."""
    import gguf  # noqa: PLC0415
    import numpy  # noqa: PLC0415

    chance = numpy.random.default_rng(seed)
    kinds = gguf.TokenType
    tokens: list[tuple[bytes, float, Any]] = [
        (b"<unk>", 0, kinds.UNKNOWN),
        (b"<s>", 0, kinds.CONTROL),
        (b"</s>", 0, kinds.CONTROL),
        *((f"<0x{byte:02X}>".encode(), 0, kinds.BYTE) for byte in range(256)),
        *((bytes([letter]), -1, kinds.NORMAL) for letter in range(33, 127)),
        (PAD.encode(), -1, kinds.NORMAL),
        (b"<tool_call>", 0, kinds.USER_DEFINED),
        (b"</tool_call>", 0, kinds.USER_DEFINED),
        (b"<|im_start|>", 0, kinds.CONTROL),
        (b"<|im_end|>", 0, kinds.CONTROL),
    ]
    names = [token for token, _, _ in tokens]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(DIM)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(DIM * 3)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(DIM // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(names)
    writer.add_token_scores([score for _, score, _ in tokens])
    writer.add_token_types([int(kind) for _, _, kind in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(names.index(b"<|im_end|>"))
    writer.add_unk_token_id(0)
    # With a space before each text no grammar of the server would ever match.
    writer.add_add_space_prefix(False)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)

    def noise(*shape: int) -> Any:
        return (chance.standard_normal(shape) / shape[-1] ** 0.5).astype(numpy.float32)

    # The first number of every token is the same and large: the first column of the output matrix
    # then says how likely each token is, whatever came before.
    embedding, output = noise(len(tokens), DIM), noise(len(tokens), DIM)
    embedding[:, 0] = 12
    likely = numpy.zeros(len(tokens), numpy.float32)
    likely[:259] = -20
    wanted = {b"<tool_call>": 4, b"</tool_call>": -2, b'"': 2, b"<|im_end|>": 2.5}
    for token, weight in (wanted | {b"<|im_start|>": -20, b"\\": -6, b"<": -6}).items():
        likely[names.index(token)] = weight
    output[:, 0] = likely / DIM**0.5
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", numpy.ones(DIM, numpy.float32))
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", numpy.ones(DIM, numpy.float32))
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{layer}.{part}.weight", noise(DIM, DIM))
        for part in ("ffn_gate", "ffn_up"):
            writer.add_tensor(f"blk.{layer}.{part}.weight", noise(DIM * 3, DIM))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", noise(DIM, DIM * 3))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
