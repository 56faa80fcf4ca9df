// SPDX-License-Identifier: Apache-2.0
// A plan as text: every row has its columns where the head has them, however wide shapes, placements and names of axes are.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include <shardwise/runtime/program/describe.hpp>

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::conv2d_module<16, 32, 3, sw::convolution_options{.padding = 1}>, conv),
                    (sw::linear<32, 6>, head));
  constexpr auto forward(const auto& x) const { return head(sw::mean<2, 3>(conv(x))); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 16, 4, 4>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using step = sw::train_step<net, task, sw::plan<sw::data_parallel<dp>, sw::at<"head", sw::colwise<tp>>>, mesh, sw::sgd<>>;

}  // namespace

TEST_CASE("describe_plan: columns stand apart, whatever they hold") {
  for (const std::vector<std::string>& names : {std::vector<std::string>{"dp", "tp"}, {"an axis with a long name", "tp"}}) {
    std::istringstream lines(sw::describe_plan<step>(names));
    std::string line, head;
    std::getline(lines, line);  // the mesh
    std::getline(lines, head);
    const std::vector<std::size_t> columns{head.find("shape"), head.find("on " + names[0]), head.find("on " + names[1]),
                                           head.find("on rank 0")};
    int rows = 0;
    for (; std::getline(lines, line) && !line.starts_with("parameters: "); ++rows)
      for (const std::size_t at : columns) {
        CAPTURE(line);
        REQUIRE(at < line.size());
        CHECK(line[at] != ' ');
        CHECK(line.substr(at - 2, 2) == "  ");
      }
    CHECK(rows == 4);
  }
  CHECK(sw::describe_plan<step>({"dp", "tp"}).find("conv.weight  (32, 16, 3, 3)  reduced") != std::string::npos);
}
