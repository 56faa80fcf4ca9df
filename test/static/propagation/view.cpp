// SPDX-License-Identifier: Apache-2.0
// Laws of views: a reshape leaves every rank the same elements in the same order, and views have a way back.

#include <shardwise/operations/strategy.hpp>

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::problem;

template <int N>
struct ranks : sw::axis<N> {};
template <int N>
struct inner : sw::axis<N> {};
template <int N, class Shape>
constexpr sw::spec over(sw::placement p) {
  return on_line<Shape, float, ranks<N>>(p);
}

template <std::int64_t... E>
constexpr sw::op_attr to() {
  const std::int64_t e[] = {E..., 0};
  return sw::pack_extents(e, static_cast<int>(sizeof...(E)));
}

// --- reshape: which split becomes which ------------------------------------------------------------------------------

// An empty tensor's shard goes where its dim goes, or nowhere.
static_assert(gives(apply(op_code::reshape, to<0, 2, 3>(), over<2, sw::shape<0, 6>>(S(0))), S(0)));
static_assert(refuses(apply(op_code::reshape, to<1, 0>(), over<2, sw::shape<0>>(S(0))), problem::reshape_crosses_shard));
static_assert(refuses(apply(op_code::reshape, to<0>(), over<2, sw::shape<2, 0>>(S(0))), problem::reshape_crosses_shard));

static_assert(gives(apply(op_code::reshape, to<24>(), over<2, sw::shape<4, 6>>(S(0))),
                    S(0)));  // the leftmost of a merge
static_assert(refuses(apply(op_code::reshape, to<24>(), over<2, sw::shape<4, 6>>(S(1))), problem::reshape_crosses_shard));
static_assert(gives(apply(op_code::reshape, to<4, 2>(), over<2, sw::shape<8>>(S(0))), S(0)));
static_assert(refuses(apply(op_code::reshape, to<2, 3>(), over<4, sw::shape<6>>(S(0))), problem::reshape_crosses_shard));
static_assert(gives(apply(op_code::reshape, to<6, 4>(), over<2, sw::shape<2, 3, 4>>(S(2))), S(1)));
static_assert(gives(apply(op_code::reshape, to<6>(), over<2, sw::shape<1, 6>>(S(1))), S(0)));
static_assert(gives(apply(op_code::reshape, to<2, 2, 4>(), over<2, sw::shape<4, 4>>(S(1))), S(2)));
static_assert(gives(apply(op_code::reshape, to<1, 8>(), over<2, sw::shape<8>>(S(0))), S(1)));

// heads: 64 features over 3 ranks are 22, 22, 20 when split flat, whole heads of 16 when split by blocks
using features = sw::shape<5, 64>;
static_assert(refuses(apply(op_code::reshape, to<5, 4, 16>(), over<3, features>(S(1))), problem::reshape_crosses_shard));
static_assert(gives(apply(op_code::reshape, to<5, 4, 16>(), over<3, features>(sw::shard_value(1, 16))), S(1)));
static_assert(gives(apply(op_code::reshape, to<5, 64>(), over<3, sw::shape<5, 4, 16>>(S(1))),
                    sw::shard_value(1, 32)));  // 2, 2, 0 heads

// partial and whole values may be viewed in any way
static_assert(gives(apply(op_code::reshape, to<24>(), over<2, sw::shape<4, 6>>(P)), P));
static_assert(gives(apply(op_code::reshape, to<3, 8>(), over<2, sw::shape<4, 6>>(U)), U));
static_assert(refuses(apply(op_code::reshape, to<25>(), over<2, sw::shape<4, 6>>(R)), problem::reshape_count));

// --- reshape: the law ------------------------------------------------------------------------------------------------

// Whether the rank at coordinate c holds the same elements in both specs, in the same local order.
constexpr bool same_elements(const sw::spec& a, const sw::spec& b, int c) {
  struct side {
    std::int64_t begin[sw::max_rank]{}, size[sw::max_rank]{}, at[sw::max_rank]{};
  };
  side sides[2];
  const sw::spec* const specs[] = {&a, &b};
  for (int k = 0; k < 2; ++k)
    for (int d = 0; d < specs[k]->rank; ++d) {
      const sw::interval v = sw::local_interval(*specs[k], d, &c);
      sides[k].begin[d] = v.begin;
      sides[k].size[d] = v.size;
    }
  const std::int64_t count = sw::local_numel(a, &c);
  if (sw::local_numel(b, &c) != count) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t id[2] = {0, 0};  // row-major, in the whole tensor
    for (int k = 0; k < 2; ++k) {
      const int rank = specs[k]->rank;
      for (int d = 0; d < rank; ++d) id[k] = id[k] * specs[k]->extent[d] + sides[k].begin[d] + sides[k].at[d];
      for (int d = rank - 1; d >= 0 && ++sides[k].at[d] == sides[k].size[d]; --d) sides[k].at[d] = 0;
    }
    if (id[0] != id[1]) return false;
  }
  return true;
}

