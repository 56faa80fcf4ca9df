#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends trainings of the example program in the middle, by SIGKILL at random moments and inside of saves, by SIGTERM and SIGINT, and
goes on: the final checkpoint has the bytes of the run that was never ended. On two ranks in place of four the losses are its losses.

    resume.py TRAIN_TEXT TRAIN_TEXT_OF_TWO_RANKS [--seed N]
    resume.py TRAIN_TEXT TRAIN_TEXT_OF_TWO_RANKS --kills 200 [--of-three PROGRAM] [--steps N] [--jobs N]
    resume.py TRAIN_TEXT_MPI - --mpi mpiexec [--kills N]
    resume.py TRAIN_TEXT - --soak MINUTES [--every SECONDS] [--mpi mpiexec]

--kills: so many trainings are killed, half of them inside of a save, and gone on with, every fourth on another number of ranks than
before; each training ends in the bytes of the one that was never ended, or, where the number of ranks has changed, in its losses but for
1e-5. --mpi: the program's ranks are four processes; one of them is killed, or all.

--soak: one long training is ended about every --every seconds, by SIGKILL at a random moment, inside of a save, or by SIGTERM, and goes
on, beside one of the same seed that nothing ends. Every step's loss, steps that were made again included, has the bits of that one.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

STEPS, EVERY = 24, 4


class Trainings:
    def __init__(self, program, scratch, steps=STEPS, launcher=(), every=EVERY):
        self.program, self.scratch, self.steps, self.launcher = os.path.abspath(program), pathlib.Path(scratch), steps, list(launcher)
        self.every = every
        self.text = self.scratch / "text.txt"
        words = random.Random(1)
        vocabulary = ["".join(words.choice("etaoinshrdlu") for _ in range(words.randint(2, 8))) for _ in range(200)]
        self.text.write_text("".join(" ".join(words.choice(vocabulary) for _ in range(9)) + "\n" for _ in range(1500)))

    def command(self, folder, *more, program=None, threads=False):
        """threads: over threads, although there is a launcher."""
        folder = self.scratch / folder
        start = [*self.launcher, program or self.program, "--backend", "mpi"] if self.launcher and not threads else [program or self.program]
        return [*start, "--text", str(self.text), "--steps", str(self.steps), "--seed", "5", "--out", str(folder / "out"),
                "--save", str(folder / "saved"), "--save-every", str(self.every), *more]

    def going_on(self, folder, program=None):
        """The command that begins, or goes on where there is a checkpoint."""
        saved = self.scratch / folder / "saved"
        return self.command(folder, *(["--resume", str(saved)] if (saved / "checkpoints.json").exists() else []), program=program)

    def finish(self, command, shell=False):
        run = subprocess.run(command, capture_output=True, text=True, timeout=600, shell=shell)
        if run.returncode != 0:
            raise SystemExit(f"FAILED exit code {run.returncode} of {command}\n{run.stdout}\n{run.stderr}")
        return run.stdout

    def final(self, folder):
        """The files of the last step's checkpoint, by name, without the index (whose text has nothing of a moment)."""
        saved = self.scratch / folder / "saved"
        record = json.loads((saved / "checkpoints.json").read_text())
        newest = record["checkpoints"][-1]
        if newest["step"] != self.steps:
            raise SystemExit(f"FAILED {folder}: the newest checkpoint is of step {newest['step']}")
        return {f.name: f.read_bytes() for f in sorted((saved / newest["name"]).iterdir())}

    def losses(self, folder):
        with open(self.scratch / folder / "out" / "loss.csv", newline="") as f:
            return {int(r["step"]): float(r["bits_per_byte"]) for r in csv.DictReader(f)}

    def held_out(self, folder):
        return json.loads((self.scratch / folder / "out" / "summary.json").read_text())["held_out_bits_per_byte"]


def steps_of(saved):
    record = saved / "checkpoints.json"
    return [c["step"] for c in json.loads(record.read_text())["checkpoints"]] if record.exists() else []


def kill_after(command, seconds):
    """Whether the run was still there."""
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        run.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        run.kill()
        run.wait()
        return True


