# SPDX-License-Identifier: Apache-2.0
"""Which public functions of tensors the headers have, read from the preprocessed headers, and which the generator writes. One
that it does not write fails the tests: teach it in statements.py (or say here why not)."""

import pathlib
import re
import subprocess
import sys

# Public functions that no generated program can call, with the reason.
EXEMPT = {
    "implicit_application": "part of implicit mode",
    "set_": "changes which storage a tensor has; a generated program's tensors are const",
    # graph/functions/misuses.hpp: each use of one is a sentence
    **{f"operator{op}": "refused in every program" for op in ("<", ">", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=")},
}
# Members of an eager tensor that the generated programs' support header, or a program, calls.
MEMBERS_USED = {
    "distribute", "to_local", "run", "from_local", "distribute_from_first", "empty", "full", "zeros", "ones", "rand", "randn",
    "full_tensor", "item", "has_value", "rank", "local_mdspan", "shares_storage_with", "initial",
}
# Members that are the operations' way in, not the user's.
MEMBERS_INNER = {"apply", "apply_results", "take_off", "depart", "arrive", "cancel", "apply_leaf", "apply_opaque", "value", "of", "run_untyped",
                 "update_untyped", "zero_states", "dtensor", "refuse_number", "landed", "operatorB", "operator[",
                 "set_storage", "watcher"}

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|\d[\w.\']*|::|->|<<=|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|\S')
OPERATORS = {"+", "-", "*", "/", "==", "!=", "<=", ">=", "<", ">", "&&", "||", "()", "[]", "=", "%", "!", "+=", "-=", "*=", "/="}


def tokens_of(include, compiler, headers, system=()):
    """Tokens of the library's own headers after preprocessing, macros expanded."""
    source = "#include <shardwise/shardwise.hpp>\n#include <shardwise/more_functions.hpp>\n"
    command = [compiler, "-std=c++20", "-x", "c++", "-E", f"-I{include}"] + [f for d in system for f in ("-isystem", d)] + ["-"]
    text = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    root, keep, out = str(pathlib.Path(include) / "shardwise") + "/", False, []
    for line in text.splitlines():
        m = re.match(r'# \d+ "([^"]*)"', line)
        if m:
            path = m.group(1)
            keep = path.startswith(root) and headers(path[len(root):])
        elif keep and not line.startswith("#"):
            out.append(line)
    return TOKEN.findall("\n".join(out))


def balanced(tokens, i, opening, closing):
    """Index behind the bracket that closes the one at i."""
    depth = 0
    while i < len(tokens):
        if tokens[i] == opening:
            depth += 1
        elif tokens[i] == closing:
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    return i


def angles(tokens, i):
    """Index behind the '>' that closes the '<' at i; brackets within are skipped."""
    depth = 0
    while i < len(tokens):
        t = tokens[i]
        if t == "(":
            i = balanced(tokens, i, "(", ")")
            continue
        if t == "{":
            i = balanced(tokens, i, "{", "}")
            continue
        if t == "<":
            depth += 1
        elif t == ">":
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    return i


def function_name(declaration):
    """(name, template parameters) of a function's declaration, or None."""
    i, parameters = 0, []
    while i < len(declaration) and declaration[i] == "template":
        end = angles(declaration, i + 1)
        parameters += declaration[i + 1:end]
        i = end
    if i < len(declaration) and declaration[i] == "requires":
        i += 1
        while i < len(declaration) and declaration[i] not in ("constexpr", "auto", "inline", "void", "static", "struct", "class", "explicit"):
            i = balanced(declaration, i, "(", ")") if declaration[i] == "(" else angles(declaration, i) if declaration[i] == "<" else i + 1
    rest = declaration[i:]
    if not rest or rest[0] in ("struct", "class", "enum", "using", "concept", "static_assert", "namespace", "extern", "friend", "public", "private"):
        return None
    k = 0
    while k < len(rest):
        t = rest[k]
        if t == "=" or t == "{":
            return None
        if t == "operator":
            name = rest[k + 1] if rest[k + 1] != "(" else "()"
            return "operator" + name, parameters, rest
        if t == "<":
            k = angles(rest, k)
            continue
        if t in ("decltype", "noexcept", "alignas", "__attribute__", "requires") and k + 1 < len(rest) and rest[k + 1] == "(":
            k = balanced(rest, k + 1, "(", ")")
            continue
        if re.match(r"[A-Za-z_]\w*$", t) and k + 1 < len(rest) and rest[k + 1] == "(":
            return t, parameters, rest
        k += 1
    return None


def declarations(tokens, wanted=("shardwise",)):
    """Of each declaration directly within namespace shardwise, its tokens without the body."""
    stack, i, start = [], 0, 0
    while i < len(tokens):
        t = tokens[i]
        if t == "namespace":
            k = i + 1
            name = []
            while tokens[k] not in ("{", ";", "="):
                name.append(tokens[k])
                k += 1
            if tokens[k] == "{":
                written = "" if i > 0 and tokens[i - 1] == "inline" else " ".join(name)
                stack.append(re.sub(r"( :: )inline \w+", "", written).replace(" ", ""))  # an inline namespace is none of its own
                i = start = k + 1
            else:
                i = start = k + 1
            continue
        if t == "}":
            if stack:
                stack.pop()
            i = start = i + 1
            continue
        if t == ";":
            if tuple(filter(None, stack)) == wanted:
                yield tokens[start:i]
            i = start = i + 1
            continue
        if t == "template" and tokens[i + 1] == "<":  # braces among its defaults open no body
            i = angles(tokens, i + 1)
            continue
        if t == "(":
            i = balanced(tokens, i, "(", ")")
            continue
        if t == "{":
            end = balanced(tokens, i, "{", "}")
            if tuple(filter(None, stack)) == wanted:
                yield tokens[start:end]
            i = end
            if i < len(tokens) and tokens[i] == ";":
                i += 1
            start = i
            continue
        i += 1


def headers_of_functions(path):
    return path.startswith("graph/") or path in ("runtime/eager/create.hpp", "module/function.hpp", "module/eager_gradient.hpp")


def public_functions(include, compiler="g++", system=()):
    """Functions of tensors, and those that make tensors on a rank."""
    found = set()
    for d in declarations(tokens_of(include, compiler, headers_of_functions, system)):
        f = function_name(d)
        if f is None:
            continue
        name, parameters, rest = f
        arguments = rest[:rest.index("{")] if "{" in rest else rest
        if "tensor" in parameters or ("eager" in arguments and "Rank" in parameters) or name == "value_and_grad":
            found.add(name)
    return found


def public_members(include, compiler="g++", system=()):
    """Public member functions of dtensor."""
    for d in declarations(tokens_of(include, compiler, lambda p: p == "runtime/eager/dtensor.hpp", system)):
        if "class" in d and "dtensor" in d and "{" in d and d.index("dtensor") < d.index("{"):
            body = d[d.index("{") + 1:-1]
            public, i, start, found = False, 0, 0, set()
            while i < len(body):
                t = body[i]
                if t in ("public", "private", "protected") and body[i + 1] == ":":
                    public = t == "public"
                    i = start = i + 2
                    continue
                if t == "(":
                    i = balanced(body, i, "(", ")")
                    continue
                if t in ("{", ";"):
                    end = balanced(body, i, "{", "}") if t == "{" else i + 1
                    one = [x for x in body[start:i] if x not in ("static", "constexpr", "inline", "const&", "explicit")] + ["{"]
                    if public and "=" not in one:
                        f = function_name(one)
                        if f:
                            found.add(f[0])
                    i = start = end
                    continue
                i += 1
            return found
    return set()


def written_by_generator(programs=2000):
    import generate
    import other
    names = set()
    generate.depends = lambda program, k: True  # what it costs is gradients, which nobody looks at here
    for seed in range(programs):
        p = generate.make_program(seed)
        names |= p.used
        for s in p.statements:
            names.update(re.findall(r"sw::(\w+)", s.code))
    return names | other.names_used()


def check(include, compiler="g++", system=()):
    functions, members = public_functions(include, compiler, system), public_members(include, compiler, system)
    if len(functions) < 150 or len(members) < 15:
        print(f"only {len(functions)} functions and {len(members)} members are found: the headers are not read as they should be")
        return 1
    known = written_by_generator()
    missing = sorted(functions - known - set(EXEMPT))
    other_members = sorted(members - MEMBERS_USED - MEMBERS_INNER)
    if missing:
        print("public functions that the generator does not write; teach it in test/fuzz_programs/statements.py: " + ", ".join(missing))
    if other_members:
        print("members of dtensor that no generated program calls; use them in test/fuzz_programs: " + ", ".join(other_members))
    stale = sorted(n for n in EXEMPT if n not in functions and n != "implicit_application")
    if stale:
        print("exempt, but not there any more: " + ", ".join(stale))
    if missing or other_members or stale:
        return 1
    print(f"{len(functions)} public functions and {len(members)} members of dtensor are known to the generator")
    return 0


if __name__ == "__main__":
    sys.exit(check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent.parent / "include")))
