#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several hosts on one machine: network namespaces joined by a bridge, each with a name and an interface of its own, between which a program
runs over TCP. Needs root, iproute2 (ip, tc) and Open MPI.

    hosts.py [--hosts 2] [--rate 1gbit] [--delay 0.2ms] -n 2 -- PROGRAM ARGS...
    hosts.py --tests TEST_MPI
    hosts.py --link TEST_MPI

-n processes are spread evenly: the first of them run on the first host. --rate and --delay are of what each host sends. --tests runs the
cases of test/mpi on 1 to 4 processes over two hosts. --link cuts the second host off in the middle of a training: every rank must end
within the time that it waits for others, with one message.
"""

import argparse
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time


def call(*command):
    subprocess.run([str(c) for c in command], check=True)


class Hosts:
    """Namespaces shardwise0, shardwise1, ... with the addresses 10.201.77.1, 2, ..., while it is open."""

    def __init__(self, count, rate=None, delay=None):
        self.count, self.rate, self.delay = count, rate, delay
        self.names = [f"shardwise{h}" for h in range(count)]

    def address(self, host):
        return f"10.201.77.{host + 1}"

    def __enter__(self):
        self.close()
        try:
            return self.opened()
        except BaseException:
            self.close()
            raise

    def opened(self):
        self.scratch = tempfile.TemporaryDirectory()
        call("ip", "link", "add", "shardwisebr", "type", "bridge")
        call("ip", "link", "set", "shardwisebr", "up")
        for h, name in enumerate(self.names):
            call("ip", "netns", "add", name)
            call("ip", "link", "add", f"shardwisev{h}", "type", "veth", "peer", "name", "eth0", "netns", name)
            call("ip", "link", "set", f"shardwisev{h}", "master", "shardwisebr", "up")
            call("ip", "-n", name, "address", "add", f"{self.address(h)}/24", "dev", "eth0")
            call("ip", "-n", name, "link", "set", "eth0", "up")
            call("ip", "-n", name, "link", "set", "lo", "up")
            shaped = ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0"]
            if self.delay:
                there = subprocess.run([*shaped, "root", "handle", "1:", "netem", "limit", "100000", "delay", self.delay], capture_output=True)
                if there.returncode != 0:
                    raise SystemExit("--delay needs a kernel with sch_netem, which this one has not: leave it out")
            if self.rate:
                call(*shaped, *(["parent", "1:"] if self.delay else ["root"]), "tbf", "rate", self.rate, "burst", "256kb", "latency", "50ms")
        # What Open MPI starts its daemons with, in place of ssh: the host's address, then a command.
        self.agent = pathlib.Path(self.scratch.name) / "agent"
        self.agent.write_text("#!/bin/sh\nhost=shardwise$((${1##*.} - 1)); shift\n"
                              f"exec {self.enter('$host')} sh -c \"$*\"\n")
        self.agent.chmod(0o755)
        return self

    def enter(self, name):
        """Begins a command on a host, whose name is its own."""
        return f"ip netns exec {name} unshare --uts sh -c 'hostname \"$0\"; exec \"$@\"' {name}"

    def close(self):
        """Removes what is there, of an interrupted run, too."""
        there = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.split()
        for name in self.names:
            if name in there:
                call("ip", "netns", "delete", name)
        for link in ["shardwisebr", *(f"shardwisev{h}" for h in range(self.count))]:
            subprocess.run(["ip", "link", "delete", link], capture_output=True)

    def __exit__(self, *_):
        self.close()
        self.scratch.cleanup()

    def command(self, processes, program):
        each = -(-processes // self.count)
        hosts = ",".join(f"{self.address(h)}:{each}" for h in range(self.count))
        return [*shlex.split(self.enter(self.names[0])), "mpirun", "--allow-run-as-root", "--oversubscribe", "--host", hosts, "-n", str(processes),
                "--mca", "plm_rsh_agent", str(self.agent), "--mca", "plm", "rsh", "--mca", "btl", "tcp,self", "--mca", "mpi_yield_when_idle", "1",
                "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", *program]


def environment(**more):
    """This process's, without what another launcher may have left."""
    return {**{k: v for k, v in os.environ.items() if not re.match(r"(RANK|WORLD_SIZE|LOCAL_RANK|OMPI_|PMI|SLURM_)", k)}, **more}


