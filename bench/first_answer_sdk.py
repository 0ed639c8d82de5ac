"""A whole program that asks once through a vendor's own package: `first_answer_sdk.py WIRE ROOT_URL`."""

import asyncio
import sys


async def ask_messages(root: str) -> None:
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(api_key="none", base_url=root)
    prompt = [{"role": "user", "content": "Hello"}]
    async with client.messages.stream(model="m", max_tokens=100, messages=prompt) as stream:
        print("".join([text async for text in stream.text_stream]))


async def ask_responses(root: str) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=f"{root}/v1")
    events = await client.responses.create(model="m", input="Hello", stream=True)
    texts = [event.delta async for event in events if event.type == "response.output_text.delta"]
    print("".join(texts))


async def ask_chat(root: str) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=f"{root}/v1")
    prompt = [{"role": "user", "content": "Hello"}]
    events = await client.chat.completions.create(model="m", messages=prompt, stream=True)
    texts = [event.choices[0].delta.content async for event in events if event.choices]
    print("".join(text or "" for text in texts))


async def ask_gemini(root: str) -> None:
    from google import genai

    client = genai.Client(api_key="none", http_options={"base_url": root})
    replies = await client.aio.models.generate_content_stream(model="m", contents="Hello")
    print("".join([reply.text or "" async for reply in replies]))


asyncio.run(globals()[f"ask_{sys.argv[1]}"](sys.argv[2]))