def kill_at_write(command, saved, write):
    """Kills in place of a write of a save; whether there was one."""
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, "TRAIN_TEXT_KILL_AT_WRITE": str(write)})
    if run.returncode != -signal.SIGKILL:
        return False
    if not list(saved.glob(".step-*.partial")) and not list(saved.glob(".*.new")):
        raise SystemExit("FAILED a run that was killed inside of a save left nothing unfinished")
    return True


def stop_by(command, which, when, folder):
    """Sends a signal when `when()`; returns the step and the command that goes on. A run that ends before, on a machine that has just become
    faster, is begun anew in its folder, five times at most."""
    for _ in range(5):
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        give_up = time.time() + 300
        while run.poll() is None and not when() and time.time() < give_up:
            time.sleep(0.02)
        run.send_signal(which)
        out, errors = run.communicate(timeout=300)
        if run.returncode != 0:
            break
        shutil.rmtree(folder)
    if run.returncode != 128 + which:
        raise SystemExit(f"FAILED {which.name}: exit code {run.returncode}\n{out}\n{errors}")
    found = re.search(r"stopped behind step (\d+), saved as (.*)\nto go on:\n  (.*)\n", out)
    if not found:
        raise SystemExit(f"FAILED {which.name}: no command to go on with in\n{out}")
    return int(found.group(1)), found.group(3)


def ranks_of(launcher):
    """The processes that a launcher has started."""
    children = subprocess.run(["pgrep", "-P", str(launcher)], capture_output=True, text=True).stdout.split()
    below = [pid for child in children for pid in ranks_of(int(child))]
    return below or [int(c) for c in children]


def computes(pid):
    """Whether a process is there and no zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def lose_ranks(run, ranks, seconds=120):
    """Waits until the ranks of a program of several processes are gone, then for its launcher; the launcher's status, None where it had
    to be ended: Open MPI 4.1's mpiexec may stay for ever where all its ranks were killed while they started."""
    give_up = time.time() + seconds
    while run.poll() is None and any(map(computes, ranks)):
        if time.time() > give_up:
            left = [pid for pid in ranks if computes(pid)]
            run.kill()
            raise SystemExit(f"FAILED of {len(ranks)} processes that lost one, {len(left)} are still there after {seconds} s")
        time.sleep(0.02)
    try:
        return run.wait(20)
    except subprocess.TimeoutExpired:
        print("the launcher was still there 20 s after its last rank", flush=True)
        run.kill()
        run.wait()
        return None


def kill_ranks_after(command, seconds, moments):
    """Kills one rank or all of a program of several processes; whether it was still there. All ranks must be gone soon."""
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        run.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        pass
    give_up = time.time() + 120
    while not (ranks := ranks_of(run.pid)) and run.poll() is None:
        if time.time() > give_up:
            run.kill()
            raise SystemExit("FAILED the launcher started no process in two minutes")
        time.sleep(0.02)
    for pid in ranks if moments.random() < 0.5 else ranks[:1]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return lose_ranks(run, ranks) != 0  # 0: it was over before


def killed_training(t, folder, whole, losses, lasts, moments, programs):
    """One training, killed again and again until it ends; (kills at a moment, kills inside of a save)."""
    saved = t.scratch / folder / "saved"
    kills = inside = 0
    mixed = len(programs) > 1 and moments.random() < 0.25
    while steps_of(saved)[-1:] != [t.steps]:
        program = moments.choice(programs) if mixed else programs[0]
        command = t.going_on(folder, program)
        if kills + inside >= 6:
            t.finish(command)
        elif t.launcher:
            kills += kill_ranks_after(command, moments.uniform(0.1, 0.6) * lasts, moments)
        elif moments.random() < 0.5:
            kills += kill_after(command, moments.uniform(0.05, 0.6) * lasts)
        else:
            inside += kill_at_write(command, saved, moments.randint(1, 120))
    if not mixed and t.final(folder) != whole:
        raise SystemExit(f"FAILED {folder}: the run that was killed ended in other bytes")
    csv_file = t.scratch / folder / "out" / "loss.csv"
    ours = t.losses(folder) if csv_file.exists() else {}  # of the last part; a run that was killed behind its last save wrote none
    if any(abs(losses[s] - x) > (1e-5 * losses[s] if mixed else 0) for s, x in ours.items()):
        raise SystemExit(f"FAILED {folder}: the losses are others")
    shutil.rmtree(t.scratch / folder)
    return kills, inside


