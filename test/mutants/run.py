#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks one sharding rule, pullback, layout or kernel at a time; the rule proofs must then fail to compile.

Each mutant is a change of text in a temporary copy of include/. The unchanged copy must compile, and every change must
be found exactly once, so that the list cannot go stale unnoticed. --sample I/N takes every N-th mutant from the I-th.
"""

import argparse
import concurrent.futures
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

TEST = pathlib.Path(__file__).resolve().parent.parent
PROOFS = sorted((TEST / "static" / "propagation" / "rule_proofs").glob("*.cpp"))
MEMORY = 14_000_000 * 1024  # bytes of address space
EVIDENCE = ("a sharding rule admits a placement", "constant expression", "outside the bounds of array")

PROPAGATION = "propagation/"
KERNELS = "runtime/host/kernels/"
PULLBACK = "autodiff/pullback.hpp"

# (name, header below include/shardwise, text, replacement)
MUTANTS = [
    ("einsum: a contracted shard comes out sharded, a batch shard partial", PROPAGATION + "contraction.hpp",
     "dc >= 0 ? S(dc) : P});  // a batch dim", "dc >= 0 ? P : S(0)});  // a batch dim"),
    ("einsum: a free shard of rhs beside a replicate lhs", PROPAGATION + "contraction.hpp",
     "t.push_back({{U, S(d)}, S(", "t.push_back({{R, S(d)}, S("),
    ("einsum: partial times partial", PROPAGATION + "contraction.hpp", "t.push_back({{P, U}, P});",
     "t.push_back({{P, P}, P});"),
    ("einsum: a partial operand gives a reduced result", PROPAGATION + "contraction.hpp", "t.push_back({{U, P}, P});",
     "t.push_back({{U, P}, U});"),
    ("pointwise: the broadcast operand of a shard is replicate", PROPAGATION + "pointwise.hpp",
     "(is_floating(in[k].type) ? rows::U : rows::R)", "rows::R"),
    ("pointwise: every operation is linear", PROPAGATION + "pointwise.hpp",
     "if (lin == linearity::joint) t.push_back", "t.push_back"),
    ("pointwise: add takes one partial operand", PROPAGATION + "infer.hpp",
     "case op_code::sub: return linearity::joint;", "case op_code::sub: return linearity::each;"),
    ("pointwise: relu of a partial value", PROPAGATION + "infer.hpp",
     "    case op_code::scale:\n    case op_code::dropout:\n    case op_code::contiguous:\n",
     "    case op_code::scale:\n    case op_code::relu:\n    case op_code::dropout:\n    case op_code::contiguous:\n"),
    ("match: the result forgets the block", PROPAGATION + "rule.hpp",
     "if (m.out.is_shard() && split) m.out = split_along(m.out.dim, *split);", ""),
    ("sum: over a sharded dim, called replicate", PROPAGATION + "reduction.hpp",
     "in_mask(a.v[0], d) ? rows::P : rows::S(sum_dim(a, d))", "in_mask(a.v[0], d) ? rows::R : rows::S(sum_dim(a, d))"),
    ("sum: the shard keeps its old dim number", PROPAGATION + "reduction.hpp",
     "? rows::P : rows::S(sum_dim(a, d))", "? rows::P : rows::S(d)"),
    ("sumsq: keeps the partial row of sum", PROPAGATION + "infer.hpp",
     "--t.count;  // not linear", "// not linear"),
    ("rows: the reduced dim may be sharded", PROPAGATION + "reduction.hpp",
     "constexpr rule_rows row_rows(int rank, int operands, int weights, bool linear_in_first) {\n  rule_rows t;\n"
     "  t.push_back(rows::all(rows::R, rows::R));\n  t.push_back(rows::all(rows::U, rows::U));\n  for (int d = 0; d + 1 < rank; ++d)",
     "constexpr rule_rows row_rows(int rank, int operands, int weights, bool linear_in_first) {\n  rule_rows t;\n"
     "  t.push_back(rows::all(rows::R, rows::R));\n  t.push_back(rows::all(rows::U, rows::U));\n  for (int d = 0; d < rank; ++d)"),
    ("rows: weights beside sharded rows are replicate", PROPAGATION + "reduction.hpp",
     "r.in[k] = rows::U;\n    t.push_back(r);\n  }\n  if (linear_in_first)",
     "r.in[k] = rows::R;\n    t.push_back(r);\n  }\n  if (linear_in_first)"),
    ("norm: the weight gradient of sharded rows is whole", PROPAGATION + "reduction.hpp",
     "t.push_back(rows::all(rows::S(d), rows::P));", "t.push_back(rows::all(rows::S(d), rows::U));"),
    ("embedding: indices sharded beside a replicate table", PROPAGATION + "reduction.hpp",
     "t.push_back({{U, S(d)}, S(d)});", "t.push_back({{R, S(d)}, S(d)});"),
    ("embedding: the feature shard lands on the first dim", PROPAGATION + "reduction.hpp",
     "t.push_back({{S(1), R}, S(index.rank)});", "t.push_back({{S(1), R}, S(0)});"),
    ("embedding: rows of a sharded table are called whole", PROPAGATION + "reduction.hpp",
     "t.push_back({{S(0), R}, P});", "t.push_back({{S(0), R}, U});"),
    ("embedding: a rank takes its first row for one that it does not own", KERNELS + "index.hpp",
     "if (row < 0 || row >= w.ext[0]) {\n        for (std::int64_t i = 0; i < n; ++i) to[i] = T(0);",
     "if (row < 0 || row >= w.ext[0]) {\n        for (std::int64_t i = 0; i < n; ++i) to[i] = T(1);"),
    ("embedding: the gradient's rows are split anew", PROPAGATION + "reduction.hpp",
     "return out.is_shard(0) && a.v[1 + axis] != 0 ? unpack_placement(a.v[1 + axis]) : out;", "return out;"),
    ("vector_norm: norms of parts are summed", PROPAGATION + "reduction.hpp",
     "t.item[r].out = partial_norm_value(static_cast<int>(a.v[2]));", "t.item[r].out = partial_value();"),
    ("vector_norm: its cotangent may be partial beside a replicate operand", PROPAGATION + "reduction.hpp",
     "if (!in_mask(a.v[0], d)) t.push_back({{S(sum_dim(a, d)), S(d), S(sum_dim(a, d))}, S(d)});\n  t.push_back({{P, U, U}, P});",
     "if (!in_mask(a.v[0], d)) t.push_back({{S(sum_dim(a, d)), S(d), S(sum_dim(a, d))}, S(d)});\n  t.push_back({{P, U, P}, P});"),
    ("permute: shards stay where they were", PROPAGATION + "view.hpp",
     "r.out.place[m].dim = static_cast<std::int16_t>(d);", "(void)d;"),
    ("reshape: an inner dim's shard is carried to the front", PROPAGATION + "view.hpp",
     "if (from.extent[i] != 1) return false;", "if (from.extent[i] < 0) return false;"),
    ("reshape: the block is not scaled", PROPAGATION + "view.hpp",
     "if (chunk_size(e, 1, n) == chunk) return true;", "if (e > 0) return true;"),
    ("slice: a sharded dim may be cut", PROPAGATION + "view.hpp",
     "if (x.place[m].is_shard(d) && !keeps_chunks(x, d, a.v[1], a.v[2])) return fail(problem::slice_dim_sharded, x, 0, d, 0, 0, m);\n  outcome r{{}, x};\n  r.out.extent[d] = a.v[2];\n  r.out.offset",
     "if (x.place[m].is_shard(-1)) return fail(problem::slice_dim_sharded, x, 0, d, 0, 0, m);\n  outcome r{{}, x};\n  r.out.extent[d] = a.v[2];\n  r.out.offset"),
    ("cat: the joined dim may be sharded", PROPAGATION + "join.hpp", "if (d != a.v[0]) t.push_back", "if (d >= 0) t.push_back"),
    ("broadcast: a sharded dim may be made longer", PROPAGATION + "join.hpp",
     "if (!is_broadcast_dim(x, out, d)) t.push_back(", "if (d >= out.rank - x.rank) t.push_back("),
    ("gather: a sharded index beside a replicate tensor", PROPAGATION + "indexing.hpp",
     "t.push_back({{U, S(along)}, S(dim)});", "t.push_back({{R, S(along)}, S(dim)});"),
    ("scatter: the last writer is sought in a part of the line", PROPAGATION + "infer.hpp",
     "--t.count;  // which write", "// which write"),
    ("scatter: a number is written into every share", PROPAGATION + "indexing.hpp",
     "if (n > 2 || a.v[1] != 0) t.push_back", "t.push_back"),
    ("constant_pad: every share is padded with a number", PROPAGATION + "fill.hpp", "if (a.v[5] != 0) t.push_back", "t.push_back"),
    ("transition: partial to reduced costs nothing", PROPAGATION + "transition.hpp",
     "to.is_whole() ? transition::all_reduce : transition::none", "to.is_replicate() ? transition::all_reduce : transition::none"),
    ("transition: a shard becomes partial where it lies", PROPAGATION + "transition.hpp",
     "to.is_partial() ? transition::place_chunk : transition::all_to_all",
     "to.is_partial() ? transition::to_partial : transition::all_to_all"),
    ("split: chunks overlap by one", "vocabulary/spec.hpp",
     "const std::int64_t hi = lo + chunk < whole.size ? lo + chunk : whole.size;",
     "const std::int64_t hi = lo + chunk < whole.size ? lo + chunk + 1 : whole.size;"),
    ("split: the block does not round the chunk", "vocabulary/spec.hpp",
     "return ceil_div(ceil_div(extent, block), parts) * block;", "return ceil_div(extent, parts * block / block);"),
    ("dual: reduced is its own", "vocabulary/placement.hpp",
     "case placement_kind::reduced: return partial_value();", "case placement_kind::reduced: return p;"),
    ("pullback: einsum's labels for the second operand are swapped", PULLBACK,
     "{{n.a.v[2], n.a.v[0], n.a.v[1], 0, 0, 0}}", "{{n.a.v[0], n.a.v[2], n.a.v[1], 0, 0, 0}}"),
    ("pullback: sub forgets the sign", PULLBACK, "if (n.op == op_code::sub && k == 1)", "if (n.op == op_code::sub && k == 2)"),
    ("pullback: mul's second operand gets nothing", PULLBACK,
     "case op_code::mul:\n      for (int k = 0; k < 2; ++k) {", "case op_code::mul:\n      for (int k = 0; k < 1; ++k) {"),
    ("pullback: later contributions replace earlier ones", PULLBACK,
     "if (cotangent[operand] < 0) cotangent[operand] = node_id;", "if (node_id >= 0) cotangent[operand] = node_id;"),
    ("pullback: a kept broadcast dim is dropped", PULLBACK,
     "      a.v[0] |= std::int64_t{1} << d;\n      a.v[1] |= std::int64_t{1} << d;", "      a.v[0] |= std::int64_t{1} << d;"),
    ("pullback: slice pads at the front", PULLBACK, "{{d, n.a.v[1], t.spec_at(n.in[0]).extent[d], 0, 0, 0}}",
     "{{d, 0, t.spec_at(n.in[0]).extent[d], 0, 0, 0}}"),
    ("pullback: the blocks of a mean are not added up", PULLBACK,
     "return from == to ? 1 : from ? 1 / ranks : ranks;", "return from == to ? 1 : from ? 1 / ranks : 1;"),
    ("pullback: a mean's cotangent is not divided", PULLBACK,
     "return from == to ? 1 : from ? 1 / ranks : ranks;", "return from == to ? 1 : from ? 1 : ranks;"),
    ("pullback: all parts of a join begin at its front", PULLBACK, "        start += length;", "        start += 0;"),
    ("pullback: a reduced loss is seeded on every rank", "autodiff/grad.hpp",
     "if (s.place[a].is_partial()) s.place[a] = replicate_value();", "(void)a;"),
    ("kernel: the mean divides by the local count", KERNELS + "sum.hpp", "if ((a.v[0] >> d) & 1) n *= x.global[d];",
     "if ((a.v[0] >> d) & 1) n *= x.ext[d];"),
    ("kernel: causal softmax counts queries from the block", KERNELS + "rows.hpp", "first = causal ? x.origin[last - 1] : 0;",
     "first = 0;"),
    ("kernel: dropout draws by local index", "runtime/call.hpp", "g = g * l.global[d] + l.origin[d] + at[d];", "g = g * l.ext[d] + at[d];"),
    ("kernel: overwritten elements of a scatter have a gradient", KERNELS + "gather.hpp", "last[id] == i ?", "last[id] >= 0 ?"),
    ("kernel: a triangle by position in the block", KERNELS + "join.hpp",
     "o.origin[column] + at[column] - o.origin[row] - at[row]", "at[column] - at[row]"),
    ("kernel: every rank places its part of a new partial", KERNELS + "block.hpp", "} else if (c.coordinate == 0) {",
     "} else if (c.coordinate >= 0) {"),
    ("optimizer: a strided gradient is read as if it were dense", "module/optimizer.hpp",
     "return to == from ? id : emit(", "return to >= 0 ? id : emit("),
    ("optimizer: a partial gradient is not summed", "module/optimizer.hpp",
     "m.partial_axis = a < s.axes ? a : -1;", "m.partial_axis = -1;"),
    ("where: either value may be partial alone", PROPAGATION + "infer.hpp",
     "case op_code::where: return linearity::joint;", "case op_code::where: return linearity::each;"),
    ("div: the divisor may be partial", PROPAGATION + "infer.hpp",
     "    case op_code::div:\n    case op_code::mask_keep: return linearity::first;",
     "    case op_code::mask_keep: return linearity::first;\n    case op_code::div: return linearity::each;"),
    ("amax: over a sharded dim, called a sum", PROPAGATION + "ordering.hpp",
     "in_mask(a.v[0], d) ? p : rows::S(d)", "in_mask(a.v[0], d) ? rows::P : rows::S(d)"),
    ("amax: the largest of partial sums", PROPAGATION + "ordering.hpp",
     "t.push_back(rows::all(p, p));", "t.push_back(rows::all(rows::P, p));"),
    ("prod: its adjoint over a sharded dim", PROPAGATION + "ordering.hpp",
     "if (!in_mask(a.v[0], d)) t.push_back", "t.push_back"),
    ("sharded classes: the rows' numbers are replicate", PROPAGATION + "ordering.hpp",
     "rule_row r = rows::all(rows::U, out);", "rule_row r = rows::all(rows::R, out);"),
    ("kernel: every rank with classes has the target's logit", KERNELS + "rows.hpp",
     "const bool own = !ignored && id >= first && id < first + n;", "const bool own = !ignored && n > 0;"),
    ("layout: a local block thinks it starts at the origin", "runtime/call.hpp", "l.origin[d] = v.begin;", "l.origin[d] = 0;"),
]


# The proofs that find a mutant soonest, by the first word of its name.
FIRST = {"einsum": "contractions", "split": "contractions", "match": "contractions", "where": "elementwise", "div": "elementwise",
         "sum": "reductions", "sumsq": "reductions", "vector_norm": "reductions", "amax": "reductions", "prod": "reductions",
         "transition": "reductions", "dual": "reductions", "optimizer": "reductions", "rows": "rows", "norm": "rows",
         "sharded classes": "rows", "embedding": "indexing", "gather": "indexing", "scatter": "indexing", "permute": "moves",
         "reshape": "moves", "slice": "moves", "cat": "moves", "broadcast": "moves", "constant_pad": "moves"}


def in_order(name):
    """The sources of proofs, the likeliest to find the mutant first."""
    return sorted(PROOFS, key=lambda source: source.stem != FIRST.get(name.split(":")[0], "pointwise"))


def compile_proofs(options, include, sources):
    """(succeeded, output) of the proofs with the library in `include`: of all sources, or of the first that fails."""
    for source in sources:
        succeeded, output = compile_source(options, include, source)
        if not succeeded:
            return False, output
    return True, ""


def compile_source(options, include, source):
    """(succeeded, output) of one source of proofs."""
    kind = "clang" if "clang" in pathlib.Path(options.compiler).name else "g++"
    line = [options.compiler, "-std=c++20", "-fsyntax-only", f"-I{include}", f"-I{TEST}"]
    line += ["-ferror-limit=1"] if kind == "clang" else ["-fmax-errors=1"]
    line += [part for directory in options.system_include for part in ("-isystem", directory)]
    done = subprocess.run(line + [str(source)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, LC_ALL="C"), timeout=options.timeout, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
    return done.returncode == 0, done.stdout.decode(errors="replace")


def try_mutant(options, folder, number):
    """What becomes of one mutant, in a copy of its own; a stale one has been counted."""
    name, header, text, replacement = MUTANTS[number]
    copy = pathlib.Path(folder) / str(number)
    shutil.copytree(options.include, copy)
    path = copy / "shardwise" / header
    original = path.read_text(encoding="utf-8")
    if original.count(text) != 1:
        return f"stale    {number:3} {name}"
    path.write_text(original.replace(text, replacement), encoding="utf-8")
    began = time.monotonic()
    succeeded, output = compile_proofs(options, copy, in_order(name))
    shutil.rmtree(copy)
    seconds = f"{time.monotonic() - began:.0f} s"
    if succeeded:
        return f"SURVIVED {number:3} {name} ({seconds})"
    if not any(sentence in output for sentence in EVIDENCE):
        first_error = next((line for line in output.splitlines() if "error:" in line), "")
        return f"UNCLEAR  {number:3} {name} ({seconds}): fails for another reason: {first_error}"
    return f"killed   {number:3} {name} ({seconds})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", default=str(TEST.parent / "include"), help="the library's include directory")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--system-include", action="append", default=[])
    parser.add_argument("--sample", default="0/1", help="I/N: every N-th mutant, from the I-th (0 <= I < N)")
    parser.add_argument("--only", type=int, action="append", help="one mutant by number; repeatable")
    parser.add_argument("--list", action="store_true", help="print the mutants")
    parser.add_argument("--jobs", type=int, default=1, help="compilations at once")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one compilation")
    options = parser.parse_args()

    if options.list:
        for number, (name, *_) in enumerate(MUTANTS):
            print(f"{number:3} {name}")
        return
    first, every = (int(part) for part in options.sample.split("/"))
    chosen = options.only if options.only else list(range(len(MUTANTS)))[first % every::every]
    if not chosen:
        sys.exit("no mutant chosen")

    failures = 0
    with tempfile.TemporaryDirectory(prefix="shardwise-mutants-") as folder:
        copy = pathlib.Path(folder) / "include"
        shutil.copytree(options.include, copy)
        for number, (name, header, text, _) in enumerate(MUTANTS):
            found = (copy / "shardwise" / header).read_text(encoding="utf-8").count(text)
            if found != 1:
                print(f"STALE    {number:3} {name}: its text is {found} times in {header}")
                failures += 1
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            control = list(pool.map(lambda source: compile_source(options, copy, source), PROOFS))
        for succeeded, output in control:
            if not succeeded:
                sys.exit(f"{output}\nthe proofs do not compile without a mutation, so nothing can be learnt from mutants")
        print(f"control compiles in {time.monotonic() - began:.0f} s", flush=True)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for verdict in pool.map(lambda number: try_mutant(options, folder, number), chosen):
                print(verdict, flush=True)
                failures += 0 if verdict.startswith(("killed", "stale")) else 1
    if failures:
        sys.exit(f"{failures} of the mutants survived, are stale or fail for another reason")


if __name__ == "__main__":
    main()
