// SPDX-License-Identifier: Apache-2.0
// Pooling: extents, what is refused, and the proof of rows, kernels and adjoints under every placement.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/pooling/host.hpp>

namespace {

namespace laws = sw::laws;
using sw::problem;
using rules_test::on_line;

constexpr sw::op_attr with(int kernel, int stride, int padding, int counts = 1, int h = 0, int w = 0) {
  const auto k = static_cast<std::int16_t>(kernel), s = static_cast<std::int16_t>(stride),
             p = static_cast<std::int16_t>(padding);
  return sw::pack_attributes(sw::pool_attributes{{k, k}, {s, s}, {p, p}, counts, {h, w}});
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
// Positions in planes of six elements, in and outside of their windows.
template <const sw::custom_operation& Op, const sw::custom_operation& Other, sw::op_attr A>
struct of_positions {
  using used = laws::customs<Op, Other>;
  using operation = sw::detail::custom_tag<Op>;
  static constexpr bool back = &Op == &sw::custom::max_pool2d_dx;
  static constexpr laws::program value = laws::apply(
      &Op, {back ? laws::tensor_of({3, 2, 2, 1}) : laws::tensor_of({3, 2, 3, 2}), laws::indices({3, 2, 2, 1}, 6)}, A);
};
static_assert(laws::holds_case<of_positions<sw::custom::max_pool2d_dx, sw::custom::max_pool2d_at, with(2, 1, 0, 1, 3, 2)>> >
              4);
static_assert(laws::holds_case<of_positions<sw::custom::max_pool2d_at, sw::custom::max_pool2d_dx, with(2, 1, 0, 1, 3, 2)>> >
              4);
using mean = proved<sw::custom::avg_pool2d, sw::custom::avg_pool2d_dx>;
static_assert(mean::of<with(2, 1, 1), sw::shape<3, 2, 3, 2>> > 5);
static_assert(mean::of<with(3, 2, 1, 0), sw::shape<2, 3, 3, 4>> > 5);
using back = proved<sw::custom::avg_pool2d_dx, sw::custom::avg_pool2d>;
static_assert(back::of<with(2, 1, 1, 0, 3, 2), sw::shape<3, 2, 4, 3>> > 5);

}  // namespace
