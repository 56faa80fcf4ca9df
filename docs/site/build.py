#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the documentation as a site of plain files: pages of docs/ and of the project, the sources that they link, a search over all
sections, the reference of the public names (test/reference.py), and all headers by Doxygen. Nothing is loaded from a network, neither here nor by a reader's browser.

    docs/site/build.py DIRECTORY [--without-headers]

Needs Python-Markdown (Debian: python3-markdown) and, for the headers, doxygen. Ends with an error if a page links what is not
there."""
import argparse
import html
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = pathlib.Path(__file__).resolve().parent
PROJECT = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]


def slug(title, _=None):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def name_of(path):
    """The page that a file of the repository becomes: docs/x.md is x.html, the table of contents the start."""
    relative = path.relative_to(ROOT)
    if relative == pathlib.Path("docs/README.md"):
        return "index.html"
    if relative.suffix == ".md" and (relative.parent.name == "docs" or str(relative) in PROJECT):
        return ("about" if relative.name == "README.md" else relative.stem.lower()) + ".html"
    return "files/" + str(relative).replace("/", "-") + ".html"


def title_of(text, path):
    heading = re.search(r"^# (.+)$", text, re.M)
    return heading[1].replace("`", "") if heading else path.name


class Site:
    def __init__(self, to):
        self.to = to
        self.pages = [ROOT / "docs/README.md"]
        table = (ROOT / "docs/README.md").read_text(encoding="utf-8")
        for link in re.findall(r"^\| \[[^\]]+\]\(([\w-]+\.md)\)", table, re.M):  # in the order of the table of contents
            self.pages.append(ROOT / "docs" / link)
        self.pages += [p for p in sorted((ROOT / "docs").glob("*.md")) if p not in self.pages]
        self.project = [ROOT / p for p in PROJECT]
        self.sections = []
        self.linked = []  # files that pages link and that are no pages

    def link(self, page, target):
        """What a link of a page becomes."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            raise SystemExit(f"{page.relative_to(ROOT)}: links {target}, which is not there")
        up = "../" if name_of(page).startswith("files/") else ""
        if file.is_dir():
            listing = file / "README.md"
            if not listing.exists():
                self.folder(file)
                return up + name_of(file)
            file = listing
        if file not in self.pages + self.project and file not in self.linked:
            self.linked.append(file)
        return up + name_of(file) + ("#" + anchor if anchor else "")

    def folder(self, path):
        if path not in self.linked:
            self.linked.append(path)

    def frame(self, name, title, body):
        up = "../" * name.count("/")
        def entry(page):
            text = title_of(page.read_text(encoding="utf-8"), page)
            here = ' class="here"' if name_of(page) == name else ""
            return f'<a href="{up}{name_of(page)}"{here}>{html.escape(text)}</a>'
        reference = f'<a href="{up}reference.html">Reference</a>'
        if self.has_headers:
            reference += f'<a href="{up}headers/index.html">All headers</a>'
        return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><link rel="stylesheet" href="{up}style.css"></head>
