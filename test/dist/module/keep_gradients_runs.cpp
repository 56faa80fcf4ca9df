// SPDX-License-Identifier: Apache-2.0
// Programs that keep gradients from run to run: what each part sends and the program stores; mixed precision; misuse; sums that are
// forgotten; states that move.
#include <doctest/doctest.h>

#include <kept_gradients.hpp>
#include <small_models.hpp>
#include <thrown.hpp>

namespace {

namespace acc = test::accumulated;
namespace kept = test::kept;
namespace sw = shardwise;
using acc::batch_axes;
using acc::blocks;
using acc::dp;
using acc::rep;
using acc::with;
using sw::program_part;
using sw::transition;
using test::mentions;
using test::thrown;

// --- bytes ------------------------------------------------------------------------------------------------------------

using two = sw::mesh<dp<2>>;
using axes = batch_axes<dp<2>>;
using keep = sw::keep_gradients<>;
using keep_whole = sw::keep_gradients<sw::no_sync>;
using sharded = sw::plan<sw::fully_shard<dp<2>>, blocks<dp<2>>>;
template <class Plan, class Mesh = two, class Axes = axes>
using part = kept::step<2, Plan, Mesh, Axes>;

// What is counted where bytes are copied: of two batches, of an update, and of run.
template <class Step, class Axes, class Axis>
void check_sent() {
  constexpr std::int64_t batch = Step::template comm_bytes_of<Axis>(program_part::accumulate, 0);
  constexpr std::int64_t update = Step::template comm_bytes_of<Axis>(program_part::update, 0);
  static_assert(batch + update == Step::template comm_bytes<Axis, 0>);
  constexpr int axis = Step::mesh_type::template index_of<Axis>;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank);
    ex.initialise(7);
    kept::feed_part<2, Axes>(ex, 1, 0);
    const auto sent = [&](auto&& f) {
      rank.reset_counts();
      f();
      rank.barrier();
      return rank.bytes_written(axis);
    };
    const std::int64_t once = sent([&] { ex.accumulate(acc::numbers(1)); });
    const std::int64_t again = sent([&] { ex.accumulate(acc::numbers(1)); });
    const std::int64_t at_end = sent([&] { ex.update(acc::numbers(1)); });
    const std::int64_t both = sent([&] { ex.run(acc::numbers(2)); });
    if (rank.index() != 0) return;
    CHECK(once == batch);
    CHECK(again == batch);
    CHECK(at_end == update);
    CHECK(both == batch + update);
  });
}

template <class Step>
constexpr std::int64_t parameter_elements(bool used = true) {
  constexpr int origin[sw::max_axes]{};
  std::int64_t n = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    if (Step::program.nodes[i].op == sw::op_code::param)
      n += used ? numel(Step::program.spec_of(i)) : sw::local_numel(Step::program.spec_of(i), origin);
  return n;
}

