#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A reference of the public names, made of the headers: each declaration in namespace shardwise with the comment that stands above it, and
the members of classes likewise. It is written where it is wanted and not kept, so that it cannot be out of date:

    test/reference.py build/reference.md
    test/reference.py --name redistribute        what the headers say of one name
    test/reference.py --tested                   fails with the names that no source of test/ or examples/ writes
"""

import argparse
import pathlib
import re
import sys
import tempfile

TEST = pathlib.Path(__file__).resolve().parent
ROOT = TEST.parent
sys.path.insert(0, str(TEST))
import levels  # noqa: E402  how declarations at namespace scope are found
import source_text  # noqa: E402

# (title, patterns below include/shardwise/), in the order of the reference
PARTS = [
    ("Meshes, placements, types", ["vocabulary/*.hpp"]),
    ("Functions of tensors", ["graph/functions/*.hpp"]),
    ("Modules, plans, steps", ["module/*.hpp"]),
    ("Modules under watch", ["module/tracker/*.hpp"]),
    ("Ranks and executors", ["runtime/*.hpp", "runtime/threads/threads.hpp", "runtime/fake/fake.hpp", "runtime/executor/*.hpp", "runtime/program/n*.hpp", "runtime/program/shared_parameters.hpp",
                             "runtime/timeline/*.hpp"]),
    ("Eager tensors", ["runtime/eager/*.hpp"]),
    ("GPUs", ["runtime/cuda/launch.hpp", "runtime/cuda/executor.cuh", "runtime/cuda/product_options.hpp", "runtime/cuda/attention_library.hpp"]),
    ("Passes", ["pass/*/*.hpp"]),
    ("Files", ["io/*.hpp", "io/*/*.hpp"]),
    ("Operations of one's own", ["propagation/operation.hpp", "graph/tape.hpp", "runtime/host/custom.hpp"]),
    ("Proofs", ["laws/*.hpp"]),
]
INNER = ("init", "laws", "kept", "operations", "autodiff", "rank_member", "program_member", "pass_order")
PUBLIC = re.compile(rf"^shardwise(::({'|'.join(INNER)}))?$")
ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")
ALIAS = re.compile(r"^using (\w+)\s*=")
VALUE = re.compile(r"^(?:inline )?(?:static )?constexpr [\w:<>, ]+? (\w+)\s*(?:=|\{|$)")
AFTER_CONDITION = re.compile(r"\)\s*(?:constexpr|inline|auto|void)\s+(?:auto\s+|void\s+|[\w:]+\s+)?(\w+)\s*\(")  # a function's name behind requires(...)
BASES = ("executor_base", "held_blocks", "gradient_sums")  # whose members are an executor's: users and tests write an executor's name
INHERITED = re.compile(rf"\bclass ({'|'.join(BASES)})\b")
SOURCES = (".cpp", ".hpp", ".cu", ".cuh", ".def", ".h")
LEAST_NAMES = 400  # a reference with fewer has lost a part of the headers


def comment_above(text, at):
    """The comment in the lines right above a position."""
    lines = text[: text.rfind("\n", 0, at) + 1].splitlines()
    found = []
    while lines and lines[-1].strip().startswith("//"):
        found.insert(0, lines.pop().strip().lstrip("/").strip())
    return " ".join(line for line in found if not re.match(r"^-+", line)).strip()


def body_of(text, at):
    """What stands between the brace at a position and its partner."""
    depth = 0
    for k in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[k], 0)
        if depth == 0:
            return text[at + 1 : k]
    return ""


def shown(head):
    return re.sub(r"\s+", " ", re.sub(r"\b(SHARDWISE_\w+|inline)\s+", "", head)).strip()


def name_of(head, mark):
    found = levels.named(head, mark)
    if found:
        return found[1]
    bare = levels.without_template(head)
    alias = ALIAS.match(bare) or VALUE.match(bare) or (bare.startswith("requires") and AFTER_CONDITION.search(bare))
    return alias[1] if alias else None


def members(text, head, at):
    """[(declaration, comment)] of a class's public functions that a comment tells of."""
    begin = text.find("{", at + len(head) - 1)
    body, public, found = body_of(text, begin), not re.search(r"\bclass\s+\w+", levels.without_template(head)), []
    for namespace, inner, _, place in levels.statements(body):
        for label in ACCESS.finditer(inner):
            public = label[1] == "public"
        bare = ACCESS.split(inner)[-1].strip()
        place += inner.rfind(bare) if bare else 0
        said = comment_above(body, place)
        if public and said and not namespace and "(" in bare and not re.match(r"(static_assert|using|friend|struct|class)\b", levels.without_template(bare)):
            found.append((re.sub(r"\s*:\s*\w+\(.*$", "", shown(bare)), said))
    return found


