#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a shared object exports no kernel of the host and no table of kernels: exports.py NM FILE EXPORTED

EXPORTED is a function that it must export. The file's own table of symbols must have kernels, or there is nothing to see.
"""

import re
import subprocess
import sys

KERNEL = re.compile(r"\b(host|runtime)::(built_in|with_blas)(_by_nvcc)?::|\bshardwise::(v\d+_\d+::)?(operations::element|host_kernel)<")


def symbols(nm, *options):
    """The names that nm lists, as they are written in C++."""
    lines = subprocess.run([nm, "-C", "--defined-only", *options], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    return [line.split(None, 2)[2] for line in lines if len(line.split(None, 2)) == 3]


def main():
    nm, file, wanted = sys.argv[1:]
    own, exported = symbols(nm, file), symbols(nm, "-D", file)
    kernels = [name for name in own if KERNEL.search(name)]
    seen = [name for name in exported if KERNEL.search(name)]
    for name in seen[:10]:
        print(f"exported: {name[:200]}")
    good = not seen and len(kernels) > 10 and any(name.startswith(wanted + "(") for name in exported)
    print(f"exports: {len(exported)} of {len(own)} symbols, {len(seen)} of {len(kernels)} kernels; {wanted} is "
          f"{'one' if any(name.startswith(wanted + '(') for name in exported) else 'none'} of them")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
