"""An MCP server over standard input and output, written by hand: it starts fast, and misbehaves on request.

Its only argument is a JSON object; `PROGRAM` is the path of this file.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

PROGRAM = __file__
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ANY: dict[str, Any] = {"type": "object", "properties": {}}


def tool(name: str, about: str = "", schema: dict[str, Any] = ANY, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": about or f"Does {name}.", "inputSchema": schema, **more}


TOOLS = [
    tool(
        "add",
        "Adds two numbers.",
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
        annotations={"readOnlyHint": True},
    ),
    tool("judge", "Judges.", {"type": "object", "properties": {"text": {"type": "string"}}}),
    tool("echo", "Says it again.", {"type": "object", "properties": {"text": {"type": "string"}}}),
    *map(tool, ("die", "hang", "progress", "ask", "sample", "picture", "change", "environment", "refuse")),
    tool("approve", "Says whether a call may run."),
    tool("big", "Says a lot.", {"type": "object", "properties": {"size": {"type": "integer"}}}),
    tool(
        "write",
        "Writes a file.",
        {"type": "object", "properties": {"target": {"type": "string"}, "text": {"type": "string"}}},
        _meta={"robota/touches": {"kind": "write", "fields": ["target"]}},
    ),
]
BROKEN = [
    {"name": "no_schema"},
    {"name": "wrong", "inputSchema": {"type": "string"}},
    {"name": "odd", "inputSchema": {"properties": []}},
    "a word",
    {"inputSchema": ANY},
]


class Server:
    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.name = config.get("name", "stub")
        self.tools = TOOLS[: config.get("own", len(TOOLS))] + (BROKEN if config.get("broken") else [])  # type: ignore[operator]
        self.tools += [
            tool(f"{self.name}_tool_{at}", f"Does thing {at}.") for at in range(config.get("tools", 0))
        ]
        self.waiting: dict[str, Any] = {}
        self.asked = 0

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" in message:
                self.take(message)
            elif (call := self.waiting.pop(message["id"], None)) is not None:
                answer = message.get("result", message.get("error"))
                self.answer(call, text(json.dumps(answer)))

    def send(self, **message: Any) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def answer(self, id: Any, result: dict[str, Any]) -> None:
        self.send(id=id, result=result)

    def log(self, line: str) -> None:
        if path := self.config.get("log"):
            with open(path, "a") as file:
                file.write(line + "\n")

    def take(self, message: dict[str, Any]) -> None:
        method, params, id = message["method"], message.get("params") or {}, message.get("id")
        self.log(method)
        match method:
            case "initialize":
                self.greet(id, params)
            case "tools/list":
                self.answer(id, {"tools": self.tools})
            case "tools/call":
                self.call(id, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
            case "prompts/list":
                arguments = [{"name": "who", "required": True}, {"name": "how"}]
                self.answer(
                    id, {"prompts": [{"name": "greet", "description": "Greets.", "arguments": arguments}]}
                )
            case "prompts/get":
                words = f"Greet {params['arguments'].get('who')} {params['arguments'].get('how', 'kindly')}."
                self.answer(id, {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]})
            case "resources/list":
                self.answer(id, {"resources": [{"uri": "note://one", "name": "one"}]})
            case "resources/templates/list":
                self.answer(id, {"resourceTemplates": []})
            case "resources/read":
                uri = params["uri"]
                self.answer(id, {"contents": [{"uri": uri, "text": f"The note at {uri}."}]})
            case "notifications/cancelled":
                self.log(f"cancelled {params.get('requestId')}")
            case _ if id is not None:
                self.send(id=id, error={"code": -32601, "message": f"There is no method {method}."})

    def greet(self, id: Any, params: dict[str, Any]) -> None:
        self.log(f"process {os.getpid()}")
        if gate := self.config.get("gate"):  # a pipe: whoever writes to it lets the server go on
            with open(gate, "rb") as pipe:
                pipe.read(1)
        if self.config.get("noise"):
            print("Debug: hello from the server", flush=True)
            print("a warning of the server", file=sys.stderr, flush=True)
        if self.config.get("endless"):
            sys.stdout.write("x" * self.config["endless"])
            sys.stdout.flush()
            sys.stdin.read()
        can: dict[str, Any] = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}}
        info = {"name": self.name, "version": "1.2"}
        version = params["protocolVersion"]
        self.answer(id, {"protocolVersion": version, "capabilities": can, "serverInfo": info})

    def call(self, id: Any, name: str, given: dict[str, Any], meta: dict[str, Any]) -> None:
        match name:
            case "add":
                total = given["a"] + given["b"]
                self.answer(id, text(str(total)) | {"structuredContent": {"total": total}})
            case "die":
                print("the disk is on fire", file=sys.stderr, flush=True)
                os._exit(3)
            case "hang":
                begun = {"progressToken": meta["progressToken"], "progress": 0}
                self.send(method="notifications/progress", params=begun)
            case "progress":
                for at in (1, 2):
                    done = {
                        "progressToken": meta["progressToken"],
                        "progress": at,
                        "total": 2,
                        "message": "working",
                    }
                    self.send(method="notifications/progress", params=done)
                self.answer(id, text("done"))
            case "ask":
                schema = {
                    "type": "object",
                    "properties": {"colour": {"type": "string"}},
                    "required": ["colour"],
                }
                self.ask(id, "elicitation/create", {"message": "Which colour?", "requestedSchema": schema})
            case "sample":
                said = [{"role": "user", "content": {"type": "text", "text": "What is two and two?"}}]
                self.ask(id, "sampling/createMessage", {"messages": said, "maxTokens": 100})
            case "picture":
                image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
                note = {"type": "resource", "resource": {"uri": "note://one", "text": "A note."}}
                self.answer(id, {"content": [{"type": "text", "text": "Look."}, image, note]})
            case "change":
                self.tools = [each for each in self.tools if each["name"] != "echo"]
                self.tools.append(tool("fresh", "Is new."))
                self.send(method="notifications/tools/list_changed")
                self.answer(id, text("changed"))
            case "environment":
                self.answer(id, text(json.dumps(dict(os.environ))))
            case "judge":
                deny = {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "too secret",
                }
                verdict = {"hookSpecificOutput": deny} if "secret" in given["text"] else {}
                self.answer(id, text(json.dumps(verdict)))
            case "approve":
                command = given["input"].get("command", "")
                verdict = {"behavior": "deny", "message": f"not {command}, {given['tool_use_id']}"}
                if "made" in command:
                    verdict = {"behavior": "allow", "updatedInput": {"command": f"{command} twice"}}
                if "vague" in command:
                    verdict = {"behavior": "Allow"}
                self.answer(id, text("perhaps" if "odd" in command else json.dumps(verdict)))
            case "refuse":
                self.answer(id, text("I would rather not.") | {"isError": True})
            case "big":
                self.answer(id, text("y" * given.get("size", 1000)))
            case "write":
                with open(given["target"], "w") as file:
                    file.write(given.get("text", ""))
                self.answer(id, text("written"))
            case _:
                self.answer(id, text(f"{name}: {given.get('text', '')}"))

    def ask(self, call: Any, method: str, params: dict[str, Any]) -> None:
        self.asked += 1
        id = f"q{self.asked}"
        self.waiting[id] = call
        self.send(id=id, method=method, params=params)


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def definition(**config: Any) -> dict[str, Any]:
    """As `.mcp.json` has it."""
    return {"command": sys.executable, "args": ["-S", PROGRAM, json.dumps(config)]}


if __name__ == "__main__":
    Server(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}).run()