TEST_CASE("kept gradients: data parallel: batches send the loss, an update the sums") {
  using step = part<with<acc::replicated<2>, keep>>;
  using plain = part<acc::replicated<2>>;
  static_assert(step::comm_bytes_of<dp<2>>(program_part::accumulate) ==
                8);  // an all-reduce of 2 ranks sends half of it twice
  static_assert(step::comm_bytes_of<dp<2>>(program_part::update) == 8 * parameter_elements<step>());
  static_assert(step::comm_bytes<dp<2>> == plain::comm_bytes<dp<2>>);
  check_sent<step, axes, dp<2>>();
}
TEST_CASE(
    "kept gradients: fully_shard: every batch reduce-scatters, an update sends the norm; under no_sync an update does all of it") {
  using step = part<with<sharded, keep>>;
  using whole = part<with<sharded, keep_whole>>;
  using plain = part<sharded>;
  constexpr auto scatters = plain::comm_bytes_of<dp<2>>(transition::reduce_scatter);
  static_assert(scatters == 8 * parameter_elements<plain>() / 2);
  static_assert(step::comm_bytes<dp<2>> == plain::comm_bytes<dp<2>> && whole::comm_bytes<dp<2>> == plain::comm_bytes<dp<2>>);
  static_assert(step::comm_bytes_of<dp<2>>(program_part::update) == 8);
  static_assert(whole::comm_bytes_of<dp<2>>(program_part::update) == scatters + 8);
  // and in batches, side by side
  const auto text = test::fsdp::group_text<plain>(transition::reduce_scatter);
  CHECK(test::fsdp::group_text<step>(transition::reduce_scatter) == text);
  CHECK(test::fsdp::group_text<whole>(transition::reduce_scatter) == text);
  check_sent<step, axes, dp<2>>();
  check_sent<whole, axes, dp<2>>();
}
TEST_CASE("kept gradients: hybrid shards: every batch reduce-scatters, an update sums over the copies") {
  using over = sw::replicate_over<rep<2>>;
  using hybrid = sw::plan<sw::fully_shard<dp<2>, over>, blocks<dp<2>, over>>;
  using mesh = sw::mesh<rep<2>, dp<2>>;
  using four = batch_axes<rep<2>, dp<2>>;
  using step = part<with<hybrid, keep>, mesh, four>;
  static_assert(step::comm_bytes_of<rep<2>>(program_part::accumulate) == 8);
  static_assert(step::comm_bytes_of<rep<2>>(program_part::update) == 8 * parameter_elements<step>(false));
  static_assert(step::comm_bytes_of<dp<2>>(program_part::update) == 8);
  check_sent<step, four, rep<2>>();
  check_sent<step, four, dp<2>>();
}

// Buckets sum what is kept, in as few collectives as without.
template <class Step>
constexpr int reductions() {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    n += sw::detail::transition_at(Step::program, i) == transition::all_reduce ? 1 : 0;
  return n;
}
using bucketed = sw::plan<sw::data_parallel<dp<2>, sw::buckets<25>>>;
static_assert(reductions<part<bucketed>>() == 2);  // and the loss
static_assert(reductions<part<with<bucketed, keep>>>() == 2);
static_assert(reductions<part<with<acc::replicated<2>, keep>>>() > 20);

// --- memory -----------------------------------------------------------------------------------------------------------

constexpr std::int64_t in_arena(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }
// What a rank stores of a gradient for each parameter: whole, or in shards.
template <class Step>
constexpr std::int64_t gradient_bytes(bool whole) {
  constexpr int origin[sw::max_axes]{};
  std::int64_t n = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    if (const sw::spec& s = Step::program.spec_of(i); Step::program.nodes[i].op == sw::op_code::param)
      n += in_arena(8 * (whole ? numel(s) : sw::local_numel(s, origin)));
  return n;
}
template <class Plan, class Keep>
constexpr std::int64_t more_bytes = part<with<Plan, Keep>>::peak_bytes - part<Plan>::peak_bytes;
static_assert(more_bytes<acc::replicated<2>, keep> <= gradient_bytes<part<acc::replicated<2>>>(true));
static_assert(more_bytes<acc::replicated<2>, keep> > 0);
static_assert(more_bytes<sharded, keep> <= gradient_bytes<part<sharded>>(false));
static_assert(more_bytes<sharded, keep_whole> <= gradient_bytes<part<sharded>>(true));
static_assert(part<with<sharded, keep_whole>>::peak_bytes > part<with<sharded, keep>>::peak_bytes);

// --- precision --------------------------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, up), (sw::linear<6, 3>, down));
  constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))); }
};
template <int N, int Rows, int Over>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<Rows, 8>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = sw::cast<float>(m(x));
    return sw::scale(sw::mean(y * y), 1.0 / Over);
  }
};
template <int N, int Rows, int Over, class... E>
using low = sw::train_step<net, fit<N, Rows, Over>, sw::plan<E...>, sw::mesh<dp<N>>, sw::clip_norm<sw::adam<>>>;

