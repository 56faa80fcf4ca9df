// SPDX-License-Identifier: Apache-2.0
// Programs of several element types on a GPU: casts between float, two-byte floats, integers and bool, what computes between them,
// gradients, fused or not, are the host's bits; and an element type that no source has compiled is named when the executor is made.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <08_own_operation/operation.hpp>
#include <cmath>
#include <cstring>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <string>
#include <vector>

namespace device_mixed {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

// Sums of a few products of small whole numbers, which are exact in any order; every other operation rounds once.
template <class Low>
struct exact_chain {
  constexpr auto operator()(const auto& x, const auto& ids) const {
    const auto y = sw::cast<Low>(x);
    const auto a = sw::relu(y * y - y) + sw::scale(y, 0.3);
    const auto mask = sw::lt(y, a);
    const auto counts = sw::cast<std::int64_t>(sw::cast<bool>(mask)) + ids;
    const auto kept = sw::where(mask, a, y);
    return std::tuple{sw::sum(sw::cast<float>(kept) * x),
                      kept,
                      counts,
                      sw::cast<std::int32_t>(counts),
                      sw::cast<bool>(mask),
                      sw::maximum(a, y),
                      sw::sum<0>(counts)};
  }
};
template <class Low>
struct row_chain {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::cast<Low>(x);
    return std::tuple{sw::sum(sw::cast<float>(sw::softmax(y * y))), sw::log_softmax(y), sw::sum<1>(y), sw::amax<1>(y)};
  }
};
// A function that states the type that it brings in: its kernels are compiled with the program.
struct gated_rows {
  using low_element = sw::f16;
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::cast<sw::f16>(x);
    return std::tuple{sw::sum(x), sw::call<gated::swiglu>(y, y * y)};
  }
};
struct to_double {
  constexpr auto operator()(const auto& x) const { return std::tuple{sw::sum(x), sw::cast<double>(x)}; }
};

struct chosen {
  constexpr auto operator()(const auto& x, const auto& mask) const {
    return std::tuple{sw::sum(sw::where(sw::cast<std::int32_t>(mask), x, sw::scale(x, 2))), mask};
  }
};

using x_input = sw::input_tensor<float, sw::shape<70, 33>>;
using id_input = sw::input_tensor<std::int64_t, sw::shape<70, 33>>;
template <class Low, class Pipeline, class Backend>
using exact_program = sw::function_step<exact_chain<Low>, mesh, sw::inputs<x_input, id_input>, Pipeline, Backend>;
template <class Low, class Pipeline, class Backend>
using row_program = sw::gradient_step<row_chain<Low>, mesh, sw::inputs<x_input>, sw::wrt<0>, Pipeline, Backend>;

template <class, class Pipeline, class Backend>
using gated_program = sw::function_step<gated_rows, mesh, sw::inputs<x_input>, Pipeline, Backend>;

// All outputs as numbers, integers and bool alike.
template <class Program, class Rank>
std::vector<std::vector<double>> outputs_of(Rank& rank) {
  sw::executor<Program, Rank> ex(rank);
  std::vector<float> x(70 * 33);
  std::vector<std::int64_t> ids(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(static_cast<int>(i * 7 % 33) - 16) / 4;
    ids[i] = static_cast<std::int64_t>(i) * 1000 - 5;
  }
  ex.set_input(0, x);
  if (ex.input_count() > 1) ex.set_input(1, ids);
  for (int step = 1; step <= 2; ++step) ex.run(sw::step_env{.step = step});
  std::vector<std::vector<double>> all;
  const auto add = [&](const auto& block) {
    all.emplace_back();
    for (std::size_t i = 0; i < block.size(); ++i) all.back().push_back(static_cast<double>(block[i]));
  };
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (add(ex.template output<sw::element_t<Program::program.spec_of(Program::program.outputs[K]).type>>(static_cast<int>(K))),
     ...);
  }(std::make_index_sequence<static_cast<std::size_t>(Program::program.output_count)>{});
  return all;
}

template <template <class, class, class> class Program, class Low, class Pipeline>
void check(double slack) {
  std::vector<std::vector<double>> host, device;
  sw::launch<mesh>([&](auto& rank) { host = outputs_of<Program<Low, Pipeline, sw::host_backend>>(rank); });
  sw::launch_cuda<mesh>([&](auto& rank) { device = outputs_of<Program<Low, Pipeline, sw::cuda_backend>>(rank); });
  REQUIRE(host.size() == device.size());
  for (std::size_t k = 0; k < host.size(); ++k) {
    double worst = 0;
    REQUIRE(host[k].size() == device[k].size());
    for (std::size_t i = 0; i < host[k].size(); ++i)
      worst = std::fmax(worst, std::abs(host[k][i] - device[k][i]) / (1 + std::abs(host[k][i])));
    INFO("output " << k);
    CHECK(worst <= slack);
  }
}

