#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""peer_asyncio.py QUESTION N asks asyncio what the task_*.c programs ask weir's tasks, and
lease_mem_pair.c its leases, and prints the nanoseconds that one operation took.
"""
import asyncio
import sys
import time


async def yields(n):
    async def play():
        for _ in range(n):
            await asyncio.sleep(0)

    start = time.perf_counter_ns()
    await asyncio.gather(play(), play())
    return (time.perf_counter_ns() - start) / (2 * n)


async def handoff(n):
    """Two tasks, each of which waits for a permit and then gives one to the other."""
    sems = [asyncio.Semaphore(0), asyncio.Semaphore(0)]

    async def play(mine, theirs):
        for _ in range(n):
            await mine.acquire()
            theirs.release()

    start = time.perf_counter_ns()
    sems[0].release()
    await asyncio.gather(play(*sems), play(*reversed(sems)))
    return (time.perf_counter_ns() - start) / (2 * n)


async def pair(n):
    """Acquire and release, with nobody else there."""
    sem = asyncio.Semaphore(1)
    start = time.perf_counter_ns()
    for _ in range(n):
        await sem.acquire()
        sem.release()
    return (time.perf_counter_ns() - start) / n


async def nothing():
    pass


async def spawn_join(n):
    start = time.perf_counter_ns()
    for _ in range(n):
        await asyncio.create_task(nothing())
    return (time.perf_counter_ns() - start) / n


async def timers(n):
    """Arm and cancel, while 100,000 others are armed."""
    outstanding = 100_000
    loop = asyncio.get_running_loop()
    for i in range(outstanding):
        loop.call_later(3600 + i * 7919 % outstanding / 1000, sys.exit)
    start = time.perf_counter_ns()
    for i in range(n):
        loop.call_later(3600 + i * 7919 % outstanding / 1000, sys.exit).cancel()
    return (time.perf_counter_ns() - start) / n


QUESTIONS = {
    "yield": yields,
    "handoff": handoff,
    "pair": pair,
    "spawn_join": spawn_join,
    "timers": timers,
}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in QUESTIONS or not sys.argv[2].isdigit():
        sys.exit("usage: peer_asyncio.py " + "|".join(QUESTIONS) + " N")
    print(f"{asyncio.run(QUESTIONS[sys.argv[1]](int(sys.argv[2]))):.2f}")


main()