def campaign(a, t, moments):
    programs = [t.program, *(os.path.abspath(p) for p in (a.of_two, a.of_three) if p and p != "-")]
    began = time.time()
    t.finish(t.command("whole"))
    lasts = time.time() - began
    whole, losses = t.final("whole"), t.losses("whole")
    print(f"whole: {lasts:.1f} s", flush=True)
    kills = inside = trainings = 0
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        running = set()
        while kills + inside < a.kills or running:
            while kills + inside < a.kills and len(running) < a.jobs:
                running.add(pool.submit(killed_training, t, f"killed-{trainings}", whole, losses, lasts, random.Random(moments.random()), programs))
                trainings += 1
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for d in done:
                k, i = d.result()
                kills, inside = kills + k, inside + i
    print(f"{trainings} trainings, killed {kills} times at a moment and {inside} times inside of a save")
    if not t.launcher and 4 * inside < kills + inside:
        raise SystemExit("FAILED less than a quarter of the kills lay inside of saves")


class Losses:
    """What TRAIN_TEXT_LOSSES collects: of each step the bits of its loss, which must be the same where a step was made again."""

    def __init__(self, file):
        self.of, self.again = {}, 0
        *lines, torn = file.read_text().split("\n")
        for line in lines:
            step, bits = re.fullmatch(r"(\d+) (-?0x[0-9a-f.]+p[-+]\d+)", line).groups()
            self.again += int(step) in self.of
            if self.of.setdefault(int(step), bits) != bits:
                raise SystemExit(f"FAILED step {step} had the loss {self.of[int(step)]} and then {bits}")
        if torn or sorted(self.of) != list(range(1, len(self.of) + 1)):
            raise SystemExit(f"FAILED {file.name}: of the steps up to {max(self.of, default=0)} only {len(self.of)} have a loss; it ends in {torn!r}")


def one_fault(t, how, lasts, losses, moments, writes=0):
    """Begins or goes on, and ends the run after `lasts` seconds, or at its write of that number; (steps that it made, that of the newest
    checkpoint now)."""
    saved, said = t.scratch / "soaked" / "saved", t.scratch / "soaked" / "said"
    before, made = (steps_of(saved)[-1:] or [0])[0], losses.stat().st_size if losses.exists() else 0
    command, environment = t.going_on("soaked"), {**os.environ, "TRAIN_TEXT_LOSSES": str(losses)}
    if writes:
        environment["TRAIN_TEXT_KILL_AT_WRITE"] = str(writes)
    with open(said, "w") as output:
        run = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        ended = run.wait(20 * lasts + 120 if writes else lasts)
        good = writes and (ended == -signal.SIGKILL or (t.launcher and ended != 0))
    except subprocess.TimeoutExpired:
        give_up = time.time() + 120
        while run.poll() is None and time.time() < give_up and not (losses.exists() and losses.stat().st_size > made):
            time.sleep(0.02)  # it has not even begun
        ranks = ranks_of(run.pid) if t.launcher else [run.pid]
        if not ranks:
            raise SystemExit(f"FAILED {how}: there were no ranks, of {command}\n{said.read_text()}")
        for pid in ranks if how == "all ranks killed" else [moments.choice(ranks)]:
            os.kill(pid, signal.SIGTERM if how == "stopped by SIGTERM" else signal.SIGKILL)
        ended = lose_ranks(run, ranks) if t.launcher else run.wait(120)
        good = not writes and (ended == 128 + signal.SIGTERM if how == "stopped by SIGTERM" else ended != 0)
    text, after = said.read_text(), (steps_of(saved)[-1:] or [0])[0]
    if writes and not list(saved.glob(".step-*.partial")) and not list(saved.glob(".*.new")):
        raise SystemExit(f"FAILED a run that was killed inside of a save left nothing unfinished\n{text}")
    stopped = re.search(r"stopped behind step (\d+), saved as ", text)
    if not good or (how == "stopped by SIGTERM") != bool(stopped) or (stopped and after != int(stopped.group(1))):
        raise SystemExit(f"FAILED {how}: exit code {ended}, newest checkpoint of step {after}, of {command}\n{text}")
    steps = [int(line.split(" ")[0]) for line in losses.read_text()[made:].splitlines()] if losses.exists() else []
    if steps and steps[0] != before + 1:
        raise SystemExit(f"FAILED the run went on with step {steps[0]}, and the newest checkpoint was of step {before}\n{text}")
    return len(steps), after


