#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the headers of include/shardwise and fails on an #include that points upward or out of bounds, on rooms (folders)
of a layer that include each other, on a declaration of what a higher layer or such a room defines, and on a spelling that makes a
compiler dear."""

import argparse
import pathlib
import re
import sys
import tempfile

# A header may include its own layer and those below; the umbrella headers (directly under shardwise/) may include all.
LAYERS = ["support", "vocabulary", "propagation", "operations", "graph", "autodiff", "pass", "runtime", "module", "io", "laws"]
# A family of operations has a folder of its own, in which the file's name says the room: record.hpp, adjoint.hpp, host.hpp,
# device.cuh, and what these are cut into, as device_backward.cuh.
FAMILIES = {"adjoint": "autodiff", "host": "runtime/host", "device": "runtime/cuda"}
# Programs may be planned for any backend by any compiler, so what lies beside the runtime's layer takes no device's headers.
FORBIDDEN_ROOMS = {("module", "runtime/cuda"): "modules know no device; users name the backend"}
# Declarations of what is defined above: (header, name) -> why it stays.
DECLARED = {
    ("shardwise/pass/framework/pass.hpp", "functionalise"): "the errors of all pipelines name this pass",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

BACKEND = re.compile(
    r"^(cuda|cublas|cudnn|curand|nvrtc|nvtx|nccl|mpi\.h|mpi/|cub/|thrust/|cooperative_groups|cblas|mkl|openblas|dnnl|"
    r"oneapi/|nv/|device_launch_parameters|vector_types)")
# (pattern, layers it is forbidden in, why)
EVERYWHERE = [layer for layer in LAYERS if layer not in ("runtime", "io", "laws")]  # what compiled programs are planned with
RULES = [
    (BACKEND, EVERYWHERE, "backend headers belong to runtime/ and io/"),
    (re.compile(r"^(iostream|format|print|regex)$"), EVERYWHERE, "too heavy outside runtime/ and io/"),
    (re.compile(r"^(algorithm|cmath|iterator|ranges|memory)$"), EVERYWHERE, "a tenth of what the umbrella costs; loops, support/elementary.hpp"),
    (re.compile(r"^(iostream|functional|regex)$"), LAYERS, "too heavy for any header; use <ostream>, <cstdio> or a plain function object"),
    (re.compile(r"^boost/hana\.hpp$"), LAYERS + [""], "include the narrow boost/hana/*.hpp headers that are used"),
]

# Each such line costs nvcc's front end 128 MiB wherever it stands in a header, used or not: a constexpr local initialised by
# a call to which a static member of a template parameter is passed as it is. A copy, spec(A::sp), costs nothing.
LOCAL = re.compile(r"^[ \t]+constexpr [^;=()]*=[^;]*;", re.MULTILINE)
MEMBER = re.compile(r"[(,]\s*((?:[A-Z]\w*|type)::sp)\s*[,)]")

# nvcc matches no specialisation whose argument has a string of the template's own parameters: it silently takes the primary. Only texts
# that nvcc never computes, `fact` and `written`, may be specialised so.
BY_STRING = re.compile(
    r"^template <([^;{}]*\bfixed_string\b(?:\.\.\.)? \w+[^;{}]*)>\s*(?:requires[^{;]*?\s)?(?:struct|class|(?:inline )?constexpr \w+)\s+(\w+)<",
    re.MULTILINE)
TEXTS = ("fact", "written")


def bare(path):
    """The file's text without its comments, on the same lines."""
    return COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text(encoding="utf-8"))


def by_string(path):
    """Yields (line, name) of each specialisation that nvcc does not match."""
    text = bare(path)
    for found in BY_STRING.finditer(text):
        if found.group(2) not in TEXTS:
            yield text.count("\n", 0, found.start()) + 1, found.group(2)


def dear_members(path):
    """Yields (line, member) of each constexpr local that makes nvcc dear."""
    text = bare(path)
    for local in LOCAL.finditer(text):
        for member in MEMBER.finditer(local.group()):
            if not local.group()[: member.start() + 1].endswith("spec("):
                yield text.count("\n", 0, local.start()) + 1, member.group(1)


def layer_of(path):
    """The layer of a path relative to the include directory: 'shardwise/graph/op.hpp' -> 'graph', umbrella -> ''."""
    parts = pathlib.PurePosixPath(path).parts
    return family_room(path).partition("/")[0] or (parts[1] if len(parts) > 2 else "")


