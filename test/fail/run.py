#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a wrong program and checks what the compiler says about it.

A file of test/fail holds one wrong program inside `#ifdef SHARDWISE_FAIL` (with or without an `#else` control) and says
what must be printed:

    // expect: <sentence, or regular expression>       every such line must match
    // expect(nvcc): <...>                              the same for one compiler: g++, clang or nvcc
    // expect(types): <...>                             the same for facts as types: as expect(nvcc) and its like, not where
                                                        the compiler computes the text of a static_assert
    // expect(text): axis: "tp" of 4; extent: 10        where it does (--compiler clang++-19 --std c++26): word for word in
                                                        one message
    // located: layers.1.attn einsum_2                  module path and node that the first error names; "" is the model
    // not(nvcc): <reason>                              the program is not for this compiler; the run says so
    // flags: -Werror=unused-result                     more options for the compiler (the host compiler under nvcc)

Without the macro the file must compile; with it, it must not, and every expectation must be in the output. Output and
expectations are compared with white space, line breaks and kinds of quotes made equal, and without the version's namespace. Source lines quoted by the
compiler are switched off where possible, so a sentence counts only if it is said.

A source that traces a program must get an error that names a module path and a node: see `unplaced`.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
MACRO = "SHARDWISE_FAIL"
PROBLEMS = FOLDER.parent.parent / "include/shardwise/support/problems.def.hpp"
NVCC_MEMORY = 14_000_000 * 1024  # bytes of address space
TIMEOUT = 280  # seconds for one compilation
SHARED = ("typed.hpp", "typed_tp.hpp", "small_models.hpp", "small_step.hpp", "declared_step.hpp", "fail_step.hpp", "grouped_step.hpp",
          "shardwise/shardwise.hpp", "shardwise/module/function.hpp", "shardwise/graph/functions/mutating_functions.hpp",
          "shardwise/graph/functions/custom.hpp")  # what most wrong programs include first
QUIET = {"g++": "-fno-diagnostics-show-caret", "clang": "-fno-caret-diagnostics"}

EXPECT = re.compile(r"^\s*//\s*expect(?:\(([^)]+)\))?:[ \t]*(.*?)\s*$", re.MULTILINE)
NOT = re.compile(r"^\s*//\s*not\(([^)]+)\):[ \t]*(\S.*?)\s*$", re.MULTILINE)
FLAGS = re.compile(r"^\s*//\s*flags:[ \t]*(.*?)\s*$", re.MULTILINE)
GUARD = re.compile(rf"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b{MACRO}\b", re.MULTILINE)
PLACE = re.compile(r"(?:Here:|;) module: ([^;]*); node: (\w+)")
AROSE = re.compile(r": +(?:recursively |\[ )?(?:required (?:from|by|for)|skipping )|: In (?:instantiation|substitution) of |in 'constexpr' expansion of ")
LOCATED = re.compile(r"^\s*//\s*located:[ \t]*(\S*)[ \t]+(\S+)\s*$", re.MULTILINE)
PROGRAM = re.compile(r"\b(train_step|function_step|gradient_step|value_and_grad|sw::traced<|small_step\.hpp|declared_step\.hpp)")
FACT = {name: re.compile(rf"\b{name}<(?:shardwise::)?fixed_string<\d+(?:UL)?>\{{+\"?(.*?)\"?\}}+>") for name in ("in_module", "at_node")}
VERSIONED = re.compile(r"\bshardwise::v\d+_\d+::(?:(?:un)?checked(?:_with_blas)?::)?")  # g++ and nvcc write inline namespaces, clang does not
VERDICT = re.compile(r"^\s*//\s*harness:[ \t]*(.*?)\s*$", re.MULTILINE)


class Mismatch(Exception):
    """What the harness reports about one file."""


def family(compiler):
    """g++, clang or nvcc, from the compiler's file name."""
    name = pathlib.Path(compiler).name
    for kind in ("nvcc", "clang"):
        if kind in name:
            return kind
    return "g++"


