"""The error tree. It lives in one file so that every layer can raise without importing another.

    RobotaError                 code                       category   recoverable
    ├── ConfigurationError      CONFIGURATION_ERROR        user       no
    ├── ValidationError         VALIDATION_ERROR           user       no
    ├── ProviderError           PROVIDER_ERROR             provider   yes
    ├── AuthenticationError     AUTHENTICATION_ERROR       user       no
    ├── RateLimitError          RATE_LIMIT_ERROR           provider   yes
    ├── NetworkError            NETWORK_ERROR              system     yes
    ├── ToolExecutionError      TOOL_EXECUTION_ERROR       system     no
    ├── ModelNotAvailableError  MODEL_NOT_AVAILABLE        user       no
    ├── CircuitBreakerOpenError CIRCUIT_BREAKER_OPEN       system     yes
    ├── PluginError             PLUGIN_ERROR               system     no
    ├── StorageError            STORAGE_ERROR              system     yes
    ├── StructuredOutputError   STRUCTURED_OUTPUT_ERROR    provider   yes
    ├── CacheIntegrityError     CACHE_INTEGRITY_ERROR      system     yes
    ├── AgentBusyError          AGENT_BUSY                 user       yes
    ├── SessionBusyError        SESSION_BUSY               user       yes
    └── AbortError              ABORTED                    user       yes

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


class ConfigurationError(RobotaError):
    """A setting, argument or file that cannot work as given."""

    code = "CONFIGURATION_ERROR"
    category = "user"


class ValidationError(RobotaError):
    """A value that does not have the promised shape; `field` names the offender when there is one."""

    code = "VALIDATION_ERROR"
    category = "user"

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


class ProviderError(_ModelServiceError):
    """The model service failed or sent something unusable."""

    code = "PROVIDER_ERROR"
    category = "provider"
    recoverable = True


class AuthenticationError(_ModelServiceError):
    """The key was refused."""

    code = "AUTHENTICATION_ERROR"
    category = "user"


class RateLimitError(_ModelServiceError):
    """The service asks for patience."""

    code = "RATE_LIMIT_ERROR"
    category = "provider"
    recoverable = True


class NetworkError(_ModelServiceError):
    """The service could not be reached, or the connection broke."""

    code = "NETWORK_ERROR"
    category = "system"
    recoverable = True


class ToolExecutionError(RobotaError):
    """A tool could not do its work."""

    code = "TOOL_EXECUTION_ERROR"
    category = "system"

    def __init__(self, message: str, *, tool_name: str = "") -> None:
        super().__init__(message)
        self.tool_name = tool_name


class ModelNotAvailableError(RobotaError):
    """The provider does not offer that model."""

    code = "MODEL_NOT_AVAILABLE"
    category = "user"

    def __init__(self, model: str, provider: str, *, available_models: Sequence[str] = ()) -> None:
        fix = f"choose one of {', '.join(available_models)}" if available_models else "check its name"
        super().__init__(f'Model "{model}" is not available for provider "{provider}"; {fix}.')
        self.model = model
        self.provider = provider
        self.available_models = tuple(available_models)


class CircuitBreakerOpenError(RobotaError):
    """Too many failures in a row; calls are refused until the pause is over."""

    code = "CIRCUIT_BREAKER_OPEN"
    category = "system"
    recoverable = True

    def __init__(self, message: str = "Circuit breaker is open", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PluginError(RobotaError):
    """A plugin failed or refused."""

    code = "PLUGIN_ERROR"
    category = "system"

    def __init__(self, message: str, *, plugin_name: str = "") -> None:
        super().__init__(message)
        self.plugin_name = plugin_name


class StorageError(RobotaError):
    """Reading or writing persistent state failed."""

    code = "STORAGE_ERROR"
    category = "system"
    recoverable = True


class StructuredOutputError(RobotaError):
    """The model's answer did not fit the requested type, also after the retries."""

    code = "STRUCTURED_OUTPUT_ERROR"
    category = "provider"
    recoverable = True

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.text = text
        """The last answer as the model wrote it."""


class CacheIntegrityError(RobotaError):
    """A cached response is not the one that was stored."""

    code = "CACHE_INTEGRITY_ERROR"
    category = "system"
    recoverable = True


class AgentBusyError(RobotaError):
    """A second run was started while one is under way."""

    code = "AGENT_BUSY"
    category = "user"
    recoverable = True


class SessionBusyError(RobotaError):
    """A prompt came while the session works on another one."""

    code = "SESSION_BUSY"
    category = "user"
    recoverable = True


class AbortError(RobotaError):
    """The user stopped the run; raised by `Session.run` only."""

    code = "ABORTED"
    category = "user"
    recoverable = True


UNKNOWN_ERROR = "UNKNOWN_ERROR"


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
    """Type and text in one line; an exception without text still says its name."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
