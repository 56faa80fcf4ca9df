// SPDX-License-Identifier: Apache-2.0
// load_contents::weights: a checkpoint's parameters and buffers into a program of another mesh that has buffers of its own besides: these
// keep what they hold, and one that holds nothing gets its initial value.
#include <doctest/doctest.h>

#include <files.hpp>
#include <thrown.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/shardwise.hpp>

#include <string>
#include <vector>

namespace {

using namespace test;
namespace sw = shardwise;

template <int N>
struct tp : sw::axis<N> {};

// Extra: the extent of a buffer that only some programs have, 0: none.
template <int Extra>
struct model_of {
  template <class Bound = sw::unbound>
  struct net : sw::module<net<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<6, 5>, out), (sw::buffer<sw::shape<3>, sw::init::zeros>, seen),
                      (std::conditional_t<(Extra > 0), sw::buffer<sw::shape<Extra>, sw::init::ones>, sw::absent>, kept));
    constexpr auto forward(const auto& x) const {
      sw::add_(seen, 2.0);
      if constexpr (Extra > 0) sw::add_(kept, 1.0);
      return sw::sum(out(x));
    }
  };
  template <class B>
  using model = net<B>;
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<2, 6>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
template <int Extra, int N>
using program = sw::forward_step<model_of<Extra>::template model, task,
                                 sw::plan<sw::at<"out", sw::colwise<tp<N>, 1, sw::output<sw::replicate>>>>, sw::mesh<tp<N>>,
                                 sw::pipeline<>, double>;

TEST_CASE("load: weights alone, into a program with buffers of its own") {
  const folder scratch;
  std::vector<double> weight;
  sw::launch<sw::mesh<tp<2>>>([&](auto& rank) {
    sw::executor<program<0, 2>> ex(rank);
    ex.initialise(7);
    ex.set_input(0, std::vector<double>(12, 1));
    ex.run({});
    sw::save(ex, scratch.path(), {.step = 1});
    const auto all = ex.full_parameter("out.weight", 0);
    if (rank.index() == 0) weight = all;
  });
  sw::launch<sw::mesh<tp<3>>>([&](auto& rank) {
    using numbers = std::vector<double>;
    sw::executor<program<4, 3>> ex(rank);
    CHECK(
        thrown([&] { sw::load(ex, scratch.path(), {.contents = sw::load_contents::parameters}); })
            .find(
                "has no 'kept', which the program holds; its nearest name is 'seen'; load it into a program of the same model, or "
                "where the buffer is the program's own: load_contents::weights") != std::string::npos);
    CHECK(sw::load(ex, scratch.path(), {.contents = sw::load_contents::weights}).step == 1);
    CHECK(ex.full_parameter("out.weight") == weight);
    CHECK(ex.full_buffer("kept") == numbers(4, 1));
    CHECK(ex.full_buffer("seen") == numbers(3, 2));
    ex.set_input(0, numbers(12, 1));
    ex.run({});
    ex.set_parameter("out.weight", numbers(30, 9));
    (void)sw::load(ex, scratch.path(), {.contents = sw::load_contents::weights});
    CHECK(ex.full_parameter("out.weight") == weight);
    CHECK(ex.full_buffer("kept") == numbers(4, 2));
    CHECK(ex.full_buffer("seen") == numbers(3, 2));  // the run had made it 4
  });
}

}  // namespace
