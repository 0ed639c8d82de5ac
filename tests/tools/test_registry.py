from __future__ import annotations

import pytest

from robota.core.errors import ConfigurationError
from robota.tools import FunctionTool, ToolRegistry, create_function_tool, tool

OBJECT = {"type": "object", "properties": {}}


def named(name: str) -> FunctionTool:
    return create_function_tool(name, f"Does {name}.", OBJECT, lambda: "")


def test_tools_are_found_by_name_and_kept_in_order():
    zebra, ape = named("zebra"), named("ape")
    registry = ToolRegistry([zebra])
    registry.register(ape)
    assert registry.get("ape") is ape
    assert (registry.names, list(registry), len(registry)) == (("zebra", "ape"), [zebra, ape], 2)
    assert ("ape" in registry, "cow" in registry) == (True, False)


def test_the_schemas_are_what_the_model_sees():
    (schema,) = ToolRegistry([named("ape")]).schemas
    assert (schema.name, schema.description, schema.parameters) == ("ape", "Does ape.", OBJECT)


def test_a_name_taken_twice_is_refused_with_both_owners():
    def one() -> None:
        """The first."""

    def two() -> None:
        """The second."""

    registry = ToolRegistry([tool(name="same")(one)])
    with pytest.raises(ConfigurationError, match=r"'same': .*<locals>\.one> and .*<locals>\.two>"):
        registry.register(tool(name="same")(two))


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("read_fil", "Did you mean 'Read_File'"), ("xyz", "Registered: Bash, Read_File")],
)
def test_an_unknown_name_gets_a_hint(asked, hint):
    with pytest.raises(ConfigurationError, match=f"no tool {asked!r}. {hint}"):
        ToolRegistry([named("Read_File"), named("Bash")]).get(asked)


def test_an_empty_registry_says_so():
    with pytest.raises(ConfigurationError, match="No tools are registered"):
        ToolRegistry().get("x")


def test_an_unregistered_tool_leaves_its_name_free():
    ape = named("ape")
    registry = ToolRegistry([ape])
    assert registry.unregister("ape") is ape
    registry.register(named("ape"))
    with pytest.raises(ConfigurationError, match="no tool 'cow'"):
        registry.unregister("cow")


def test_a_plain_function_is_no_tool():
    with pytest.raises(ConfigurationError, match="is not a tool: decorate the function with @tool"):
        ToolRegistry([len])  # type: ignore[list-item]
