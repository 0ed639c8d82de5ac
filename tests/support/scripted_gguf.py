"""A model file for llama.cpp that says what a test wants it to say, token for token.

The weights are a table: embeddings are one-hot, the single layer adds nothing, and the output matrix maps
each token to the one that follows it. The chat template ends every prompt with a mark that stands for "reply
number n", counted by the assistant's turns (without the examples that small models are shown), and the mark
leads into the n-th text. So a real llama.cpp goes through its own template, tokenizer, grammar, parser and
streaming, and the words are known beforehand.
"""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
from gguf import TokenType

from robota.providers.local.request import EXAMPLES, answer_text

CONTEXT = 8192
TURN = "<|turn|>"
END = "<|end|>"
HEAD = 64
SURE = 8.0
"""The weight of a scripted step; after normalisation no sampler chooses anything else."""
TEMPLATE = """\
{%- if tools %}
{{- '<|turn|>system\\nAnswer, or call a tool with a json object {"name": ..., "arguments": ...}:' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{{- '<|end|>\\n' }}
{%- endif %}
{%- set said = namespace(turns=0) %}
{%- for message in messages %}
{%- set last = loop.last or messages[loop.index].role != 'assistant' %}
{%- if message.role == 'assistant' and last %}{%- set said.turns = said.turns + 1 %}{%- endif %}
{%- if message.content == EXAMPLES_END %}{%- set said.turns = 0 %}{%- endif %}
{{- '<|turn|>' + message.role + '\\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{%- if call.function is defined %}{%- set call = call.function %}{%- endif %}
{{- '\\n{"name": "' + call.name + '", "arguments": ' + (call.arguments | tojson) + '}' }}
{%- endfor %}
{{- '<|end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{%- set mark = namespace(text='<|reply' + ([said.turns, LAST] | min | string) + '|>') %}
{%- for words in TOLD %}
{%- if words in messages[-1].content %}
{%- set mark.text = '<|told' + (loop.index0 | string) + '|>' %}
{%- endif %}
{%- endfor %}
{{- '<|turn|>assistant\\n' + mark.text }}
{%- endif %}"""


def tool_call(name: str, arguments: str) -> str:
    """A reply that is a call, in the words the template asks for."""
    return f'{{"name": "{name}", "arguments": {arguments}}}'


def write_scripted_gguf(
    path: Path, *replies: str, context: int = CONTEXT, told: dict[str, str] | None = None
) -> Path:
    """A model that gives these replies in turn, and the last one from then on.

    `told` are replies for when the last message has certain words in it.
    """
    words = _Vocabulary()
    steps: list[tuple[int, int]] = []
    told = told or {}
    scripts = {f"<|reply{number}|>": reply for number, reply in enumerate(replies)}
    scripts |= {f"<|told{number}|>": reply for number, reply in enumerate(told.values())}
    for mark, reply in scripts.items():
        at = words.add(mark, TokenType.CONTROL)
        for piece in words.cut(reply):
            token = words.add(piece, TokenType.USER_DEFINED)
            steps.append((at, token))
            at = token
        steps.append((at, words.end))
    writer = gguf.GGUFWriter(path, "llama")
    template = TEMPLATE.replace("LAST", str(len(replies) - 1)).replace("TOLD", json.dumps(list(told)))
    writer.add_chat_template(template.replace("EXAMPLES_END", json.dumps(answer_text(EXAMPLES[-1].answer))))
    _write_facts(writer, words, context)
    _write_weights(writer, words, steps)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class _Vocabulary:
    """All single bytes, the marks, and pieces of the replies, each used once so that the next is certain."""

    def __init__(self) -> None:
        self.tokens = ["<unk>", "<s>", "</s>"]
        self.types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL]
        for byte in range(256):
            self.add(f"<0x{byte:02X}>", TokenType.BYTE)
        self.add(TURN, TokenType.CONTROL)
        self.end = self.add(END, TokenType.CONTROL)

    def add(self, token: str, kind: TokenType) -> int:
        self.tokens.append(token)
        self.types.append(kind)
        return len(self.tokens) - 1

    def cut(self, text: str) -> list[str]:
        """The text in the shortest pieces, whole words if possible, that no reply has used before."""
        used, pieces, begun = set(self.tokens), [], 0
        for end in range(1, len(text) + 1):
            piece = text[begun:end]
            ends_word = end == len(text) or not text[end].isalnum()
            if ends_word and piece not in used:
                used.add(piece)
                pieces.append(piece)
                begun = end
        rest = text[begun:]
        while rest in used:
            rest = pieces.pop() + rest
        if rest:
            pieces.append(rest)
        return pieces

    @property
    def width(self) -> int:
        return -(-len(self.tokens) // HEAD) * HEAD


def _write_facts(writer: gguf.GGUFWriter, words: _Vocabulary, context: int) -> None:
    writer.add_name("scripted")
    writer.add_context_length(context)
    writer.add_embedding_length(words.width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HEAD)
    writer.add_head_count(words.width // HEAD)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD)
    writer.add_vocab_size(len(words.tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words.tokens)
    writer.add_token_scores([0.0] * len(words.tokens))
    writer.add_token_types([int(kind) for kind in words.types])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(words.end)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)


def _write_weights(writer: gguf.GGUFWriter, words: _Vocabulary, steps: list[tuple[int, int]]) -> None:
    count, width = len(words.tokens), words.width
    following = np.zeros((count, width), np.float16)
    following[words.end, :] = 0.2  # whatever is not scripted ends the reply
    for token, following_token in steps:
        following[following_token, token] = SURE
    writer.add_tensor("token_embd.weight", np.eye(count, width, dtype=np.float16))
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    writer.add_tensor("output.weight", following)
    idle = {
        "attn_q": (width, width), "attn_k": (HEAD, width), "attn_v": (HEAD, width),
        "attn_output": (width, width), "ffn_gate": (HEAD, width), "ffn_up": (HEAD, width),
        "ffn_down": (width, HEAD),
    }  # fmt: skip
    for name, shape in idle.items():
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float16))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(width, np.float32))