struct tally {
  int admitted = 0, wrong = 0;
};
constexpr void try_reshape(tally& t, const sw::spec& from, const sw::op_attr& a) {
  const sw::outcome o = apply(op_code::reshape, a, from);
  if (o.error) return;
  ++t.admitted;
  const sw::outcome back = apply(op_code::reshape, sw::pack_extents(from), o.out);
  for (int c = 0; c < from.axis_size[0]; ++c)
    if (!same_elements(from, o.out, c) || (!back.error && !same_elements(from, back.out, c))) ++t.wrong;
}

// Dim D split in every way that blocks allow, viewed as every shape of the list.
template <int N, class Shape, int D>
constexpr tally tried = [] {
  constexpr sw::op_attr targets[] = {to<24>(),      to<4, 6>(),  to<6, 4>(),  to<2, 12>(),  to<2, 3, 4>(),
                                     to<2, 2, 6>(), to<1, 24>(), to<24, 1>(), to<3, 1, 8>()};
  tally t;
  for (std::int32_t block = 1; block <= Shape::extent[D]; ++block) {
    if (Shape::extent[D] % block != 0) continue;
    sw::spec from = over<N, Shape>(sw::shard_value(D, block));
    sw::normalise(from);
    for (const auto& a : targets) try_reshape(t, from, a);
  }
  return t;
}();
template <int N, class Shape, std::size_t... D>
constexpr bool lawful_dims(std::index_sequence<D...>) {
  return (tried<N, Shape, static_cast<int>(D)>.admitted + ...) >= 9 &&
         (tried<N, Shape, static_cast<int>(D)>.wrong + ...) == 0;
}
template <int N, class Shape>
constexpr bool lawful = lawful_dims<N, Shape>(std::make_index_sequence<Shape::rank>{});
static_assert(lawful<2, sw::shape<24>> && lawful<3, sw::shape<24>> && lawful<4, sw::shape<24>> && lawful<5, sw::shape<24>>);
static_assert(lawful<2, sw::shape<4, 6>> && lawful<3, sw::shape<4, 6>> && lawful<4, sw::shape<4, 6>>);
static_assert(lawful<2, sw::shape<2, 3, 4>> && lawful<3, sw::shape<2, 3, 4>>);
static_assert(lawful<2, sw::shape<1, 6, 4>> && lawful<5, sw::shape<1, 6, 4>>);

// --- permute ---------------------------------------------------------------------------------------------------------

constexpr sw::op_attr order(int a, int b, int c) { return {{a | b << 4 | c << 8, 0, 0, 0, 0, 0}}; }
using cube = sw::shape<2, 4, 6>;
static_assert(gives(apply(op_code::permute, order(0, 2, 1), on_line<cube>(S(1))), S(2)));
static_assert(gives(apply(op_code::permute, order(0, 2, 1), on_line<cube>(S(2))), S(1)));
static_assert(gives(apply(op_code::permute, order(2, 0, 1), on_line<cube>(S(2))), S(0)));
static_assert(gives(apply(op_code::permute, order(2, 0, 1), on_line<cube>(P)), P));
static_assert(refuses(apply(op_code::permute, order(0, 1, 1), on_line<cube>(R)), problem::permute_not_a_permutation));
static_assert(refuses(apply(op_code::permute, order(0, 1, 3), on_line<cube>(R)), problem::permute_not_a_permutation));

// a permutation and its inverse give back the very same spec, strides included
constexpr bool permute_inverts() {
  const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& o : orders) {
    int inverse[3]{};
    for (int d = 0; d < 3; ++d) inverse[o[d]] = d;
    for (const auto& p : {R, U, P, S(0), S(1), S(2)}) {
      const sw::spec x = on_line<cube>(p);
      const sw::outcome there = apply(op_code::permute, order(o[0], o[1], o[2]), x);
      if (there.error || apply(op_code::permute, order(inverse[0], inverse[1], inverse[2]), there.out).out != x)
        return false;
    }
  }
  return true;
}
static_assert(permute_inverts());

// --- slice -----------------------------------------------------------------------------------------------------------

