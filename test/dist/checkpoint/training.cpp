// SPDX-License-Identifier: Apache-2.0
// Checkpoints of trainings: shards of parameters (fully_shard) and of optimizer states, tensor parallelism, elements of float and double,
// lists of parameters, a dynamic loss scale. Resumed on the same mesh a training has the bits of one that never stopped, elsewhere
// its numbers. And what is read of large tensors.
#include <shardwise/shardwise.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/optimizer/split_optimizer.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

#include <files.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace sw = shardwise;
using test::folder;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<5, 7>, up), (sw::linear<7, 3>, down));
  constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))); }
};
template <class T, int D>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<12, 5>, sw::on<dp<D>, sw::shard<0>>>,
                            sw::input_tensor<T, sw::shape<12, 3>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = sw::cast<T>(model(x)) - t;
    return sw::mean(apart * apart);
  }
};
template <class T, int D, int N, class Pipeline, class... E>
using step = sw::train_step<net, fit<T, D>, sw::plan<E...>, sw::mesh<dp<D>, tp<N>>, sw::clip_norm<sw::adamw<>>, Pipeline, T>;
template <class T, int D, int N, class... E>
using plain = step<T, D, N, sw::pipeline<>, E...>;
template <int N>
using up_columns = sw::at<"up", sw::colwise<tp<N>>>;
template <int N>
using down_rows = sw::at<"down", sw::rowwise<tp<N>>>;

template <class T>
using copies = plain<T, 3, 1, sw::data_parallel<dp<3>>>;
template <class T>
using alone = plain<T, 1, 1, sw::data_parallel<dp<1>>>;
template <class T>
using shards_and_columns = plain<T, 2, 2, sw::fully_shard<dp<2>>, up_columns<2>, down_rows<2>>;
template <class T>
using shards4 = plain<T, 4, 1, sw::fully_shard<dp<4>>>;
template <class T>
using states4 = plain<T, 4, 1, sw::data_parallel<dp<4>, sw::shard_optimizer_states>>;
template <class T>
using columns8 = plain<T, 2, 4, sw::data_parallel<dp<2>>, up_columns<4>, down_rows<4>>;

template <class T>
std::vector<T> numbers(std::size_t n, int seed) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<T>(std::sin(1.7 * static_cast<double>(i) + static_cast<double>(seed)));
  return v;
}
template <class Executor>
void train(Executor& ex, int from, int to) {
  using T = typename Executor::element;
  for (int s = from; s <= to; ++s) {
    sw::step_env env;
    env.step = s;
    env.lr = 0.03;
    env.weight_decay = 0.1;
    env.max_norm = 0.5;
    ex.set_input(0, numbers<T>(60, s));
    ex.set_input(1, numbers<T>(36, s + 20));
    ex.run(env);
  }
}
template <class Executor>
std::vector<std::vector<double>> everything(Executor& ex) {
  std::vector<std::vector<double>> all;
  const auto add = [&](const auto& v) { all.emplace_back(v.begin(), v.end()); };
  for (int i = 0; i < ex.parameter_count(); ++i) {
    const std::string name = ex.parameter_name(i);
    add(ex.full_parameter(name));
    add(ex.full_state(name, sw::moment::first));
    add(ex.full_state(name, sw::moment::second));
  }
  return all;
}
double apart(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k)
    for (std::size_t i = 0; i < a[k].size(); ++i) most = std::max(most, std::abs(a[k][i] - b[k][i]));
  return most;
}

template <class From, class To>
void check_resumed(double tolerance) {
  const folder scratch;
  std::vector<std::vector<double>> then, end, never_stopped;
  sw::launch<typename From::mesh_type>([&](auto& rank) {
    sw::executor<From> ex(rank);
    ex.initialise(11);
    train(ex, 1, 3);
    sw::save(ex, scratch.path(), {.step = 3});
    const auto a = everything(ex);
    train(ex, 4, 6);
    const auto b = everything(ex);
    if (rank.index() == 0) then = a, end = b;
  });
  sw::launch<typename To::mesh_type>([&](auto& rank) {
    sw::executor<To> ex(rank);
    const auto c = sw::load(ex, scratch.path());
    CHECK(everything(ex) == then);
    train(ex, static_cast<int>(c.step) + 1, 6);
    const auto got = everything(ex);
    if (std::is_same_v<From, To>) CHECK(got == end);
    CHECK(apart(got, end) < tolerance);
    CHECK(apart(then, end) > 1e-3);
  });
}
template <template <class> class From, template <class> class... To>
void check_all() {
  (check_resumed<From<double>, To<double>>(1e-12), ...);
  (check_resumed<From<float>, To<float>>(1e-5), ...);
}

// Two tensors of 2 MiB and one of 32 bytes.
template <class Bound = sw::unbound>
struct large : sw::module<large<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 65536>, a), (sw::linear<65536, 4>, b));
  constexpr auto forward(const auto& x) const { return b(a(x)); }
};
template <int D>
struct forward_of {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<4, 4>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)); }
};
template <int N>
using rows_of =
    sw::forward_step<large, forward_of<1>, sw::plan<sw::at<"a", sw::colwise<tp<N>>>, sw::at<"b", sw::rowwise<tp<N>>>>,
                     sw::mesh<tp<N>>, sw::pipeline<>, double>;

}  // namespace

