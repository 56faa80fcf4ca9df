// SPDX-License-Identifier: Apache-2.0
// Checkpoints of flat parameters: a rank saves the run of elements that it has of each, and they are loaded under any plan, flat or not,
// on any mesh, as plain ones are into flat groups; weights of other libraries too.
#include <files.hpp>
#include <flat_parameters.hpp>
#include <thrown.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace test;
using namespace test::flat;

// List optimizers count each parameter's steps.
template <class Step>
constexpr bool counts_steps = [] {
  for (int i = 0; i < Step::program.node_count; ++i)
    if (const sw::node& n = Step::program.nodes[i];
        n.op == sw::op_code::state && sw::attributes_of<sw::leaf_attributes>(n.a).which == sw::step_count)
      return true;
  return false;
}();
template <class Step, class Rank>
std::vector<double> held(sw::executor<Step, Rank>& run) {
  std::vector<double> all = all_of(run);
  const std::vector<double> m = moments_of(run);
  all.insert(all.end(), m.begin(), m.end());
  for (int i = 0; counts_steps<Step> && i < run.parameter_count(); ++i) {
    const auto steps = run.full_state(run.parameter_name(i), sw::moment::steps);
    all.insert(all.end(), steps.begin(), steps.end());
  }
  return all;
}

enum class way { plain, consolidated, beside };
// Trains to step 2, saves, and trains on: what it held then, and at the end.
template <class From>
std::pair<std::vector<double>, std::vector<double>> saved(const std::string& to, way how) {
  std::pair<std::vector<double>, std::vector<double>> r;
  sw::launch<typename From::mesh_type>([&](auto& rank) {
    sw::executor<From> run(rank);
    run.initialise(5);
    for (int s = 1; s <= 2; ++s) one_step(run, s);
    const auto then = held(run);
    if (how == way::beside) {
      auto pending = sw::async_save(run, to, {.step = 2});
      one_step(run, 3);
      pending.wait();
    } else {
      sw::save(run, to, {.step = 2}, {.consolidated = how == way::consolidated});
      one_step(run, 3);
    }
    const auto end = held(run);
    if (rank.index() == 0) r = {then, end};
  });
  return r;
}
template <class To>
void check_loaded(const std::string& from, const std::vector<double>& then, const std::vector<double>& end) {
  sw::launch<typename To::mesh_type>([&](auto& rank) {
    sw::executor<To> run(rank, every_check);
    CHECK(sw::load(run, from).step == 2);
    CHECK(held(run) == then);
    one_step(run, 3);
    CHECK(apart(held(run), end) < 1e-12);
    if constexpr (sw::executor<To>::flat.any()) CHECK(padding_is_zero(run));
  });
}
template <class From, class... To>
void goes_to(way how = way::plain) {
  const folder scratch;
  const auto [then, end] = saved<From>(scratch.path(), how);
  REQUIRE(then != end);
  (check_loaded<To>(scratch.path(), then, end), ...);
}

template <int D, template <int, class...> class Plan>
using flat_step = step<D, Plan<D, sw::flat_parameters>, sw::adam<>>;
template <int D>
using plain_step = step<D, one<D>, sw::adam<>>;

TEST_CASE("checkpoints: flat parameters of 1, 2, 3, 4 and 8 ranks go to flat and other plans") {
  goes_to<flat_step<1, one>, flat_step<3, one>, plain_step<2>>();
  goes_to<flat_step<2, one>, flat_step<2, one>, flat_step<4, three>, plain_step<1>>();
  goes_to<flat_step<3, three>, flat_step<3, three>, flat_step<8, one>, plain_step<4>>();
  goes_to<flat_step<4, some>, flat_step<4, some>, flat_step<3, one>, plain_step<3>>();
  goes_to<flat_step<8, one>, flat_step<8, one>, flat_step<1, one>, flat_step<4, some>>();
}
TEST_CASE("checkpoints: whole and even parameters go to flat ones") {
  goes_to<plain_step<1>, flat_step<4, one>, flat_step<8, three>>();
  goes_to<plain_step<3>, flat_step<2, one>, flat_step<3, some>>();
}
TEST_CASE("checkpoints: flat parameters in one file of whole tensors, and saved beside training") {
  goes_to<flat_step<3, one>, flat_step<2, three>, plain_step<2>>(way::consolidated);
  goes_to<flat_step<3, one>, flat_step<2, three>, plain_step<2>>(way::beside);
}
template <int D, class... Options>
using listed = step<D, one<D, Options...>, sw::adam<>, sw::fused_optimizer>;
TEST_CASE("checkpoints: flat parameters under list optimizers") {
  static_assert(counts_steps<listed<3>> && counts_steps<listed<3, sw::flat_parameters>>);
  goes_to<listed<3, sw::flat_parameters>, listed<3, sw::flat_parameters>, listed<2>>();
  goes_to<listed<4>, listed<3, sw::flat_parameters>>();
}

