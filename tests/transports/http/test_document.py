"""The OpenAPI document: it says what there is, and what comes back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from anyio import to_thread
from hypothesis import HealthCheck, Phase, given, settings
from tests.support.serve_process import ServeProcess, served
from tests.support.serving import serving

from robota.testing import ScriptedProvider
from robota.testing.model_server import ModelServer
from robota.transports.http.app import ROUTES
from robota.transports.http.openai_routes import ROUTES as OPENAI

pytestmark = [pytest.mark.anyio, pytest.mark.system]
ROOT = Path(__file__).parents[3]
EXAMPLES = 8
STREAM = "text/event-stream"


async def test_every_route_is_in_the_document_with_its_answers(project: Path) -> None:
    async with serving(ScriptedProvider(), project) as server:
        document = (await server.client.get("/openapi.json")).json()

    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in (*ROUTES, *OPENAI)}
    for methods in document["paths"].values():
        for operation in methods.values():
            assert operation["summary"].endswith(".")
            assert "403" in operation["responses"]


@pytest.mark.slow
async def test_no_generated_request_gets_a_failure_or_an_answer_that_is_not_described(project: Path) -> None:
    sys.path.append(str(ROOT / ".venv" / "schemathesis"))  # tests/system/install.sh
    import schemathesis

    async with (
        ModelServer("Hello.", repeat=True, strict=False) as model,
        served(project, model) as server,  # not in this process: Hypothesis changes the depth of its stack
    ):
        id = await server.new()
        document: dict[str, Any] = (await server.client.get("/openapi.json")).json()
        schema = schemathesis.openapi.from_dict(document)
        operations = [operation.ok() for operation in schema.get_all_operations()]

        def ask_all() -> int:
            return sum(ask_often(operation, server, id) for operation in operations)

        asked = await to_thread.run_sync(ask_all)

    assert asked > 80


def ask_often(operation: Any, server: ServeProcess, id: str) -> int:
    """Generated requests of one kind, every second one about a session that there is; how many."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import status_code_conformance

    asked = 0
    statuses: list[int] = []

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        nonlocal asked
        asked += 1
        if asked % 2 and "id" in (case.path_parameters or {}) and case.method != "DELETE":
            case.path_parameters["id"] = id
        if STREAM in operation.definition.raw["responses"].get("200", {}).get("content", {}):
            statuses.append(ask_for_stream(case, server))
            return
        response = case.call(base_url=server.url, headers={"authorization": f"Bearer {server.token}"})
        case.validate_response(response, checks=[not_a_server_error, status_code_conformance])

    ask()
    assert {str(status) for status in statuses} <= operation.definition.raw["responses"].keys(), (
        operation.label
    )
    return asked


def ask_for_stream(case: Any, server: ServeProcess) -> int:
    """The status of an answer that may have no end of its own: its head and first line are read, no more."""
    given = case.as_transport_kwargs(base_url=server.url)
    headers = {**dict(given.pop("headers", None) or {}), "authorization": f"Bearer {server.token}"}
    with requests.request(**given, headers=headers, stream=True, timeout=60) as reply:
        if reply.status_code == 200:
            next(reply.iter_lines(), b"")
        return int(reply.status_code)