constexpr sw::op_attr range(int dim, std::int64_t start, std::int64_t length) { return {{dim, start, length, 0, 0, 0}}; }
static_assert([] {
  const sw::spec x = on_line<cube>(S(0));
  const sw::outcome o = apply(op_code::slice, range(1, 1, 2), x);
  return gives(o, S(0)) && o.out.extent[1] == 2 && o.out.offset == 1 && o.out.stride[0] == x.stride[0] &&
         !sw::is_contiguous(o.out);
}());
static_assert(apply(op_code::slice, range(1, 0, 4), on_line<cube>(R)).out == on_line<cube>(R));
static_assert(refuses(apply(op_code::slice, range(1, 3, 2), on_line<cube>(R)), problem::slice_out_of_range));
static_assert(refuses(apply(op_code::slice, range(1, 0, 2), on_line<cube>(S(1))), problem::slice_dim_sharded));
// but for an end that leaves the chunks as large as they are: 6 over two ranks are 3 and 3, 5 are 3 and 2
using six = sw::shape<6, 2>;
using two = sw::shape<2, 2>;
static_assert(gives(apply(op_code::slice, range(0, 0, 5), on_line<six>(S(0))), S(0)));
static_assert(refuses(apply(op_code::slice, range(0, 0, 4), on_line<six>(S(0))), problem::slice_dim_sharded));
static_assert(refuses(apply(op_code::slice, range(0, 1, 5), on_line<six>(S(0))), problem::slice_dim_sharded));
static_assert(gives(apply(op_code::pad, range(0, 0, 6), on_line<sw::shape<5, 2>>(S(0))), S(0)));
static_assert(refuses(apply(op_code::pad, range(0, 0, 7), on_line<sw::shape<5, 2>>(S(0))), problem::slice_dim_sharded));
static_assert(refuses(apply(op_code::slice, range(3, 0, 1), on_line<cube>(R)), problem::dim_out_of_range));
// an axis of one rank splits nothing, so any part of the dim will do; beside it the other axis alone decides
static_assert(gives(apply(op_code::slice, range(0, 0, 4), over<1, six>(S(0))), S(0)));
static_assert(gives(apply(op_code::slice, range(0, 2, 3), over<1, six>(S(0))), S(0)));
static_assert(gives(apply(op_code::pad, range(0, 2, 9), over<1, six>(S(0))), S(0)));
static_assert(gives(apply(op_code::slice_scatter, range(0, 3, 2), over<1, six>(S(0)), over<1, two>(S(0))), S(0)));
static_assert(gives(apply(op_code::slice, range(0, 0, 4), over<3, sw::shape<5, 2>>(S(0))), S(0)));  // 2 2 1 are 2 2 0 then
static_assert(refuses(apply(op_code::slice, range(0, 0, 4), over<2, sw::shape<5, 2>>(S(0))), problem::slice_dim_sharded));
template <int A, int B>
constexpr sw::problem cut(std::int64_t start, std::int64_t length) {
  const sw::spec x = sw::spec_of<float, six, sw::mesh<ranks<A>, inner<B>>, sw::shard<0>, sw::shard<0, 2>>::value;
  return apply(op_code::slice, range(0, start, length), x).error.what;
}
static_assert(cut<1, 1>(1, 4) == problem::none && cut<2, 1>(0, 5) == problem::none && cut<1, 3>(0, 5) == problem::none);
static_assert(cut<2, 1>(0, 4) == problem::slice_dim_sharded && cut<1, 3>(1, 5) == problem::slice_dim_sharded);
static_assert(cut<2, 3>(0, 5) == problem::slice_dim_sharded);
// its adjoint pads: extents come back
static_assert(apply(op_code::pad, range(1, 1, 4), apply(op_code::slice, range(1, 1, 2), on_line<cube>(S(0))).out).out ==
              on_line<cube>(S(0)));

// a slice written into what it is of: both are placed alike, however that is
constexpr bool scatters(sw::placement p) {
  return gives(apply(op_code::slice_scatter, range(0, 3, 2), on_line<six>(p), on_line<two>(p)), p);
}
static_assert(scatters(R) && scatters(U) && scatters(P) && scatters(S(1)) &&
              scatters(sw::partial_value(sw::reduction::max)));
static_assert(refuses(apply(op_code::slice_scatter, range(0, 3, 2), on_line<six>(R), on_line<two>(U)),
                      problem::slice_scatter_placements));
static_assert(refuses(apply(op_code::slice_scatter, range(0, 3, 2), on_line<six>(S(0)), on_line<two>(S(0))),
                      problem::slice_dim_sharded));
static_assert(gives(apply(op_code::slice_scatter, range(0, 0, 5), on_line<six>(S(0)), on_line<sw::shape<5, 2>>(S(0))),
                    S(0)));
static_assert(refuses(apply(op_code::slice_scatter, range(0, 3, 3), on_line<six>(R), on_line<two>(R)),
                      problem::slice_scatter_shape));
static_assert(refuses(apply(op_code::slice_scatter, range(0, 5, 2), on_line<six>(R), on_line<two>(R)),
                      problem::slice_out_of_range));

// a write in place changes nothing of what is written but its elements
static_assert(gives(apply(op_code::copy_, {}, on_line<six>(S(0)), on_line<six>(S(0))), S(0)));
static_assert(refuses(apply(op_code::copy_, {}, on_line<six>(S(0)), on_line<six>(R)), problem::mutation_result));
static_assert(refuses(apply(op_code::copy_, {}, on_line<six>(R), on_line<two>(R)), problem::mutation_result));
static_assert(refuses(apply(op_code::copy_, {}, on_line<six>(R), on_line<six, std::int32_t>(R)), problem::mutation_result));
// in implicit mode the other operand goes where it is written
constexpr sw::placement written_from(sw::placement to, sw::placement from) {
  const sw::spec in[] = {on_line<six>(to), on_line<six>(from)};
  const sw::strategy s = sw::choose_strategy(op_code::copy_, {}, in, 2);
  return s.found && s.target[0] == in[0] ? s.target[1].place[0] : sw::partial_value(sw::reduction::product);
}
static_assert(written_from(S(0), R) == S(0) && written_from(R, P) == R && written_from(S(1), S(0)) == S(1));

}  // namespace
