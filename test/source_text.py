# SPDX-License-Identifier: Apache-2.0
"""C++ sources as the scripts of this folder read them: whatever their white space is."""

import re

SPACE = re.compile(r"(?:\s|\\\n)+")  # with the line ends of macros
TOKEN = re.compile(r'''(?P<space>[ \t\r\f\v]+|\\\n)|(?P<line>\n)|(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<word>(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+'
    |[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|'?[\w.])*
    |\.\.\.|->\*|<=>|<<=|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)''', re.VERBOSE | re.DOTALL)


def places(content, text):
    """(begin, end) of each place in content where text stands, whatever the white space of both is."""
    kept = [at for at, c in enumerate(content) if not c.isspace() and content[at:at + 2] != "\\\n"]
    bare, wanted, found = "".join(content[k] for k in kept), SPACE.sub("", text), []
    at = bare.find(wanted) if wanted else -1
    while at >= 0:
        found.append((kept[at], kept[at + len(wanted) - 1] + 1))
        at = bare.find(wanted, at + len(wanted))
    return found


def replaced(content, text, replacement):
    """content with the only place where text stands replaced."""
    (begin, end), = places(content, text)
    return content[:begin] + replacement + content[end:]


def tokens(content):
    """What a compiler makes of a source: its tokens, the ends of its directives, and its comments without spaces at their ends."""
    result, directive, first = [], False, True
    for match in TOKEN.finditer(content):
        kind, text = match.lastgroup, match.group()
        if kind == "mark":
            kind = "word"
        if kind == "line":
            if directive:
                result.append("\n")
            directive, first = False, True
        elif kind == "comment":
            result.append("\n".join(line.strip() for line in text.splitlines()))
        elif kind == "word":
            directive = directive or (first and text == "#")
            first = False
            result.append(text)
    return result
