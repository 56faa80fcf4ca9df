#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Doxygen's input filter: a header as it stands, its comments in the form that Doxygen takes for documentation. Lines stay where
they are. A comment above a declaration documents it, one behind a member that member; the header's second line is the file's."""
import re
import sys

lines = open(sys.argv[1], encoding="utf-8").read().split("\n")
head = 0
while head < len(lines) and (lines[head].startswith("//") or not lines[head].strip()):
    head += 1
about = [line[2:].strip() for line in lines[:head] if line.startswith("//") and "SPDX-License-Identifier" not in line]
out = ["" for _ in range(head)]


def escaped(text):
    """Text that Doxygen shall show as it is: it has commands of its own, and takes <x> for HTML."""
    text = re.sub(r"([\\@#%])", r"\\\1", text)
    return text.replace("<", "&lt;").replace(">", "&gt;")


if about:
    out[0] = "/** \\file\\brief " + escaped(" ".join(about)).replace("*/", "* /") + " */"
for line in lines[head:]:
    line = line.replace("namespace shardwise::inline v0_1", "namespace shardwise")  # its version is no part of a name
    alone = re.match(r"^(\s*)//( ?)(?!\s*-{3})(.*)$", line)
    behind = re.match(r'^((?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/))*\S)\s+// (.*)$', line)
    statement = behind and re.match(r"\s*(return|if|for|while|break|continue|case|else)\b", behind[1])
    if alone:
        out.append(f"{alone[1]}/// {escaped(alone[3])}")
    elif behind and behind[1][-1] in ";," and not statement:
        out.append(f"{behind[1]}  ///< {escaped(behind[2])}")
    else:
        out.append(line)
sys.stdout.write("\n".join(out))
