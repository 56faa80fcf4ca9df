// SPDX-License-Identifier: Apache-2.0
// join_cross_entropy: losses and gradients are those of the kernels one by one, bit for bit, on even, uneven and empty shards, in two
// bytes, of ignored targets; the gradient lies where the logits did; what must stay apart does.
#include <shardwise/pass/fuse/cross_entropy.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

template <int Ranks>
struct fibre : sw::axis<Ranks> {};
template <int Ranks>
using mesh = sw::mesh<fibre<Ranks>>;
constexpr int classes = 23;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 16>, first), (sw::linear<16, classes>, head));
  constexpr auto forward(const auto& x) const { return head(sw::tanh(first(x))); }
};

template <class T, int Rows, int Ranks>
using inputs = sw::inputs<sw::input_tensor<T, sw::shape<Rows, 8>, sw::on<fibre<Ranks>, sw::shard<0>>>,
                          sw::input_tensor<std::int32_t, sw::shape<Rows>, sw::on<fibre<Ranks>, sw::shard<0>>>>;

struct mean_loss {
  static constexpr auto of(const auto& logits, const auto& t) { return sw::cross_entropy(logits, t); }
};
struct sum_loss {
  static constexpr auto of(const auto& logits, const auto& t) {
    return sw::scale(sw::sum(sw::cross_entropy_rows(logits, t)), 0.125);
  }
};
struct ignoring_loss {
  static constexpr auto of(const auto& logits, const auto& t) {
    return sw::scale(sw::sum(sw::cross_entropy_rows<sw::ignore_index<3>>(logits, t)), 0.125);
  }
};
struct counting_loss {  // divided by a count over all ranks
  static constexpr auto of(const auto& logits, const auto& t) { return sw::cross_entropy<sw::ignore_index<3>>(logits, t); }
};
struct squared_loss {  // whose gradient depends on it
  static constexpr auto of(const auto& logits, const auto& t) {
    const auto rows = sw::cross_entropy_rows(logits, t);
    return sw::mean(sw::mul(rows, rows));
  }
};
struct two_losses {
  static constexpr auto of(const auto& logits, const auto& t) {
    return sw::add(sw::cross_entropy(logits, t),
                   sw::mean(sw::cross_entropy_rows<sw::ignore_index<2>>(sw::scale(logits, 0.5), t)));
  }
};
struct multiplied_losses {  // the first one's gradient needs the second one's value, which is known behind it
  static constexpr auto of(const auto& logits, const auto& t) {
    return sw::mean(sw::mul(sw::cross_entropy_rows(logits, t), sw::cross_entropy_rows(sw::scale(logits, 0.5), t)));
  }
};
struct drawn_loss {  // a random mask, which is drawn by where it stands, weighs the rows
  static constexpr auto of(const auto& logits, const auto& t) {
    return sw::sum(sw::dropout(sw::cross_entropy_rows(logits, t), 0.5));
  }
};
struct twice_read {  // two losses of one log-sum-exp, once common subexpressions are one
  static constexpr auto of(const auto& logits, const auto& t) {
    return sw::add(sw::cross_entropy(logits, t), sw::mean(sw::cross_entropy_rows<sw::ignore_index<2>>(logits, t)));
  }
};
template <class Loss, class T, int Rows, int Ranks>
struct task {
  using inputs = ::inputs<T, Rows, Ranks>;
  constexpr auto operator()(const auto& m, const auto& x, const auto& t) const { return Loss::of(m(x), t); }
};

template <class Loss, int Ranks = 1, int Rows = 12, class T = float, class Plan = sw::plan<sw::data_parallel<fibre<Ranks>>>,
          class... Passes>
using step_with = sw::train_step<net, task<Loss, T, Rows, Ranks>, Plan, mesh<Ranks>, sw::sgd<>, sw::pipeline<Passes...>, T>;
template <class Loss, int Ranks = 1, int Rows = 12, class T = float, class Plan = sw::plan<sw::data_parallel<fibre<Ranks>>>>
using plain = step_with<Loss, Ranks, Rows, T, Plan, sw::fuse_kernels>;
template <class Loss, int Ranks = 1, int Rows = 12, class T = float, class Plan = sw::plan<sw::data_parallel<fibre<Ranks>>>>
using joined = step_with<Loss, Ranks, Rows, T, Plan, sw::fuse_kernels, sw::join_cross_entropy>;
template <int Ranks>
using low_plan = sw::plan<sw::data_parallel<fibre<Ranks>>, sw::mixed<sw::bf16>>;

template <class Step>
constexpr int count(op_code op) {
  const auto& g = sw::runtime::program_source<Step>::program;
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == op ? 1 : 0;
  return n;
}
template <class Step>
constexpr bool is_joined = count<Step>(op_code::nll_dx_loss) == 1 && count<Step>(op_code::lse) == 0 &&
                           count<Step>(op_code::nll) == 0 && count<Step>(op_code::nll_dx) == 0;
template <class Step>
constexpr bool is_apart = count<Step>(op_code::nll_dx_loss) == 0 && count<Step>(op_code::nll_dx) > 0;

