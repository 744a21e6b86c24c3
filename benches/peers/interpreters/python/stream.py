"""OpenAI's library for Python: reads one stream of text, as the other clients do, and tells what that cost."""

import asyncio
import json
import sys
import time

from openai import AsyncOpenAI

WARM_UP = "text-200-16"


class Reader:
    def __init__(self, base, scenario):
        self.client = AsyncOpenAI(api_key="none", base_url=f"{base}/{scenario}/v1")
        self.text_bytes = 0
        self.first_text_at = 0

    async def turn(self):
        stream = await self.client.chat.completions.create(
            model="gpt-4o-mini",
            messages=[{"role": "user", "content": "What now?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            text = chunk.choices[0].delta.content if chunk.choices else None
            if text:
                self.first_text_at = self.first_text_at or time.monotonic_ns()
                self.text_bytes += len(text.encode())


def peak_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


async def main(mode, base, scenario):
    if mode == "warm":
        await Reader(base, WARM_UP).turn()
    # Making a client may load certificates, which is no cost of a chunk.
    reader = Reader(base, scenario)
    cpu, wall = time.process_time_ns(), time.monotonic_ns()
    await reader.turn()
    report = {
        "requests": 1,
        "text_bytes": reader.text_bytes,
        "cpu_ns": time.process_time_ns() - cpu,
        "wall_ns": time.monotonic_ns() - wall,
        "first_text_at": reader.first_text_at,
        "peak_kib": peak_kib(),
    }
    print(json.dumps({"Streamed": report}))


asyncio.run(main(*sys.argv[1:4]))