template <class Step, int N, int Batches>
std::vector<float> trained_low() {
  std::vector<float> all;
  sw::launch<sw::mesh<dp<N>>>([&](auto& rank) {
    sw::executor<Step> ex(rank, sw::executor_checks::poison);
    ex.initialise(5);
    std::vector<float> x(8 * 12);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7F * static_cast<float>(i));
    for (int s = 1; s <= 2; ++s) {
      sw::step_env env = acc::numbers(s);
      env.lr = 0.01;
      env.max_norm = 0.1;
      if constexpr (Batches > 1) {
        for (int k = 0; k < Batches; ++k) {
          ex.set_input(0, kept::piece_of(x, N, Batches, k, 8));
          ex.accumulate(env);
        }
        ex.update(env);
      } else {
        ex.set_input(0, x);
        ex.run(env);
      }
    }
    std::vector<float> here;
    for (int i = 0; i < ex.parameter_count(); ++i) {
      const auto p = ex.full_parameter(ex.parameter_name(i), 0);
      here.insert(here.end(), p.begin(), p.end());
    }
    if (rank.index() == 0) all = here;
  });
  return all;
}
template <int N, class Keep, class... E>
void check_low(double tolerance = 0) {
  const auto got = trained_low<low<N, 6, 2, E..., Keep>, N, 2>();
  const auto want = trained_low<low<N, 12, 1, E..., sw::accumulate<2>>, N, 1>();
  double most = 0;
  for (std::size_t i = 0; i < want.size(); ++i) most = std::max(most, static_cast<double>(std::abs(got[i] - want[i])));
  CHECK(got.size() == want.size());
  CHECK(most <= tolerance);
  CHECK(got[0] != got[1]);
}
TEST_CASE("kept gradients: bf16 and f16 with a scaled loss: sums are float, as accumulate's; in shards under no_sync, too") {
  using sw::bf16, sw::f16;
  check_low<1, keep, sw::data_parallel<dp<1>>, sw::mixed<bf16>>();
  check_low<2, keep, sw::data_parallel<dp<2>>, sw::mixed<bf16>>();
  check_low<2, keep, sw::data_parallel<dp<2>>, sw::mixed<f16>, sw::loss_scale<256>>();
  check_low<2, keep_whole, sw::fully_shard<dp<2>>, sw::mixed<f16>, sw::loss_scale<256>>();
  check_low<2, keep_whole, sw::fully_shard<dp<2>>, sw::mixed<bf16, sw::reduce_dtype<bf16>>>();
  check_low<2, keep, sw::fully_shard<dp<2>>, sw::mixed<bf16>>(1e-5);
}

// --- runs -------------------------------------------------------------------------------------------------------------

using small = part<with<acc::replicated<2>, keep>>;

template <class F>
void on_two(F&& f) {
  sw::launch<two>([&](auto& rank) {
    sw::executor<small> ex(rank);
    ex.initialise(7);
    kept::feed_part<2, axes>(ex, 1, 0);
    f(ex, rank);
  });
}
std::vector<double> parameters_of(auto& ex) {
  std::vector<double> all;
  for (int i = 0; i < ex.parameter_count(); ++i) {
    const auto p = ex.full_parameter(ex.parameter_name(i));
    all.insert(all.end(), p.begin(), p.end());
  }
  return all;
}