// Losses of three steps, then rank 0's parameters.
template <class Step, int Ranks, int Rows, class T>
std::vector<T> train() {
  std::vector<T> all;
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, sw::executor_checks::poison);
    std::vector<T> x(Rows * 8);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(std::sin(static_cast<double>(i * 7)));
    std::vector<std::int32_t> t(Rows);
    for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<std::int32_t>(i * 5 % classes);
    if (Rows > 3) t[1] = t[3] = 3;
    ex.initialise(3);
    ex.set_input(0, x);
    ex.set_input(1, t);
    sw::step_env env;
    env.lr = 0.5;
    for (env.step = 1; env.step <= 3; ++env.step) {
      ex.run(env);
      const T loss = static_cast<T>(ex.loss());
      if (rank.index() == 0) all.push_back(loss);
    }
    for (int i = 0; i < ex.parameter_count(); ++i) {
      const auto own = ex.full_parameter(ex.parameter_name(i));
      if (rank.index() == 0) all.insert(all.end(), own.begin(), own.end());
    }
  });
  return all;
}

template <class Plain, class Joined, int Ranks, int Rows, class T>
void check_equal() {
  static_assert(is_joined<Joined> && is_apart<Plain>);
  const auto want = train<Plain, Ranks, Rows, T>(), got = train<Joined, Ranks, Rows, T>();
  REQUIRE(want.size() > 500);
  CHECK(want[2] < want[0]);
  CHECK(got == want);
}
template <class Loss, int Ranks, int Rows, class T>
void check_loss() {
  check_equal<plain<Loss, Ranks, Rows, T>, joined<Loss, Ranks, Rows, T>, Ranks, Rows, T>();
}

TEST_CASE("join_cross_entropy: losses and parameters have the bits of the kernels one by one, on 1, 2, 3 and 4 ranks") {
  check_loss<mean_loss, 1, 12, float>();
  check_loss<mean_loss, 1, 12, double>();
  check_loss<sum_loss, 2, 7, double>();
  check_loss<mean_loss, 3, 7, float>();
  check_loss<ignoring_loss, 3, 8, double>();
  check_loss<ignoring_loss, 4, 3, float>();  // a rank without rows
}
TEST_CASE("join_cross_entropy: logits of two bytes, whose losses are float") {
  check_equal<plain<mean_loss, 1, 12, float, low_plan<1>>, joined<mean_loss, 1, 12, float, low_plan<1>>, 1, 12, float>();
  check_equal<plain<ignoring_loss, 3, 8, float, low_plan<3>>, joined<ignoring_loss, 3, 8, float, low_plan<3>>, 3, 8,
              float>();
}

TEST_CASE("join_cross_entropy: the gradient lies where the logits did") {
  static_assert(joined<mean_loss, 1, 4096>::peak_bytes <= plain<mean_loss, 1, 4096>::peak_bytes);
  static_assert(joined<mean_loss, 2, 4096, float, low_plan<2>>::peak_bytes <=
                plain<mean_loss, 2, 4096, float, low_plan<2>>::peak_bytes);
}

TEST_CASE("join_cross_entropy: a count over ranks stays behind its loss, on one rank there is none") {
  static_assert(is_apart<joined<counting_loss, 2>>);
  check_loss<counting_loss, 1, 12, float>();
}

TEST_CASE("join_cross_entropy: what depends on the loss, and what reads its parts besides, stays apart") {
  static_assert(is_apart<joined<squared_loss>>);
  CHECK(train<joined<squared_loss>, 1, 12, float>() == train<plain<squared_loss>, 1, 12, float>());
}

template <class Loss>
void check_several(int are_joined) {
  CHECK(count<joined<Loss>>(op_code::nll_dx_loss) == are_joined);
  CHECK(count<joined<Loss>>(op_code::nll_dx) == 2 - are_joined);
  CHECK(train<joined<Loss>, 1, 12, float>() == train<plain<Loss>, 1, 12, float>());
}
TEST_CASE("join_cross_entropy: several losses, of one value's logits, of two, and one that weighs the other") {
  check_several<twice_read>(2);
  check_several<two_losses>(2);
  check_several<multiplied_losses>(1);
}
TEST_CASE("join_cross_entropy: a loss that is weighed at random, and pieces of a batch") {
  CHECK(train<joined<drawn_loss>, 1, 12, float>() == train<plain<drawn_loss>, 1, 12, float>());
  using pieces = sw::plan<sw::data_parallel<fibre<2>>, sw::accumulate<2>>;
  static_assert(count<joined<sum_loss, 2, 12, float, pieces>>(op_code::nll_dx_loss) == 1);
  CHECK(train<joined<sum_loss, 2, 12, float, pieces>, 2, 12, float>() ==
        train<plain<sum_loss, 2, 12, float, pieces>, 2, 12, float>());
}

TEST_CASE("join_cross_entropy: a target outside of the classes is refused as before") {
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::executor<joined<mean_loss>, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(1);
    ex.set_input(0, std::vector<float>(12 * 8));
    ex.set_input(1, std::vector<std::int32_t>(12, classes));
    sw::step_env env;
    env.step = 1;
    env.lr = 0.1;
    CHECK_THROWS_WITH(ex.run(env), doctest::Contains("cross_entropy target: index 23 is outside 0..22"));
  });
}

}  // namespace
