"""Requests per second of servers of one model, with many clients at once.

Start the servers, one after the other on ports of their own, then name them:

    albert-tf serve saved_models/task --port 8501                          # in batches
    albert-tf serve saved_models/task --port 8502 --max-batch-size 1       # without
    albert-tf serve saved_models/task_onnx --port 8503 --engine openvino --precision int8
    python tests/benchmarks/plain_server.py runs/task --port 8504          # FastAPI, transformers and torch
    python tests/benchmarks/serving_load.py texts.txt batched=http://127.0.0.1:8501/v1/models/task:predict ...

Each server gets the same requests of one text, in turns; the medians of the rounds are compared with the first server.
"""

import argparse
import asyncio
import pathlib
import random
import statistics
import time

import httpx


async def ask_all(url: str, texts: list[str], clients: int) -> list[float]:
    """Seconds of each request; raises if one is not answered."""
    seconds, waiting = [], list(texts)

    async def client(session: httpx.AsyncClient) -> None:
        while waiting:
            text, start = waiting.pop(), time.perf_counter()
            (await session.post(url, json={"instances": [text]})).raise_for_status()
            seconds.append(time.perf_counter() - start)

    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(limits=limits, timeout=600) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return seconds


def measure(url: str, texts: list[str], clients: int) -> tuple[float, list[float]]:
    """Requests per second, and the seconds of each."""
    start = time.perf_counter()
    seconds = asyncio.run(ask_all(url, texts, clients))
    return len(texts) / (time.perf_counter() - start), sorted(seconds)


def main() -> None:
    """Measures and prints a line per server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=pathlib.Path, help="a text per line")
    parser.add_argument("servers", nargs="+", help="NAME=URL")
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    lines = [line for line in arguments.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    texts = random.Random(0).sample(lines, min(arguments.requests, len(lines)))
    servers = dict(server.split("=", 1) for server in arguments.servers)
    for url in servers.values():
        measure(url, texts[:32], 8)
    rates: dict[str, list[float]] = {name: [] for name in servers}
    latencies: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(arguments.rounds):
        for name, url in servers.items():
            rate, seconds = measure(url, texts, arguments.clients)
            rates[name].append(rate)
            latencies[name] += seconds
    first = statistics.median(next(iter(rates.values())))
    for name, found in rates.items():
        rate, seconds = statistics.median(found), sorted(latencies[name])
        p50, p95, p99 = (seconds[int(len(seconds) * share)] * 1000 for share in (0.5, 0.95, 0.99))
        latency = f"p50 {p50:.0f}, p95 {p95:.0f}, p99 {p99:.0f} ms"
        print(f"{name}: {rate:.1f} requests/s, {rate / first:.2f} x the first; {latency}")


if __name__ == "__main__":
    main()