def by_macros(text):
    """The functions of tensors that a header makes by lists of names, X(abs) X(sign) or SHARDWISE_X(eq)."""
    found, plain = [], re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]+", "//", m.group()), text, flags=re.MULTILINE)

    def said_above(at):  # directives that stand between count for nothing
        return comment_above(plain, len("\n".join(plain.split("\n")[: text.count("\n", 0, at)])) + 1)

    for listed in re.finditer(r"#define SHARDWISE_\w+\(X\)((?:[^\n]*\\\n)*[^\n]*)", text):
        found += [(name, f"{name}(...)", said_above(listed.start()), []) for name in re.findall(r"\bX\((\w+)\)", listed[1])]
    for listed in re.finditer(r"^SHARDWISE_X\((\w+)[^\n]*\)$", text, re.MULTILINE):
        made = text.rfind("#define SHARDWISE_X(", 0, listed.start())
        said = comment_above(text, made) if made >= 0 else ""
        written = re.search(r"\bauto name##(\w+)\(", text[max(made, 0) : listed.start()])
        name = listed[1] + (written[1] if written else "")
        if said:
            found.append((name, f"{name}(...)", said, []))
    return found


def read(path):
    """[(name, declaration, comment, members)] of a header's public names."""
    text = path.read_text(encoding="utf-8")
    found = by_macros(text) if path.parent.name == "functions" else []
    calls = re.compile(r"^SHARDWISE_\w+\([^\n]*\)$", re.MULTILINE)
    for namespace, head, mark, at in levels.statements(calls.sub(lambda m: " " * len(m.group()), text)):
        inherited = namespace == "shardwise::runtime" and INHERITED.search(head)
        if not (PUBLIC.match(namespace) or inherited) or levels.without_template(head).startswith(("static_assert", "extern")):
            continue
        name = name_of(head, mark)
        if not name or re.match(r"template\s*<\s*>", head):
            continue
        is_class = mark == "{" and re.match(r"(?:requires.*)?\b(struct|class)\b", levels.without_template(head))
        found.append((name, shown(head), comment_above(text, at), members(text, head, at) if is_class else []))
    return found


def parts(include):
    """(title, [(header, its first comment, entries)])"""
    base, seen = include / "shardwise", set()
    for title, patterns in PARTS:
        headers = []
        for pattern in patterns:
            for path in sorted(base.glob(pattern)):
                if path not in seen:
                    seen.add(path)
                    entries = read(path)
                    if any(said for _, _, said, _ in entries):
                        lines = path.read_text(encoding="utf-8").splitlines()
                        headers.append((path.relative_to(include).as_posix(), " ".join(line.lstrip("/ ") for line in lines[1 : next(k for k, line in enumerate(lines) if not line.startswith("//"))]), entries))
        yield title, headers


def entry_text(group):
    out = ["", f"#### {group[0][0]}", "", "```cpp", *[declaration + ";" for _, declaration, _, _ in group], "```", ""]
    out += [said + "\n" for _, _, said, _ in group if said]
    for declaration, said in [member for entry in group for member in entry[3]]:
        out.append(f"- `{declaration}`: {said}")
    return out


def groups(entries):
    """Overloads of one name side by side; names that nothing is said of are left out."""
    by_name = {}
    for entry in entries:
        by_name.setdefault(entry[0], []).append(entry)
    return [group for group in by_name.values() if any(said or inside for _, _, said, inside in group)]


def reference(include):
    out, names = ["# Reference", "", "Made of the headers' declarations and comments by `test/reference.py`."], set()
    for title, headers in parts(include):
        out += ["", f"## {title}"]
        for header, said, entries in headers:
            out += ["", f"### {header}", "", said]
            for group in groups(entries):
                names.add(group[0][0])
                out += entry_text(group)
            told = {group[0][0] for group in groups(entries)}
            bare = [entry for entry in entries if entry[0] not in told and "graph/functions/" in header]
            names |= {entry[0] for entry in bare}
            out += ["", "Also:", "", "```cpp", *[entry[1] + ";" for entry in bare], "```"] if bare else []
    return "\n".join(out) + "\n", names


def names_written(folders):
    """The names that sources below these folders write behind a public namespace, or behind `custom`, where functions made of lists
    have their operations: sw::relu, laws::holds, whatever a source calls that namespace. Comments, strings and includes write nothing."""
    spaces, names = {"shardwise", "custom", *INNER}, set()
    for folder in folders:
        for path in folder.rglob("*"):
            if path.suffix not in SOURCES or not path.is_file():
                continue
            text = re.sub(r"^[ \t]*#[ \t]*include[^\n]*", "", path.read_text(encoding="utf-8", errors="replace"), flags=re.MULTILINE)
            tokens = [token for token in source_text.tokens(text) if not token.startswith(("//", "/*"))]
            own = {alias for keyword, alias, sign, *path_to in zip(tokens, tokens[1:], tokens[2:], *(tokens[k:] for k in range(3, 8)))
                   if (keyword, sign) == ("namespace", "=") and ";" in path_to and path_to[path_to.index(";") - 1] in spaces}
            own |= {"sw"} | spaces  # sw: also where a header of test/support/ says so
            names |= {name for space, mark, name in zip(tokens, tokens[1:], tokens[2:]) if mark == "::" and space in own}
    return names


