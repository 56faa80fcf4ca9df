// SPDX-License-Identifier: Apache-2.0
// Convolutions and their adjoints: extents, what is refused, and the proof of rows, kernels and adjoints under every placement.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/convolution/host.hpp>

namespace {

namespace laws = sw::laws;
using sw::problem;
using rules_test::on_line;

constexpr sw::op_attr with(int stride, int padding, int dilation, int groups = 1, int h = 0, int w = 0) {
  const auto s = static_cast<std::int16_t>(stride), p = static_cast<std::int16_t>(padding),
             d = static_cast<std::int16_t>(dilation);
  return sw::pack_attributes(sw::convolution_attributes{{s, s}, {p, p}, {d, d}, groups, {h, w}});
}
template <class X, class W>
constexpr sw::outcome convolved(const sw::op_attr& a) {
  const sw::spec in[] = {on_line<X>(sw::replicate_value()), on_line<W>(sw::replicate_value())};
  return sw::infer(sw::operations::convolution, a, in, 2);
}
template <class X, class W>
constexpr bool gives(const sw::op_attr& a, std::int64_t h, std::int64_t w) {
  const sw::outcome o = convolved<X, W>(a);
  return !o.error && o.out.extent[2] == h && o.out.extent[3] == w && o.out.extent[1] == W::extent[0];
}

// extents as torch.nn.functional.conv2d's
using image = sw::shape<2, 6, 9, 8>;
static_assert(gives<image, sw::shape<4, 6, 3, 3>>(with(1, 0, 1), 7, 6));
static_assert(gives<image, sw::shape<4, 6, 3, 3>>(with(1, 1, 1), 9, 8));
static_assert(gives<image, sw::shape<4, 6, 3, 3>>(with(2, 1, 1), 5, 4));
static_assert(gives<image, sw::shape<4, 6, 3, 3>>(with(1, 0, 2), 5, 4));
static_assert(gives<image, sw::shape<6, 2, 3, 1>>(with(3, 0, 1, 3), 3, 3));
static_assert(gives<image, sw::shape<6, 1, 9, 8>>(with(1, 0, 1, 6), 1, 1));  // depthwise, the whole image

// one more row and column of padding behind: what "same" of even kernels is
constexpr sw::op_attr padded_behind(int padding, int further) {
  const auto p = static_cast<std::int16_t>(padding);
  return sw::pack_attributes(sw::convolution_attributes{{1, 1}, {p, p}, {1, 1}, 1, {0, 0}, {further, further}});
}
static_assert(gives<image, sw::shape<4, 6, 2, 2>>(padded_behind(0, 1), 9, 8));
static_assert(gives<image, sw::shape<4, 6, 4, 4>>(padded_behind(1, 1), 9, 8));

template <class X, class W>
constexpr bool refuses(const sw::op_attr& a, problem p) {
  return convolved<X, W>(a).error.what == p;
}
static_assert(refuses<sw::shape<6, 9, 8>, sw::shape<4, 6, 3, 3>>(with(1, 0, 1), problem::convolution_rank));
static_assert(refuses<image, sw::shape<4, 5, 3, 3>>(with(1, 0, 1), problem::convolution_channels));
static_assert(refuses<image, sw::shape<4, 2, 3, 3>>(with(1, 0, 1, 2), problem::convolution_channels));
static_assert(refuses<image, sw::shape<4, 2, 3, 3>>(with(1, 0, 1, 3), problem::convolution_groups));
static_assert(refuses<image, sw::shape<4, 6, 3, 9>>(with(1, 0, 1), problem::convolution_kernel));
static_assert(refuses<image, sw::shape<4, 6, 3, 3>>(with(0, 0, 1), problem::convolution_options));
static_assert(refuses<image, sw::shape<4, 6, 3, 3>>(with(1, -1, 1), problem::convolution_options));
static_assert(refuses<image, sw::shape<4, 6, 3, 3>>(with(1, 0, 1, 0), problem::convolution_options));

// options as template arguments keep their values, which nvcc writes anew
template <sw::convolution_options O>
struct kept {
  static constexpr bool same = O.padding.is_same() && O.dilation.height == 2;
};
static_assert(kept<sw::convolution_options{.padding = "same", .dilation = 2}>::same);

// Few elements a tensor: 72 at most. 5, 3 and 2 are not divided by the ranks.
using all = laws::customs<sw::custom::conv2d, sw::custom::conv2d_dx, sw::custom::conv2d_dw>;
template <const sw::custom_operation& Op, const sw::custom_operation&... Others>
struct proved {
  template <sw::op_attr A, class X, class Y>
  static constexpr int of = laws::holds_case<laws::custom_case<laws::customs<Op, Others...>, A, X, Y>>;
};
using forward = proved<sw::custom::conv2d, sw::custom::conv2d_dx, sw::custom::conv2d_dw>;
static_assert(forward::of<with(1, 1, 1), sw::shape<3, 2, 2, 2>, sw::shape<2, 2, 2, 2>> > 8);
static_assert(forward::of<with(2, 1, 1), sw::shape<2, 3, 4, 3>, sw::shape<2, 3, 3, 2>> > 8);
static_assert(forward::of<with(1, 0, 2), sw::shape<2, 2, 4, 4>, sw::shape<3, 2, 2, 2>> > 8);
static_assert(forward::of<padded_behind(0, 1), sw::shape<3, 2, 2, 2>, sw::shape<2, 2, 2, 2>> > 8);
static_assert(forward::of<with(1, 1, 1, 2), sw::shape<3, 4, 2, 2>, sw::shape<2, 2, 2, 2>> >
              6);  // two groups: along the batch
static_assert(forward::of<with(1, 0, 1, 3), sw::shape<3, 3, 2, 3>, sw::shape<6, 1, 2, 2>> >
              6);  // depthwise, two outputs a channel
// and the adjoints' own, so that gradients of gradients hold
using of_dx = proved<sw::custom::conv2d_dx, sw::custom::conv2d, sw::custom::conv2d_dw>;
static_assert(of_dx::of<with(2, 1, 1, 1, 4, 3), sw::shape<2, 2, 2, 2>, sw::shape<2, 3, 3, 3>> > 8);
using of_dw = proved<sw::custom::conv2d_dw, sw::custom::conv2d, sw::custom::conv2d_dx>;
static_assert(of_dw::of<with(2, 1, 1, 1, 3, 3), sw::shape<2, 2, 2, 2>, sw::shape<2, 3, 4, 3>> > 8);

// attributes come back as they were given
static_assert(sw::attributes_of<sw::convolution_attributes>(with(2, 1, 3, 4, 5, 6)).extent[1] == 6);
struct bounds {
  sw::real low, high;
};
static_assert(sw::attributes_of<bounds>(sw::pack_attributes(bounds{-0.5, 7.25})).high == 7.25);
struct counted_bound {
  std::int64_t count[2];
  sw::real high;
};
static_assert(sw::attributes_of<counted_bound>(sw::pack_attributes(counted_bound{{3, 5}, 7.25})).high == 7.25);
static_assert(sw::attributes_of<sw::relabel_attributes>(sw::attributes<sw::relabel_attributes>(1, 2, 3, 4, 5)).unlabelled ==
              5);

}  // namespace
