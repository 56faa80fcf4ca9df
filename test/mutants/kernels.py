# SPDX-License-Identifier: Apache-2.0
"""Mutants of the families' host kernels."""

FAMILY = "operations/convolution/"
WINDOWS = FAMILY + "host_windows.hpp"
PRODUCTS = FAMILY + "host_products.hpp"
DEPTHWISE = FAMILY + "host_depthwise.hpp"
CONVOLUTION = "unit/runtime/host/convolution.cpp"
NETWORKS = "dist/convolution.cpp"
POOLS = "dist/pooling.cpp"

MUTANTS = [
    ("convolution: places before the image keep what was there", WINDOWS, "clear(o, before);", "", (CONVOLUTION,)),
    ("convolution: a place's taps above the image keep what was there", WINDOWS, "clear(o, end - begin);", "", (CONVOLUTION,)),
    ("convolution: a row of taps is always one piece of memory", WINDOWS, "return columns.by * stride.of[3] == channels;", "return true;",
     (CONVOLUTION,)),
    ("convolution: a phase steps over taps that it meets", WINDOWS, "t.apart = s / gcd(s, dilation);", "t.apart = s;", (CONVOLUTION,)),
    ("convolution: each block of a window begins a sum", PRODUCTS, "const T beta = k == 0 ? T(0) : T(1);", "const T beta = T(0);",
     (CONVOLUTION,)),
    ("convolution: results that are put one by one forget earlier blocks", PRODUCTS,
     "if (k > 0) each_place(g, m, rows, at, n, o, [](T& here, T& there) { here = there; });", "", (CONVOLUTION,)),
    ("convolution: a block has places of two images where they lie apart", PRODUCTS,
     "const bool in_images = (!apart && to.in_all == 0) || (as_is && from.in_all == 0);", "const bool in_images = false;", (CONVOLUTION,)),
    ("convolution: weights of several taps are taken to lie as windows do", PRODUCTS,
     "if ((q == 1 || of_column == c * step) && (p == 1 || of_row == c * q * step)) return", "if (of_column != 0) return", (CONVOLUTION,)),
    ("convolution: an infinite weight is seen through padding", FAMILY + "host.hpp",
     "if (c.is_padded() && !is_finite_piece(k, 1)) put_plainly(c, places, put);", "", (CONVOLUTION,)),
    ("convolution: an infinite cotangent is seen through padding", FAMILY + "host.hpp", "!is_finite_piece(k, 0)) weights_plainly(",
     "false) weights_plainly(", (CONVOLUTION,)),
    ("depthwise: sums of channels have one lane", FAMILY + "host_depthwise_weights.hpp", "lane[t % partial_sums]", "lane[0]", (CONVOLUTION,)),
    ("depthwise: a padded row ends with what was there", DEPTHWISE,
     "for (std::int64_t i = end > begin ? end : begin; i < size; ++i) at[i] = T(0);", "", (CONVOLUTION,)),
    ("convolution: less scratch than its windows take", FAMILY + "scratch.hpp", "p.taps = align(taps * side_by_side * size);",
     "p.taps = 0;", (CONVOLUTION,)),
    ("convolution: same padding of an even kernel is that of the smaller odd one", "graph/functions/convolution.hpp",
     "a.further[d] = static_cast<std::int32_t>(all - 2 * before);", "", (NETWORKS,)),
    ("conv2d_module: initial values forget the kernel's width", "module/convolution_layers.hpp",
     "* (Kernel.width < 1 ? 1 : Kernel.width)>;", ">;", (NETWORKS,)),
    ("layout: blocks of every memory format are row-major", "runtime/program/call.hpp", "else l.make_dense_as(s.stride);",
     "else l.make_dense();", ("static/runtime/memory_format.cpp",)),
    ("pooling: a mean counts its elements alone, whatever was asked for", "operations/pooling/host.hpp", "return a.counts_padding != 0 ?",
     "return false ?", (POOLS,)),
    ("pooling: of equals the last one is taken", "operations/pooling/host.hpp", "|| M::less(best, v)))", "|| !M::less(v, best)))",
     (POOLS,)),
    ("pooling: a row is in one window alone", "operations/pooling/host.hpp", "return {first, end > first ? end - first : 0};",
     "return {first, end > first ? 1 : 0};", (POOLS,)),
    ("pooling: a maximum is taken of shards of rows", "operations/pooling/record.hpp", "t.push_back({{S(1)}, {S(1), S(1)}});",
     "t.push_back({{S(2)}, {S(2), S(2)}});", ("static/operations/pooling.cpp",)),
]
