#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Runs the example program with bad input: one clear sentence, exit code 2, and nothing written; generates and evaluates with it.
#   cli.py TRAIN_TEXT
#   cli.py TRAIN_TEXT_MPI --mpi MPIEXEC    generates over processes

import os
import subprocess
import sys
import tempfile


def generation(program, scratch, failures):
    """A model trained by a few steps goes on from a prompt: with a cache as without one, by seed, and not without a checkpoint."""
    out = os.path.join(scratch, "generating")
    kept = os.path.join(out, "checkpoints")

    def said(*more):
        run = subprocess.run([program, "--out", out, *more], capture_output=True, text=True, timeout=300, cwd=scratch)
        return run.returncode, run.stdout, run.stderr

    code, _, errors = said("--generate", "std::")
    if code != 2 or "there is no checkpoint" not in errors or "--save" not in errors or os.path.exists(out):
        failures.append(f"generating without a checkpoint: exit code {code}, {errors!r}")
    code, _, errors = said("--steps", "12", "--save", kept)
    if code != 0:
        failures.append(f"twelve steps before generating: exit code {code}: {errors}")
        return

    def text(*more):  # 150 bytes behind the prompt are more than the model's context of 128
        code, shown, errors = said("--generate", "namespace std", "--max-new-tokens", "150", *more)
        end = shown.rfind("\n\nby ")
        if code != 0 or end < 0 or not shown.startswith("namespace std") or "tokens/s" not in shown[end:] or "step 12" not in shown[end:]:
            failures.append(f"generating with {more}: exit code {code}, {shown!r}, {errors}")
        return shown[:end]

    drawn = text("--seed", "5")
    if len(drawn) != 163:
        failures.append(f"{len(drawn)} bytes were generated and shown, not 13 and 150")
    for options in (("--seed", "5"), ("--seed", "5", "--top-k", "4"), ("--temperature", "0")):
        if text(*options) != text(*options, "--no-cache"):
            failures.append(f"generating with {options} differs with and without a cache")
    if text("--seed", "5") != drawn or text("--seed", "5", "--resume", kept, "--threads", "2") != drawn:
        failures.append("generating again gives another text")
    if text("--seed", "6") == drawn:
        failures.append("another seed generates the same text")
    if sorted(os.listdir(out)) != ["checkpoints", "loss.csv", "loss.svg", "summary.json"]:
        failures.append(f"generating left {sorted(os.listdir(out))}")


def evaluation(program, scratch, failures):
    """Looking at held-out text changes no step, and --patience ends where the figures say that it does."""

    def run_to(name, *more):
        out = os.path.join(scratch, name)
        run = subprocess.run([program, "--out", out, *more], capture_output=True, text=True, timeout=300, cwd=scratch)
        if run.returncode != 0:
            failures.append(f"{more}: exit code {run.returncode}: {run.stderr}")
            return "", [], []
        read = lambda file: [line.split(",") for line in open(os.path.join(out, file)).read().splitlines()[1:]]
        has = os.path.exists(os.path.join(out, "held_out.csv"))
        return run.stdout, read("loss.csv"), read("held_out.csv") if has else None

    _, plain, none = run_to("plain", "--steps", "7")
    shown, looked, held = run_to("looked", "--steps", "7", "--evaluate-every", "3")
    if plain != looked or not plain:
        failures.append("the losses are others where held-out text is evaluated between the steps")
    if none is not None or [row[0] for row in held] != ["3", "6"]:
        failures.append(f"held_out.csv has {held}, and {none} where nothing was evaluated")
    if held and f"held out {float(held[-1][1]):.3f}" not in shown:
        failures.append("the progress line does not show the held-out loss")
    shown, losses, held = run_to("patient", "--steps", "60", "--evaluate-every", "1", "--patience", "1")
    figures = [float(row[1]) for row in held]
    stops = next((k for k in range(1, len(figures)) if figures[k] >= min(figures[:k])), None)
    if not figures or len(losses) != len(figures) or stops != len(figures) - 1:
        failures.append(f"--patience 1 made {len(losses)} of 60 steps with held-out losses {figures}")
    elif f"ended behind step {stops + 1}:" not in shown:
        failures.append("--patience does not say that it ended the training")