using beside_copies =
    sw::train_step<net, fit_both, sw::plan<sw::fully_shard<dp<2>, sw::flat_parameters>, sw::data_parallel<copies>>,
                   sw::mesh<dp<2>, copies>, sw::adam<>, sw::pipeline<>, double>;
TEST_CASE(
    "checkpoints: of equal runs of flat parameters one rank writes each, in turn; none reads or writes what it has not") {
  const folder scratch;
  const auto [then, end] = saved<beside_copies>(scratch.path(), way::plain);
  std::array<std::uint64_t, 4> bytes{};
  std::uint64_t all = 0;
  for (std::size_t r = 0; r < bytes.size(); ++r) {
    const sw::safetensors_reader file(scratch / ("step-00000002/rank-0000" + std::to_string(r) + ".safetensors"));
    for (const auto& e : file.entries()) bytes[r] += e.end - e.begin;
    all += bytes[r];
    CHECK(bytes[r] > 0);
  }
  CHECK(all == 3 * 126 * sizeof(double));  // with two moments each
  check_loaded<beside_copies>(scratch.path(), then, end);
  check_loaded<plain_step<3>>(scratch.path(), then, end);
  sw::launch<beside_copies::mesh_type>([&](auto& rank) {
    sw::executor<beside_copies> run(rank);
    CHECK(sw::load(run, scratch.path()).bytes_read == 3 * 63 * sizeof(double));  // half of each
  });
}

TEST_CASE("checkpoints: a flat group has one count of steps") {
  const folder scratch;
  sw::launch<listed<2>::mesh_type>([&](auto& rank) {
    sw::executor<listed<2>> run(rank);
    run.initialise(5);
    one_step(run, 1);
    run.set_state("gain", sw::moment::steps, std::vector<double>{7});
    sw::save(run, scratch.path(), {.step = 1});
  });
  sw::launch<listed<2, sw::flat_parameters>::mesh_type>([&](auto& rank) {
    sw::executor<listed<2, sw::flat_parameters>> run(rank);
    run.initialise(6);
    const auto before = held(run);
    CHECK(
        thrown([&] { sw::load(run, scratch.path()); }) ==
        "shardwise: load: file '" + scratch.path() +
            "/step-00000001' has other values as 'in.weight:steps' than as 'gain:steps', and the program keeps one of them for both, "
            "whose parameters lie in one flat group; load it into a program without flat_parameters (rank 0 and 1 more)");
    CHECK(held(run) == before);
  });
}

// in.weight (7, 5) is stored (5, 7), and down.weight (3, 6) as (6, 3).
using names = sw::weight_names<sw::named_as<"in.weight", "a", sw::transposed>, sw::named_as<"in.bias", "b">,
                               sw::named_as<"norm.weight", "norm.weight">, sw::named_as<"norm.bias", "norm.bias">,
                               sw::named_as<"up.weight", "u">, sw::named_as<"up.bias", "v">, sw::named_as<"gain", "g">,
                               sw::named_as<"down.weight", "d", sw::transposed>, sw::named_as<"down.bias", "e">>;
template <class To>
void check_weights(const std::string& file, const std::vector<double>& weights) {
  sw::launch<typename To::mesh_type>([&](auto& rank) {
    sw::executor<To> run(rank);
    sw::load_weights<names>(run, file);
    CHECK(all_of(run) == weights);
  });
}
TEST_CASE("weights of other libraries go into flat parameters and out of them") {
  const folder scratch;
  std::vector<double> weights;
  sw::launch<flat_step<3, one>::mesh_type>([&](auto& rank) {
    sw::executor<flat_step<3, one>> run(rank);
    run.initialise(5);
    one_step(run, 1);
    sw::save_weights<names>(run, scratch / "theirs.safetensors");
    const auto own = all_of(run);
    if (rank.index() == 0) weights = own;
  });
  check_weights<flat_step<4, three>>(scratch / "theirs.safetensors", weights);
  check_weights<flat_step<8, one>>(scratch / "theirs.safetensors", weights);
  check_weights<plain_step<2>>(scratch / "theirs.safetensors", weights);
}

}  // namespace
