#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What may wait for a device is called by cuda_rank alone, where whoever watches over the rank knows that it waits.

A host that waits for a device elsewhere waits behind a collective that no peer comes to, and nobody notices: the run hangs. So no header
but runtime/cuda/rank.hpp calls what waits, or copies between the host and a device: such a copy waits unless the memory is pinned. The
exceptions stand below, each with how often it is written and why it cannot wait for a peer. usage: device_waits.py [INCLUDE], or --selftest
"""

import pathlib
import re
import sys
import tempfile

ROOM = "runtime/cuda/rank.hpp"
WAITS = re.compile(r"\b(cuda(?:Stream|Event|Device)Synchronize|cudaMemcpy(?:2D|3D)?(?:Async)?|cudaMemcpyToSymbol(?:Async)?|"
                   r"cudaMemcpyFromSymbol(?:Async)?|cudaMemset|cudaFreeAsync|cudaFree|cudaFreeHost|cuCtxSynchronize|cuStreamSynchronize)\s*\(")
DIRECT = {
    "runtime/cuda/resources.hpp": {
        "cudaFree": (1, "members of an executor, which settles before, and of what the rank's own room makes"),
        "cudaFreeHost": (1, "as cudaFree"),
        "cudaMemcpyAsync": (1, "from a pinned buffer"),
    },
    "runtime/cuda/step_state.cuh": {"cudaMemcpyAsync": (1, "to pinned memory")},
    "runtime/cuda/staged_collectives.hpp": {"cudaMemcpyAsync": (2, "from and to pinned memory")},
    "runtime/cuda/host_calls.hpp": {"cudaMemcpyAsync": (1, "from and to pinned memory")},
    "runtime/cuda/executor.cuh": {"cudaMemcpyAsync": (1, "from the device to itself")},
    "runtime/cuda/product_search.cuh": {"cudaEventSynchronize": (1, "for products alone: choose_products has waited for all before")},
    "runtime/cuda/recorder.hpp": {"cudaEventSynchronize": (1, "nothing is under way on the stream")},
    "runtime/cuda/collectives.cuh": {"cudaMemcpy2DAsync": (1, "from the device to itself")},
    "operations/cache/device.cuh": {"cudaMemcpyAsync": (1, "from the device to itself")},
}


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text), flags=re.S)


def selftest():
    """A wait that somebody writes into a header, and a room that no longer waits, are found."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in ((ROOM, "cudaStreamSynchronize(s);"), *((n, "".join(f"{c}(x); " * k[0] for c, k in calls.items())) for n, calls in DIRECT.items())):
            path = pathlib.Path(folder) / "shardwise" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        bare = pathlib.Path(folder) / "shardwise" / "runtime" / "cuda" / "launch.hpp"
        bare.write_text("// cudaDeviceSynchronize() and \"cudaFree(x)\" are no calls here\n")
        clean = check(folder)
        bare.write_text("check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, s), \"cudaMemcpyAsync\");")
        found = check(folder)
        good = not clean and len(found) == 1 and found[0].startswith("runtime/cuda/launch.hpp: cudaMemcpyAsync is written 1 times")
        print("device waits: a call outside the room is found" if good else f"{clean} {found}")
        return 0 if good else 1


def check(include):
    root = pathlib.Path(include) / "shardwise"
    wrong, seen = [], {}
    for path in sorted([*root.rglob("*.hpp"), *root.rglob("*.cuh")]):
        name = path.relative_to(root).as_posix()
        for call in WAITS.findall(without_comments(path.read_text(encoding="utf-8"))):
            seen.setdefault(name, {}).setdefault(call, 0)
            seen[name][call] += 1
    if ROOM not in seen:
        wrong.append(f"{ROOM} waits for no device; is it still the room of waits?")
    for name in sorted({*seen, *DIRECT} - {ROOM}):
        for call in sorted({*seen.get(name, {}), *DIRECT.get(name, {})}):
            found, allowed = seen.get(name, {}).get(call, 0), DIRECT.get(name, {}).get(call, (0, ""))[0]
            if found > allowed:
                wrong.append(f"{name}: {call} is written {found} times where {allowed} are known not to wait for a peer; call "
                             f"cuda_rank's synchronize, copy or settle, or say in {pathlib.Path(__file__).name} why it cannot wait")
            elif found < allowed:
                wrong.append(f"{name}: {call} is written {found} times, and {pathlib.Path(__file__).name} allows {allowed}: lower it")
    return wrong


def main():
    if sys.argv[1:] == ["--selftest"]:
        return selftest()
    wrong = check(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "include")
    print("\n".join(wrong) if wrong else f"device waits: {ROOM}, and {sum(map(len, DIRECT.values()))} calls elsewhere that wait for no peer")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
