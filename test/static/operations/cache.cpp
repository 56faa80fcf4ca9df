// SPDX-License-Identifier: Apache-2.0
// Key/value caches: extents, what is refused, and the proof of rows and kernels under every placement, of the rotation with its adjoint.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/cache/host.hpp>

namespace {

namespace laws = sw::laws;
namespace own = sw::custom;
using sw::problem;
using rules_test::on_line;

constexpr sw::op_attr along(int dim) { return sw::pack_attributes(sw::cache_attributes{dim}); }
constexpr sw::op_attr attending(int layout, int window = 0) {
  sw::attention_attributes a;
  a.layout = layout;
  a.causal = 1;
  a.window = window;
  return sw::pack_attributes(a);
}
constexpr sw::op_attr turning(int time, int interleaved, int back = 0) {
  return sw::pack_attributes(sw::rotary_attributes{time, interleaved, 10000.0, back});
}

template <class... S>
constexpr sw::outcome of(const sw::operation& o, const sw::op_attr& a, std::initializer_list<sw::spec> in) {
  return sw::infer(o, a, in.begin(), static_cast<int>(in.size()));
}
template <class Position, class... X>
constexpr problem updated(int dim) {
  return of(sw::operations::cache_update, along(dim),
            {on_line<X>(sw::replicate_value())..., on_line<Position, std::int32_t>(sw::replicate_value())})
      .error.what;
}
using cache = sw::shape<2, 7, 3, 4>;
using per_sequence = sw::shape<2>;
static_assert(updated<per_sequence, cache, sw::shape<2, 1, 3, 4>>(1) == problem::none);
static_assert(updated<per_sequence, cache, cache>(1) == problem::none);
static_assert(updated<per_sequence, cache, sw::shape<2, 7, 3, 1>>(3) == problem::none);
static_assert(updated<per_sequence, cache, sw::shape<2, 8, 3, 4>>(1) == problem::cache_shapes);
static_assert(updated<per_sequence, cache, sw::shape<1, 1, 3, 4>>(1) == problem::cache_shapes);
static_assert(updated<per_sequence, cache, sw::shape<2, 1, 3>>(1) == problem::cache_shapes);
static_assert(updated<per_sequence, cache, cache>(0) == problem::cache_shapes);
static_assert(updated<per_sequence, cache, cache>(4) == problem::cache_shapes);
static_assert(updated<per_sequence, sw::shape<2, sw::dyn<7>, 3, 4>, sw::shape<2, sw::dyn<7>, 3, 4>>(1) ==
              problem::cache_shapes);
static_assert(updated<per_sequence, cache, sw::shape<2, sw::dyn<7>, 3, 4>>(1) == problem::none);
static_assert(updated<sw::shape<3>, cache, cache>(1) == problem::cache_position);
static_assert(updated<sw::shape<2, 1>, cache, cache>(1) == problem::cache_position);

template <class Q, class K, class Position = per_sequence>
constexpr problem attended() {
  return of(sw::operations::cached_attention, attending(1),
            {on_line<Q>(sw::replicate_value()), on_line<K>(sw::replicate_value()), on_line<K>(sw::replicate_value()),
             on_line<Position, std::int32_t>(sw::replicate_value())})
      .error.what;
}
static_assert(attended<sw::shape<2, 1, 6, 4>, cache>() == problem::none);
static_assert(attended<sw::shape<2, 8, 6, 4>, cache>() == problem::cache_shapes);
static_assert(attended<sw::shape<2, 1, 4, 4>, cache>() == problem::attention_shapes);
static_assert(attended<sw::shape<2, 1, 6, 4>, cache, sw::shape<1>>() == problem::cache_position);

// --- proofs: at most 72 elements a tensor; 3 and 5 are not divided by the ranks --------------------------------------------------

constexpr laws::leaf t(std::initializer_list<int> e) { return laws::tensor_of(e); }

// Position last, below so many.
template <const sw::custom_operation& Op, sw::op_attr A, int Below, laws::leaf First, laws::leaf... More>
struct positioned {
  using used = laws::customs<Op>;
  using operation = sw::detail::custom_tag<Op>;
  static constexpr laws::program value =
      laws::apply(&Op, {First, More..., laws::indices({static_cast<int>(First.extent[0])}, Below)}, A);
};
template <class Case>
inline constexpr int proved = laws::holds_case<Case>;

static_assert(proved<positioned<own::cache_update, along(1), 4, t({3, 5, 2, 2}), t({3, 2, 2, 2})>> > 10);
static_assert(proved<positioned<own::cache_update, along(2), 3, t({2, 3, 5}), t({2, 3, 3})>> > 10);
// Five of a cache of five: at position 0 alone.
static_assert(proved<positioned<own::cache_update, along(1), 1, t({2, 5, 3}), t({2, 5, 3})>> > 10);

static_assert(proved<positioned<own::cached_attention, attending(0), 3, t({3, 2, 2, 2}), t({3, 2, 4, 2}), t({3, 2, 4, 2})>> >
              10);
static_assert(proved<positioned<own::cached_attention, attending(1), 4, t({2, 2, 3, 2}), t({2, 5, 3, 2}), t({2, 5, 3, 1})>> >
              10);
static_assert(
    proved<positioned<own::cached_attention, attending(1, 2), 4, t({2, 2, 2, 2}), t({2, 5, 1, 2}), t({2, 5, 1, 2})>> > 8);

static_assert(proved<positioned<own::rotary_embedding_at, turning(2, 0), 9, t({2, 3, 3, 4})>> > 10);
static_assert(proved<positioned<own::rotary_embedding_at, turning(1, 1), 9, t({3, 5, 2, 2})>> > 10);
static_assert(proved<positioned<own::rotary_embedding_at, turning(1, 0, 1), 9, t({1, 3, 3, 4})>> > 10);
static_assert(proved<positioned<own::position_ids, sw::op_attr{}, 9, t({3, 5})>> > 6);

}  // namespace
