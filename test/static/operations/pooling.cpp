// SPDX-License-Identifier: Apache-2.0
// Pooling: extents, what is refused, and the proof of rows, kernels and adjoints under every placement.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/pooling/host.hpp>

namespace {

namespace laws = sw::laws;
using sw::problem;
using rules_test::on_line;

constexpr sw::pool_attributes windows(int kernel, int stride, int padding, int counts = 1, int h = 0, int w = 0) {
  const auto k = static_cast<std::int16_t>(kernel), s = static_cast<std::int16_t>(stride),
             p = static_cast<std::int16_t>(padding);
  return {.kernel = {k, k},
          .stride = {s, s},
          .padding = {p, p},
          .counts_padding = static_cast<std::int16_t>(counts),
          .extent = {h, w}};
}
constexpr sw::op_attr with(int kernel, int stride, int padding, int counts = 1, int h = 0, int w = 0) {
  return sw::pack_attributes(windows(kernel, stride, padding, counts, h, w));
}
constexpr sw::op_attr dilated(int kernel, int stride, int padding, int dilation, int h = 0, int w = 0) {
  auto a = windows(kernel, stride, padding, 1, h, w);
  a.dilation[0] = a.dilation[1] = static_cast<std::int16_t>(dilation);
  return sw::pack_attributes(a);
}
constexpr sw::op_attr rounded_up(int kernel, int stride, int padding, int counts = 1, int h = 0, int w = 0) {
  auto a = windows(kernel, stride, padding, counts, h, w);
  a.ceil = 1;
  return sw::pack_attributes(a);
}
template <class X>
constexpr sw::outcome pooled(const sw::op_attr& a, int result = 0) {
  const sw::spec x = on_line<X>(sw::replicate_value());
  return sw::infer(sw::operations::max_pool, a, &x, 1, result);
}
template <class X>
constexpr bool gives(const sw::op_attr& a, std::int64_t h, std::int64_t w) {
  const sw::outcome o = pooled<X>(a);
  return !o.error && o.out.extent[2] == h && o.out.extent[3] == w && o.out.extent[1] == X::extent[1];
}

// extents as torch.nn.functional.max_pool2d's
using image = sw::shape<2, 6, 9, 8>;
static_assert(gives<image>(with(2, 2, 0), 4, 4));
static_assert(gives<image>(with(3, 2, 1), 5, 4));
static_assert(gives<image>(with(3, 1, 1), 9, 8));
static_assert(gives<image>(with(8, 8, 4), 2, 2));
static_assert(gives<image>(rounded_up(2, 2, 0), 5, 4));
static_assert(gives<image>(rounded_up(3, 3, 1), 4, 3));  // 9 + 2 - 3 is no multiple of 3
static_assert(gives<image>(rounded_up(2, 4, 1), 3, 3));  // a window at 7 of 8 columns
static_assert(gives<image>(rounded_up(2, 5, 1), 2, 2));  // none at 9 of 9 rows
static_assert(gives<image>(dilated(3, 1, 1, 2), 7, 6));
static_assert(gives<image>(dilated(3, 2, 2, 3), 4, 3));
static_assert(pooled<image>(with(2, 2, 0), 1).out.type == sw::dtype::i32);

template <class X>
constexpr bool refuses(const sw::op_attr& a, problem p) {
  return pooled<X>(a).error.what == p;
}
static_assert(refuses<sw::shape<6, 9, 8>>(with(2, 2, 0), problem::pool_rank));
static_assert(refuses<image>(with(9, 1, 0), problem::pool_kernel));
// a window of padding alone has no largest element
static_assert(refuses<sw::shape<2, 6, 0, 8>>(with(2, 1, 1), problem::pool_kernel));
static_assert(refuses<sw::shape<2, 6, 9, 0>>(with(2, 1, 1), problem::pool_kernel));
static_assert(gives<sw::shape<0, 6, 9, 8>>(with(2, 2, 0), 4, 4) && gives<sw::shape<2, 0, 9, 8>>(with(2, 2, 0), 4, 4));
static_assert(refuses<image>(with(0, 1, 0), problem::pool_options));
static_assert(refuses<image>(with(2, 0, 0), problem::pool_options));
static_assert(refuses<image>(with(3, 1, 2), problem::pool_options));
static_assert(refuses<image>(with(3, 1, -1), problem::pool_options));
static_assert(refuses<image>(dilated(3, 1, 0, 0), problem::pool_options));
static_assert(refuses<image>(dilated(3, 1, 4, 3), problem::pool_options) && !pooled<image>(dilated(3, 1, 3, 3)).error);
static_assert(refuses<image>(dilated(5, 1, 0, 3), problem::pool_kernel));
// one window, at -1 and 1 of one row
static_assert(refuses<sw::shape<2, 6, 1, 8>>(dilated(2, 1, 1, 2), problem::pool_kernel));
static_assert(gives<sw::shape<2, 6, 2, 8>>(dilated(2, 1, 1, 2), 2, 8));
constexpr problem mean_of(const sw::op_attr& a) {
  const sw::spec x = on_line<image>(sw::replicate_value());
  return sw::infer(sw::operations::mean_pool, a, &x, 1).error.what;
}
static_assert(mean_of(dilated(2, 1, 0, 2)) == problem::pool_options && mean_of(with(2, 1, 0)) == problem::none);
constexpr sw::op_attr divided(int by) {
  auto a = windows(2, 1, 1);
  a.divisor = by;
  return sw::pack_attributes(a);
}
static_assert(mean_of(divided(-1)) == problem::pool_options);

// Few elements a tensor: 72 at most. 3, 5 and 2 are not divided by the ranks.
template <const sw::custom_operation& Op, const sw::custom_operation&... Others>
struct proved {
  template <sw::op_attr A, class X>
  static constexpr int of = laws::holds_case<laws::custom_case<laws::customs<Op, Others...>, A, X>>;
};
using largest = proved<sw::custom::max_pool2d, sw::custom::max_pool2d_dx>;
static_assert(largest::of<with(2, 1, 1), sw::shape<3, 2, 3, 2>> > 4);
static_assert(largest::of<with(2, 2, 0), sw::shape<2, 3, 2, 4>> > 4);
static_assert(largest::of<with(1, 1, 0), sw::shape<2, 1, 5, 3>> > 4);  // alone: along height and width, too
static_assert(largest::of<dilated(2, 1, 1, 2), sw::shape<2, 1, 4, 3>> > 4);
static_assert(largest::of<rounded_up(2, 2, 0), sw::shape<2, 1, 3, 3>> > 4);
// Positions in planes of six or twelve elements, in and outside of their windows.
template <const sw::custom_operation& Op, const sw::custom_operation& Other, sw::op_attr A, int H = 3, int W = 2>
struct of_positions {
  using used = laws::customs<Op, Other>;
  using operation = sw::detail::custom_tag<Op>;
  static constexpr bool back = &Op == &sw::custom::max_pool2d_dx;
  static constexpr laws::program value = laws::apply(
      &Op, {back ? laws::tensor_of({3, 2, 2, 1}) : laws::tensor_of({3, 2, H, W}), laws::indices({3, 2, 2, 1}, H* W)}, A);
};
static_assert(laws::holds_case<of_positions<sw::custom::max_pool2d_dx, sw::custom::max_pool2d_at, with(2, 1, 0, 1, 3, 2)>> >
              4);
static_assert(laws::holds_case<of_positions<sw::custom::max_pool2d_at, sw::custom::max_pool2d_dx, with(2, 1, 0, 1, 3, 2)>> >
              4);
static_assert(
    laws::holds_case<of_positions<sw::custom::max_pool2d_dx, sw::custom::max_pool2d_at, dilated(2, 1, 0, 2, 4, 3), 4, 3>> >
    4);
static_assert(
    laws::holds_case<of_positions<sw::custom::max_pool2d_at, sw::custom::max_pool2d_dx, dilated(2, 1, 0, 2, 4, 3), 4, 3>> >
    4);
// A position between a dilated window's elements is none of them.
constexpr double at_place(std::int32_t place) {
  sw::host::pool_planes b;
  b.a = {.kernel = {1, 2}, .dilation = {1, 2}};
  b.planes = b.h = b.oh = b.whole[0] = 1;
  b.w = b.whole[1] = 5;
  b.ow = 3;
  const double x[] = {1, 2, 3, 4, 5};
  return sw::host::at_position(b, x, &place, 0);
}
static_assert(at_place(0) == 1 && at_place(1) == 0 && at_place(2) == 3 && at_place(3) == 0);
using mean = proved<sw::custom::avg_pool2d, sw::custom::avg_pool2d_dx>;
static_assert(mean::of<with(2, 1, 1), sw::shape<3, 2, 3, 2>> > 5);
static_assert(mean::of<with(3, 2, 1, 0), sw::shape<2, 3, 3, 4>> > 5);
static_assert(mean::of<rounded_up(2, 2, 1), sw::shape<2, 1, 4, 5>> > 5 &&
              mean::of<rounded_up(3, 2, 0, 0), sw::shape<2, 1, 4, 5>> > 5);
static_assert(mean::of<divided(3), sw::shape<2, 3, 2, 3>> > 5);
using back = proved<sw::custom::avg_pool2d_dx, sw::custom::avg_pool2d>;
static_assert(back::of<with(2, 1, 1, 0, 3, 2), sw::shape<3, 2, 4, 3>> > 5);

}  // namespace