<body><nav><input id="search" type="search" placeholder="search, or paste an error" aria-label="search"><div id="found"></div>
<b>Documentation</b>{"".join(entry(p) for p in self.pages)}{reference}
<b>Project</b>{"".join(entry(p) for p in self.project)}</nav>
<main>{body}</main>
<script>const site_root = "{up}";</script><script src="{up}sections.js"></script><script src="{up}search.js"></script></body></html>
"""

    def write(self, name, text):
        path = self.to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def page(self, path, name=None):
        """A page of Markdown; `name`: of one that is no file of the repository."""
        import markdown
        text = path.read_text(encoding="utf-8")
        name = name or name_of(path)
        body = markdown.markdown(text, extensions=["fenced_code", "tables", "sane_lists", "toc"],
                                 extension_configs={"toc": {"slugify": slug}}, output_format="html")
        body = re.sub(r'(<a href=")([^"]+)"', lambda m: m[1] + html.escape(self.link(path, html.unescape(m[2]))) + '"', body)
        title = title_of(text, path)
        self.write(name, self.frame(name, title, body))
        if name.startswith("files/"):
            return
        parts = re.split(r'<h[1-4] id="([^"]*)">(.*?)</h[1-4]>', body)
        for anchor, heading, rest in zip(parts[1::3], parts[2::3], parts[3::3]):
            plain = lambda t: html.unescape(re.sub(r"<[^>]+>", " ", t))
            self.sections.append({"to": name + "#" + anchor,
                                  "title": title + (": " + plain(heading) if plain(heading) != title else ""),
                                  "text": re.sub(r"\s+", " ", plain(rest))})

    def file(self, path):
        if path.is_dir():
            items = "".join(f"<li>{html.escape(p.name)}</li>" for p in sorted(path.iterdir()))
            body = f"<h1>{html.escape(str(path.relative_to(ROOT)))}</h1><ul>{items}</ul>"
        elif path.suffix == ".md":
            return self.page(path)
        else:
            text = html.escape(path.read_text(encoding="utf-8", errors="replace"))
            body = f"<h1>{html.escape(str(path.relative_to(ROOT)))}</h1><pre><code>{text}</code></pre>"
        self.write(name_of(path), self.frame(name_of(path), str(path.relative_to(ROOT)), body))

    def build(self, headers):
        self.has_headers = headers
        for path in self.pages + self.project:
            self.page(path)
        with tempfile.TemporaryDirectory() as scratch:
            reference = pathlib.Path(scratch) / "reference.md"
            subprocess.run([sys.executable, ROOT / "test/reference.py", reference], check=True, stdout=subprocess.DEVNULL)
            self.page(reference, "reference.html")
        while any(not (self.to / name_of(p)).exists() for p in self.linked):
            for path in [p for p in self.linked if not (self.to / name_of(p)).exists()]:
                self.file(path)
        self.write("sections.js", "const pages_text = " + json.dumps(self.sections, ensure_ascii=False) + ".map(s => ({...s, to: site_root + s.to}));\n")
        for name in ("style.css", "search.js"):
            shutil.copy(SITE / name, self.to / name)
        if headers:
            config = (SITE / "Doxyfile").read_text(encoding="utf-8") + f"OUTPUT_DIRECTORY = \"{self.to}\"\n"
            ran = subprocess.run(["doxygen", "-"], input=config, text=True, cwd=ROOT, stderr=subprocess.PIPE)
            if ran.returncode != 0:
                raise SystemExit("doxygen: " + ran.stderr[-2000:])
            known = self.to / "headers/classshardwise_1_1executor.html"
            if not known.is_file() or "with_parameters_of" not in known.read_text(encoding="utf-8"):
                raise SystemExit(f"doxygen: {known.name} is missing or has no text of its header: see docs/site/filter.py")


class Links(html.parser.HTMLParser):
    """What a page refers to, and the anchors that it has."""

    def __init__(self, text):
        super().__init__()
        self.refers, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("href", "src"):
                self.refers.append((tag, value))
            elif key in ("id", "name"):
                self.ids.add(value)


def check(to):
    """The problems of a site: links to what is not there, and what a browser would load from elsewhere. Doxygen's own pages are
    not read, but that the pages refer to exist."""
    seen, problems = {}, []
    pages = [p for p in to.rglob("*.html") if "headers" not in p.relative_to(to).parts]
    def read(path):
        if path not in seen:
            seen[path] = Links(path.read_text(encoding="utf-8"))
        return seen[path]
    for page in pages:
        for tag, target in read(page).refers:
            if re.match(r"[a-z]+:", target):
                if tag != "a":
                    problems.append(f"{page.name}: loads {target}")
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.is_file():
                problems.append(f"{page.name}: {target} is not there")
            elif anchor and file.suffix == ".html" and "headers" not in file.parts and anchor not in read(file).ids:
                problems.append(f"{page.name}: {target} has no such section")
    return pages, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--selftest", action="store_true", help="spoils a page of the site that it has written: the check must see it")
    parser.add_argument("--without-headers", action="store_true")
    arguments = parser.parse_args()
    try:
        import markdown  # noqa: F401
    except ImportError:
        print("site: Python-Markdown is not installed: install the package python3-markdown, or run ./quickstart site")
        return 77
    if not arguments.without_headers and not shutil.which("doxygen"):
        print("site: doxygen is not installed: install it, give --without-headers, or run ./quickstart site")
        return 77
    to = arguments.directory.resolve()
    if to.exists() and any(to.iterdir()) and not (to / "sections.js").is_file():
        print(f"site: {to} holds something that is no site, and would be emptied: give an empty or a new directory")
        return 1
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    site = Site(to)
    site.build(not arguments.without_headers)
    pages, problems = check(to)
    if arguments.selftest:
        page = to / "plans.html"
        for old, new, expected in ((' href="models.html', ' href="model.html', "is not there"), (' id="settings"', ' id="setting"', "has no such section"),
                                   ("<main>", '<main><img src="https://example.org/x.png">', "loads")):
            whole = page.read_text(encoding="utf-8")
            if old not in whole or not any(expected in p for p in (page.write_text(whole.replace(old, new), encoding="utf-8"), check(to)[1])[1]):
                problems.append(f"selftest: {new} in {page.name} was not found")
            page.write_text(whole, encoding="utf-8")
    for problem in problems:
        print("site:", problem)
    print(f"site: {len(pages)} pages, {len(site.sections)} sections, {len(problems)} problems: {to / 'index.html'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
