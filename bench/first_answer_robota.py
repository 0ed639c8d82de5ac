"""A whole program that asks once and prints the answer: `first_answer_robota.py WIRE BASE_URL [tools]`."""

import asyncio
import sys

from providers import open_provider
from robota import Robota


async def main(wire: str, base_url: str, with_tools: bool) -> None:
    tools = ()
    if with_tools:
        from workload import FUNCTIONS

        from robota import tool

        tools = [tool(function) for function in FUNCTIONS.values()]
    async with open_provider(wire, base_url) as provider:
        print((await Robota(provider, model="m", tools=tools).run("Hello")).text)


asyncio.run(main(sys.argv[1], sys.argv[2], "tools" in sys.argv))