def over_processes(program, launcher):
    """A model that four processes trained goes on with the same text on them as on threads of one."""
    launcher = [launcher, "-n", "4", *(["--oversubscribe"] if "Open" in subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout else [])]
    if len(launcher) == 4 and os.geteuid() == 0:
        launcher.append("--allow-run-as-root")
    with tempfile.TemporaryDirectory() as scratch:
        def run(*words):
            done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=scratch)
            if done.returncode != 0:
                raise SystemExit(f"FAILED {words}: exit code {done.returncode}: {done.stderr}")
            return done.stdout

        run(*launcher, program, "--backend", "mpi", "--steps", "4", "--out", "out", "--save", "out/checkpoints")
        said = [program, "--out", "out", "--generate", "namespace", "--max-new-tokens", "140"]
        texts = [run(*start, *said, "--backend", backend).split("\n\nby ")[0] for start, backend in (((), "threads"), (launcher, "mpi"))]
    print("1 passed" if texts[0] == texts[1] and len(texts[0]) == 149 else f"FAILED: {texts} differ")
    return 0 if texts[0] == texts[1] and len(texts[0]) == 149 else 1


def main():
    if len(sys.argv) > 3 and sys.argv[2] == "--mpi":
        return over_processes(os.path.abspath(sys.argv[1]), sys.argv[3])
    program = os.path.abspath(sys.argv[1])
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "out")
        empty = os.path.join(scratch, "empty.txt")
        open(empty, "w").close()
        short = os.path.join(scratch, "short.txt")
        with open(short, "w") as f:
            f.write("too short for one batch\n" * 20)
        occupied = os.path.join(scratch, "occupied")
        with open(occupied, "w") as f:
            f.write("a file where a folder should be\n")
        cases = [
            ("unknown flag", ["--frobnicate", "3"], "--frobnicate"),
            ("bad number", ["--steps", "many"], "--steps"),
            ("negative number", ["--steps", "-4"], "--steps"),
            ("missing text", ["--text", os.path.join(scratch, "no-such-file")], "no-such-file"),
            ("empty text", ["--text", empty], "empty.txt"),
            ("short text", ["--text", short], "bytes"),
            ("unknown backend", ["--backend", "abacus"], "abacus"),
            ("a flag of generation alone", ["--temperature", "0.2"], "--temperature is for --generate TEXT"),
            ("a flag of training alone", ["--generate", "std::", "--steps", "3"], "nothing for --steps"),
            ("output folder is a file", ["--out", occupied, "--steps", "1"], "occupied"),
            ("output folder below a file", ["--out", os.path.join(occupied, "deeper"), "--steps", "1"], "occupied"),
        ]
        for name, arguments, expected in cases:
            if "--out" not in arguments:
                arguments = arguments + ["--out", out]
            run = subprocess.run([program] + arguments, capture_output=True, text=True, timeout=120, cwd=scratch)
            lines = [line for line in run.stderr.splitlines() if line.strip()]
            if run.returncode != 2:
                failures.append(f"{name}: exit code {run.returncode}, expected 2; stderr: {run.stderr!r}")
            elif len(lines) != 1 or expected not in lines[0]:
                failures.append(f"{name}: expected one sentence with {expected!r}, got {run.stderr!r}")
            elif os.path.exists(out):
                failures.append(f"{name}: the output folder was created")
        with open(occupied) as f:
            if f.read() != "a file where a folder should be\n":
                failures.append("an existing file was changed")

        plan = subprocess.run([program, "--plan-only", "--out", out], capture_output=True, text=True, timeout=60)
        for word in ("layers.3.attn.wq.weight", "shard<0>", "peak memory per rank", "bytes sent per step"):
            if plan.returncode != 0 or word not in plan.stdout:
                failures.append(f"--plan-only does not print {word!r}")

        run = subprocess.run([program, "--steps", "2", "--out", out], capture_output=True, text=True, timeout=300)
        if run.returncode != 0:
            failures.append(f"two steps: exit code {run.returncode}: {run.stderr}")
        else:
            found = sorted(os.listdir(out))
            if found != ["loss.csv", "loss.svg", "summary.json"]:
                failures.append(f"two steps wrote {found}")
            import json

            with open(os.path.join(out, "summary.json")) as f:
                keys = list(json.load(f))
            wanted = ["steps", "held_out_bits_per_byte", "unigram_bits_per_byte", "bigram_bits_per_byte",
                      "trigram_bits_per_byte", "tokens_per_second", "comm_bytes_per_step", "peak_bytes",
                      "flops_per_step", "kernel_bytes_per_step", "communication_share"]
            if keys != wanted:
                failures.append(f"summary.json has the keys {keys}")
            if "\r" in run.stdout:
                failures.append("a progress bar was drawn though the output is no terminal")
        generation(program, scratch, failures)
        evaluation(program, scratch, failures)
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(cases) + 4 - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
