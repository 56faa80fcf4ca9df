// SPDX-License-Identifier: Apache-2.0
// interpolate: extents, what is refused, which rows make which, and the proof of rows, kernels and adjoints under every placement.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/interpolation/host.hpp>

namespace {

namespace laws = sw::laws;
using sw::interpolate_options;
using sw::interpolation;
using sw::problem;
using sw::scale_factor;
using sw::scale_ratio;
using rules_test::on_line;

constexpr interpolate_options nearest{}, bilinear{interpolation::bilinear}, corners{interpolation::bilinear, true},
    nearest_corners{interpolation::nearest, true};

template <class X>
constexpr sw::outcome made(const sw::op_attr& a) {
  const sw::spec x = on_line<X>(sw::replicate_value());
  return sw::infer(sw::operations::interpolated, a, &x, 1);
}
template <class X>
constexpr bool gives(const sw::op_attr& a, std::int64_t h, std::int64_t w) {
  const sw::outcome o = made<X>(a);
  const sw::spec x = on_line<X>(sw::replicate_value());
  return !o.error && o.out.extent[2] == h && o.out.extent[3] == w && sw::same_extent(o.out, 0, x, 0) &&
         sw::same_extent(o.out, 1, x, 1);
}
template <class X>
constexpr bool refuses(const sw::op_attr& a, problem p) {
  return made<X>(a).error.what == p;
}

// extents as torch.nn.functional.interpolate's
using image = sw::shape<2, 6, 9, 8>;
static_assert(gives<image>(sw::detail::interpolation_to(nearest, 3, 16, 9, 8), 3, 16));
static_assert(gives<image>(sw::detail::interpolation_by(bilinear, scale_factor(2), 9, 8), 18, 16));
static_assert(gives<image>(sw::detail::interpolation_by(bilinear, scale_factor(1, 3), 9, 8), 9, 24));
static_assert(gives<image>(sw::detail::interpolation_by(corners, scale_factor(scale_ratio(3, 2)), 9, 8), 13, 12));
static_assert(gives<image>(sw::detail::interpolation_by(nearest, {scale_ratio(1, 9), scale_ratio(1, 3)}, 9, 8), 1, 2));
static_assert(gives<sw::shape<sw::dyn<2>, 6, 9, 8>>(sw::detail::interpolation_to(nearest, 3, 16, 9, 8), 3, 16));

static_assert(refuses<sw::shape<6, 9, 8>>(sw::detail::interpolation_to(nearest, 3, 3, 9, 8), problem::pool_rank));
static_assert(refuses<sw::shape<2, 6, sw::dyn<9>, 8>>(sw::detail::interpolation_to(nearest, 3, 3, 9, 8), problem::pool_dyn));
static_assert(refuses<image>(sw::detail::interpolation_to(nearest_corners, 3, 3, 9, 8), problem::interpolation_options));
static_assert(refuses<image>(sw::detail::interpolation_to(corners, 0, 3, 9, 8), problem::interpolation_options));
static_assert(refuses<image>(sw::detail::interpolation_to(bilinear, 3, -1, 9, 8), problem::interpolation_options));
static_assert(refuses<image>(sw::detail::interpolation_to(nearest, 3, 1 << 30, 9, 8), problem::interpolation_options));
static_assert(refuses<image>(sw::detail::interpolation_by(corners, scale_factor(scale_ratio(1, 9)), 9, 8),
                             problem::interpolation_options));
static_assert(refuses<image>(sw::detail::interpolation_by(nearest, scale_factor(scale_ratio(2, 0)), 9, 8),
                             problem::interpolation_options));
static_assert(refuses<image>(sw::detail::interpolation_by(nearest, scale_factor(0), 9, 8), problem::interpolation_options));
static_assert(refuses<image>(sw::detail::interpolation_by(nearest, scale_factor(1, -2), 9, 8),
                             problem::interpolation_options));

// a cotangent of other extents than the result's, or of no image
constexpr sw::op_attr back(const interpolate_options& o, int h, int w, int from_h, int from_w) {
  auto a = sw::attributes_of<sw::interpolation_attributes>(sw::detail::interpolation_to(o, h, w, from_h, from_w));
  a.extent[0] = from_h;
  a.extent[1] = from_w;
  return sw::pack_attributes(a);
}
template <class DY>
constexpr sw::outcome made_back(const sw::op_attr& a) {
  const sw::spec x = on_line<DY>(sw::replicate_value());
  return sw::infer(sw::operations::interpolated_dx, a, &x, 1);
}
static_assert(!made_back<image>(back(nearest, 9, 8, 3, 4)).error);
static_assert(made_back<image>(back(nearest, 9, 8, 3, 4)).out.extent[2] == 3);
static_assert(made_back<image>(back(nearest, 9, 7, 3, 4)).error.what == problem::interpolation_options);
static_assert(made_back<image>(sw::detail::interpolation_to(nearest, 9, 8, 3, 4)).error.what ==
              problem::interpolation_options);
static_assert(made_back<sw::shape<6, 9, 8>>(back(nearest, 9, 8, 3, 4)).error.what == problem::pool_rank);

// What row r makes is what is made of r, and nothing else: of all sizes up to 7, and of factors whose extents are rounded.
constexpr bool both_agree(const sw::op_attr& v, std::int64_t from) {
  sw::host::resized b;
  b.a = sw::attributes_of<sw::interpolation_attributes>(v);
  b.x.extent[0] = b.x.whole[0] = from;
  b.y.extent[0] = b.y.whole[0] = b.a.size[0];
  for (std::int64_t r = 0; r < from; ++r) {
    const sw::interval makes = b.makes(0, r);
    for (std::int64_t t = 0; t < b.y.extent[0]; ++t) {
      const sw::host::neighbours n = b.made_of(0, t);
      if (n.first < 0 || n.first >= from || n.rest < 0 || n.rest >= n.of || (n.rest != 0 && n.first + 1 >= from))
        return false;
      const bool in = n.first == r || (n.rest != 0 && n.first + 1 == r);
      const bool listed = t >= makes.begin && t < makes.begin + makes.size;
      if (in && !listed) return false;
      if (listed && n.first != r && n.first + 1 != r) return false;  // its weight would be taken for a neighbour's
    }
  }
  return true;
}
constexpr bool all_agree() {
  for (const interpolate_options& o : {nearest, bilinear, corners})
    for (std::int64_t from = 1; from <= 7; ++from) {
      for (std::int64_t to = 1; to <= 7; ++to)
        if (!both_agree(sw::detail::interpolation_to(o, to, 1, from, 1), from)) return false;
      for (int up = 1; up <= 5; ++up)
        for (int down = 1; down <= 5; ++down)
          if (from * up / down > 0 &&
              !both_agree(sw::detail::interpolation_by(o, scale_factor(scale_ratio(up, down)), from, 7), from))
            return false;
    }
  return true;
}
static_assert(all_agree());

// What a rank's share of the result is made of lies in what it reads, and so it is in the adjoint.
constexpr bool reads_enough(const sw::op_attr& v, int from, int ranks) {
  sw::host::resized b;
  b.a = sw::attributes_of<sw::interpolation_attributes>(v);
  const int to = b.a.size[0];
  b.x.extent[0] = b.x.whole[0] = from;
  b.y.extent[0] = b.y.whole[0] = to;
  const auto w = sw::operations::pixel_windows_of(b.a, 0);
  if (!w.has_halo(to) || !w.has_halo(from)) return false;
  const auto lies_in = [](std::int64_t k, const sw::interval& i) { return k >= i.begin && k < i.begin + i.size; };
  for (int r = 0; r < ranks; ++r) {
    const sw::interval rows = sw::overlapping(w.read(false, 2, to), from, ranks, r), made = sw::split({0, to}, 1, ranks, r);
    const sw::interval back = sw::overlapping(w.read(true, 2, from), to, ranks, r), own = sw::split({0, from}, 1, ranks, r);
    for (std::int64_t t = 0; t < to; ++t) {
      const sw::host::neighbours n = b.made_of(0, t);
      for (std::int64_t k = n.first; k <= n.first + (n.rest != 0 ? 1 : 0); ++k) {
        if (lies_in(t, made) && !lies_in(k, rows)) return false;
        if (lies_in(k, own) && !lies_in(t, back)) return false;
      }
    }
  }
  return true;
}
// One mode and number of ranks a constant: a compiler counts its steps.
constexpr bool all_read_enough(const interpolate_options& o, int ranks) {
  for (int from = 1; from <= 9; from += 2)
    for (int by = 2; by <= 5; ++by) {
      const bool corner = o.align_corners;
      if (corner && from == 1) continue;
      const int larger = corner ? (from - 1) * by + 1 : from * by;
      if (!reads_enough(sw::detail::interpolation_to(o, larger, 1, from, 1), from, ranks)) return false;
      if (!reads_enough(sw::detail::interpolation_to(o, from, 1, larger, 1), larger, ranks)) return false;
      // what is left over of a smaller image
      if (!corner && !reads_enough(sw::detail::interpolation_by(o, scale_factor(scale_ratio(1, by)), larger + 1, by),
                                   larger + 1, ranks))
        return false;
    }
  return true;
}
// Up to the factor and the size that the refusal names.
constexpr bool has_halo(const interpolate_options& o, int from, int to) {
  const auto a = sw::attributes_of<sw::interpolation_attributes>(sw::detail::interpolation_to(o, to, 1, from, 1));
  return sw::operations::pixel_windows_of(a, 0).has_halo(to);
}
static_assert(has_halo(bilinear, 7, 7 * 85) && has_halo(bilinear, 7 * 85, 7) && !has_halo(bilinear, 7, 7 * 86));
static_assert(has_halo(nearest, 13107, 65535) && !has_halo(nearest, 13108, 65540));
static_assert(all_read_enough(nearest, 2) && all_read_enough(bilinear, 2) && all_read_enough(corners, 2));
static_assert(all_read_enough(nearest, 3) && all_read_enough(bilinear, 3));
static_assert(all_read_enough(corners, 3));
static_assert(all_read_enough(nearest, 8));
static_assert(all_read_enough(bilinear, 8));
static_assert(all_read_enough(corners, 8));

// Few elements a tensor. 3 and 5 are not divided by the ranks.
template <const sw::custom_operation& Op, const sw::custom_operation&... Others>
struct proved {
  template <sw::op_attr A, class X>
  static constexpr int of = laws::holds_case<laws::custom_case<laws::customs<Op, Others...>, A, X>>;
};
using forward = proved<sw::custom::interpolate, sw::custom::interpolate_dx>;
static_assert(forward::of<sw::detail::interpolation_to(nearest, 3, 4, 2, 3), sw::shape<3, 2, 2, 3>> > 5);
static_assert(forward::of<sw::detail::interpolation_to(bilinear, 5, 2, 2, 3), sw::shape<3, 2, 2, 3>> > 5);
static_assert(forward::of<sw::detail::interpolation_to(corners, 3, 2, 2, 4), sw::shape<2, 3, 2, 4>> > 5);
static_assert(
    forward::of<sw::detail::interpolation_by(bilinear, scale_factor(scale_ratio(3, 2), 1), 3, 1), sw::shape<3, 2, 3, 1>> >
    5);
// Height and width may be cut as they are where shards lie on the result's: 2 rows of 4 over 2 ranks, not 3 of 6.
constexpr bool may_cut(const sw::op_attr& v, int rows, int ranks) {
  sw::spec x = on_line<image>(sw::shard_value(2));
  x.extent[2] = rows;
  sw::make_contiguous(x);
  x.axis_size[0] = ranks;
  return !sw::infer(sw::operations::interpolated, v, &x, 1).error;
}
static_assert(may_cut(sw::detail::interpolation_to(nearest, 8, 8, 4, 8), 4, 2));
static_assert(!may_cut(sw::detail::interpolation_to(nearest, 6, 8, 3, 8), 3, 2));
static_assert(!may_cut(sw::detail::interpolation_to(bilinear, 8, 8, 4, 8), 4, 2));
static_assert(may_cut(sw::detail::interpolation_to(nearest, 4, 8, 8, 8), 8, 2));
static_assert(may_cut(sw::detail::interpolation_to(bilinear, 4, 8, 8, 8), 8, 2));
static_assert(!may_cut(sw::detail::interpolation_to(nearest, 6, 8, 4, 8), 4, 2));
static_assert(forward::of<sw::detail::interpolation_to(nearest, 4, 2, 2, 4), sw::shape<2, 1, 2, 4>> > 6);
using adjoint = proved<sw::custom::interpolate_dx, sw::custom::interpolate>;
static_assert(adjoint::of<back(bilinear, 3, 4, 2, 3), sw::shape<3, 2, 3, 4>> > 5);
static_assert(adjoint::of<back(nearest, 2, 1, 3, 3), sw::shape<2, 3, 2, 1>> > 5);

}  // namespace