def soak(a, t, moments):
    """Trains for a.soak minutes beside a training that nothing ends; see the text above. Under MPI that one's ranks are threads."""
    kinds = ["one rank killed", "all ranks killed"] if t.launcher else ["killed"]
    faults = dict.fromkeys((*kinds, "killed inside of a save", "stopped by SIGTERM"), 0)
    files = {name: t.scratch / f"{name}.losses" for name in ("whole", "soaked")}
    (t.scratch / "soaked").mkdir()
    begun, pace, writes_of_save = time.time(), 4.0, 100.0  # steps a second, and what follows from the parts of the run so far
    whole = subprocess.Popen(t.command("whole", threads=True), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "TRAIN_TEXT_LOSSES": str(files["whole"])})
    try:
        while (left := 60 * a.soak - (time.time() - begun)) > 0 or 0 in faults.values():
            how = moments.choice([f for f, n in faults.items() if n <= min(faults.values()) + 1])
            lasts, writes = moments.uniform(0.5, 1.5) * a.every, 0
            if left > 0:
                lasts = min(lasts, max(left, 1))
            if how == "killed inside of a save":
                writes = max(1, round(lasts * pace / t.every * writes_of_save) + moments.randint(0, round(writes_of_save)))
            at = time.time()
            made, after = one_fault(t, how, lasts, files["soaked"], moments, writes)
            if made >= t.every:
                pace = made / (time.time() - at)
                writes_of_save = writes / (made // t.every) if writes else writes_of_save
            faults[how] += 1
            print(f"{(time.time() - begun) / 60:6.1f} min  {how}{f' at write {writes}' if writes else ''}; saved: step {after}", flush=True)
            if whole.poll() is not None:
                raise SystemExit(f"FAILED the training that nothing ends has ended: {whole.stderr.read()}")
        give_up = time.time() + 60 * a.soak + 120  # until it has made the steps that are compared with its own
        while files["whole"].read_text().count("\n") < len(Losses(files["soaked"]).of) and whole.poll() is None and time.time() < give_up:
            time.sleep(1)
    finally:
        whole.kill()
        whole.wait()
    ours, theirs = Losses(files["soaked"]), Losses(files["whole"])
    common = min(len(ours.of), len(theirs.of))
    wrong = [s for s in range(1, common + 1) if ours.of[s] != theirs.of[s]]
    print(f"{a.soak:g} minutes, {sum(faults.values())} faults: {', '.join(f'{n} times {f}' for f, n in faults.items())}; "
          f"{len(ours.of)} steps, of which {ours.again} were made again, beside {len(theirs.of)}: {common} losses compared, {len(wrong)} are others")
    if common < len(ours.of):
        raise SystemExit(f"FAILED the training that nothing ends has made {common} steps, {len(ours.of)} are to be compared")
    if wrong:
        raise SystemExit(f"FAILED losses are others from step {wrong[0]} on: {ours.of[wrong[0]]} and {theirs.of[wrong[0]]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("of_two")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--of-three")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--jobs", type=int, default=1, help="trainings at once")
    parser.add_argument("--mpi", metavar="MPIEXEC")
    parser.add_argument("--soak", type=float, metavar="MINUTES")
    parser.add_argument("--every", type=float, default=60, metavar="SECONDS", help="of a soak, from fault to fault, half as long to half as long again")
    parser.add_argument("--save-every", type=int, default=20, metavar="N", help="of a soak, steps")
    a = parser.parse_args()
    seed = a.seed if a.seed is not None else int(time.time())
    moments = random.Random(seed)
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as scratch:
        if a.kills or a.mpi or a.soak:
            launcher = [a.mpi, "-n", "4"] if a.mpi else []
            if a.mpi and re.search(r"Open ?(MPI|RTE)", subprocess.run([a.mpi, "--version"], capture_output=True, text=True).stdout):
                launcher += ["--oversubscribe", "--allow-run-as-root"]
            if a.soak:
                soak(a, Trainings(a.program, scratch, 2_000_000, launcher, a.save_every), moments)
                print("passed")
                return 0
            a.kills = a.kills or 2
            campaign(a, Trainings(a.program, scratch, a.steps, launcher), moments)
            print("passed")
            return 0
        t = Trainings(a.program, scratch)
        began = time.time()
        t.finish(t.command("whole"))
        lasts = time.time() - began
        whole, losses, held_out = t.final("whole"), t.losses("whole"), t.held_out("whole")
        print(f"whole: {lasts:.1f} s, held out {held_out}")

        # killed at random moments, and inside of saves
        saved = t.scratch / "killed" / "saved"
        for _ in range(6):
            kills, inside = 0, 0
            for _ in range(3):
                kills += kill_after(t.going_on("killed"), moments.uniform(0.1, 0.5) * lasts)
                write = moments.randint(1, 120)
                inside += kill_at_write(t.going_on("killed"), saved, write)
                print(f"killed {kills} times at a moment, {inside} times inside of a save (write {write}); saved: steps {steps_of(saved)}")
                if steps_of(saved)[-1:] == [STEPS]:
                    break
            if kills + inside >= 2 and inside >= 1:
                break
            shutil.rmtree(t.scratch / "killed", ignore_errors=True)  # it ended before it was killed: the machine is faster than it was in the first run
            lasts /= 2
        else:
            raise SystemExit(f"FAILED {kills} kills and {inside} inside of saves: too few to say anything")
        if steps_of(saved)[-1:] != [STEPS]:
            t.finish(t.going_on("killed"))
        if t.final("killed") != whole:
            raise SystemExit("FAILED the run that was killed ended in other bytes")
        left = sorted(p.name for p in saved.iterdir())
        if len(left) != 3:
            raise SystemExit(f"FAILED the folder of two checkpoints holds {left}")

        # asked to end, twice, and gone on with by the commands that are printed
        saved = t.scratch / "asked" / "saved"
        first, command = stop_by(t.command("asked"), signal.SIGTERM, lambda: len(steps_of(saved)) > 0, t.scratch / "asked")
        shutil.copytree(t.scratch / "asked", t.scratch / "two")
        second = subprocess.run(command + " --steps 3", shell=True, capture_output=True, text=True)
        if second.returncode != 2 or "give more with --steps" not in second.stderr:
            raise SystemExit(f"FAILED --steps 3 behind step {first}: {second.stderr}")
        t.finish(command, shell=True)
        if t.final("asked") != whole or t.held_out("asked") != held_out:
            raise SystemExit("FAILED the run that was asked to end went on to other bytes")
        later = t.losses("asked")
        if min(later) != first + 1 or any(losses[s] != x for s, x in later.items()):
            raise SystemExit("FAILED the losses behind the resumption are others")
        saved = t.scratch / "interrupted" / "saved"
        at, command = stop_by(t.command("interrupted"), signal.SIGINT, lambda: len(steps_of(saved)) > 1, t.scratch / "interrupted")
        t.finish(command, shell=True)
        if t.final("interrupted") != whole:
            raise SystemExit("FAILED the run that was interrupted went on to other bytes")
        print(f"stopped behind steps {first} and {at}, and gone on to the same bytes")

        # four ranks to two
        two = t.scratch / "two" / "saved"
        t.finish(t.command("two", "--resume", str(two), program=os.path.abspath(a.of_two)))
        apart = max(abs(losses[s] - x) / x for s, x in t.losses("two").items())
        print(f"on two ranks behind step {first}: losses apart by {apart:.1e}, held out {t.held_out('two')}")
        if len(t.losses("two")) != STEPS - first or apart > 1e-5 or abs(t.held_out("two") - held_out) > 1e-5 * held_out:
            raise SystemExit("FAILED the losses on two ranks are others")

        # what does not fit is said in one sentence
        other = t.scratch / "other.txt"
        other.write_text(t.text.read_text().replace("e", "x"))
        for change, said in ((["--seed", "6"], "give --seed 5."), (["--text", str(other)], "another text"),
                             (["--resume", str(t.scratch / "no")], "there is no checkpoint to go on from")):
            run = subprocess.run(t.command("asked", "--resume", str(t.scratch / "asked" / "saved"), *change), capture_output=True, text=True)
            if run.returncode == 0 or said not in run.stderr:
                raise SystemExit(f"FAILED {change}: {run.stderr}")
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
