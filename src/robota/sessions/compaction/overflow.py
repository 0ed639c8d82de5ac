"""Whether a model service refused a request because it was too long for the model.

Services have no common code for it, so their words are looked up in one table. A rate limit that counts
tokens is not an overflow: waiting helps there, and summarising would only lose something.
"""

from __future__ import annotations

from robota.core.errors import AuthenticationError, NetworkError, RateLimitError

PHRASES = (
    "prompt is too long",  # Anthropic, also through Bedrock and Vertex
    "input is too long",  # Bedrock
    "context_length_exceeded",  # OpenAI and those who copy its codes
    "context length exceeded",
    "maximum context length",  # OpenAI, vLLM, OpenRouter, DeepSeek, Mistral
    "exceeds the context window",  # OpenAI's Responses API
    "reduce the length of the messages",  # OpenAI, Groq
    "exceeds the maximum number of tokens",  # Gemini
    "input token count",  # Gemini, Vertex
    "exceeds the available context size",  # llama.cpp
    "exceed_context_size_error",
    "context size has been exceeded",  # LM Studio
    "greater than the context length",
    "n_ctx",
    "exceeds the context length",  # Ollama
    "exceeds context length",
    "prompt too long",
    "maximum model length",  # vLLM
    "longer than the model's context length",  # SGLang
    "maximum prompt length",  # xAI
    "prompt token count",  # Copilot
    "exceeded model token limit",  # Moonshot
    "context window exceeds limit",  # MiniMax
    "model_context_window_exceeded",
    "prompt exceeds max length",  # Z.ai
    "range of input length should be",  # Qwen
    "maximum allowed input length",  # Poolside
    "`inputs` tokens + `max_new_tokens`",  # Text Generation Inference
    "cannot take a conversation this long",  # our own adapters, when the code alone told them
)
"""What the services say, in lower case."""
_TOO_LARGE = 413


def is_context_overflow(error: BaseException | None) -> bool:
    """Whether sending less may help."""
    if error is None or isinstance(error, RateLimitError | AuthenticationError | NetworkError):
        return False
    if getattr(error, "status", None) == _TOO_LARGE:
        return True
    said = str(error).lower()
    return any(phrase in said for phrase in PHRASES)
