#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program that was built with SHARDWISE_EXPLAIN and reads the pages that it wrote: well-formed, nothing loaded from elsewhere, as
many nodes and bytes as the program says. With --browser it opens them in one that is installed, in light and in dark, and asks it what
it made of them; where none is, that is said and the exit status is 77."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


def check_page(text, facts):
    """The first thing that is wrong with a page, or ''."""
    nodes, dp, tp, peak = facts
    root = xml.etree.ElementTree.fromstring(text)
    if re.search(r"(src|href)=|url\(|@import|<script", text):
        return "it loads something"
    boxes = [g for g in root.iter(SVG + "g") if g.get("class") == "node"]
    if len(boxes) != nodes:
        return f"{len(boxes)} nodes are drawn of {nodes}"
    tables = {t.get("id"): [[c.text or "" for c in row] for row in t] for t in root.iter(HTML + "table")}
    for axis, bytes_sent in (("dp", dp), ("tp", tp)):
        if [axis, "all", ""] not in [row[:3] for row in tables["axes-table"] if row[-1] == str(bytes_sent)]:
            return f"axis {axis} does not send {bytes_sent} bytes"
    if tables["memory-table"][-1] != ["all", str(peak)]:
        return f"the memory is not {peak} bytes"
    return ""


def browse(browser, page, dark):
    """The page as the browser has it after loading."""
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom"]
        if dark:
            command.append("--blink-settings=preferredColorScheme=0")
        return subprocess.run(command + [page.as_uri()], capture_output=True, text=True, timeout=120, check=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--selftest", action="store_true")
    args = parser.parse_args()
    if args.selftest:
        page = (f'<html xmlns="{HTML[1:-1]}"><table id="axes-table"><tr><td>dp</td><td>all</td><td></td><td>2</td></tr><tr><td>tp</td>'
                '<td>all</td><td></td><td>3</td></tr></table><table id="memory-table"><tr><td>all</td><td>9</td></tr></table>'
                f'<svg xmlns="{SVG[1:-1]}"><g class="node"/></svg></html>')
        assert check_page(page, (1, 2, 3, 9)) == ""
        for wrong in ((2, 2, 3, 9), (1, 3, 3, 9), (1, 2, 2, 9), (1, 2, 3, 8)):
            assert check_page(page, wrong) != "", wrong
        assert check_page(page.replace("<svg", '<img src="x"/><svg'), (1, 2, 3, 9)) == "it loads something"
        print("explained.py: what is wrong with a page is found")
        return 0
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if args.browser and not browser:
        print("no browser is installed; looked for: " + ", ".join(BROWSERS))
        return 77
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([args.program], env={**os.environ, "SHARDWISE_EXPLAIN_FOLDER": folder}, capture_output=True, text=True,
                             timeout=120, check=True)
        facts = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in run.stdout.splitlines()}
        written = sorted(path.name for path in pathlib.Path(folder).iterdir())
        wanted = sorted(name + end for name in facts for end in (".md", ".html"))
        if written != wanted:
            sys.exit(f"written were {written}, not {wanted}")
        for name, numbers in facts.items():
            page = pathlib.Path(folder, name + ".html")
            if wrong := check_page(page.read_text(encoding="utf-8"), numbers):
                sys.exit(f"{page.name}: {wrong}")
            for dark in (False, True) if args.browser else ():
                dom = browse(browser, page, dark)
                if dom.count('class="node"') != numbers[0] or dom.count("<svg") < 4 or f"<td class=\"n\">{numbers[3]}</td>" not in dom:
                    sys.exit(f"{page.name}: {browser} shows something else{' in dark' if dark else ''}")
    print(f"{len(facts)} programs wrote themselves" + (f"; {browser} shows them" if args.browser else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