def untested(include, folders):
    """[(name, header)] of the reference's names that no source writes."""
    written, found = names_written(folders), []
    for _, headers in parts(include):
        for header, _, entries in headers:
            told = {group[0][0] for group in groups(entries)} | {entry[0] for entry in entries if "graph/functions/" in header}
            found += [(name, header) for name in sorted(told - written - set(BASES))]
    return found


def selftest():
    wrong = []
    with tempfile.TemporaryDirectory(prefix="shardwise-reference-") as folder:
        include = pathlib.Path(folder)
        header = include / "shardwise/graph/functions/one.hpp"
        header.parent.mkdir(parents=True)
        header.write_text("// SPDX\n// One header.\n#pragma once\n\nnamespace shardwise::inline v0_1 {\nnamespace detail {\n// Hidden.\ninline int hidden(int);\n}\n\n"
                          "// Lists.\n#define SHARDWISE_FIRST(X) \\\n  X(first)\n#define SHARDWISE_LIST(X) X(listed)\n// Each.\n#define SHARDWISE_X(name) int name();\nSHARDWISE_X(each)\n#undef SHARDWISE_X\n\n"
                          "int unsaid(int);\n// Adds one.\ntemplate <class T>\n  requires(sizeof(T) > 1)\nconstexpr auto seen(const T& x) {\n  return x + 1;\n}\n\n// A class.\nclass thing {\n public:\n  // Says a number.\n"
                          "  int number() const { return 1; }\n\n private:\n  // Nobody's.\n  int secret() const;\n};\n}\n")
        text, names = reference(include)
        if names != {"seen", "thing", "first", "listed", "each", "unsaid"}:
            wrong.append(f"names {names}")
        for part in ("Adds one.", "A class.", "- `int number() const`: Says a number.", "### shardwise/graph/functions/one.hpp", "One header."):
            if part not in text:
                wrong.append(f"{part!r} is not there")
        for part in ("Hidden", "secret"):
            if part in text:
                wrong.append(f"{part!r} is there")
        base = include / "shardwise/runtime/executor/executor_base.hpp"
        base.parent.mkdir(parents=True)
        base.write_text("// SPDX\n// The base.\n#pragma once\n\nnamespace shardwise::inline v0_1::runtime {\n// A base.\nclass executor_base {\n public:\n  // Runs.\n  void run();\n};\n}\n")
        tests = pathlib.Path(folder) / "test"
        (tests / "unit").mkdir(parents=True)
        (tests / "unit/one.cpp").write_text('#include <shardwise/seen/each.hpp>\n// thing\nconst char* text = "thing"; /* seen\n each */\nconst char* raw = R"(listed)";\n'
                                            "int a = sw::first(1) + sw::unsaid<int>(2) - sw::seen_too + seen(each, own::thing);\n")
        (tests / "notes.md").write_text("thing seen each listed\n")
        (tests / "unit/two.cu").write_text("#define CALL(x) sw::listed(x)\n")
        if untested(include, [tests]) != [(name, "shardwise/graph/functions/one.hpp") for name in ("each", "seen", "thing")]:
            wrong.append(f"untested {untested(include, [tests])}")
        (tests / "unit/three.hpp").write_text("namespace all = ::shardwise;\nusing own = all::thing; auto x = shardwise::seen(sw::each());\n")
        if untested(include, [tests]):
            wrong.append(f"untested, though written: {untested(include, [tests])}")
    print(f"reference selftest: {len(wrong)} wrong {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=pathlib.Path)
    parser.add_argument("--name")
    parser.add_argument("--tested", action="store_true")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        return selftest()
    if options.tested:
        missing = untested(ROOT / "include", [TEST, ROOT / "examples"])
        for name, header in missing:
            print(f"reference: {name} ({header}) is public, and no source of test/ or examples/ writes it; write a test of it where test/ mirrors that header, or move it into `detail`")
        print(f"reference: {len(missing)} names without a test")
        return 1 if missing else 0
    text, names = reference(ROOT / "include")
    if options.name:
        found = re.findall(rf"^#### {re.escape(options.name)}\n.*?(?=^#)", text + "#", re.MULTILINE | re.DOTALL)
        print("\n".join(found) if found else f"reference: the headers say nothing of '{options.name}'")
        return 0 if found else 1
    if options.file:
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_text(text, encoding="utf-8")
    print(f"reference: {len(names)} names, {len(text.splitlines())} lines")
    return 0 if len(names) >= LEAST_NAMES else 1


if __name__ == "__main__":
    sys.exit(main())
