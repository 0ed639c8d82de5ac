"""A whole program that asks once and prints the answer: `first_answer_robota.py BASE_URL [tools]`."""

import asyncio
import sys

from robota import Robota
from robota.providers.openai_compatible import OpenAICompatibleProvider


async def main(base_url: str, with_tools: bool) -> None:
    tools = ()
    if with_tools:
        from workload import FUNCTIONS

        from robota import tool

        tools = [tool(function) for function in FUNCTIONS.values()]
    async with OpenAICompatibleProvider(base_url=base_url, model="m") as provider:
        print((await Robota(provider, model="m", tools=tools).run("Hello")).text)


asyncio.run(main(sys.argv[1], "tools" in sys.argv))
