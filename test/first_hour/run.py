#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first hour: wrong programs of a newcomer, and whether the first error answers them.

A file of test/first_hour holds one wrong program inside `#ifdef SHARDWISE_FAIL`, whose control (the other branch) is the
smallest correct change, and says what it is about:

    // wanted: <what the newcomer meant to write>
    // mistake: <what is wrong>
    // names: <regular expression>      three lines: what was given, what is required, the fix; written before the library
                                         was made to answer
    // run                               compiles; the mistake shows when it runs, as an exception

A program is answered if its first error is a sentence that begins with "shardwise:" and names what is required and the
fix; what was given may stand in the sentence or in the template arguments printed with it. A control must compile, and
exit with 0 where programs are run. Prints a table and the rate; fails if a program is not answered (unless --report).
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "fail"))
import run as fail  # noqa: E402  the compilers' options, and text made comparable

NAMES = re.compile(r"^// names: (.*?)\s*$", re.MULTILINE)
RUNS = re.compile(r"^// run$", re.MULTILINE)
ERROR = re.compile(r"(?:^|[\s)])(?:fatal |catastrophic )?error(?: #[\w-]+)?:")
SENTENCE = re.compile(r"shardwise: .*")
RUN_TIMEOUT = 20  # seconds for a program that should take none


def first_error(output):
    """The first error with what is printed before the second one; and its own line."""
    lines, text, own = output.splitlines(), [], ""
    for line in lines:
        if ERROR.search(line) and "-Werror" not in line:
            if own:
                break
            own = line
        text.append(line)
    return "\n".join(text), own


def build(options, source, program, flags):
    """Compiles and links source; returns the compiler's output, empty if it succeeded."""
    line = [options.compiler, f"-std={options.std}", "-O0", "-pthread", *flags]
    line += [f"-I{directory}" for directory in options.include]
    for directory in options.system_include:
        line += ["-isystem", directory]
    if options.kernels:
        line += ["-DSHARDWISE_EXTERN_KERNELS=1"]
    if fail.family(options.compiler) == "nvcc":
        line = [flag if flag != "-pthread" else "-Xcompiler=-pthread" for flag in line] + ["-x", "cu", "-arch=sm_90"]
    line += ["-o", str(program), str(source)]
    if fail.family(options.compiler) == "nvcc":
        line += ["-x", "none"] if options.kernels else []
    done = subprocess.run(line + options.kernels, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=fail.TIMEOUT,
                          env=dict(os.environ, LC_ALL="C"), check=False)
    return "" if done.returncode == 0 else done.stdout.decode("utf-8", "replace") or "error: the compiler failed"


