"""The schema that an answer is to fit, as a person or a program has written it."""

from __future__ import annotations

from robota.core.messages import JsonObject


def find_schema_problem(schema: JsonObject) -> str:
    """What is wrong with it, in the first words of the complaint; empty if nothing is.

    The check of an answer leaves out what it does not understand, such as a reference that leads nowhere, so
    that a slip here would let everything pass. Nothing is fetched: a schema may name addresses.
    """
    import jsonschema_rs  # noqa: PLC0415 - for those who want JSON

    try:
        jsonschema_rs.validator_for(schema, offline=True)
    except ValueError as error:
        return str(error).partition("\n")[0].rstrip(".")
    return ""
