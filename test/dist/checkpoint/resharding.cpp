// SPDX-License-Identifier: Apache-2.0
// Checkpoints: saved under one plan and mesh, loaded under any other one, every element is what was saved; and training goes on.
#include <doctest/doctest.h>

#include <files.hpp>
#include <placed_steps.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace test;
using namespace test::placed;

using all_values = std::vector<std::vector<double>>;

// Trains in From and saves in between; returns what it held then, and at the end.
template <class From>
std::pair<all_values, all_values> saved_run(const std::string& folder, const sw::save_options& options = {}) {
  std::pair<all_values, all_values> r;
  sw::launch<typename From::mesh_type>([&](auto& rank) {
    sw::executor<From> ex(rank);
    ex.initialise(3);
    train(ex, 1, 2);
    const std::string made =
        sw::save(ex, folder, {.step = 2, .seed = 7, .integers = {{"row", 16}}, .reals = {{"rate", 0.1}}}, options);
    CHECK(made == folder + "/step-00000002");
    const auto then = everything(ex);
    train(ex, 3, 4);
    const auto end = everything(ex);
    if (rank.index() == 0) r = {then, end};
  });
  return r;
}

template <class To>
void check_loaded(const std::string& folder, const all_values& then, const all_values& end, bool bitwise) {
  sw::launch<typename To::mesh_type>([&](auto& rank) {
    sw::executor<To> ex(rank);
    const sw::loaded_checkpoint c = sw::load(ex, folder);
    CHECK(c.step == 2);
    CHECK(c.seed == 7);
    CHECK(c.integers.at("row") == 16);
    CHECK(c.reals.at("rate") == 0.1);
    CHECK(everything(ex) == then);
    train(ex, 3, 4);
    const auto got = everything(ex);
    double largest = 0;
    for (std::size_t k = 0; k < got.size(); ++k)
      for (std::size_t i = 0; i < got[k].size(); ++i) largest = std::max(largest, std::abs(got[k][i] - end[k][i]));
    CHECK(largest < 1e-12);
    if (bitwise) CHECK(got == end);
  });
}

template <class From, class... To>
void check_all(const sw::save_options& options = {}) {
  const folder scratch;
  const auto [then, end] = saved_run<From>(scratch.path(), options);
  CHECK(then != end);
  (check_loaded<To>(scratch.path(), then, end, std::is_same_v<From, To>), ...);
}

}  // namespace

TEST_CASE("checkpoints: rows on one axis and columns on the other, of 4 ranks, to 1, 2, 3, 4 and 8") {
  check_all<both4, both4, adam_step<1, 1>, whole2, split_step<3, 1, rows<dp<3>, 0>>, strided4, rows8>();
}
TEST_CASE("checkpoints: strided shards of 4 ranks, and whole ones") {
  check_all<strided4, strided4, columns2, split_step<1, 3, rows<tp<3>, 1>, rows<tp<3>, 0>>, strided8>();
  check_all<whole4, whole4, rows2>();
}
TEST_CASE("checkpoints: 8 ranks with empty shards, and one") {
  check_all<rows8, rows8, adam_step<1, 1>, strided8, rows4>();
  check_all<adam_step<1, 1>, adam_step<1, 1>, strided8>();
}
TEST_CASE("checkpoints: one file of whole tensors is loaded as others are") {
  check_all<both4, both4, rows2, whole8>({.consolidated = true});
}

TEST_CASE("checkpoints: each block stands in one file, and equal ones are written by ranks in turn") {
  const folder scratch;
  saved_run<whole4>(scratch.path());
  std::vector<std::string> names;
  double bytes[4]{};
  for (int r = 0; r < 4; ++r) {
    const sw::safetensors_reader file(scratch / ("step-00000002/rank-0000" + std::to_string(r) + ".safetensors"));
    for (const auto& e : file.entries()) {
      names.push_back(e.name);
      bytes[r] += static_cast<double>(e.end - e.begin);
    }
  }
  std::sort(names.begin(), names.end());
  CHECK(names.size() == 14);  // four parameters, two buffers, two moments of each parameter
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(names[1] == "first.bias:first_moment");
  for (const double b : bytes) CHECK(b > 0);
}
