"""The error tree. It lives in one file so that every layer can raise without importing another.

Messages are whole sentences that tell the reader the next step; facts a program needs are attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

ErrorCategory = Literal["user", "system", "provider"]


class RobotaError(Exception):
    """Everything robota raises on purpose."""

    code: ClassVar[str] = "ROBOTA_ERROR"
    category: ClassVar[ErrorCategory] = "system"
    recoverable: ClassVar[bool] = False

    def __init_subclass__(
        cls, *, code: str = "", category: ErrorCategory | None = None, recoverable: bool | None = None
    ) -> None:
        """What a class leaves out of the line that names it, it has from its base."""
        super().__init_subclass__()
        cls.code = code or cls.code
        cls.category = category or cls.category
        cls.recoverable = cls.recoverable if recoverable is None else recoverable


class ConfigurationError(RobotaError, code="CONFIGURATION_ERROR", category="user"):
    """A setting, argument or file that cannot work as given."""


class UnknownNameError(ConfigurationError):
    """A name, of a tool or a provider, that nothing is called by."""


class ValidationError(RobotaError, code="VALIDATION_ERROR", category="user"):
    """A value that does not have the promised shape; `field` names the offender when there is one."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class _ModelServiceError(RobotaError):
    """What the four errors of a model call have in common."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        """HTTP status, when the service answered at all."""
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds the service asked us to wait."""
        self.problem = ""
        """What is wrong, without the advice at the end of the message, for those who know better advice."""


class ProviderError(_ModelServiceError, code="PROVIDER_ERROR", category="provider", recoverable=True):
    """The model service failed or sent something unusable."""


class AuthenticationError(_ModelServiceError, code="AUTHENTICATION_ERROR", category="user"):
    """The key was refused."""


class RateLimitError(_ModelServiceError, code="RATE_LIMIT_ERROR", category="provider", recoverable=True):
    """The service asks for patience."""


class NetworkError(_ModelServiceError, code="NETWORK_ERROR", recoverable=True):
    """The service could not be reached, or the connection broke."""

    lasting: bool = False
    """The same request would fail again at once: a name that leads nowhere, a certificate that is refused."""


class ToolExecutionError(RobotaError, code="TOOL_EXECUTION_ERROR"):
    """A tool could not do its work."""

    def __init__(self, message: str, *, tool_name: str = "") -> None:
        super().__init__(message)
        self.tool_name = tool_name


class ModelNotAvailableError(RobotaError, code="MODEL_NOT_AVAILABLE", category="user"):
    """The provider does not offer that model."""

    def __init__(
        self, model: str, provider: str, *, available_models: Sequence[str] = (), reason: str = ""
    ) -> None:
        fix = f"choose one of {', '.join(available_models)}" if available_models else "check its name"
        because = f" ({reason})" if reason else ""
        super().__init__(f'Model "{model}" is not available for provider "{provider}"{because}; {fix}.')
        self.model = model
        self.provider = provider
        self.reason = reason
        """What the service said: it may be retired, of another API, or not open to this account."""
        self.available_models = tuple(available_models)


class CircuitBreakerOpenError(RobotaError, code="CIRCUIT_BREAKER_OPEN", recoverable=True):
    """Too many failures in a row; calls are refused until the pause is over."""

    def __init__(self, message: str = "Circuit breaker is open", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PluginError(RobotaError, code="PLUGIN_ERROR"):
    """A plugin failed or refused."""

    def __init__(self, message: str, *, plugin_name: str = "") -> None:
        super().__init__(message)
        self.plugin_name = plugin_name


class StorageError(RobotaError, code="STORAGE_ERROR", recoverable=True):
    """Reading or writing persistent state failed."""


class StructuredOutputError(
    RobotaError, code="STRUCTURED_OUTPUT_ERROR", category="provider", recoverable=True
):
    """The model's answer did not fit the requested type, also after the retries."""

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.text = text
        """The last answer as the model wrote it."""


class CacheIntegrityError(RobotaError, code="CACHE_INTEGRITY_ERROR", recoverable=True):
    """A cached response is not the one that was stored."""


class AgentBusyError(RobotaError, code="AGENT_BUSY", category="user", recoverable=True):
    """A second run was started while one is under way."""


class SessionBusyError(RobotaError, code="SESSION_BUSY", category="user", recoverable=True):
    """A prompt came while the session works on another one."""


class SessionNotFoundError(RobotaError, code="SESSION_NOT_FOUND", category="user"):
    """A session was named that does not exist."""


class PromptBlockedError(ValidationError, code="PROMPT_BLOCKED"):
    """A hook does not let a prompt through."""


class AbortError(RobotaError, code="ABORTED", category="user", recoverable=True):
    """The user stopped the run; raised by `Session.run` only."""


UNKNOWN_ERROR = "UNKNOWN_ERROR"
MAX_CAUSES = 5
"""How many of a group's exceptions are named."""


def is_recoverable(error: BaseException) -> bool:
    """Whether trying again later can help."""
    return isinstance(error, RobotaError) and error.recoverable


def get_error_code(error: BaseException) -> str:
    """The stable code of one of our errors, `UNKNOWN_ERROR` for a foreign one."""
    return error.code if isinstance(error, RobotaError) else UNKNOWN_ERROR


def from_unknown(error: object) -> RobotaError:
    """One of our errors unchanged; anything else as a `RobotaError` that says what it was."""
    if isinstance(error, RobotaError):
        return error
    wrapped = RobotaError(describe_exception(error) if isinstance(error, BaseException) else str(error))
    if isinstance(error, BaseException):
        wrapped.__cause__ = error
    return wrapped


def wrap_provider_error(error: BaseException, provider: str) -> RobotaError:
    """A failure inside a provider as something the loop can report; our own errors pass unchanged."""
    if isinstance(error, RobotaError):
        return error
    wrapped = ProviderError(f"Provider {provider!r} failed: {describe_exception(error)}", provider=provider)
    wrapped.__cause__ = error
    return wrapped


def describe_exception(error: BaseException) -> str:
    """Type and text in one line, of a group those of its causes; one without text still says its name."""
    if isinstance(error, BaseExceptionGroup):
        causes = [describe_exception(one) for one in error.exceptions[:MAX_CAUSES]]
        more = len(error.exceptions) - MAX_CAUSES
        return "; ".join([*causes, f"and {more} more"] if more > 0 else causes)
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
