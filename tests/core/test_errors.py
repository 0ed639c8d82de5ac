from __future__ import annotations

import pytest

from robota.core.errors import (
    AbortError,
    AgentBusyError,
    AuthenticationError,
    CacheIntegrityError,
    CircuitBreakerOpenError,
    ConfigurationError,
    ErrorCategory,
    ModelNotAvailableError,
    NetworkError,
    PluginError,
    ProviderError,
    RateLimitError,
    RobotaError,
    SessionBusyError,
    StorageError,
    StructuredOutputError,
    ToolExecutionError,
    ValidationError,
    describe_exception,
    from_unknown,
    get_error_code,
    is_recoverable,
    wrap_provider_error,
)

TABLE: list[tuple[type[RobotaError], str, ErrorCategory, bool]] = [
    (ConfigurationError, "CONFIGURATION_ERROR", "user", False),
    (ValidationError, "VALIDATION_ERROR", "user", False),
    (ProviderError, "PROVIDER_ERROR", "provider", True),
    (AuthenticationError, "AUTHENTICATION_ERROR", "user", False),
    (RateLimitError, "RATE_LIMIT_ERROR", "provider", True),
    (NetworkError, "NETWORK_ERROR", "system", True),
    (ToolExecutionError, "TOOL_EXECUTION_ERROR", "system", False),
    (ModelNotAvailableError, "MODEL_NOT_AVAILABLE", "user", False),
    (CircuitBreakerOpenError, "CIRCUIT_BREAKER_OPEN", "system", True),
    (PluginError, "PLUGIN_ERROR", "system", False),
    (StorageError, "STORAGE_ERROR", "system", True),
    (StructuredOutputError, "STRUCTURED_OUTPUT_ERROR", "provider", True),
    (CacheIntegrityError, "CACHE_INTEGRITY_ERROR", "system", True),
    (AgentBusyError, "AGENT_BUSY", "user", True),
    (SessionBusyError, "SESSION_BUSY", "user", True),
    (AbortError, "ABORTED", "user", True),
]


@pytest.mark.parametrize(
    ("kind", "code", "category", "recoverable"), TABLE, ids=lambda value: getattr(value, "__name__", "")
)
def test_each_error_has_the_code_category_and_recoverability_of_the_table(
    kind: type[RobotaError], code: str, category: ErrorCategory, recoverable: bool
) -> None:
    assert (kind.code, kind.category, kind.recoverable) == (code, category, recoverable)


def test_errors_carry_facts_as_attributes() -> None:
    assert ValidationError("bad", field="path").field == "path"
    assert ToolExecutionError("broke", tool_name="Bash").tool_name == "Bash"
    assert PluginError("broke", plugin_name="limits").plugin_name == "limits"
    assert StructuredOutputError("no JSON", text="hello").text == "hello"
    limit = RateLimitError("slow down", provider="p", status=429, request_id="r", retry_after=3.0)
    assert (limit.provider, limit.status, limit.request_id, limit.retry_after) == ("p", 429, "r", 3.0)


def test_a_missing_model_names_the_provider_and_what_there_is() -> None:
    error = ModelNotAvailableError("gpt-9", "openai", available_models=["gpt-5", "gpt-4o"])
    assert str(error) == 'Model "gpt-9" is not available for provider "openai"; choose one of gpt-5, gpt-4o.'
    assert error.available_models == ("gpt-5", "gpt-4o")
    assert (
        str(ModelNotAvailableError("m", "p"))
        == 'Model "m" is not available for provider "p"; check its name.'
    )


def test_an_open_circuit_has_a_default_message_and_a_wait() -> None:
    error = CircuitBreakerOpenError(retry_after=12.5)
    assert (str(error), error.retry_after) == ("Circuit breaker is open", 12.5)


def test_foreign_errors_have_no_code_and_are_not_recoverable() -> None:
    assert (get_error_code(KeyError("x")), is_recoverable(KeyError("x"))) == ("UNKNOWN_ERROR", False)
    assert (get_error_code(NetworkError("x")), is_recoverable(NetworkError("x"))) == ("NETWORK_ERROR", True)
    assert not is_recoverable(ConfigurationError("x"))


def test_an_unknown_failure_becomes_one_of_ours_and_keeps_its_cause() -> None:
    cause = ZeroDivisionError("division by zero")
    wrapped = from_unknown(cause)
    assert (str(wrapped), wrapped.code, wrapped.__cause__) == (
        "ZeroDivisionError: division by zero",
        "ROBOTA_ERROR",
        cause,
    )
    assert str(from_unknown("just a text")) == "just a text"


@pytest.mark.parametrize("error", [ConfigurationError("x"), AbortError("x")])
def test_our_own_errors_are_not_wrapped_again(error: RobotaError) -> None:
    assert from_unknown(error) is error
    assert wrap_provider_error(error, "p") is error


def test_a_failure_inside_a_provider_names_the_provider() -> None:
    cause = KeyError("choices")
    wrapped = wrap_provider_error(cause, "openai")
    assert isinstance(wrapped, ProviderError)
    assert (str(wrapped), wrapped.provider, wrapped.__cause__) == (
        "Provider 'openai' failed: KeyError: 'choices'",
        "openai",
        cause,
    )


def test_an_exception_without_text_still_says_its_name() -> None:
    assert (describe_exception(TimeoutError()), describe_exception(ValueError(" no "))) == (
        "TimeoutError",
        "ValueError: no",
    )


def test_a_group_of_exceptions_names_its_causes_and_counts_what_is_left_out() -> None:
    inner = ExceptionGroup("inner", [KeyError("city"), TimeoutError()])
    assert describe_exception(ExceptionGroup("outer", [ValueError("no"), inner])) == (
        "ValueError: no; KeyError: 'city'; TimeoutError"
    )
    many = ExceptionGroup("many", [ValueError(str(n)) for n in range(7)])
    assert describe_exception(many).endswith("ValueError: 4; and 2 more")
