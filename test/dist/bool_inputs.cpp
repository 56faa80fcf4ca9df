// SPDX-License-Identifier: Apache-2.0
// Inputs of bool: each rank takes its rows of a std::vector<bool>, which keeps bits, as of any other range.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <thrown.hpp>

namespace {

using namespace test;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

struct chosen {
  constexpr auto operator()(const auto& x, const auto& mask) const {
    return std::tuple{sw::where(sw::cast<std::int32_t>(mask), x, sw::scale(x, 10)), mask};
  }
};
using x_type = sw::input_tensor<float, sw::shape<5>, sw::on<dp, sw::shard<0>>>;
using mask_type = sw::input_tensor<bool, sw::shape<5>, sw::on<dp, sw::shard<0>>>;
using program = sw::function_step<chosen, mesh, sw::inputs<x_type, mask_type>>;

}  // namespace

TEST_CASE("an input of bool is given bit by bit, or element by element") {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<program, std::remove_cvref_t<decltype(rank)>> run(rank);
    run.set_input(0, std::vector<float>{1, 2, 3, 4, 5});
    const std::vector<bool> bits{true, false, false, true, true};
    const bool elements[] = {true, false, false, true, true};
    const std::vector<float> want = rank.index() == 0 ? std::vector<float>{1, 20, 30} : std::vector<float>{4, 5};
    const std::vector<bool> own = rank.index() == 0 ? std::vector<bool>{true, false, false} : std::vector<bool>{true, true};
    run.set_input(1, bits);
    run.run({});
    CHECK(values_of(run.output(0)) == want);
    const auto block = run.template output<bool>(1);
    CHECK(std::vector<bool>(block.begin(), block.end()) == own);
    run.set_input(1, std::vector<bool>(5, false));
    run.run({});
    CHECK(values_of(run.output(0))[0] == (rank.index() == 0 ? 10.F : 40.F));
    run.set_input(1, elements);
    run.run({});
    CHECK(values_of(run.output(0)) == want);
    CHECK(thrown([&] { run.set_input(1, std::vector<bool>(4)); }).find("4 elements are given") != std::string::npos);
    CHECK(thrown([&] { run.set_input(0, bits); }).find("elements of type bool are given") != std::string::npos);
  });
}