TEST_CASE("checkpoints: shards of parameters beside columns, of 4 ranks, resumed on 4, 1, 3 and 8") {
  check_all<shards_and_columns, shards_and_columns, alone, copies, columns8, states4>();
}
TEST_CASE("checkpoints: shards of optimizer states, resumed on 4, 1 and 3") {
  check_all<states4, states4, alone, copies, shards4>();
}
TEST_CASE("checkpoints: shards of 4 and columns of 8, the last ones short or empty") {
  check_all<shards4, shards4, shards_and_columns, columns8>();
  check_all<columns8, columns8, states4>();
}

TEST_CASE("checkpoints: lists of parameters with their counts of steps") {
  using lists = step<double, 2, 1, sw::pipeline<sw::fused_optimizer>, sw::data_parallel<dp<2>>>;
  const folder scratch;
  sw::launch<sw::mesh<dp<2>, tp<1>>>([&](auto& rank) {
    sw::executor<lists> ex(rank), again(rank);
    ex.initialise(11);
    train(ex, 1, 3);
    sw::save(ex, scratch.path());
    sw::load(again, scratch.path());
    CHECK(again.full_state("up.bias", sw::moment::steps) == std::vector<double>{3});
    train(ex, 4, 5);
    train(again, 4, 5);
    CHECK(everything(ex) == everything(again));
  });
}

TEST_CASE("checkpoints: a dynamic loss scale") {
  using scaled = plain<float, 2, 1, sw::data_parallel<dp<2>>, sw::mixed<sw::f16>, sw::dynamic_loss_scale<>>;
  const folder scratch;
  sw::launch<sw::mesh<dp<2>, tp<1>>>([&](auto& rank) {
    sw::executor<scaled> ex(rank), again(rank);
    ex.initialise(11);
    ex.set_scaler_state({4096, 5, 2});
    train(ex, 4, 6);  // 2 of the steps before were skipped
    const auto before = ex.scaler_state();
    sw::save(ex, scratch.path());
    sw::load(again, scratch.path());
    const auto after = again.scaler_state();
    CHECK(after.scale == before.scale);
    CHECK(after.good_steps == 8);
    CHECK(after.skipped_steps == 2);
    train(ex, 7, 8);
    train(again, 7, 8);
    CHECK(everything(ex) == everything(again));
  });
}

TEST_CASE("checkpoints: parts of an iterated step are refused, whose values would be lost") {
  using bucketed =
      sw::train_step<net, fit<float, 2>, sw::plan<sw::data_parallel<dp<2>>>, sw::mesh<dp<2>, tp<1>>, sw::adam<>,
                     sw::pipeline<sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>>;
  using iterations = sw::iterated<bucketed, sw::iter_move_grads_and_optimizers<"all_reduce", "einsum">>;
  const folder scratch;
  sw::launch<sw::mesh<dp<2>, tp<1>>>([&](auto& rank) {
    sw::iterated_executor<iterations> ex(rank);
    ex.main().initialise(11);
    try {
      sw::save(ex.main(), scratch.path());
      CHECK(false);
    } catch (const sw::checkpoint_error& e) {
      CHECK(std::string(e.what()).find(
                "shardwise: save: the program is a part of an iterated step, which keeps values from one") == 0);
    }
  });
}

TEST_CASE("checkpoints: a rank reads its own rows alone, and all bytes that it reads have been checked") {
  const folder scratch;
  sw::launch<sw::mesh<tp<2>>>([&](auto& rank) {
    sw::executor<rows_of<2>> ex(rank);
    ex.initialise(1);
    sw::save(ex, scratch.path());
  });
  const auto check = [&](auto count, std::uint64_t most) {
    constexpr int n = decltype(count)::value;
    sw::launch<sw::mesh<tp<n>>>([&](auto& rank) {
      sw::executor<rows_of<n>> ex(rank), fresh(rank);
      const auto c = sw::load(ex, scratch.path());
      fresh.initialise(1);
      for (const char* name : {"a.weight", "a.bias", "b.weight", "b.bias"})
        CHECK(ex.full_parameter(name) == fresh.full_parameter(name));
      CHECK(c.bytes_read <= most);
    });
  };
  // a.weight and a.bias in rows; b.weight in columns, of which a rank's are four runs of its blocks that lie a row apart
  const std::uint64_t a = (65536 * 4 + 65536) * 8, b = 65536 * 4 * 8, chunk = sw::storage::chunk_bytes;
  check(std::integral_constant<int, 1>{}, a + b + 32);
  check(std::integral_constant<int, 2>{}, a / 2 + b / 2 + 32);
  check(std::integral_constant<int, 4>{}, a / 4 + chunk + b / 2 + 32);
  check(std::integral_constant<int, 8>{}, a / 8 + 2 * chunk + b / 2 + 32);

  // damage in rank 1's rows is nothing to who does not read them, and every rank hears of it who waits for one that does
  const std::string file = scratch / "step-00000000/rank-00001.safetensors";
  std::string bytes = test::read_text(file);
  bytes[bytes.size() - 9] = static_cast<char>(bytes[bytes.size() - 9] ^ 1);
  test::write_text(file, bytes);
  std::vector<std::string> said(4);
  sw::launch<sw::mesh<tp<4>>>([&](auto& rank) {
    sw::executor<rows_of<4>> ex(rank);
    try {
      sw::load(ex, scratch.path());
    } catch (const sw::checkpoint_error& e) {
      said[static_cast<std::size_t>(rank.index())] = e.what();
    }
  });
  CHECK(said[0].find("rank-00001.safetensors' is damaged: bytes ") != std::string::npos);
  for (const std::string& s : said) CHECK(s == said[0]);
}
