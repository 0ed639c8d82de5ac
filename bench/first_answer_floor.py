"""A whole program that asks once and prints the answer, by hand: `first_answer_floor.py BASE_URL [no-trust]`.

`no-trust` leaves the certificates out that httpx2 loads by default, as robota does for plain HTTP.
"""

import asyncio
import json
import sys

import httpx2


async def main(base_url: str, trust: bool) -> None:
    text = []
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    async with (
        httpx2.AsyncClient(verify=trust) as client,
        client.stream("POST", f"{base_url}/chat/completions", content=json.dumps(body)) as response,
    ):
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                event = json.loads(line[6:])
                if event["choices"]:
                    text.append(event["choices"][0]["delta"].get("content") or "")
    print("".join(text))


asyncio.run(main(sys.argv[1], "no-trust" not in sys.argv))