def execute(program, folder):
    """Returns (exit status, output); the status is None if the program did not end."""
    try:
        done = subprocess.run([str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
                              timeout=RUN_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")


def shortened(text, count=150):
    text = " ".join(text.split())
    return text if len(text) <= count else text[: count - 3] + "..."


def judge(names, sentence, text):
    """Which of the three wanted facts the answer lacks."""
    wanted = zip(("what was given", "what is required", "the fix"), names, (text, sentence, sentence))
    return [what for what, name, place in wanted if not re.search(name, fail.plain(place), re.IGNORECASE)]


def answer(options, source):
    """(answered, what is said) of one wrong program; raises fail.Mismatch if its control is wrong."""
    code = source.read_text(encoding="utf-8")
    names = NAMES.findall(code)
    if len(names) != 3 or fail.MACRO not in code:
        raise fail.Mismatch("it must name three facts and depend on " + fail.MACRO)
    if not RUNS.search(code):
        good, output = fail.compile_once(options, source, [], fail=False)
        if not good:
            raise fail.Mismatch("the control does not compile\n" + fail.head(output))
        good, output = fail.compile_once(options, source, [], fail=True)
        if good:
            return False, "compiles"
        text, own = first_error(output)
    else:
        with tempfile.TemporaryDirectory(prefix="shardwise-first-hour-") as folder:
            program = pathlib.Path(folder) / "program"
            output = build(options, source, program, [])
            if output:
                raise fail.Mismatch("the control does not compile\n" + fail.head(output))
            status, output = execute(program, folder)
            if status != 0:
                raise fail.Mismatch(f"the control ends with {status}\n{output[:400]}")
            output = build(options, source, program, [f"-D{fail.MACRO}"])
            if output:
                text, own = first_error(output)
            else:
                status, text = execute(program, folder)
                if status is None:
                    return False, "hangs"
                if status == 0:
                    return False, "runs, and says nothing"
                own = next((line for line in text.splitlines() if "shardwise: " in line), text.strip() or f"ends with {status}")
    sentence = SENTENCE.search(own)
    if not sentence:
        own = re.sub(r"^.*?error(?: #[\w-]+)?: ", "", own)
        return False, "no sentence: " + (own if options.verbose else shortened(own, 120))
    missing = judge(names, sentence[0], text)
    said = sentence[0] if options.verbose else shortened(sentence[0])
    return not missing, said + (f"  [it lacks {', '.join(missing)}]" if missing else "")


def selftest():
    """The judge itself: what counts as an answer."""
    names = [r"\b160\b", r"\b320\b", "whole"]
    cases = [("shardwise: 160 given, 320 required: give the whole", "", []),
             ("shardwise: 320 required: give the whole", "facts<160>", []),
             ("shardwise: 160 given: give the whole", "facts<320>", ["what is required"]),
             ("shardwise: 160 given, 320 required", "whole", ["the fix"])]
    wrong = [case for case in cases if judge(names, case[0], case[0] + "\n" + case[1]) != case[2]]
    text, own = first_error("a.cpp: In instantiation of\na.cpp:1:2: error: one\nnote: x\na.cpp:2:2: error: two\nnote: y")
    if own != "a.cpp:1:2: error: one" or "note: x" not in text or "two" in text:
        wrong.append("first_error of g++ and clang")
    if first_error('b.cu(3): error: static assertion failed with "s"\n  detected\nb.cu(4): error #20: z')[0].count("\n") != 1:
        wrong.append("first_error of nvcc")
    print(f"first hour selftest: {len(wrong)} wrong {wrong}")
    return 1 if wrong else 0


def rotation():
    """A number that changes with the commit, or where there is none with the day."""
    done = subprocess.run(["git", "-C", str(FOLDER), "rev-parse", "--short=7", "HEAD"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return int(done.stdout, 16) if done.returncode == 0 else int(time.time()) // 86400


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    fail.compiler_arguments(parser)
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="default: every program of test/first_hour")
    parser.add_argument("--kernels", action="append", default=[], help="objects of the host kernels, for programs that are run")
    parser.add_argument("--sample", metavar="I/N",
                        help="only every N-th program, beginning with number I (from 0; 'rotate': the commit's, else the day's)")
    parser.add_argument("--report", action="store_true", help="print the table; programs without an answer are no failure")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        return selftest()
    if not options.include:
        options.include = [FOLDER.parent.parent / "include"]
    files = options.files or sorted(FOLDER.glob("*.cpp"))
    if options.sample:
        first, step = options.sample.split("/")
        first, step = rotation() if first == "rotate" else int(first), int(step)
        files = files[first % step :: step] or files[:1]

    def one(source):
        try:
            good, said = answer(options, source)
        except fail.Mismatch as mismatch:
            good, said = None, f"WRONG TEST: {mismatch}"
        print(f"{source.stem:<28} {'yes' if good else 'no ':<3}  {said}", flush=True)
        return good

    print(f"{'program':<28} answered within the first error of {options.compiler}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(one, files))
    answered = sum(v is True for v in verdicts)
    print(f"{answered} of {len(files)} answered ({100 * answered // max(1, len(files))} %)")
    if None in verdicts or not files:
        return 1
    return 0 if options.report or answered == len(files) else 1


if __name__ == "__main__":
    sys.exit(main())
