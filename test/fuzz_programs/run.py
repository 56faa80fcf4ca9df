#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Differential fuzzer of programs: writes sources of random programs of the public functions (generate.py), compiles and runs
them, and prints every program that fails, made smaller, with its seed.

    run.py --programs 60 --seed 7            60 programs from seed 7 on
    run.py --only 12345 --keep               one seed; the source stays in the build folder
    run.py --fixed                           the programs that failed once (failed/*.hpp)
    run.py --only 12345 --save NAME          a failing program, made smaller, joins them
    run.py --features 300                    how many of 300 programs have what the generator is to draw
    run.py --functions                       the public functions of the headers against those that the generator knows
    run.py --cuda --gpus 2 --programs 40     40 programs of meshes of up to two ranks, which are GPUs: their steps, each twice, with equal bits
    run.py --cuda --compile-only --build DIR compiles them alone: the executables fuzz_* in DIR run where the GPUs are, and return 0 or 1
    run.py --cuda --paper                    runs them without GPUs: executors are made, captured and replayed, and compute nothing

Needs a C++ compiler and the headers alone; the host kernels are compiled once into the build folder, or given as objects. With
--cuda nvcc, cuBLASLt and NCCL, and kernels.cu is compiled once. What has no step there is left out, and counted: see without_step.
"""

import argparse
import concurrent.futures
import hashlib
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402

GROUP = 10   # programs of one mesh
SOURCE = 20  # programs of one source: what all of them need is compiled once
PRINT = threading.Lock()


def say(text):
    with PRINT:
        print(text, flush=True)


class Toolchain:
    def __init__(self, args):
        self.args = args
        self.build = pathlib.Path(args.build) if args.build else pathlib.Path(tempfile.mkdtemp(prefix="fuzz_programs_"))
        self.build.mkdir(parents=True, exist_ok=True)
        self.flags = ["-std=c++20", "-O0", "-g0", "-w", "-DSHARDWISE_EXTERN_KERNELS=1", f"-I{HERE}", f"-I{args.include}"]
        for directory in args.system_include:
            self.flags += ["-isystem", directory]
        self.sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if args.sanitize else []
        if "clang" not in args.compiler:  # a fifth of g++'s time would go into looking for memory to give back
            self.flags += ["--param", "ggc-min-expand=150", "--param", "ggc-min-heapsize=1000000"]
        self.flags += self.sanitize + args.flag
        self.kernels = args.kernels

    def limit(self):
        if not self.args.sanitize:
            resource.setrlimit(resource.RLIMIT_AS, (14_000_000 * 1024,) * 2)

    def run(self, command, timeout):
        """(status, output): status None if it ran too long."""
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                             start_new_session=True, preexec_fn=self.limit)
        try:
            out, _ = p.communicate(timeout=timeout)
            return p.returncode, out
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, _ = p.communicate()
            return None, out

    def prepare(self):
        """The host kernels, unless they are given."""
        if self.kernels:
            if missing := [k for k in self.kernels if not pathlib.Path(k).is_file()]:
                sys.exit(f"--kernels: no such file: {', '.join(missing)}; leave the option out, and they are compiled")
            return
        stamp = hashlib.sha256()
        for f in sorted(pathlib.Path(self.args.include).rglob("*.hpp")):
            stamp.update(f.read_bytes())
        stamp.update(" ".join([self.args.compiler] + self.sanitize).encode())
        key = stamp.hexdigest()[:16]
        jobs = []
        for kind in ("FLOAT", "DOUBLE", "OTHERS"):
            source = self.build / f"kernels_{kind}.cpp"
            target = self.build / f"kernels_{kind}_{key}.o"
            self.kernels = self.kernels + [str(target)]
            if target.exists():
                continue
            source.write_text("#define SHARDWISE_INSTANTIATE_KERNELS 1\n#define SHARDWISE_KERNELS_OF_" + kind +
                              "_ONLY 1\n#include <shardwise/runtime/host/extern_kernels.hpp>\n")
            flags = [f for f in self.flags if f != "-DSHARDWISE_EXTERN_KERNELS=1" and f != "-O0"]
            jobs.append(([self.args.compiler, *flags, "-O1", "-c", str(source), "-o", str(target)], kind))
        with concurrent.futures.ThreadPoolExecutor(min(self.args.jobs, 2)) as pool:
            for (command, kind), (status, out) in zip(jobs, pool.map(lambda j: self.run(j[0], 1200), jobs)):
                if status != 0:
                    sys.exit(f"the {kind} kernels do not compile:\n{out[-3000:]}")

    def compile(self, text, name):
        """(object, output): object None if it does not compile."""
        source = self.build / f"{name}.cpp"
        source.write_text(text)
        target = self.build / f"{name}.o"
        status, out = self.run([self.args.compiler, *self.flags, "-c", str(source), "-o", str(target)], 900)
        return (target if status == 0 else None), out if status is not None else out + "\n(the compiler ran too long)"

    def link(self, obj, name):
        program = self.build / name
        status, out = self.run([self.args.compiler, *self.sanitize, str(obj), *self.kernels, "-o", str(program), "-pthread"], 300)
        if status != 0:
            sys.exit(f"linking failed:\n{out[-3000:]}")
        return program

    def drop(self, name):
        for suffix in (".cpp", ".o", ""):
            (self.build / f"{name}{suffix}").unlink(missing_ok=True)

    def execute(self, program):
        return self.run([str(program)], 120 if not self.args.sanitize else 400)


class CudaToolchain(Toolchain):
    """nvcc; ranks are GPUs. --paper links what stands for CUDA's runtime, cuBLASLt and NCCL in the place of these."""

    def __init__(self, args):
        super().__init__(args)
        self.flags = ["-std=c++20", f"-arch={args.arch}", "--expt-relaxed-constexpr", "-ftemplate-depth=1000", "-w",
                      "-DSHARDWISE_TEST_DEVICES=1", "-DSHARDWISE_EXTERN_KERNELS=1", f"-I{HERE}", f"-I{args.include}"]
        for directory in args.system_include:
            self.flags += ["-isystem", directory]
        self.flags += args.flag
        self.runs = False  # a GPU's driver takes more address space than a compiler may

    def limit(self):
        if not self.runs:
            super().limit()

    def prepare(self):
        if not self.kernels:
            stamp = hashlib.sha256(" ".join([self.args.compiler] + self.flags).encode())
            for folder in (pathlib.Path(self.args.include), HERE, HERE.parent / "support"):
                for f in sorted(f for kind in ("*.hpp", "*.cuh", "*.cu") for f in folder.rglob(kind)):
                    stamp.update(f.read_bytes())
            self.kernels = [str(self.build / f"kernels_{stamp.hexdigest()[:16]}.o")]
            self.made("the device kernels", [self.args.compiler, *self.flags, "-O1", "-c", str(HERE / "kernels.cu")], self.kernels[0])
        elif missing := [k for k in self.kernels if not pathlib.Path(k).is_file()]:
            sys.exit(f"--kernels: no such file: {', '.join(missing)}; leave the option out, and they are compiled")
        if self.args.paper:
            paper = str(self.build / "paper.o")
            pathlib.Path(paper).unlink(missing_ok=True)
            self.made("CUDA on paper", [self.args.compiler, "-std=c++20", "-O1", "-c", str(HERE.parent / "cuda" / "paper" / "paper.cpp")], paper)
            self.kernels = self.kernels + [paper]

    def made(self, what, command, target):
        if pathlib.Path(target).is_file():
            return
        status, out = self.run([*command, "-o", target], 1200)
        if status != 0:
            sys.exit(f"{what}: does not compile:\n{out[-3000:]}")

    def compile(self, text, name):
        source, target = self.build / f"{name}.cu", self.build / f"{name}.o"
        source.write_text(text)
        status, out = self.run([self.args.compiler, *self.flags, "-O0", "-c", str(source), "-o", str(target)], 1800)
        return (target if status == 0 else None), out if status is not None else out + "\n(the compiler ran too long)"

    def link(self, obj, name):
        program = self.build / f"fuzz_{name}"
        libraries = ["-cudart=none"] if self.args.paper else ["-lcublasLt", "-lnccl", "-lcuda"]
        status, out = self.run([self.args.compiler, f"-arch={self.args.arch}", str(obj), *self.kernels, "-o", str(program), "-Xlinker=-s", *libraries], 300)
        if status != 0:
            sys.exit(f"linking failed:\n{out[-3000:]}")
        return program

    def drop(self, name):
        for file in (f"{name}.cu", f"{name}.o") + (() if self.args.compile_only else (f"fuzz_{name}",)):
            (self.build / file).unlink(missing_ok=True)

    def execute(self, program):
        if self.args.compile_only:
            return 0, ""
        os.environ.setdefault("SHARDWISE_PRODUCT_CACHE", "none")
        self.runs = True
        status, out = self.run([str(program)], 600)
        if self.args.paper:  # where nothing is computed: what is thrown remains, and the process's end
            out = "".join(line for line in out.splitlines(True) if not re.match(r"FAILED \w+: (?!on )", line))
            status = 1 if status == 1 and "FAILED " in out else 0 if status == 1 else status
        return status, out


def seconds():
    t = resource.getrusage(resource.RUSAGE_CHILDREN)
    return t.ru_utime + t.ru_stime


def mesh_of_group(seed):
    return generate.mesh_for(seed // GROUP)


def without_step(p):
    """Why a program is not run on GPUs, which run compiled programs; None: it is."""
    if p.kind == "refused":
        return "wrong on purpose, which no GPU is needed for"
    if p.kind == "creation":
        return "of tensors made on a rank, which are eager"
    if p.kind == "module" and p.accumulate:
        return "of gradients accumulated by hand, which are eager"
    return None


class OnGpus:
    """Which seeds' programs run on GPUs; the others are counted."""

    def __init__(self, gpus):
        self.gpus, self.kept, self.left_out = gpus, [], {}

    def leave_out(self, why):
        self.left_out[why] = self.left_out.get(why, 0) + 1

    def takes(self, seed):
        why = f"on meshes of more than {self.gpus} ranks" if math.prod(mesh_of_group(seed)) > self.gpus else \
            without_step(generate.make_any(seed, mesh_of_group(seed)))
        if why is None:
            self.kept.append(seed)
        else:
            self.leave_out(why)
        return why is None

    def takes_text(self, mesh, text):
        """Of one that failed once."""
        why = f"on meshes of more than {self.gpus} ranks" if math.prod(int(n) for n in mesh.split(",")) > self.gpus else \
            "of tensors made on a rank, which are eager" if "fuzz::make<" in text else \
            "of gradients accumulated by hand, which are eager" if "accumulates = true" in text else None
        if why is not None:
            self.leave_out(why)
        return why is None

    def first(self, count, seed):
        while len(self.kept) < count:
            self.takes(seed)
            seed += 1
        return self.kept

    def said(self):
        return f"left out: {sum(self.left_out.values())} programs" + "".join(f"; {n} {why}" for why, n in sorted(self.left_out.items()))


class Fuzzer:
    def __init__(self, args, tools, on_gpus=None):
        self.args, self.tools, self.on_gpus = args, tools, on_gpus
        self.skipped = []  # what is said of programs for which there are too few GPUs
        self.failed = {}  # seed: first lines
        self.done = 0
        self.refused = 0
        self.first = None

    def program(self, seed):
        return generate.make_any(seed, mesh_of_group(seed))

    # --- one source of several programs

    def trial(self, programs, name):
        """What each program of (name, program) says: {} where all is well."""
        obj, out = self.tools.compile(generate.source(programs), name)
        if obj is None:
            if len(programs) == 1:
                return {programs[0][0]: "does not compile:\n" + first_errors(out)}
            half = len(programs) // 2
            said = {**self.trial(programs[:half], name + "_0"), **self.trial(programs[half:], name + "_1")}
            if not any(v.startswith("does not compile") for v in said.values()):
                said[programs[half][0]] = f"does not compile in one source with {programs[0][0]}..{programs[-1][0]}, but without the first half of them:\n" + first_errors(out)
            return said
        program = self.tools.link(obj, name)
        if self.args.compile_only:
            if not self.args.keep:
                self.tools.drop(name)
            return {}
        status, out = self.tools.execute(program)
        self.note_skipped(out)
        said = {}
        current = None
        for line in out.splitlines():
            if line.startswith("program "):
                current = line.split()[1]
            elif line.startswith("FAILED "):
                said.setdefault(line.split()[1].rstrip(":"), []).append(line)
        result = {k: "\n".join(v) for k, v in said.items()}
        if not re.search(r"^\d+ programs, \d+ failed$", out, re.M):
            how = "ran too long" if status is None else f"ended with status {status}"
            result[current or programs[0][0]] = f"the process {how} in this program:\n" + tail(out)
            rest = [p for p in programs if p[0] not in result]
            after = [k for k, p in enumerate(programs) if p[0] == current]
            rest = programs[after[0] + 1:] if after else []
            if rest:
                result.update(self.trial(rest, name + "_r"))
        if not self.args.keep:
            self.tools.drop(name)
        return result

    def note_skipped(self, out):
        self.skipped += re.findall(r"^skipped: fewer GPUs.*$", out, re.M)

    def group(self, seeds):
        built, wrong = [], []
        for s in seeds:
            p = self.program(s)
            (wrong if p.kind == "refused" else built).append((f"p{s}", p))
        if built:
            said = self.trial(built, f"g{seeds[0]}")
            for name, p in built:
                if name in said:
                    self.report(int(name[1:]), p, said[name])
        for name, p in wrong:
            why = self.check_refused(p, name)
            if why:
                self.report(int(name[1:]), p, why)
        self.done += len(seeds)

    def check_refused(self, p, name):
        self.refused += 1
        source = self.tools.build / f"{name}_refused.cpp"
        for wrong in (True, False):
            source.write_text(p.text(wrong))
            status, out = self.tools.run([self.tools.args.compiler, *self.tools.flags, "-fsyntax-only", str(source)], 300)
            if wrong and status == 0:
                return f"a wrong program compiles ({p.what}):\n{p.text(True)}"
            if not wrong and status != 0:
                return f"the right twin of a wrong program does not compile ({p.what}):\n{first_errors(out)}\n{p.text(False)}"
            if wrong:
                error = next((line for line in out.splitlines() if " error: " in line or "error: static assertion" in line), "")
                if "shardwise: " not in error:
                    return f"a wrong program ({p.what}) is refused without a sentence in its first error:\n{first_errors(out)}\n{p.text(True)}"
            if not self.args.controls:
                break
        source.unlink(missing_ok=True)
        return None

    def report(self, seed, p, why):
        self.failed[seed] = why
        if self.first is None or seed < self.first:
            self.first = seed
        text = f"\nFAILED seed {seed} on {' x '.join(map(str, p.sizes))}: run.py --only {seed}\n{why}\n"
        if p.kind == "function" and self.args.minimise > 0 and len(self.failed) <= self.args.most_minimised:
            small, tries = self.minimise(seed, p, why)
            text += f"as small as {tries} compilations made it, on {' x '.join(map(str, small.sizes))}:\n" + body(small) + "\n"
            p = small
        if self.args.save and p.kind != "refused":
            self.save(p, seed, why)
        say(text)

    def save(self, p, seed, why):
        """As text, which stays what it is when the generator changes."""
        name = self.args.save
        if p.kind == "function":
            block, line = generate.cpp(p, name), generate.check_line(p, name)
        else:
            block, line = (t.replace(f"p{seed}", name) for t in (p.text, p.line))
        said = why.splitlines()[0].split(": ", 1)[-1]
        (HERE / "failed" / f"{name}.hpp").write_text(f"// SPDX-License-Identifier: Apache-2.0\n// Failed once: {said}\n// check: {line.strip()}\n{block}")

    def fixed(self):
        """The programs that failed once, in one source for each mesh."""
        sources = {}
        for f in sorted((HERE / "failed").glob("*.hpp")):
            text = f.read_text()
            line = re.search(r"^// check: (.*)$", text, re.M).group(1)
            mesh = re.search(r"world<([^>]*)>", line).group(1)
            if self.on_gpus and not self.on_gpus.takes_text(mesh, text):
                continue
            sources.setdefault(mesh, []).append((f.stem, text, line))
        for mesh, programs in sources.items():
            name = "fixed_" + re.sub(r"\W+", "_", mesh)
            text = "#include <fuzz.hpp>\n\nnamespace {\n\nnamespace sw = shardwise;\n\n" + "\n".join(p[1] for p in programs)
            text += "}  // namespace\n\nint main() {\n  " + "\n  ".join(p[2] for p in programs) + "\n  return fuzz::summary();\n}\n"
            obj, out = self.tools.compile(text, name)
            status, said = self.tools.execute(self.tools.link(obj, name)) if obj else (1, first_errors(out))
            self.note_skipped(said)
            if self.args.compile_only and not self.args.keep:
                self.tools.drop(name)
            self.done += len(programs)
            if status != 0:
                self.failed[mesh] = said
                say(f"programs that failed once, on {mesh}:\n{said}")

    # --- smaller

    def still_fails(self, p, like, name):
        try:
            said = self.trial([("q", p)], name)
        except Exception:  # a change that the generator's own evaluation refuses
            return False
        if "q" not in said:
            return False
        return said["q"].startswith("does not compile") == like.startswith("does not compile")

    def minimise(self, seed, p, why):
        """Fewer outputs, statements, ways and ranks while it fails; at most --minimise compilations."""
        left = [self.args.minimise]

        def attempt(q):
            if q is None or left[0] <= 0:
                return False
            left[0] -= 1
            return self.still_fails(q, why, f"m{seed}_{left[0]}")
        progress = True
        while progress and left[0] > 0:
            progress = False
            for q in generate.smaller(p):
                if attempt(q):
                    p, progress = q, True
                    break
                if left[0] <= 0:
                    break
        return p, self.args.minimise - left[0]


def first_errors(out, count=4):
    lines = [line for line in out.splitlines() if "error" in line]
    return "\n".join(line[:600] for line in lines[:count]) or tail(out)


def tail(out, count=12):
    return "\n".join(line[:400] for line in out.splitlines()[-count:])


def body(p):
    text = [f"  {i[0]}: {i[1]} {tuple(i[2])} placed {', '.join(generate.cpp_place(q) for q in i[3])}" for i in p.inputs]
    text += [f"  {s.code}" for s in p.statements]
    text.append(f"  return {', '.join(p.outputs)};   run: {', '.join(p.ways)}; on one rank: {', '.join(p.ways_alone)}"
                + (f"; gradients of inputs {p.wrt}" if p.wrt else ""))
    return "\n".join(text)


def check_cuda(parser, args):
    """Refuses options that do not go together, and fills in those that depend on --cuda."""
    if not args.cuda:
        for name in ("gpus", "arch", "compile_only", "paper"):
            if getattr(args, name):
                parser.error(f"--{name.replace('_', '-')} is given without --cuda, whose programs alone run on GPUs")
        args.compiler = args.compiler or "g++"
        return
    for name in ("sanitize", "controls", "functions", "features"):
        if getattr(args, name):
            parser.error(f"--{name} and --cuda are given, and the one is of host programs alone; leave one of them out")
    if args.compile_only and args.paper:
        parser.error("--compile-only and --paper are given; what is compiled for paper runs here, so leave one of them out")
    if args.compile_only and not args.build:
        parser.error("--compile-only is given without --build DIR, where the executables are to stay")
    args.gpus, args.arch, args.compiler = 2 if args.gpus is None else args.gpus, args.arch or "sm_90", args.compiler or "nvcc"
    if args.gpus < 1:
        parser.error(f"--gpus {args.gpus}: a mesh has at least one rank")
    if not shutil.which(args.compiler):
        parser.error(f"--cuda needs nvcc, and {args.compiler} is not found; install CUDA, or give its path as --compiler")


def say_of_gpus(fuzzer):
    if fuzzer.on_gpus:
        print(fuzzer.on_gpus.said())
    for line in fuzzer.skipped:
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", type=int, action="append", default=[], help="this seed alone; may be given again")
    parser.add_argument("--fixed", action="store_true", help="the programs that failed once")
    parser.add_argument("--save", metavar="NAME", help="keep a failing program, made smaller, as failed/NAME.hpp")
    parser.add_argument("--functions", action="store_true", help="compare the headers' public functions with the generator's")
    parser.add_argument("--features", type=int, metavar="N", help="count what N programs have, from --seed on, without compiling them")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("SHARDWISE_JOBS", "2")))
    parser.add_argument("--compiler", help="g++, with --cuda nvcc")
    parser.add_argument("--cuda", action="store_true", help="ranks are GPUs")
    parser.add_argument("--gpus", type=int, metavar="N", help="with --cuda: meshes of up to N ranks; 2 by default")
    parser.add_argument("--arch", metavar="SM", help="with --cuda: for which GPUs is compiled; sm_90 by default")
    parser.add_argument("--compile-only", action="store_true", help="with --cuda and --build: executables, which are not run")
    parser.add_argument("--paper", action="store_true", help="with --cuda: run without GPUs, which computes nothing")
    parser.add_argument("--include", default=str(HERE.parent.parent / "include"))
    parser.add_argument("--system-include", action="append", default=[])
    parser.add_argument("--flag", action="append", default=[], help="passed to the compiler")
    parser.add_argument("--kernels", action="append", default=[], help="an object of the host kernels")
    parser.add_argument("--build", help="folder for sources and objects; a temporary one by default")
    parser.add_argument("--sanitize", action="store_true", help="address and undefined behaviour")
    parser.add_argument("--minimise", type=int, default=25, help="compilations that may be spent on making a failure smaller")
    parser.add_argument("--most-minimised", type=int, default=5)
    parser.add_argument("--controls", action="store_true", help="also compile the right twin of each wrong program")
    parser.add_argument("--stop-at-first", action="store_true")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    check_cuda(parser, args)
    if args.functions:
        import registry
        sys.exit(registry.check(pathlib.Path(args.include), args.compiler, args.system_include))
    if args.features:
        import features
        sys.exit(1 if features.count(args.seed, args.features, mesh_of_group) else 0)
    on_gpus = OnGpus(args.gpus) if args.cuda else None
    tools = CudaToolchain(args) if args.cuda else Toolchain(args)
    start, cpu = time.time(), seconds()
    tools.prepare()
    prepared, cpu_kernels = time.time() - start, seconds() - cpu
    fuzzer = Fuzzer(args, tools, on_gpus)
    if args.fixed:
        fuzzer.fixed()
        say_of_gpus(fuzzer)
        print(f"tests: {fuzzer.done} programs that failed once, on {len(fuzzer.failed)} meshes again")
        return 1 if fuzzer.failed else 0
    if args.only:
        groups = {}
        for s in sorted(set(args.only)):
            if on_gpus:  # whose programs are few: a source is of any of them
                groups.setdefault(len(on_gpus.kept) // SOURCE, []).extend([s] if on_gpus.takes(s) else [])
            else:
                groups.setdefault(s // SOURCE, []).append(s)
        groups = [g for g in groups.values() if g]
        if not groups:
            sys.exit(f"no seed of --only is run on {args.gpus} GPUs; {on_gpus.said()}")
    elif on_gpus:
        kept = on_gpus.first(args.programs, args.seed - args.seed % GROUP)
        groups = [kept[k:k + SOURCE] for k in range(0, len(kept), SOURCE)]
    else:
        first = args.seed - args.seed % GROUP
        groups = [list(range(s, min(s + SOURCE, first + args.programs))) for s in range(first, first + args.programs, SOURCE)]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        pending = [pool.submit(fuzzer.group, g) for g in groups]
        for f in concurrent.futures.as_completed(pending):
            if f.cancelled():
                continue
            f.result()
            if fuzzer.failed and args.stop_at_first:
                for waiting in pending:
                    waiting.cancel()
    if not args.keep and not args.build:
        shutil.rmtree(tools.build, ignore_errors=True)
    say_of_gpus(fuzzer)
    spent = seconds() - cpu - cpu_kernels
    print(f"{fuzzer.done} programs ({fuzzer.refused} of them wrong on purpose) from seed {groups[0][0]}, {args.compiler}"
          f"{', sanitized' if args.sanitize else ''}: {len(fuzzer.failed)} failed; {spent:.0f} core seconds, "
          f"{spent / max(fuzzer.done, 1):.2f} a program (kernels: {cpu_kernels:.0f}), {time.time() - start:.0f} s")
    if fuzzer.failed:
        print("failed seeds: " + " ".join(map(str, sorted(fuzzer.failed))))
        print("a program that showed a bug joins the fixed ones: run.py --only SEED --save NAME")
    print(f"tests: {fuzzer.done - len(fuzzer.failed)} of {fuzzer.done} programs {'compiled' if args.compile_only else 'passed'}")
    return 1 if fuzzer.failed else 0


if __name__ == "__main__":
    sys.exit(main())
