# SPDX-License-Identifier: Apache-2.0
"""Mutants of element types: how numbers are rounded, what stays float beside elements of two bytes, ids that are given."""

FLOATS = "vocabulary/float16.hpp"
WIDENED = "runtime/host/widened.hpp"
TABLE = "runtime/host/kernel_table.hpp"
BLOCKS = "runtime/program/blocks.hpp"
POINTWISE = "operations/pointwise/host.hpp"
ROUNDING = "unit/vocabulary/float16.cpp"
LOW = "dist/functions/low_precision.cpp"
IDS = "dist/ids_given_as_int64.cpp"

MUTANTS = [
    ("bfloat16: half way is away from zero", FLOATS, "(u + 0x7FFFU + (u >> 16 & 1U)) >> 16", "(u + 0x8000U) >> 16", (ROUNDING,)),
    ("bfloat16: a NaN is rounded", FLOATS, "is_nan ? (u >> 16 | 0x40U) : rounded", "rounded", (ROUNDING,)),
    ("float16: half way is away from zero", FLOATS, "0xFFFU + (size >> 13 & 1U)) >> 13", "0x1000U) >> 13", (ROUNDING,)),
    ("float16: the smallest are 0", FLOATS, "std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3F000000U", "0U", (ROUNDING,)),
    ("widened: what a kernel writes into is not written back", WIDENED, "if ((writes_ >> k & 1U) != 0 && is_low(k)) back(k);", "",
     (LOW, "dist/functions/low_precision_updates.cpp")),
    ("widened: an operand is read as if it were dense", WIDENED, "static_cast<const Low*>(given_.p[k]), given_.l[k], to, wide_.l[k]",
     "static_cast<const Low*>(given_.p[k]), wide_.l[k], to, wide_.l[k]", (LOW,)),
    ("fused: steps of two bytes are not rounded", "operations/written/host.hpp", "return T(host::element<s.op>(f, C(slot[s.x]), C(slot[s.y])));",
     "return T(host::element<s.op>(f, C(slot[s.x]), C(slot[s.y])) * C(1.001F));", (LOW,)),
    ("fused: an expression follows a kernel whose result is wider", "pass/fuse/region.hpp", "kernel_type(g, n) == g.specs[n.spec].type", "true",
     ("dist/functions/low_precision_updates.cpp",)),
    ("cast: of a NaN the largest integer", POINTWISE, "if (!(x == x)) return To(0);", "if (!(x == x)) return range::max();", (LOW,)),
    ("cast: an int64 wraps", POINTWISE, "refuse_narrowing(x);", "return static_cast<To>(x);", (LOW,)),
    ("losses are stored in two bytes", "operations/loss/record.hpp", "inline constexpr operation nll = with_wide(2U, 1U,",
     "inline constexpr operation nll = with_wide(2U, 0U,", (LOW,)),
    ("statistics of norms are stored in two bytes", "operations/norm/record.hpp", "inline constexpr operation norm_stats = with_wide(0, 1U,",
     "inline constexpr operation norm_stats = with_wide(0, 0,", (LOW,)),
    ("ids given as int64 wrap", BLOCKS, "if (!std::in_range<T>(x))", "if (false)", (IDS,)),
    ("rand of two bytes reaches 1", TABLE, "if (x[i] == Low(1))", "if (false)", ("dist/functions/low_precision_updates.cpp",)),
]