def command(options, source, folder, flags, fail):
    """The command line that compiles source, as control or as wrong program."""
    kind = family(options.compiler)
    line = [options.compiler, f"-std={options.std}"]
    if options.precompiled and kind == "g++":
        line.append(f"-I{options.precompiled}")
    line += [f"-I{directory}" for directory in options.include]
    if kind == "nvcc":
        line += ["-x", "cu", "-arch=sm_90", "-c", "-o", os.path.join(folder, "out.o")]
        line += [f"-Xcompiler={flag}" for flag in flags]
    else:
        line += ["-fsyntax-only", QUIET[kind], *flags]
    for directory in options.system_include:
        line += ["-isystem", directory]
    return line + ([f"-D{MACRO}"] if fail else []) + [str(source)]


def precompile(options):
    """Makes g++'s precompiled headers of what wrong programs share, where a header is newer or the command is another one:
    reading headers is nine tenths of a small program's compilation. The compiler takes the text where one does not suit."""
    folder = options.precompiled
    folder.mkdir(parents=True, exist_ok=True)
    newest = max(path.stat().st_mtime for directory in options.include for path in pathlib.Path(directory).rglob("*") if path.is_file())
    version = subprocess.run([options.compiler, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
    wrong = 0
    for name in SHARED:
        header = next(path for path in (pathlib.Path(directory) / name for directory in options.include) if path.exists())
        made, note = folder / f"{name}.gch", folder / f"{name}.command"
        made.parent.mkdir(parents=True, exist_ok=True)
        line = [options.compiler, f"-std={options.std}", *(f"-I{directory}" for directory in options.include)]
        for directory in options.system_include:
            line += ["-isystem", str(directory)]
        line += [QUIET["g++"], "-w", "-x", "c++-header", str(header), "-o"]
        said_by = f"{version}{shlex.join(line)}"
        if made.exists() and note.exists() and made.stat().st_mtime > newest and note.read_text() == said_by:
            continue
        new = folder / f"{name}.new"
        done = subprocess.run([*line, str(new)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode == 0:
            (folder / name).write_text(f'#include "{header.resolve()}"\n')  # g++ takes the text where another include comes first
            new.replace(made)
            note.write_text(said_by)
        else:
            print(done.stdout.decode("utf-8", "replace"))
            made.unlink(missing_ok=True)
            wrong += 1
    print(f"{len(SHARED)} headers precompiled, {wrong} failed")
    return 1 if wrong else 0


def compile_once(options, source, flags, fail):
    """Returns (succeeded, output); each run has its own empty folder, so no stale object can be mistaken for a result."""
    def limits():
        if family(options.compiler) == "nvcc":
            resource.setrlimit(resource.RLIMIT_AS, (NVCC_MEMORY, NVCC_MEMORY))

    with tempfile.TemporaryDirectory(prefix="shardwise-fail-") as folder:
        line = command(options, source, folder, flags, fail)
        if options.verbose:
            print(shlex.join(line))
        environment = dict(os.environ, LC_ALL="C", TMPDIR=folder)
        try:
            done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env=environment, preexec_fn=limits, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired as expired:
            raise Mismatch(f"the compiler did not end within {TIMEOUT} s") from expired
        except FileNotFoundError as missing:
            raise Mismatch(f"there is no compiler '{options.compiler}'") from missing
        return done.returncode == 0, VERSIONED.sub("shardwise::", done.stdout.decode("utf-8", "replace"))


def plain(text):
    """White space runs become one blank, all quotes become ', escaped quotes lose their backslash."""
    text = re.sub(r"\\([\"'])", r"\1", text)
    text = re.sub("[\u2018\u2019\u201c\u201d\"`]", "'", text)
    return re.sub(r"\s+", " ", text).strip()


def said(expectation, output):
    """Whether output says the expectation: as a sentence (line breaks may fall anywhere), else as a regular expression."""
    sentence, text = plain(expectation), plain(output)
    if sentence.replace(" ", "") in text.replace(" ", ""):
        return True
    try:
        return re.search(sentence, text) is not None
    except re.error:
        return False


def computes_text(compiler, std):
    """Whether static_assert takes a computed text, which then holds the values of the facts."""
    if family(compiler) == "nvcc":
        return False
    try:
        done = subprocess.run([compiler, f"-std={std}", "-x", "c++", "-dM", "-E", os.devnull], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return False
    value = re.search(rb"__cpp_static_assert (\d+)L", done.stdout)
    return value is not None and int(value[1]) >= 202306


def written(wanted, output):
    """Whether one message of the library, an error and no note, contains the words wanted, all of them in their order."""
    words = plain(wanted)
    return any(words in plain(line) for line in output.splitlines() if "error:" in line and "shardwise: " in line)


def first_error(output):
    """A compiler's output up to its second error, without what g++ prints in front of that one about where it arose."""
    starts = [match.start() for match in re.finditer(r"^.*\berror\b\s*:", output, re.MULTILINE)]
    if len(starts) < 2:
        return output
    lines = output[: starts[1]].splitlines()
    while lines and AROSE.search(lines[-1]):
        lines.pop()
    return "\n".join(lines)


def letters(text):
    """nvcc prints strings letter by letter: 'a', 'b', '\\000' becomes ab, as the other compilers print it."""
    if "'" not in text:
        return text
    return "".join(re.findall(r"'(.)'", text))


def place(output):
    """Module path and node that a compiler's first error names, None where it names none."""
    computed = PLACE.search(first_error(output))
    if computed:
        return "" if computed[1] == "the model itself" else computed[1], computed[2]
    found = [pattern.search(first_error(output)) for pattern in FACT.values()]
    return tuple(letters(match[1]) for match in found) if all(found) else None


def unplaced(table=FOLDER / "unplaced.txt"):
    """What is not about a node: problems, and pairs of a problem and a file."""
    rows = [line.split("|")[0].split() for line in table.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {tuple(row) for row in rows}


def check_place(source, text, output):
    """Raises Mismatch unless the first error names module and node where it must, and those that the source expects."""
    given, wanted = place(output), LOCATED.search(text)
    if wanted and given != (wanted[1].strip('"'), wanted[2]):
        raise Mismatch(f"the first error is not at module '{wanted[1]}', node '{wanted[2]}', but at {given}\n{head(output)}")
    if not PROGRAM.search(text):
        return
    first = plain(first_error(output)).replace(" ", "")
    names = [name for name, sentence in problems(PROBLEMS) if plain(sentence).replace(" ", "") in first]
    listed = [name for name in names if (name,) in unplaced() or (name, source.stem) in unplaced()]
    if not given and len(names) > len(listed):
        raise Mismatch(f"a traced program gets problem::{names[0]} without module and node; say it by refused<> or raise_at, or list "
                       f"it in unplaced.txt with the reason\n{head(output)}")
    if given and listed:
        raise Mismatch(f"problem::{listed[0]} names module and node, and unplaced.txt says that it does not\n{head(output)}")


def head(output, count=12):
    """The first lines of a compiler's output that mention an error, else its first lines."""
    lines = output.splitlines()
    errors = [line for line in lines if "error" in line]
    return "\n".join("    " + line[:400] for line in (errors or lines)[:count])


def check(options, source):
    """Raises Mismatch unless control and wrong program of source behave as it says."""
    text = source.read_text(encoding="utf-8")
    kind = family(options.compiler)
    expectations = [wanted for only, wanted in EXPECT.findall(text)
                    if not only or (only in (kind, "types") and not options.computes_text)]
    texts = [wanted for only, wanted in EXPECT.findall(text) if only == "text"] if options.computes_text else []
    flags = [flag for line in FLAGS.findall(text) for flag in shlex.split(line)]
    if not GUARD.search(text):
        raise Mismatch(f"nothing depends on {MACRO}")
    if not expectations or "" in expectations:
        raise Mismatch("no '// expect:' line says what the compiler must print")

    good, output = compile_once(options, source, flags, fail=False)
    if not good:
        raise Mismatch(f"the control does not compile\n{head(output)}")
    good, output = compile_once(options, source, flags, fail=True)
    if good:
        raise Mismatch("the wrong program compiles")
    if options.verbose:
        print(output)
    missing = [wanted for wanted in expectations if not said(wanted, output)]
    missing += [wanted for wanted in texts if not written(wanted, output)]
    if missing:
        wanted = "\n".join("    " + line for line in missing)
        raise Mismatch(f"the compiler does not say\n{wanted}\n  it says\n{head(output)}")
    check_place(source, text, output)


def report(options, source):
    """Checks one file, prints the verdict; returns it (empty: as it should be)."""
    for only, reason in NOT.findall(source.read_text(encoding="utf-8")):
        if only == family(options.compiler):
            print(f"not    {source.name} with {options.compiler}: {reason}", flush=True)
            return ""
    try:
        check(options, source)
    except Mismatch as mismatch:
        print(f"FAILED {source.name} with {options.compiler}: {mismatch}", flush=True)
        return str(mismatch)
    print(f"ok     {source.name} with {options.compiler}", flush=True)
    return ""


def selftest(options):
    """Every file of selftest/ must get the verdict that its '// harness:' line names."""
    sources = sorted((FOLDER / "selftest").glob("*.cpp"))
    wrong = 0 if sources else 1
    message = "x.hpp:1:2: error: static assertion failed: shardwise: a sentence. Here: dim: 1; extent: 10.\nx.hpp:1: note: dim: 2"
    for wanted, verdict in (("dim: 1; extent: 10", True), ("dim: 1; extent: 1.", False), ("dim: 2", False), ("extent: 10; dim: 1", False)):
        if written(wanted, message) != verdict:
            wrong += 1
            print(f"selftest: the text '{wanted}' is judged wrongly")
    for source in sources:
        wanted = VERDICT.search(source.read_text(encoding="utf-8")).group(1)
        verdict = report(options, source) or "ok"
        if wanted not in verdict:
            wrong += 1
            print(f"selftest: {source.name}: wanted '{wanted}'")
    table = FOLDER.parent.parent / "include/shardwise/support/problems.def.hpp"
    found = catalogue(FOLDER / "selftest" / "catalogue.txt", table)
    wanted = [line.split("wanted: ")[1] for line in (FOLDER / "selftest" / "catalogue.txt").read_text().splitlines()
              if "wanted: " in line]
    for line in wanted:
        if not any(line in mistake for mistake in found):
            wrong += 1
            print(f"selftest: catalogue.txt: wanted '{line}'")
    if len(found) != len(wanted):
        wrong += 1
        print(f"selftest: catalogue.txt: {len(found)} mistakes found, {len(wanted)} wanted: {found}")
    print(f"fail selftest: {len(sources)} files, {wrong} judged wrongly")
    return wrong


TABLE = re.compile(r'^\s*SHARDWISE_X\((\w+),\s*((?:"(?:[^"\\\\]|\\\\.)*"\s*)+)\)', re.MULTILINE)


def problems(table):
    """Names and sentences of a table of SHARDWISE_X(name, "sentence") entries."""
    return [(name, "".join(re.findall(r'"((?:[^"\\\\]|\\\\.)*)"', text))) for name, text in TABLE.findall(table.read_text())]


def coverage(table):
    """Lists the problems of a table that no file of test/fail expects in any part."""
    entries = problems(table)
    lines = [line for file in FOLDER.glob("*.cpp") for _, line in EXPECT.findall(file.read_text())]
    wanted = [plain(re.sub(r"\\([^\w\s])", r"\1", line)).replace(" ", "") for line in lines]  # \^ stands for ^
    missing = [name for name, text in entries if not any(w and w in plain(text).replace(" ", "") for w in wanted)]
    for name in missing:
        print(f"no wrong program expects the sentence of problem::{name}")
    print(f"{len(entries)} problems, {len(missing)} without a wrong program")
    return 1 if missing or not entries else 0


def joined(text):
    """Source text whose adjacent string literals are one, so that a message can be found in it."""
    return plain(re.sub(r'"\s*\n?\s*"', "", text)).replace(" ", "")


def catalogue(rows, table, root=FOLDER.parent):
    """What is wrong with a catalogue of misuses, line by line; see its head for the format."""
    sentences = dict(problems(table))
    headers = [joined(file.read_text()) for file in (table.parent.parent).rglob("*") if file.suffix in (".hpp", ".cuh")]
    wrong, seen = [], set()
    for number, line in enumerate(rows.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(" | ")]
        if len(fields) != 4 or not all(fields):
            wrong.append(f"{number}: not four fields")
            continue
        name, verdict, tests, _ = fields
        if name in seen:
            wrong.append(f"{number}: {name} is listed twice")
        seen.add(name)
        if verdict in ("impossible", "later"):
            if tests != "-":
                wrong.append(f"{number}: {name} can have no test")
            continue
        said_at_run = re.fullmatch(r'says "(.+)"', verdict)
        if not said_at_run and verdict != "holds" and verdict not in sentences:
            wrong.append(f"{number}: there is no problem '{verdict}'")
            continue
        if said_at_run and not any(joined(said_at_run[1]) in header for header in headers):
            wrong.append(f"{number}: no header says '{said_at_run[1]}'")
        for test in re.split(r",\s*", tests):
            file = root / test
            if not file.is_file():
                wrong.append(f"{number}: there is no test {test}")
                continue
            text = file.read_text()
            if said_at_run:
                good = joined(said_at_run[1]) in joined(text)
            elif verdict == "holds":
                good = re.search(rf"\b{name}\b", text)
            elif test.startswith("fail/"):
                sentence = plain(sentences[verdict]).replace(" ", "")
                good = any(w and plain(w).replace(" ", "") in sentence for _, w in EXPECT.findall(text))
            else:
                good = re.search(rf"\b{verdict}\b", text)
            if not good:
                wrong.append(f"{number}: {test} does not speak of {name}: {verdict}")
    return wrong + ([] if seen else ["no rows"])


# Where operations may say a sentence without knowing module and node: the door itself, and questions about types.
RAISERS = {"tensor.hpp": 3, "sym.hpp": 1, "located.hpp": 0, "refused.hpp": 3, "redistribution.hpp": 2, "local.hpp": 1}


def unlocated(folder):
    """Operations that raise a sentence by themselves; refused<> adds module and node."""
    raises = re.compile(r"(?<!struct )\b(?:raise|raise_finding|raise_list|refuse)<")
    for file in sorted(folder.glob("*.hpp")):
        count = len(raises.findall(re.sub(r"//[^\n]*", "", file.read_text())))
        if count > RAISERS.get(file.name, 0):
            yield f"{file.name}: {count} sentences are raised here, {RAISERS.get(file.name, 0)} of them known; say them by detail::refused<>"


def report_catalogue(rows, table):
    wrong = catalogue(rows, table) + list(unlocated(table.parent.parent / "graph"))
    for line in wrong:
        print(f"{rows.name}:{line}")
    print(f"{rows.name}: {len(wrong)} mistakes")
    return 1 if wrong else 0


def compiler_arguments(parser):
    """What `compile_once` reads of its options; whoever calls it takes them too."""
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--std", default="c++20", help="language level; from c++26 on some compilers compute messages")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--system-include", action="append", default=[])
    parser.add_argument("--precompiled", metavar="FOLDER", type=pathlib.Path, help="g++: where precompiled shared headers lie")
    parser.add_argument("--jobs", type=int, default=1, help="programs at once")
    parser.add_argument("--verbose", action="store_true", help="print commands and output")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="default: every file of test/fail")
    compiler_arguments(parser)
    parser.add_argument("--texts", action="store_true", help="only the files that expect a computed text")
    parser.add_argument("--precompile", action="store_true", help="only make them")
    parser.add_argument("--sample", metavar="I/N", help="only every N-th file, beginning with number I (from 0)")
    parser.add_argument("--selftest", action="store_true")
    parser.add_argument("--coverage", metavar="TABLE", type=pathlib.Path,
                        help="list the problems of a table of sentences that no file expects")
    parser.add_argument("--catalogue", metavar=("ROWS", "TABLE"), nargs=2, type=pathlib.Path,
                        help="check a catalogue of misuses against the table of sentences and the tests")
    options = parser.parse_args()
    if not options.include:
        options.include = [FOLDER.parent.parent / "include", FOLDER.parent / "support"]
    options.computes_text = False
    if options.precompile:
        return precompile(options)
    if options.selftest:
        return 1 if selftest(options) else 0
    if options.coverage:
        return coverage(options.coverage)
    if options.catalogue:
        return report_catalogue(*options.catalogue)
    options.computes_text = computes_text(options.compiler, options.std)
    if options.texts and not options.computes_text:
        parser.error(f"{options.compiler} -std={options.std} does not compute the text of a static_assert")
    files = options.files or sorted(FOLDER.glob("*.cpp"))
    if options.texts:
        files = [file for file in files if any(only == "text" for only, _ in EXPECT.findall(file.read_text()))]
    if options.sample:
        first, step = map(int, options.sample.split("/"))
        files = files[first % step :: step] or files[:1]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda file: report(options, file), files))
    failed = [file for file, verdict in zip(files, verdicts) if verdict]
    if len(files) != 1:
        print(f"{len(files)} wrong programs with {options.compiler}, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
