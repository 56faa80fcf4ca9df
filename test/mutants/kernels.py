# SPDX-License-Identifier: Apache-2.0
"""Mutants of the families' host kernels."""

FAMILY = "operations/convolution/"
WINDOWS = FAMILY + "host_windows.hpp"
PRODUCTS = FAMILY + "host_products.hpp"
DEPTHWISE = FAMILY + "host_depthwise.hpp"
CONVOLUTION = "unit/runtime/host/convolution.cpp"
LIBRARY = "unit/runtime/host/convolution_library.cpp"
COPIES = "unit/runtime/host/copy_block.cpp"
NETWORKS = "dist/convolution.cpp"
POOLS = "dist/pooling.cpp"
RESIZES = "dist/interpolation.cpp"
RESIZE_KERNELS = "operations/interpolation/host.hpp"
RESIZE_LAWS = "static/operations/interpolation.cpp"
HALOS = "dist/halos.cpp"
HALO_LAWS = "static/operations/halos.cpp"
NORM_FUNCTIONS = "graph/functions/channel_norms.hpp"
NORM_KERNELS = "operations/channel_norm/host.hpp"
NORM_RECORDS = "operations/channel_norm/record.hpp"
NORMS = "dist/channel_norms.cpp"
NORM_LAWS = "static/operations/channel_norm.cpp"

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
    ("depthwise: results of neighbouring channels lie side by side", DEPTHWISE,
     "for (std::int64_t i = 0; i < n; ++i) to[i * apart] = sum[i];", "for (std::int64_t i = 0; i < n; ++i) to[i] = sum[i];", (CONVOLUTION,)),
    ("convolution: a thread's part of a library's call begins with the first image", FAMILY + "host_library.hpp",
     "q_.p[index(operand)] += of.begin * l.str[dim];", "if (dim != 0) q_.p[index(operand)] += of.begin * l.str[dim];", (LIBRARY,)),
    ("convolution: a thread's groups are all groups", FAMILY + "host_library.hpp", "a.groups = static_cast<std::int32_t>(of.size);", "",
     (LIBRARY,)),
    ("convolution: a library is given factors that are not finite", FAMILY + "host_library.hpp",
     "r.finite = finite;", "", (LIBRARY,)),
    ("copies: a tile is not turned", "runtime/host/copy_block.hpp", "x1 = __builtin_shufflevector(a, b, 2, 3, 6, 7);", "x1 = a;", (COPIES,)),
    ("copies: a tile's edge is as wide as a tile", "runtime/host/copy_block.hpp", "if (w == side && h == side) copy_tile",
     "if (h == side) copy_tile", (COPIES,)),
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
    ("channel norms: sums of a cut batch stay each rank's own", NORM_FUNCTIONS, "if (!s.place[a].is_partial() || !p.operand(0).place[a].is_shard()) continue;",
     "continue;", (NORM_LAWS,)),
    ("channel norms: a weight's gradient is its bias's", NORM_FUNCTIONS, "k == 3 ? 1 : 0, 1, n.scope", "0, 1, n.scope", (NORMS,)),
    ("batch_norm: the running variance is biased", NORM_FUNCTIONS, "named_as<V::sp>(variance * (n / (n - 1)))", "named_as<V::sp>(variance)", (NORMS,)),
    ("batch_norm: images' means lie nowhere apart", NORM_FUNCTIONS, "+ apart * apart));", "));", (NORMS,)),
    ("batch_norm: what evaluates forgets eps", NORM_FUNCTIONS, "rsqrt(named_as<like>(running_var) + O.eps.value())", "rsqrt(named_as<like>(running_var))", (NORMS,)),
    ("channel norms: groups' channels lie nowhere apart", NORM_KERNELS, "squares = squares + s + apart * apart * (part * A(M::from_count(count)));",
     "squares = squares + s;", (NORMS,)),
    ("channel norms: a group begins with the one before", NORM_KERNELS, "if (c % b.each == 0) of_group = {};", "", (NORMS,)),
    ("channel norms: a statistic is of this rank's images alone", NORM_KERNELS, "b.over_batch ? k.whole_extent(x, 0) : b.each",
     "b.over_batch ? k.extent(x, 0) : b.each", (NORM_LAWS,)),
    ("batch_norm: a batch of one value trains", NORM_KERNELS, "if (n < 2)", "if (n < 1)", (NORMS,)),
    ("batch_norm: a batch of the run's size has a biased variance", NORM_KERNELS, "* M::from_count(n) / M::from_count(n - 1);", "* M::from_count(1);", (NORMS,)),
    ("channel norms: groups are cut through", NORM_RECORDS, "if (of_x.size != of_g.size * each || (of_g.size > 0 && of_x.begin != of_g.begin * each)) return false;",
     "", (NORM_LAWS,)),
    ("channel norms: all images share an image's statistics", NORM_RECORDS, "!= 0 ? rows::U : rows::S(0);", "!= 0 ? rows::U : rows::U;", (NORM_LAWS,)),
    ("channel norms: a statistic of a cut image counts the rank's own elements", NORM_KERNELS, "b.norm *= k.whole_extent(x, d);",
     "b.norm *= k.extent(x, d);", (NORMS,)),
    ("channel norms: the sums of a cut image's groups stay each rank's own", NORM_FUNCTIONS,
     "for (int a = 0; a < p.operand(0).axes; ++a) {", "for (int a = 0; all && a < p.operand(0).axes; ++a) {", (NORMS,)),
    ("channel norms: a cut image's sums are about 0", NORM_FUNCTIONS, "call<custom::channel_moments_about, A>(x, rough)",
     "call<custom::channel_moments_about, A>(x, rough - rough)", (NORMS,)),
    ("pooling: a mean counts its elements alone, whatever was asked for", "operations/pooling/host.hpp", "return a.counts_padding != 0 ?",
     "return false ?", (POOLS,)),
    ("pooling: of equals the last one is taken", "operations/pooling/host.hpp", "|| M::less(best, v)))", "|| !M::less(v, best)))",
     (POOLS,)),
    ("pooling: a row is in one window alone", "operations/pooling/host.hpp", "return {first, end > first ? end - first : 0};",
     "return {first, end > first ? 1 : 0};", (POOLS,)),
    ("pooling: a maximum is taken of shards of rows", "operations/pooling/record.hpp", "t.push_back({{S(1)}, {S(1), S(1)}});",
     "t.push_back({{S(2)}, {S(2), S(2)}});", ("static/operations/pooling.cpp",)),
    ("pooling: positions are those of the rank's own block", "operations/pooling/host.hpp",
     "return (place / w + origin[0]) * whole[1] + place % w + origin[1];", "return place;", (POOLS, HALO_LAWS)),
    ("pooling: a window counts what its rank holds of it", "operations/pooling/host.hpp", "inside(0, u) * inside(1, v)",
     "window(0, u).size * window(1, v).size", (HALOS, HALO_LAWS)),
    ("halos: a block is padded as its image is", FAMILY + "host_plain.hpp",
     "b.a.padding[d] + k.origin(number(x), 2 + d) - k.origin(number(y), 2 + d) * b.a.stride[d]", "b.a.padding[d]", (HALOS, HALO_LAWS)),
    ("halos: what reads a rank's first element begins a window too late", "vocabulary/spec.hpp", "lo = floor_div(first - p.behind(), p.factor);",
     "lo = floor_div(first - p.behind(), p.factor) + 1;", (HALOS, HALO_LAWS)),
    ("halos: windows end with the last one's own element", "vocabulary/spec.hpp", "hi = last * p.factor + p.behind() + 1;", "hi = last * p.factor + 1;",
     (HALOS, HALO_LAWS)),
    ("halos: blocks are as large as those of the first ranks", "vocabulary/spec.hpp", "if (!s.place[a].overlaps(dim)) continue;", "continue;",
     (HALOS,)),
    ("halos: a rank is said to send what it has", "propagation/transition.hpp", "sent += halo_part(to.place[axis], n, ranks, c[axis], r).size;",
     "sent += rows;", (HALOS,)),
    ("halos: a weight's gradient takes any cut of the cotangent", FAMILY + "record.hpp", "&& halo_axis(in[0], dim) >= 0)", ")", (HALO_LAWS,)),
    ("halos: they are exchanged of blocks, too", "propagation/halo.hpp", "x.place[a] != shard_value(dim)", "false", (HALO_LAWS,)),
    ("interpolate: pixels are counted from their corners", RESIZE_KERNELS, "(2 * t + 1) * up - down : t * up;", "2 * t * up : t * up;", (RESIZES,)),
    ("interpolate: before the first pixel there is another one", RESIZE_KERNELS, "    if (position < 0) position = 0;\n", "", (RESIZES,)),
    ("interpolate: behind the last pixel there is another one", RESIZE_KERNELS, "if (position / of >= last) return", "if (position / of > last) return", (RESIZES,)),
    ("interpolate: a pixel makes what begins with it alone", RESIZE_KERNELS, "interpolation::nearest ? r : r - 1);", "interpolation::nearest ? r : r);",
     (RESIZES,)),
    ("interpolate: what begins with a pixel ends too early", RESIZE_KERNELS, "(need + each - 1) / each;", "need / each;", (RESIZES,)),
    ("interpolate: weights of rows are exchanged in the adjoint", RESIZE_KERNELS, "r.first == p.at[0] ? r.of - r.rest : r.rest;",
     "r.first == p.at[0] ? r.rest : r.of - r.rest;", (RESIZES,)),
    ("interpolate: a neighbour without weight is read", RESIZE_KERNELS, "if (r.rest != 0)", "if (r.first + 1 < b.x.extent[0])", (RESIZES,)),
    ("interpolate: a factor is what its rounded extents are", "graph/functions/interpolate.hpp", "from[d] * up / down : 0, down, up);",
     "from[d] * up / down : 0, from[d], down > 0 ? from[d] * up / down : 0);", (RESIZES,)),
    ("interpolate: corners lie on corners unless told otherwise", "graph/functions/interpolate.hpp", "if (a.corners == 0 || a.size[d] == 0) return;",
     "if (a.size[d] == 0) return;", (RESIZES,)),
    ("interpolate: images are cut along their rows", "operations/interpolation/record.hpp", "S(0), S(1), P}", "S(0), S(2), P}", (RESIZE_LAWS,)),
    ("interpolate: channels-last images are read as planes", RESIZE_KERNELS, "p.image * stride[0] + p.channel * stride[1]", "p.image * stride[0] + p.channel * extent[0] * extent[1]",
     (RESIZES,)),
]