def tests(hosts, program):
    """The cases of test/mpi; how many runs failed."""
    wrong = 0
    for n in range(1, 5):
        done = subprocess.run(hosts.command(n, [program, "--no-colors"]), env=environment(), capture_output=True, text=True, timeout=600)
        passed = done.stdout.count("Status: SUCCESS!")
        cases = re.search(r"test cases: +(\d+)", done.stdout)
        print(f"{n} processes over {hosts.count} hosts: {passed} passed {cases.group(1) if cases else 'no'} cases", flush=True)
        if done.returncode != 0 or passed != n:
            wrong += 1
            print(done.stdout + done.stderr)
    return wrong


def ranks(hosts, program):
    """The processes that run a program on these hosts."""
    found = []
    for pid in {p for name in hosts.names for p in subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()}:
        folder = pathlib.Path("/proc") / pid
        try:
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if state not in "ZX" and os.readlink(folder / "exe") == program:
                found.append(int(pid))
        except OSError:
            pass
    return found


def link(hosts, program, how, n, waits=2, more=12):
    """Cuts the second host off while `n` processes train; whether all were gone `more` seconds behind their waits, with one message."""
    program = os.path.realpath(program)
    with tempfile.TemporaryFile("w+") as said:
        command = hosts.command(n, ["env", f"SHARDWISE_MPI_FAILS={how}", program, "--no-skip", "--test-case=fails", "--no-colors", "-m"])
        run = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=environment(), start_new_session=True)

        def text():
            said.seek(0)
            return said.read()

        def wait(seconds, what):
            end = time.monotonic() + seconds
            while not what() and time.monotonic() < end:
                time.sleep(0.05)

        try:
            wait(60, lambda: "trains on" in text() or run.poll() is not None)
            time.sleep(1)
            there = len(ranks(hosts, program))
            call("ip", "-n", hosts.names[1], "link", "set", "eth0", "down")
            cut = time.monotonic()
            wait(waits + more, lambda: not ranks(hosts, program))
            left, took = len(ranks(hosts, program)), time.monotonic() - cut
            wait(5, lambda: run.poll() is not None)  # it waits for its other daemon, for ever
            launcher = f"mpirun ended {time.monotonic() - cut:.1f} s behind the cut" if run.poll() is not None else "mpirun had to be ended"
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
            for pid in ranks(hosts, program):
                os.kill(pid, signal.SIGKILL)
            call("ip", "-n", hosts.names[1], "link", "set", "eth0", "up")
        own = [line for line in text().splitlines() if line.startswith("shardwise: ")]
        good = there == n and left == 0 and len(own) == 1 and re.search("does not answer|MPI_Abort ends", own[0])
        print(f"'{how}' of {n} processes, the link cut: {there - left} of {there} ended within {took:.1f} s, {len(own)} message(s); {launcher}")
        print("\n".join(own) if good else text(), flush=True)
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate")
    parser.add_argument("--delay")
    parser.add_argument("-n", type=int, default=2, dest="processes")
    parser.add_argument("--tests", metavar="TEST_MPI")
    parser.add_argument("--link", metavar="TEST_MPI")
    parser.add_argument("program", nargs="*")
    a = parser.parse_args()
    with Hosts(a.hosts, a.rate, a.delay) as hosts:
        if a.tests:
            sys.exit(tests(hosts, os.path.abspath(a.tests)) != 0)
        if a.link:
            sys.exit(not all([link(hosts, a.link, "on", 4), link(hosts, a.link, "threads on", 2)]))
        sys.exit(subprocess.run(hosts.command(a.processes, a.program), env=environment()).returncode)


if __name__ == "__main__":
    main()