TEST_CASE("a program of five element types gives the host's bits on a GPU, fused or not") {
  if (!test::place::has(1)) return;
  check<exact_program, sw::bf16, sw::pipeline<>>(0);
  check<exact_program, sw::f16, sw::pipeline<>>(0);
  check<exact_program, sw::bf16, sw::pipeline<sw::fuse_kernels>>(0);
}

TEST_CASE("rows, sums and gradients of two-byte elements on a GPU are the host's within a unit") {
  if (!test::place::has(1)) return;
  check<row_program, sw::bf16, sw::pipeline<>>(0.008);
  check<row_program, sw::f16, sw::pipeline<sw::fuse_kernels>>(0.001);
}

TEST_CASE("a user's own formula on two-byte elements computes in float and rounds once") {
  if (!test::place::has(1)) return;
  check<gated_program, sw::f16, sw::pipeline<>>(0.001);
}

TEST_CASE("an input of bool is given as a std::vector<bool> and read as one") {
  if (!test::place::has(1)) return;
  using program = sw::function_step<chosen, mesh, sw::inputs<x_input, sw::input_tensor<bool, sw::shape<70, 33>>>,
                                    sw::pipeline<>, sw::cuda_backend>;
  std::vector<bool> mask(70 * 33), back;
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 1;
  double sum = 0;
  sw::launch_cuda<mesh>([&](auto& rank) {
    sw::executor<program, std::remove_cvref_t<decltype(rank)>> ex(rank);
    ex.set_input(0, std::vector<float>(mask.size(), 1));
    ex.set_input(1, mask);
    ex.run(sw::step_env{});
    sum = ex.output()[0];
    back = ex.template output<bool>(1);
  });
  CHECK(sum == 770 + 2 * 1540);
  CHECK(back == mask);
}

// Without a GPU a case counts as skipped, so what needs none has a case of its own.
TEST_CASE("a program's kernels are compiled for its element, int32 and what its function states") {
  using namespace sw::cuda::detail;
  using plain = elements_of_program<exact_program<sw::bf16, sw::pipeline<>, sw::cuda_backend>>;
  using stated = elements_of_program<gated_program<void, sw::pipeline<>, sw::cuda_backend>>;
  CHECK(std::size(compiled_list<plain>::list) == 2);
  CHECK(std::size(compiled_list<stated>::list) == 3);
  const sw::cuda::compiled_element& low = compiled_list<stated>::list[2];
  CHECK(low.type == sw::dtype::f16);
  CHECK((low.of(sw::op_code::mul) != nullptr && low.of(sw::op_code::adam_term) == nullptr));
  CHECK((low.cast_to[static_cast<int>(sw::dtype::f32)] != nullptr));
  CHECK((low.cast_to[static_cast<int>(sw::dtype::f64)] == nullptr));
  CHECK((compiled_list<stated>::list[0].cast_to[static_cast<int>(sw::dtype::f16)] != nullptr));
}

TEST_CASE("of a program whose pipeline fuses, the kernels of its nodes alone are compiled") {
  using namespace sw::cuda::detail;
  using fused = row_program<float, sw::pipeline<sw::fuse_kernels>, sw::cuda_backend>;
  using needed = kernels_of_program<fused>;
  const auto& own = compiled_list<elements_of_program<fused>, needed>::list[0];
  int launched = 0;
  for (int i = 0; i < fused::program.node_count; ++i) {
    const sw::node& n = fused::program.nodes[i];
    if (!sw::runs_kernel(n.op) || n.expression >= 0 || n.op == sw::op_code::fused || n.op == sw::op_code::cast) continue;
    CHECK_MESSAGE((own.of(n.op) != nullptr), sw::name_of(n.op));
    ++launched;
  }
  CHECK(launched > 3);
  for (const sw::op_code op :
       {sw::op_code::topk, sw::op_code::gather, sw::op_code::prod, sw::op_code::adam, sw::op_code::lse}) {
    CHECK_MESSAGE((own.of(op) == nullptr), sw::name_of(op));
    CHECK_MESSAGE((own.of_neighbours(op) == nullptr), sw::name_of(op));
  }
  // nvcc's device pass does not read a program without expressions
  using plain = row_program<float, sw::pipeline<>, sw::cuda_backend>;
  CHECK((compiled_list<elements_of_program<plain>, kernels_of_program<plain>>::list[0].of(sw::op_code::topk) != nullptr));
}

TEST_CASE("an element type of which no kernel is compiled is named when the executor is made") {
  if (!test::place::has(1)) return;
  using program = sw::function_step<to_double, mesh, sw::inputs<x_input>, sw::pipeline<>, sw::cuda_backend>;
  std::string said;
  try {
    sw::launch_cuda<mesh>([](auto& rank) { sw::executor<program, std::remove_cvref_t<decltype(rank)>> ex(rank); });
  } catch (const std::exception& e) {
    said = e.what();
  }
  CHECK(said.find("SHARDWISE_DEVICE_ELEMENTS(double)") != std::string::npos);
  CHECK(said.find("cast") != std::string::npos);
}

}  // namespace device_mixed

SHARDWISE_DEVICE_KERNELS_OF(shardwise::f16, gated::swiglu)
