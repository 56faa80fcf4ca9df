// SPDX-License-Identifier: Apache-2.0
// Norms over channels: extents, what is refused, and the proof of rows, kernels and adjoints under every placement.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/channel_norm/host.hpp>

namespace {

namespace laws = sw::laws;
using sw::problem;
using rules_test::on_line;

constexpr sw::op_attr with(std::int64_t groups, std::int64_t over_batch = 0) {
  return sw::pack_attributes(sw::channel_norm_attributes{groups, over_batch});
}
template <class X>
constexpr sw::outcome moments(const sw::op_attr& a) {
  const sw::spec x = on_line<X>(sw::replicate_value());
  return sw::infer(sw::operations::channel_moments, a, &x, 1);
}
template <class X>
constexpr bool gives(const sw::op_attr& a, std::int64_t images, std::int64_t groups) {
  const sw::outcome o = moments<X>(a);
  return !o.error && o.out.rank == 3 && o.out.extent[0] == 2 && o.out.extent[1] == images && o.out.extent[2] == groups;
}
using image = sw::shape<2, 6, 9, 8>;
static_assert(gives<image>(with(0), 2, 6));
static_assert(gives<image>(with(3), 2, 3));
static_assert(gives<image>(with(1), 2, 1));
static_assert(gives<sw::shape<5, 4>>(with(2), 5, 2));
static_assert(gives<sw::shape<0, 0, 2>>(with(0), 0, 0));

template <class X>
constexpr bool refuses(const sw::op_attr& a, problem p) {
  return moments<X>(a).error.what == p;
}
static_assert(refuses<sw::shape<6>>(with(0), problem::channel_norm_rank));
static_assert(refuses<image>(with(4), problem::group_norm_groups));
static_assert(refuses<image>(with(-1), problem::group_norm_groups));
static_assert(refuses<sw::shape<2, 4, sw::dyn<9>>>(with(0), problem::channel_norm_dyn));
static_assert(gives<sw::shape<sw::dyn<9>, 4, 3>>(with(2), 9, 2));

template <class X, class S, class W>
constexpr problem norm_of(const sw::op_attr& a) {
  const sw::spec s = on_line<S>(sw::replicate_value()), w = on_line<W>(sw::replicate_value());
  const sw::spec in[] = {on_line<X>(sw::replicate_value()), s, s, w, w};
  return sw::infer(sw::operations::channel_norm, a, in, 5).error.what;
}
static_assert(norm_of<image, sw::shape<2, 3>, sw::shape<6>>(with(3)) == problem::none);
static_assert(norm_of<image, sw::shape<1, 6>, sw::shape<6>>(with(0, 1)) == problem::none);
static_assert(norm_of<image, sw::shape<2, 6>, sw::shape<6>>(with(0, 1)) == problem::channel_norm_statistics);
static_assert(norm_of<image, sw::shape<1, 3>, sw::shape<6>>(with(3)) == problem::channel_norm_statistics);
static_assert(norm_of<image, sw::shape<2, 3>, sw::shape<3>>(with(3)) == problem::channel_norm_weight);

// Channels are cut where no group is: 2 ranks hold 2 groups of 3, 3 ranks none of them whole.
constexpr bool may_cut(int ranks, std::int64_t groups) {
  sw::spec x = on_line<image>(sw::shard_value(1));
  x.axis_size[0] = ranks;
  return !sw::infer(sw::operations::channel_moments, with(groups), &x, 1).error;
}
static_assert(may_cut(2, 2) && may_cut(3, 3) && may_cut(2, 0) && may_cut(4, 0) && may_cut(2, 6));
static_assert(!may_cut(3, 2) && !may_cut(2, 3) && !may_cut(2, 1));

// Few elements a tensor: 72 at most. 3 and 5 are not divided by the ranks.
template <const sw::custom_operation& Op, const sw::custom_operation&... Others>
struct proved {
  template <sw::op_attr A, class... X>
  static constexpr int of = laws::holds_case<laws::custom_case<laws::customs<Op, Others...>, A, X...>>;
};
using each = proved<sw::custom::channel_moments>;
static_assert(each::of<with(0), sw::shape<3, 5, 2, 2>> > 4);
static_assert(each::of<with(2), sw::shape<3, 4, 3>> > 3);
static_assert(each::of<with(6), sw::shape<3, 12>> > 4);
using about = proved<sw::custom::channel_moments_about>;
static_assert(about::of<with(0, 1), sw::shape<3, 5, 2, 2>, sw::shape<1, 5>> > 6);
static_assert(about::of<with(2), sw::shape<3, 4, 3>, sw::shape<3, 2>> > 4);
static_assert(about::of<with(6), sw::shape<3, 12>, sw::shape<3, 6>> > 4);
// Height and width are cut where sums are taken, and moments of whole images are not.
constexpr bool may_cut_height(const sw::operation& of, const sw::op_attr& a) {
  const sw::spec x = on_line<image>(sw::shard_value(2)), m = on_line<sw::shape<1, 6>>(sw::reduced_value());
  const sw::spec in[] = {x, m};
  return !sw::infer(of, a, in, &of == &sw::operations::channel_moments ? 1 : 2).error;
}
static_assert(may_cut_height(sw::operations::channel_moments_about, with(0, 1)));
static_assert(!may_cut_height(sw::operations::channel_moments, with(0)));
using norm = proved<sw::custom::channel_norm, sw::custom::channel_norm_sums, sw::custom::channel_norm_dx>;
static_assert(norm::of<with(0, 1), sw::shape<3, 5, 2, 2>, sw::shape<1, 5>, sw::shape<1, 5>, sw::shape<5>, sw::shape<5>> > 4);
static_assert(norm::of<with(0), sw::shape<3, 5, 3>, sw::shape<3, 5>, sw::shape<3, 5>, sw::shape<5>, sw::shape<5>> > 4);
static_assert(norm::of<with(2), sw::shape<3, 4, 2>, sw::shape<3, 2>, sw::shape<3, 2>, sw::shape<4>, sw::shape<4>> > 3);
static_assert(norm::of<with(6), sw::shape<3, 12>, sw::shape<3, 6>, sw::shape<3, 6>, sw::shape<12>, sw::shape<12>> > 4);
using sums = proved<sw::custom::channel_norm_sums>;
static_assert(sums::of<with(0, 1), sw::shape<3, 5, 2>, sw::shape<3, 5, 2>, sw::shape<1, 5>, sw::shape<1, 5>> > 4);
static_assert(sums::of<with(2), sw::shape<3, 4, 2>, sw::shape<3, 4, 2>, sw::shape<3, 2>, sw::shape<3, 2>> > 3);
using back = proved<sw::custom::channel_norm_dx>;
static_assert(back::of<with(0, 1), sw::shape<3, 5, 2>, sw::shape<3, 5, 2>, sw::shape<1, 5>, sw::shape<1, 5>, sw::shape<5>,
                       sw::shape<2, 1, 5>> > 4);
static_assert(back::of<with(2), sw::shape<3, 4, 2>, sw::shape<3, 4, 2>, sw::shape<3, 2>, sw::shape<3, 2>, sw::shape<4>,
                       sw::shape<2, 3, 4>> > 3);
using unbiased = proved<sw::custom::unbiased_variance>;
static_assert(unbiased::of<with(4), sw::shape<5>, sw::shape<2, 3, 5>> > 4);

}  // namespace
