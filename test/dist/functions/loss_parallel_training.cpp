// SPDX-License-Identifier: Apache-2.0
// A language model whose head's output stays sharded by classes (colwise) and meets the parallel loss trains as the
// plain model with the plain loss does, on 1 to 4 ranks that do not divide the vocabulary, and beside data parallelism.
#include <doctest/doctest.h>

#include <models.hpp>
#include <shardwise/shardwise.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

struct sizes : test::transformer_sizes {
  static constexpr int vocabulary = 13;
  static constexpr int time = 6;
  static constexpr int width = 8;
  static constexpr int heads = 2;
  static constexpr int layers = 1;
};
constexpr int batch = 3;

template <class Bound>
using block = test::transformer_block<sizes, Bound>;

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound,
                    (sw::embedding_table<sizes::vocabulary, sizes::width, sw::unbound, sw::init::normal<1, 5>>, tokens),
                    (sw::repeat<sizes::layers, block>, layers), (sw::linear<sizes::width, sizes::vocabulary>, head));
  constexpr auto forward(const auto& t) const { return head(layers(tokens(t))); }
};
template <class B>
using model_of = model<B>;

template <class Dp>
using ids = sw::input_tensor<std::int32_t, sw::shape<batch, sizes::time>, sw::on<Dp, sw::shard<0>>>;

template <int D>
struct plain_task {
  using inputs = sw::inputs<ids<dp<D>>, ids<dp<D>>>;
  constexpr auto operator()(const auto& m, const auto& t, const auto& target) const {
    return sw::cross_entropy(m(t), target);
  }
};
template <int D, int T, class Counting>
struct parallel_task {
  using inputs = sw::inputs<ids<dp<D>>, ids<dp<D>>>;
  constexpr auto operator()(const auto& m, const auto& t, const auto& target) const {
    const auto logits = m(t);
    static_assert(std::remove_cvref_t<decltype(logits)>::sp.place[1].is_shard(2) || T == 1);
    return sw::loss_parallel_cross_entropy<tp<T>, Counting>(logits, target);
  }
};
template <int D, class Counting>
struct ignoring_task {
  using inputs = sw::inputs<ids<dp<D>>, ids<dp<D>>>;
  constexpr auto operator()(const auto& m, const auto& t, const auto& target) const {
    return sw::cross_entropy<Counting>(m(t), target);
  }
};

template <int D, int T, bool Head>
struct plan_of {
  using type = sw::plan<sw::data_parallel<dp<D>>, sw::at<"layers.*.feed_forward.w1", sw::colwise<tp<T>>>,
                        sw::at<"layers.*.feed_forward.w2", sw::rowwise<tp<T>>>, sw::at<"head", sw::colwise<tp<T>>>>;
};
template <int D, int T>
struct plan_of<D, T, false> {
  using type = sw::plan<sw::data_parallel<dp<D>>>;
};

struct history {
  std::vector<double> losses;
  std::vector<std::vector<double>> parameters;
};

template <int D, int T, bool Head, class Task>
history train(bool some_ignored) {
  using mesh = sw::mesh<dp<D>, tp<T>>;
  using step = sw::train_step<model_of, Task, typename plan_of<D, T, Head>::type, mesh, sw::adam<>, sw::pipeline<>, double>;
  history h;
  for (int i = 0; i < step::parameter_total; ++i)
    h.parameters.emplace_back(
        static_cast<std::size_t>(sw::numel(sw::executor<step, sw::thread_rank<mesh>>::parameter_spec(i))));
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(7);
    for (int s = 1; s <= 6; ++s) {
      std::vector<std::int32_t> t, target;
      for (int i = 0; i < batch * sizes::time; ++i) {
        t.push_back((i * 5 + s) % sizes::vocabulary);
        target.push_back(some_ignored && (i + s) % 5 == 0 ? -100 : (i * 7 + 3 * s) % sizes::vocabulary);
      }
      ex.set_input(0, t);
      ex.set_input(1, target);
      sw::step_env env;
      env.step = s;
      env.lr = 0.01;
      ex.run(env);
      if (rank.index() == 0) h.losses.push_back(ex.loss());
    }
    // every rank writes what it holds
    for (int i = 0; i < ex.parameter_count(); ++i) ex.gather_parameter(i, h.parameters[static_cast<std::size_t>(i)]);
  });
  return h;
}

void compare(const history& have, const history& want) {
  REQUIRE(have.losses.size() == want.losses.size());
  double loss = 0, drift = 0;
  for (std::size_t s = 0; s < want.losses.size(); ++s) loss = std::max(loss, std::abs(have.losses[s] / want.losses[s] - 1));
  REQUIRE(have.parameters.size() == want.parameters.size());
  for (std::size_t i = 0; i < want.parameters.size(); ++i)
    for (std::size_t k = 0; k < want.parameters[i].size(); ++k)
      drift = std::max(drift, std::abs(have.parameters[i][k] - want.parameters[i][k]));
  CHECK(loss <= 1e-12);
  CHECK(drift <= 1e-10);
}

template <int D, int T, class Counting = sw::count_all>
history parallel() {
  return train<D, T, true, parallel_task<D, T, Counting>>(Counting::ignores);
}

}  // namespace

TEST_CASE("loss parallel: a plan whose head stays sharded trains as the plain model on 1 to 4 ranks") {
  const history plain = train<1, 1, false, plain_task<1>>(false);
  CHECK(plain.losses.front() > 2);
  compare(parallel<1, 1>(), plain);
  compare(parallel<1, 2>(), plain);
  compare(parallel<1, 3>(), plain);
  compare(parallel<1, 4>(), plain);
  compare(parallel<2, 2>(), plain);
}

TEST_CASE("loss parallel: the same with ignored targets") {
  using ignoring = sw::ignore_index<-100>;
  compare(parallel<2, 2, ignoring>(), train<1, 1, false, ignoring_task<1, ignoring>>(true));
}