def family_room(path):
    """The room that the name of a family's file says: 'shardwise/operations/row/host.hpp' -> 'runtime/host'; else ''."""
    parts = pathlib.PurePosixPath(path).parts
    return FAMILIES.get(re.split(r"[_.]", parts[-1])[0], "") if parts[1:2] == ("operations",) and len(parts) > 3 else ""


def includes(path):
    """Yields (line, quoted, target) of each #include line outside comments."""
    text = path.read_text(encoding="utf-8")
    text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1) == '"', match.group(2).strip()


def check(root):
    """Returns (problems, layer edges) of the headers under root/shardwise."""
    problems, edges = [], {}
    for path in sorted(p for p in (root / "shardwise").rglob("*") if p.suffix in (".hpp", ".cuh", ".h", ".inc")):
        name = path.relative_to(root).as_posix()
        layer = layer_of(name)
        if layer and layer not in LAYERS:
            problems.append(f"{name}: '{layer}' is no layer; the layers are {', '.join(LAYERS)}")
            continue
        for line, member in dear_members(path):
            problems.append(f"{name}:{line}: {member} costs nvcc 128 MiB here; pass a copy, spec({member})")
        for line, what in by_string(path):
            problems.append(f"{name}:{line}: nvcc does not match {what} by a string; ask the argument for a member of its own")
        for line, quoted, target in includes(path):
            where = f"{name}:{line}"
            if quoted:
                target = (path.parent / target).resolve()
                target = target.relative_to(root).as_posix() if target.is_relative_to(root) else target.as_posix()
            if target.startswith("shardwise/"):
                if not (root / target).is_file():
                    problems.append(f"{where}: {target} does not exist")
                below = layer_of(target)
                if not layer:
                    continue
                edges.setdefault((layer, below), []).append(where)
                if not below:
                    problems.append(f"{where}: the umbrella {target} is for users; include the headers that are used")
                elif below not in LAYERS:
                    problems.append(f"{where}: {target} is in no layer")
                elif (layer, room_of(target)) in FORBIDDEN_ROOMS:
                    problems.append(f"{where}: {layer} -> {room_of(target)}: {FORBIDDEN_ROOMS[layer, room_of(target)]}")
                elif LAYERS.index(below) > LAYERS.index(layer):
                    problems.append(f"{where}: {layer} -> {below} points upward ({target})")
            else:
                for pattern, layers, why in RULES:
                    if layer in layers and pattern.search(target):
                        problems.append(f"{where}: <{target}> in layer '{layer or 'umbrella'}': {why}")
                        break
    return problems + circles(root) + upward_declarations(root) + hidden_types(root), edges


def room_of(path):
    """The folder of a header, with the folders below it: 'shardwise/runtime/cuda/device/map.cuh' -> 'runtime/cuda'."""
    parts = pathlib.PurePosixPath(path).parts
    return family_room(path) or "/".join(parts[1:3]) if len(parts) > 3 else parts[1]


TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'')
ATTRIBUTE = re.compile(r"\bSHARDWISE_(?:HIDDEN|VISIBLE)\b")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
CLASS = re.compile(r"\b(?:struct|class|union|enum)\s+(?:class\s+)?(?:\[\[[^]]*\]\]\s*)?(\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.DOTALL)
FUNCTION = re.compile(r"^(?:template\b|inline\b|constexpr\b|auto\b|void\b|bool\b|[\w:]+\b).*?[\s&*>](\w+)\s*\(", re.DOTALL)


def statements(text):
    """Yields (namespace, head, what ends it: ';' or '{', position) of everything that stands at namespace scope; inline namespaces
    are left out of the name."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    for pattern in (COMMENT, DIRECTIVE, TEXT, ATTRIBUTE):
        text = pattern.sub(blank, text)
    scopes, begin, skipped = [], 0, 0
    for brace in re.finditer(r"[{};]", text):
        at, mark = brace.start(), brace.group()
        if skipped:  # inside of what is no namespace
            skipped += {"{": 1, "}": -1, ";": 0}[mark]
            begin = at + 1
            continue
        head = text[begin:at]
        begin = at + 1
        opened = re.search(r"\b(inline\s+)?namespace\b\s*((?:[\w:]|\binline\s)*)\s*$", head)
        if mark == "{" and opened:
            scopes.append("" if opened.group(1) else re.sub(r"::inline\s+\w+", "", opened.group(2)))
        elif mark == "}":
            scopes = scopes[:-1]
        else:
            yield "::".join(filter(None, scopes)), head.strip(), mark, at - len(head.lstrip())
            skipped = 1 if mark == "{" else 0


def without_template(head):
    """The head of a declaration without the parameters of its template and what these must fulfil."""
    while head.startswith("template"):
        depth = 0
        for at, c in enumerate(head):
            depth += (c == "<") - (c == ">" and head[at - 1] != "-")
            if c == ">" and depth == 0:
                break
        head = head[at + 1:].lstrip()
    return head


def named(head, mark):
    """(kind, name) of what a statement declares or defines; None for what is neither class nor function, and for
    specialisations, which follow what they specialise."""
    head = without_template(head)
    if head.startswith("requires"):  # its condition may be anything; what it stands before is the last word of the head
        found = re.search(r"\b(?:struct|class)\s+(\w+)\s*(?:final\s*)?(?::[^:].*)?$", head, re.DOTALL)
        return ("class", found.group(1)) if found else None
    if re.match(r"(using|static_assert|extern|friend|concept|typedef|return)\b", head):
        return None
    found = CLASS.match(head)
    if found:
        return "class", found.group(1)
    if "(" not in head or "=" in head.partition("(")[0] or (mark == ";" and "operator" in head):
        return None
    found = FUNCTION.match(head)
    return ("function", found.group(1)) if found else None


def upward_declarations(root):
    """Declarations of classes and functions that only a higher layer defines, or a room of the same layer that includes this one:
    an #include that is not written. What nobody defines, as a template that users specialise, is free."""
    declared, defined, specialised, uses = [], {}, set(), {}
    for path in sorted(p for p in (root / "shardwise").rglob("*") if p.suffix in (".hpp", ".cuh")):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        if not layer_of(name):
            continue
        for line, quoted, target in includes(path):
            if not quoted and target.startswith("shardwise/") and layer_of(target) == layer_of(name):
                uses.setdefault(room_of(name), set()).add(room_of(target))
        for scope, head, mark, at in statements(text):
            what = named(head, mark)
            if what and mark == "{":
                defined.setdefault((scope, *what), set()).add(name)
            elif what:
                declared.append((name, text.count("\n", 0, at) + 1, (scope, *what)))
            elif mark == "{" and (special := re.search(r"\b(?:struct|class)\s+(\w+)\s*<", head)):
                specialised.add((name, special.group(1)))
    problems, used = [], set()
    for name, line, what in declared:
        where = defined.get(what, set())
        if not where or name in where or (name, what[2]) in specialised:
            continue
        order = lambda n: LAYERS.index(layer_of(n))
        above = all(order(n) > order(name) for n in where)
        beside = all(layer_of(n) == layer_of(name) and room_of(n) != room_of(name) and room_of(name) in uses.get(room_of(n), ()) for n in where)
        if not above and not beside:
            continue
        if (name, what[2]) in DECLARED:
            used.add((name, what[2]))
            continue
        problems.append(f"{name}:{line}: declares {what[2]}, which {', '.join(sorted(where))} defines, {'above' if above else 'in a room that includes this one'}: "
                        "an include that points upward, not written")
    for name, what in DECLARED:
        if (root / name).is_file() and (name, what) not in used:
            problems.append(f"{name}: declares {what} no more; take it out of DECLARED in test/levels.py")
    return problems


def hidden_types(root):
    """Types that a namespace `detail` gives and one around it too: inside, the name means whichever header came first."""
    given = {}
    for path in sorted(p for p in (root / "shardwise").rglob("*") if p.suffix in (".hpp", ".cuh")):
        text = path.read_text(encoding="utf-8")
        for scope, head, mark, at in statements(text):
            bare_head = without_template(head)
            alias = re.match(r"(?:using|concept)\s+(\w+)\s*=", bare_head)
            what = ("class", alias.group(1)) if alias else named(head, mark) if mark == "{" else None
            if what and what[0] == "class":
                given.setdefault((scope, what[1]), f"{path.relative_to(root).as_posix()}:{text.count(chr(10), 0, at) + 1}")
    problems = []
    for (scope, name), where in sorted(given.items()):
        around = scope if scope.endswith("::detail") else ""
        while "::" in around:
            around = around.rpartition("::")[0]
            if other := given.get((around, name)):
                problems.append(f"{where}: {scope}::{name} hides {around}::{name} of {other}; which of them is meant inside hangs on the order "
                                "of includes: name one of them otherwise")
    return problems


def circles(root):
    """Rooms of one layer that include each other, directly or through others, as problems."""
    uses = {}
    for path in sorted(p for p in (root / "shardwise").rglob("*") if p.suffix in (".hpp", ".cuh")):
        name = path.relative_to(root).as_posix()
        if not layer_of(name):
            continue
        for line, quoted, target in includes(path):
            if not quoted and target.startswith("shardwise/") and layer_of(target) == layer_of(name) and room_of(target) != room_of(name):
                uses.setdefault(room_of(name), {}).setdefault(room_of(target), f"{name}:{line}")
    reach = {room: set(direct) for room, direct in uses.items()}
    while any(not reach[b] <= reach[a] for a in reach for b in reach[a] & reach.keys()):
        for a in reach:
            reach[a] |= {c for b in reach[a] & reach.keys() for c in reach[b]}
    return [f"{where}: {a} -> {b} closes a circle of rooms; move what both need into one of them or below" for a in sorted(uses)
            for b, where in sorted(uses[a].items()) if a in reach.get(b, ())]


def mermaid(edges):
    """The layer graph as Mermaid text, an edge labelled with its number of include lines."""
    lines = ["graph BT"]
    lines += [f"  {layer}" for layer in LAYERS if any(layer in edge for edge in edges)]
    order = {layer: i for i, layer in enumerate(LAYERS)}
    for (above, below), uses in sorted(edges.items(), key=lambda e: (order.get(e[0][0], 99), order.get(e[0][1], 99))):
        if above != below and below:
            lines.append(f"  {above} -->|{len(uses)}| {below}")
    return "\n".join(lines) + "\n"


# (file, content, text that must be among the problems; None: must be clean)
SELFTEST = [
    ("vocabulary/mesh.hpp", "#include <shardwise/graph/op.hpp>\n", "vocabulary -> graph points upward"),
    ("runtime/executor/executor.hpp", "#include <shardwise/module/plan.hpp>\n", "runtime -> module points upward"),
    ("module/p.hpp", "#include <shardwise/runtime/run.hpp>\n", None),
    ("module/q.hpp", "#include <shardwise/runtime/cuda/rank.hpp>\n", "modules know no device"),
    ("pass/r.hpp", "namespace shardwise {\ntemplate <class M>\nclass ranks;\n}\n", "declares ranks, which shardwise/runtime/cuda/rank.hpp defines, above"),
    ("pass/s.hpp", "namespace shardwise::detail {\nvoid start(int x);\n}\n", "declares start, which shardwise/runtime/cuda/rank.hpp defines, above"),
    ("pass/q.hpp", "namespace shardwise::inline v1_2::detail {\nvoid start(int x);\n}\n", "declares start, which shardwise/runtime/cuda/rank.hpp defines, above"),
    ("pass/p.hpp", "namespace shardwise {\ninline namespace X {\ntemplate <class M>\nclass ranks;\n}\n}\n", "declares ranks, which shardwise/runtime/cuda/rank.hpp defines, above"),
    ("pass/t.hpp", "namespace shardwise {\nvoid start(int x);\nclass nobody;\ntemplate <class M>\nclass ranks { };\n}\n", None),
    ("io/u.hpp", "namespace shardwise {\ntemplate <class M> class ranks;\n}\n", None),
    ("graph/v.hpp", "namespace shardwise {\nstruct other;\n}\n", "declares other, which shardwise/graph/text/w.hpp defines, in a room that includes"),
    ("io/file.hpp", "#include <shardwise/module/plan.hpp>\n#include <shardwise/runtime/run.hpp>\n", None),
    ("support/a.hpp", "#include \"../graph/op.hpp\"\n", "support -> graph points upward"),
    ("graph/b.hpp", "  # include <cuda_runtime.h>\n", "<cuda_runtime.h> in layer 'graph'"),
    ("pass/c.hpp", "#include <mpi.h>\n", "<mpi.h> in layer 'pass'"),
    ("runtime/mpi.hpp", "#include <mpi.h>\n", None),
    ("runtime/d.hpp", "#include <functional>\n", "<functional> in layer 'runtime'"),
    ("module/e.hpp", "#include <format>\n", "<format> in layer 'module'"),
    ("pass/o.hpp", "#include <algorithm>\n", "<algorithm> in layer 'pass'"),
    ("module/f.hpp", "#include <boost/hana.hpp>\n", "boost/hana.hpp"),
    ("module/g.hpp", "#include <boost/hana/for_each.hpp>\n#include <shardwise/shardwise.hpp>\n", "umbrella"),
    ("graph/h.hpp", "#include <shardwise/support/gone.hpp>\n", "does not exist"),
    ("graph/i.hpp", "// #include <iostream>\n/* #include <regex>\n*/ #include <shardwise/graph/op.hpp>\n", None),
    ("extras/j.hpp", "", "'extras' is no layer"),
    ("pass/fuse/m.hpp", "#include <shardwise/pass/memory/plan.hpp>\n", "closes a circle"),
    ("pass/fuse/n.hpp", "#include <shardwise/graph/op.hpp>\n", None),
    ("operations/row/host.hpp", "#include <shardwise/runtime/executor/executor.hpp>\n", "closes a circle"),
    ("operations/row/host_sums.hpp", "#include <shardwise/graph/op.hpp>\n", None),
    ("operations/row/record.hpp", "#include <shardwise/operations/fill/host.hpp>\n", "operations -> runtime points upward"),
    ("graph/k.hpp", "template <class A>\nauto f() {\n  constexpr auto n = g(A::sp,\n                       1);\n}\n", "A::sp costs nvcc"),
    ("graph/l.hpp", "template <class A>\nauto f() {\n  constexpr auto n = g(spec(A::sp), A::sp.rank);\n}\n", None),
    ("graph/s.hpp", "namespace shardwise {\ntemplate <class T>\nusing sum = T;\nnamespace detail {\ntemplate <class T>\nstruct sum {};\n}\n}\n",
     "shardwise::detail::sum hides shardwise::sum"),
    ("graph/t.hpp", "namespace shardwise {\nstruct sum;\nnamespace detail {\nstruct sum {};\nstruct product {};\n}\nstruct q { using product = int; };\nnamespace other {\nstruct q {};\n}\n}\n", None),
    ("graph/p.hpp", "template <fixed_string P, class... S>\nstruct path<at<P, S...>> {\n};\n", "does not match path by a string"),
    ("graph/q.hpp", "template <template <fixed_string, class...> class At, fixed_string P, class... S>\nstruct of<At<P, S...>> : b<S...> {};\n",
     "does not match of by a string"),
    ("graph/r.hpp", "template <fixed_string P, class... S>\nstruct at {\n};\ntemplate <fixed_string P>\nstruct fact<at<P>> : q<P> {};\n", None),
]


def selftest():
    """Every fabricated tree must be judged as SELFTEST says."""
    wrong = 0
    for name, content, expected in SELFTEST:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for base in ("graph/op.hpp", "module/plan.hpp", "operations/fill/host.hpp", "runtime/run.hpp", "shardwise.hpp"):
                (root / "shardwise" / base).parent.mkdir(parents=True, exist_ok=True)
                (root / "shardwise" / base).write_text("#pragma once\n")
            for base in ("pass/memory/plan.hpp", "runtime/executor/executor.hpp"):  # these include what closes a circle
                back = root / "shardwise" / base
                back.parent.mkdir(parents=True, exist_ok=True)
                back.write_text(f"#include <shardwise/{name}>\n" if expected == "closes a circle" and base in content else "")
            for base, text in (("runtime/cuda/rank.hpp", "namespace shardwise {\ntemplate <class M>\n  requires true\nclass ranks final {\n};\nnamespace detail {\n"
                                "inline void start(int x) {}\n}\n}\n"),
                               ("graph/text/w.hpp", "#include <shardwise/graph/op.hpp>\nnamespace shardwise {\nstruct other : base<1> {\n};\n}\n")):
                (root / "shardwise" / base).parent.mkdir(parents=True, exist_ok=True)
                (root / "shardwise" / base).write_text(text)
            file = root / "shardwise" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
            problems, _ = check(root)
            good = any(expected in p for p in problems) if expected else not problems
            if not good or len(problems) > (2 if expected == "closes a circle" else 1):
                wrong += 1
                print(f"selftest: {name}: wanted {expected or 'no problem'!r}, got {problems}")
    print(f"levels selftest: {len(SELFTEST)} trees, {wrong} judged wrongly")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("include", nargs="?", default=pathlib.Path(__file__).parent.parent / "include")
    parser.add_argument("--mermaid", metavar="FILE", help="write the layer graph to FILE ('-' for stdout)")
    parser.add_argument("--selftest", action="store_true")
    arguments = parser.parse_args()
    if arguments.selftest:
        return selftest()
    problems, edges = check(pathlib.Path(arguments.include).resolve())
    if arguments.mermaid == "-":
        sys.stdout.write(mermaid(edges))
    elif arguments.mermaid:
        pathlib.Path(arguments.mermaid).write_text(mermaid(edges))
    for problem in problems:
        print(problem)
    if not arguments.mermaid:
        print(f"levels: {sum(map(len, edges.values()))} includes inside the library, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