TEST_CASE("kept gradients: an update without gradients is refused, behind another update and behind zero_gradients, too") {
  on_two([&](auto& ex, auto&) {
    const auto refused = [&] {
      return mentions(thrown([&] { ex.update(acc::numbers(1)); }),
                      "shardwise: update: no gradients have been added up since the last update");
    };
    CHECK(refused());
    ex.accumulate(acc::numbers(1));
    CHECK(ex.accumulated() == 1);
    ex.accumulate(acc::numbers(1));
    CHECK(ex.accumulated() == 2);
    ex.update(acc::numbers(1));
    CHECK(ex.accumulated() == 0);
    CHECK(refused());
    ex.accumulate(acc::numbers(2));
    ex.zero_gradients();
    CHECK(refused());
    ex.run(acc::numbers(2));
    CHECK(refused());
    ex.accumulate(acc::numbers(2));
    ex.reset_states();
    CHECK(refused());
  });
}
TEST_CASE("kept gradients: an accumulate without an input is refused; it reads no learning rate, and an update does") {
  sw::launch<two>([&](auto& rank) {
    sw::executor<small> ex(rank);
    ex.initialise(7);
    CHECK(mentions(thrown([&] { ex.accumulate(sw::step_env{}); }), "shardwise: run: input 0"));
    kept::feed_part<2, axes>(ex, 1, 0);
    ex.accumulate(sw::step_env{});
    CHECK(mentions(thrown([&] { ex.update(sw::step_env{}); }), "shardwise: run: env.lr is not a number"));
    CHECK(ex.accumulated() == 1);
  });
}
TEST_CASE("kept gradients: sums that are forgotten leave nothing behind, and updates begin anew") {
  std::vector<double> plain, other;
  on_two([&](auto& ex, auto& rank) {
    ex.run(acc::numbers(1));
    ex.run(acc::numbers(2));
    const auto p = parameters_of(ex);
    if (rank.index() == 0) plain = p;
  });
  on_two([&](auto& ex, auto& rank) {
    kept::feed_part<2, axes>(ex, 2, 1);
    ex.accumulate(acc::numbers(1));
    ex.zero_gradients();
    kept::feed_part<2, axes>(ex, 1, 0);
    ex.accumulate(acc::numbers(1));
    ex.update(acc::numbers(1));
    ex.run(acc::numbers(2));
    const auto p = parameters_of(ex);
    if (rank.index() == 0) other = p;
  });
  CHECK(plain == other);
}
TEST_CASE("kept gradients: a batch that throws spoils sums that hold others, and is said until they are forgotten") {
  on_two([&](auto& ex, auto&) {
    const auto bad = [&] {
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(acc::rows / 2 * test::transformer_sizes::time), 1000000);
      ex.set_input(0, tokens);
    };
    bad();
    CHECK(mentions(thrown([&] { ex.accumulate(acc::numbers(1)); }), "index 1000000"));
    CHECK(ex.accumulated() == 0);  // the next one begins new sums anyway
  });
  bool all = true;
  try {
    sw::launch<two>([&](auto& rank) {
      sw::executor<small> ex(rank);
      ex.initialise(7);
      kept::feed_part<2, axes>(ex, 1, 0);
      ex.accumulate(acc::numbers(1));
      ex.set_input(
          0, std::vector<std::int32_t>(static_cast<std::size_t>(acc::rows / 2 * test::transformer_sizes::time), 1000000));
      (void)thrown([&] { ex.accumulate(acc::numbers(1)); });
      for (const auto& text : {thrown([&] { ex.accumulate(acc::numbers(1)); }), thrown([&] { ex.update(acc::numbers(1)); }),
                               thrown([&] { ex.run(acc::numbers(1)); })})
        if (!mentions(text, "a batch has thrown, and a part of its gradients is in the sums")) all = false;
      ex.zero_gradients();
      kept::feed_part<2, axes>(ex, 1, 0);
      ex.run(acc::numbers(1));
    });
  } catch (const std::exception&) {
    all = false;
  }
  CHECK(all);
}
TEST_CASE("kept gradients: states move to and from steps that keep no gradients; not beside sums that would be lost") {
  using plain = part<acc::replicated<2>>;
  std::vector<double> a, b;
  on_two([&](auto& ex, auto& rank) {
    ex.run(acc::numbers(1));
    sw::executor<plain> other(rank);
    other.copy_parameters(ex);
    other.copy_state(ex);
    kept::feed_part<2, axes>(other, 2, 1);
    kept::feed_part<2, axes>(ex, 2, 1);
    ex.accumulate(acc::numbers(2));
    CHECK(
        mentions(thrown([&] { other.copy_state(ex); }), "copy_state: gradients have been added up that no update has seen"));
    ex.update(acc::numbers(2));
    other.run(acc::numbers(2));
    const auto p = parameters_of(ex), q = parameters_of(other);
    if (rank.index() != 0) return;
    a = p;
    b = q;
    CHECK(mentions(thrown([&] { (void)ex.state("layers.0.feed_forward.w1.weight", sw::moment::steps); }),
                   "another moment of it"));
  });
  CHECK(a == b);
}
TEST_CASE("kept gradients: a batch in pieces is one of those that are kept") {
  using once = part<with<acc::replicated<2>, keep>>;
  using pieces = part<with<acc::replicated<2>, acc::pieces<2>, keep>>;
  const auto a = kept::train<2, once, axes>(2), b = kept::train<2, pieces, axes>(2);
  CHECK(acc::difference(a, b) <= 1e-12);
}

}  // namespace
