// SPDX-License-Identifier: Apache-2.0
// Ids of int32 that are given as int64, as data loaders have them: checked where they are copied, by programs and eager tensors.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <thrown.hpp>

namespace {

using namespace test;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

struct look_up {
  constexpr auto operator()(const auto& table, const auto& id) const { return sw::embedding(table, id); }
};
using table_type = sw::input_tensor<float, sw::shape<5, 2>, sw::on<dp, sw::reduced>>;
using ids_type = sw::input_tensor<std::int32_t, sw::shape<3>, sw::on<dp, sw::shard<0>>>;
using wide_ids_type = sw::input_tensor<std::int64_t, sw::shape<3>, sw::on<dp, sw::shard<0>>>;
using program = sw::function_step<look_up, mesh, sw::inputs<table_type, ids_type>>;

// Ids that are int64 in the program are made int32 where it says so.
struct look_up_wide {
  constexpr auto operator()(const auto& table, const auto& id) const {
    return sw::embedding(table, sw::cast<std::int32_t>(id));
  }
};
using wide_program = sw::function_step<look_up_wide, mesh, sw::inputs<table_type, wide_ids_type>>;

const std::vector<float> table{0, 1, 10, 11, 20, 21, 30, 31, 40, 41};

template <class Program, class Rank>
std::vector<float> rows_of(Rank& rank, const std::vector<std::int64_t>& given) {
  sw::executor<Program, Rank> run(rank);
  run.set_input(0, table);
  run.set_input(1, given);
  run.run({});
  return values_of(run.output(0));
}

}  // namespace

TEST_CASE("ids given as int64: the same rows as of int32; what is no int32 throws where it is given") {
  sw::launch<mesh>([](auto& rank) {
    const std::vector<std::int64_t> good{4, 0, 3}, bad{4, 1LL << 33, (1LL << 32) + 1};  // 2^32 + 1 would be 1
    const std::vector<float> want = rank.index() == 0 ? std::vector<float>{40, 41, 0, 1} : std::vector<float>{30, 31};
    CHECK(rows_of<program>(rank, good) == want);
    CHECK(rows_of<wide_program>(rank, good) == want);
    sw::executor<program, std::remove_cvref_t<decltype(rank)>> run(rank);
    const std::string said = thrown([&] { run.set_input(1, bad); });
    CHECK(said.find("set_input: element ") != std::string::npos);
    CHECK(said.find("which is no int32") != std::string::npos);
    CHECK(thrown([&] { run.set_input(1, std::vector<float>{1, 2, 3}); }).find("elements of type float are given") !=
          std::string::npos);
    sw::eager on(rank);
    using ids = sw::dtensor_of<std::int32_t, sw::shape<3>, mesh, sw::on<dp, sw::shard<0>>>;
    CHECK(values_of(ids::distribute(on, good).to_local()).size() == want.size() / 2);
    CHECK(thrown([&] { (void)ids::distribute(on, bad); }).find("distribute: element ") != std::string::npos);
  });
}
