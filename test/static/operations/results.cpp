// SPDX-License-Identifier: Apache-2.0
// Rules of operations with several results: each result has extents, an element type and a placement; the proofs of those that the
// tests use, and of max and min along a dim.
#include <custom_results.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/extreme/host.hpp>

namespace {

namespace sw = shardwise;

// --- rules -----------------------------------------------------------------------------------------------------------------------

constexpr sw::spec tensor(std::int64_t rows, std::int64_t columns, sw::placement p) {
  const std::int32_t sizes[] = {2};
  sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
  s.rank = 2;
  s.extent[0] = rows;
  s.extent[1] = columns;
  sw::make_contiguous(s);
  s.place[0] = p;
  return s;
}
constexpr sw::outcome of(sw::placement p, int result) {
  const sw::spec x = tensor(4, 6, p);
  return sw::infer(described::lines.record, {}, &x, 1, result);
}
static_assert(of(sw::shard_value(0), 0).out == tensor(4, 6, sw::shard_value(0)));
static_assert(of(sw::shard_value(0), 1).out.rank == 1 && of(sw::shard_value(0), 1).out.extent[0] == 4 &&
              of(sw::shard_value(0), 1).out.place[0].is_shard(0) && of(sw::shard_value(0), 1).out.type == sw::dtype::f32);
static_assert(of(sw::reduced_value(), 2).out.type == sw::dtype::i32 && of(sw::reduced_value(), 2).out.place[0].is_reduced());
static_assert(of(sw::shard_value(1), 0).error.what == sw::problem::custom_placements &&
              of(sw::shard_value(1), 2).error.what == sw::problem::custom_placements);
static_assert(of(sw::shard_value(0), 3).error.what == sw::problem::result_number &&
              of(sw::shard_value(0), 3).error.have == 3 && of(sw::shard_value(0), 3).error.want == 3 &&
              of(sw::shard_value(0), -1).error.what == sw::problem::result_number);

// The results of one operation may be placed apart.
constexpr sw::outcome back(int result) {
  sw::spec in[] = {tensor(4, 6, sw::shard_value(0)), tensor(4, 6, sw::shard_value(0)), tensor(6, 0, sw::reduced_value())};
  in[2].rank = 1;
  sw::make_contiguous(in[2]);
  return sw::infer(fused_back::scale_back.record, {}, in, 3, result);
}
static_assert(back(0).out.place[0].is_shard(0) && back(1).out.place[0].is_partial());

constexpr sw::outcome largest(std::int64_t rows, std::int64_t columns, sw::placement p, int dim, int result) {
  const sw::spec x = tensor(rows, columns, p);
  return sw::infer(sw::custom::max.record, sw::pack_attributes(sw::extreme_attributes{dim}), &x, 1, result);
}
static_assert(largest(4, 6, sw::shard_value(0), 1, 0).out == tensor(4, 1, sw::shard_value(0)));
static_assert(largest(4, 6, sw::shard_value(1), 0, 1).out.place[0].is_shard(1) &&
              largest(4, 6, sw::shard_value(1), 0, 1).out.type == sw::dtype::i32);
static_assert(largest(0, 6, sw::shard_value(0), 1, 0).out == tensor(0, 1, sw::shard_value(0)));
static_assert(largest(4, 6, sw::shard_value(1), 1, 0).error.what == sw::problem::extreme_placements &&
              largest(4, 6, sw::partial_value(), 1, 0).error.what == sw::problem::extreme_placements &&
              largest(4, 6, sw::partial_value(sw::reduction::max), 1, 0).error.what == sw::problem::extreme_placements);
static_assert(largest(4, 0, sw::replicate_value(), 1, 0).error.what == sw::problem::extreme_empty);
static_assert(largest(4, 6, sw::replicate_value(), 2, 0).error.what == sw::problem::dim_out_of_range &&
              largest(4, 6, sw::replicate_value(), -1, 0).error.what == sw::problem::dim_out_of_range);

// --- proofs ----------------------------------------------------------------------------------------------------------------------

using namespace sw::laws;

static_assert(holds<customs<described::lines>, sw::shape<5, 3>> > 0);
static_assert(holds<customs<described::lines>, sw::shape<2, 4, 3>> > 0);
static_assert(holds<customs<fused_back::scale, fused_back::scale_back>, sw::shape<5, 3>, sw::shape<3>> > 0);
static_assert(holds<customs<fused_back::scale_back>, sw::shape<5, 3>, sw::shape<5, 3>, sw::shape<3>> > 0);

template <const sw::custom_operation& Op, int Dim, class Shape>
constexpr int proved = holds_case<custom_case<customs<Op>, sw::pack_attributes(sw::extreme_attributes{Dim}), Shape>>;
static_assert(proved<sw::custom::max, 1, sw::shape<5, 3>> > 0 && proved<sw::custom::max, 0, sw::shape<4, 5, 3>> > 0);
static_assert(proved<sw::custom::min, 0, sw::shape<5, 3>> > 0 && proved<sw::custom::min, 1, sw::shape<5, 3, 4>> > 0);

}  // namespace
