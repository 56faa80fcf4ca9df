// SPDX-License-Identifier: Apache-2.0
// Decoding with a key/value cache: logits of a prompt and then of token after token are those of the whole sequences at once, bit for bit
// on the same mesh, on 1 to 4 ranks that share heads and sequences, with grouped heads and rotary positions, prompts of different lengths
// too; a position beyond the cache is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <figures.hpp>
#include <limits>
#include <shardwise/more_functions.hpp>
#include <stdexcept>
#include <string>
#include <thrown.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using figures::apart;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <int N, int M>
using mesh = sw::mesh<dp<N>, tp<M>>;

constexpr int B = 5, H = 8, KH = 4, D = 6, W = H * D, V = 11, L = 12, layer_count = 2;

template <class T, int Out, int In>
using matrix = sw::linear<In, Out, sw::unbound, false, sw::init::normal<200, 1000>>;

// Cached: whether attention reads and writes a cache. Learned: positions by a table; else by rotation.
template <bool Cached, bool Learned, int Window = 0>
struct net_of {
  template <class Bound = sw::unbound>
  struct attention : sw::module<attention<Bound>, Bound> {
    static constexpr sw::attention_options how{.layout = sw::head_layout::bthd, .enable_gqa = true, .window = Window};
    SHARDWISE_MEMBERS(Bound, (matrix<float, W, W>, wq), (matrix<float, KH * D, W>, wk), (matrix<float, KH * D, W>, wv),
                      (matrix<float, W, W>, wo),
                      (std::conditional_t<Cached, sw::kv_cache<B, L, KH, D, how>, sw::absent>, cache));
    template <class X, class... Position>
    constexpr auto forward(const X& x, const Position&... position) const {
      const auto turn = [&](const auto& y) {
        constexpr sw::rotary_options o{.layout = sw::head_layout::bthd};
        if constexpr (Learned) return y;
        else return sw::rotary_embedding<o>(y, position...);
      };
      const auto q = turn(sw::unflatten<-1, H, D>(wq(x)));
      const auto k = turn(sw::unflatten<-1, KH, D>(wk(x)));
      const auto v = sw::unflatten<-1, KH, D>(wv(x));
      if constexpr (Cached) return wo(sw::flatten<2, 3>(cache(q, k, v, position...)));
      else return wo(sw::flatten<2, 3>(sw::scaled_dot_product_attention<how>(q, k, v)));
    }
  };
  template <class Bound = sw::unbound>
  struct block : sw::module<block<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::rms_norm_module<W>, norm), (attention<>, attn));
    template <class X, class... Position>
    constexpr auto forward(const X& x, const Position&... position) const {
      return x + attn(norm(x), position...);
    }
  };
  template <class B2>
  using block_of = block<B2>;
  template <class Bound = sw::unbound>
  struct net : sw::module<net<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::embedding_table<V, W>, tokens), (sw::embedding_table<L, W>, positions),
                      (sw::repeat<layer_count, block_of>, layers), (matrix<float, V, W>, head));
    template <class X, class... Position>
    constexpr auto forward(const X& ids, const Position&... position) const {
      const auto h = [&] {
        if constexpr (!Learned) return tokens(ids);
        else if constexpr (Cached) return tokens(ids) + positions(sw::position_ids(ids, position...));
        else return tokens(ids) + sw::narrow<0, 0, X::sp.extent[1]>(positions.weight);
      }();
      return head(layers(h, position...));
    }
  };
  template <class B2>
  using model = net<B2>;
};

// More: where the cache lies. A mesh of one rank shares nothing.
template <int N, int M, class... More>
using plan = sw::plan<sw::data_parallel<dp<N>>, sw::at<"layers.*.attn.w[qkv]", sw::colwise<tp<M>, D>>,
                      sw::at<"layers.*.attn.wo", sw::rowwise<tp<M>, D>>, More...>;
template <int N, int M>
using cached_plan = plan<N, M, sw::at<"layers.*.attn.cache", sw::cache_heads<tp<M>>, sw::cache_batch<dp<N>>>>;

template <std::int64_t Time, int N>
struct whole_task {
  using inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<B, Time>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& ids) const { return model(ids); }
};
template <std::int64_t Time, int N>
struct step_task {
  using inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<B, Time>, sw::on<dp<N>, sw::shard<0>>>,
                            sw::input_tensor<std::int32_t, sw::shape<B>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& ids, const auto& position) const { return model(ids, position); }
};

template <class T, bool Learned, int N, int M, int Window = 0>
using whole_program = sw::forward_step<net_of<false, Learned, Window>::template model, whole_task<L, N>, plan<N, M>,
                                       mesh<N, M>, sw::pipeline<>, T>;
template <class T, bool Learned, int N, int M, int Window = 0>
using step_program = sw::forward_step<net_of<true, Learned, Window>::template model, step_task<sw::dyn<L>, N>,
                                      cached_plan<N, M>, mesh<N, M>, sw::pipeline<>, T>;

std::vector<std::int32_t> tokens() {
  std::vector<std::int32_t> ids(B * L);
  for (int i = 0; i < B * L; ++i) ids[static_cast<std::size_t>(i)] = (7 * i * i + 3 * i) % V;
  return ids;
}

// The larger of both, or what is no number.
double worse(double off, double d) { return d <= off ? off : d; }

// On each rank: the logits of the whole sequences, and those of pieces of `lengths`, of which each sequence takes what it has.
template <class T, bool Learned, int N, int M, int Window = 0>
double differ(const std::vector<int>& lengths, int threads = 1) {
  double worst = 0;
  sw::launch<mesh<N, M>>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    rank.compute_threads(threads);
    sw::executor<whole_program<T, Learned, N, M, Window>, rank_type> all(rank, sw::executor_checks::poison);
    sw::executor<step_program<T, Learned, N, M, Window>, rank_type> step(rank, sw::executor_checks::poison);
    all.initialise(3);
    step.initialise(3);
    const auto ids = tokens();
    all.set_input(0, ids);
    all.run({});
    const auto want = all.template output<T>(0);
    const std::int64_t mine = want.layout.ext[0];
    double off = mine > 0 ? 0 : -1;
    int at = 0;
    for (const int n : lengths) {
      step.resize(n);
      std::vector<std::int32_t> part;
      for (int b = 0; b < B; ++b)
        for (int t = 0; t < n; ++t) part.push_back(ids[static_cast<std::size_t>(b * L + at + t)]);
      step.set_input(0, part);
      step.set_input(1, std::vector<std::int32_t>(B, at));
      step.run({});
      const auto got = step.template output<T>(0);
      REQUIRE(got.layout.numel() == mine * n * V);
      for (std::int64_t b = 0; b < mine; ++b)
        for (int t = 0; t < n; ++t)
          for (int c = 0; c < V; ++c) {
            const double d = std::abs(static_cast<double>(got.data[static_cast<std::size_t>((b * n + t) * V + c)]) -
                                      static_cast<double>(want.data[static_cast<std::size_t>((b * L + at + t) * V + c)]));
            off = d <= off ? off : d;
          }
      at += n;
    }
    CHECK(at == L);
    rank.barrier();
    for (int r = 0; r < mesh<N, M>::size; ++r) {
      if (r == rank.index()) worst = off <= worst ? worst : off;
      rank.barrier();
    }
  });
  return worst;
}

const std::vector<int> one_by_one(L, 1), prompt_first{7, 1, 1, 1, 1, 1}, in_pieces{3, 1, 5, 2, 1};

}  // namespace

TEST_CASE("kv_cache: token by token, and behind a prompt, the logits are those of whole sequences, bit for bit") {
  CHECK(differ<double, false, 1, 1>(one_by_one) == 0);
  CHECK(differ<double, false, 1, 1>(prompt_first) == 0);
  CHECK(differ<float, false, 1, 1>(in_pieces) == 0);
  CHECK(differ<double, true, 1, 1>(prompt_first) == 0);
  CHECK(differ<double, false, 1, 1>(prompt_first, 3) == 0);  // by three threads
}
TEST_CASE("kv_cache: heads and sequences over 2, 3 and 4 ranks, uneven too") {
  CHECK(differ<double, false, 1, 2>(prompt_first) == 0);
  CHECK(differ<double, false, 2, 1>(one_by_one) == 0);  // 3 and 2 sequences
  CHECK(differ<double, true, 2, 2>(in_pieces) == 0);
  CHECK(differ<float, false, 1, 4>(prompt_first) == 0);
  CHECK(differ<double, false, 3, 1>(prompt_first, 2) == 0);  // 2, 2 and 1
  CHECK(differ<double, true, 4, 1>(one_by_one) == 0);        // 2, 2, 1 and none
}
TEST_CASE("kv_cache: a window begins its tiles elsewhere, so that sums differ in their last digits") {
  CHECK(differ<double, false, 1, 1, 3>(prompt_first) < 1e-14);
  CHECK(differ<double, false, 2, 2, 5>(one_by_one) < 1e-14);
}

namespace {

// A prompt of another length for each sequence, padded behind; then each goes on at its own position.
template <int N, int M>
double of_different_lengths() {
  double worst = 0;
  sw::launch<mesh<N, M>>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<whole_program<double, false, N, M>, rank_type> all(rank);
    sw::executor<step_program<double, false, N, M>, rank_type> step(rank);
    all.initialise(5);
    step.initialise(5);
    const auto ids = tokens();
    all.set_input(0, ids);
    all.run({});
    const auto want = all.template output<double>(0);
    const std::int64_t mine = want.layout.ext[0], first = want.layout.origin[0];
    const int length[B] = {4, 1, 6, 3, 2};
    double off = 0;
    const auto compare = [&](const auto& got, std::int64_t n, std::int64_t b, std::int64_t t, std::int64_t at) {
      for (int c = 0; c < V; ++c)
        off = worse(off, std::abs(got.data[static_cast<std::size_t>((b * n + t) * V + c)] -
                                  want.data[static_cast<std::size_t>((b * L + at) * V + c)]));
    };
    step.resize(6);
    std::vector<std::int32_t> prompt(B * 6, 9), position(B, 0);
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < length[b]; ++t)
        prompt[static_cast<std::size_t>(b * 6 + t)] = ids[static_cast<std::size_t>(b * L + t)];
    step.set_input(0, prompt);
    step.set_input(1, position);
    step.run({});
    for (std::int64_t b = 0; b < mine; ++b)
      for (int t = 0; t < length[first + b]; ++t) compare(step.template output<double>(0), 6, b, t, t);
    step.resize(1);
    for (int k = 0; k < L - 6; ++k) {
      std::vector<std::int32_t> next;
      for (int b = 0; b < B; ++b) {
        position[static_cast<std::size_t>(b)] = length[b] + k;
        next.push_back(ids[static_cast<std::size_t>(b * L + length[b] + k)]);
      }
      step.set_input(0, next);
      step.set_input(1, position);
      step.run({});
      for (std::int64_t b = 0; b < mine; ++b) compare(step.template output<double>(0), 1, b, 0, length[first + b] + k);
    }
    rank.barrier();
    for (int r = 0; r < mesh<N, M>::size; ++r) {
      if (r == rank.index()) worst = worse(worst, off);
      rank.barrier();
    }
  });
  return worst;
}

}  // namespace

TEST_CASE("kv_cache: prompts of different lengths in one batch, padded behind") {
  CHECK(of_different_lengths<1, 1>() == 0);
  CHECK(of_different_lengths<2, 2>() == 0);
  CHECK(of_different_lengths<3, 1>() == 0);
}

// --- the operations alone -----------------------------------------------------------------------------------------------------

namespace {

// q (2, heads, time, size) and its keys over more than a tile of both; by time, the dims of heads and time exchanged.
template <sw::head_layout Layout, int Heads, int KeyHeads, int Time, int Size>
double long_attention(bool infinite) {
  constexpr bool by_time = Layout == sw::head_layout::bthd;
  constexpr sw::attention_options how{.layout = Layout, .enable_gqa = true};
  constexpr int dim = by_time ? 1 : 2;
  using q_shape = std::conditional_t<by_time, sw::shape<2, Time, Heads, Size>, sw::shape<2, Heads, Time, Size>>;
  using k_shape = std::conditional_t<by_time, sw::shape<2, Time, KeyHeads, Size>, sw::shape<2, KeyHeads, Time, Size>>;
  double off = -1;
  sw::launch<mesh<1, 1>>([&](auto& rank) {
    sw::eager e(rank);
    auto keys = figures::some(2 * Time * KeyHeads * Size, 1);
    if (infinite) keys[3] = std::numeric_limits<double>::infinity();
    const auto q = sw::dtensor_of<double, q_shape, mesh<1, 1>>::distribute(e, figures::some(2 * Time * Heads * Size, 0));
    const auto k = sw::dtensor_of<double, k_shape, mesh<1, 1>>::distribute(e, keys);
    const auto v = sw::dtensor_of<double, k_shape, mesh<1, 1>>::distribute(e, figures::some(2 * Time * KeyHeads * Size, 2));
    const auto whole = sw::scaled_dot_product_attention<how>(q, k, v);
    constexpr int first = 290;
    const auto position =
        sw::dtensor_of<std::int32_t, sw::shape<2>, mesh<1, 1>>::distribute(e, std::vector<std::int32_t>{first, first});
    // a cache with what comes later in it, too, which nobody sees
    const auto part = sw::cached_attention<how>(sw::contiguous(sw::slice<dim, first, 60>(q)), k, v, position);
    const auto want = figures::whole(sw::contiguous(sw::slice<dim, first, 60>(whole)));
    off = infinite ? 0 : figures::apart(figures::whole(part), want);
    if (infinite) {
      const auto got = figures::whole(part);
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        if (!(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))))
          off = worse(off, std::abs(got[i] - want[i]));
    }
  });
  return off;
}

}  // namespace

TEST_CASE("cached_attention: over tiles of queries and keys, in both layouts, the bits of the whole sequence") {
  CHECK(long_attention<sw::head_layout::bhtd, 4, 2, 360, 8>(false) == 0);
  CHECK(long_attention<sw::head_layout::bthd, 4, 2, 360, 8>(false) == 0);
  CHECK(long_attention<sw::head_layout::bthd, 3, 3, 352, 5>(false) == 0);
  CHECK(long_attention<sw::head_layout::bhtd, 4, 2, 360, 8>(true) < 1e-12);
}

TEST_CASE("cache_update: rows at each sequence's position, the rest as it was; the operand is not written") {
  const auto check = [&]<int N, int M>(std::integral_constant<int, N>, std::integral_constant<int, M>) {
    sw::launch<mesh<N, M>>([&](auto& rank) {
      sw::eager e(rank);
      using on_dp = sw::on<dp<N>, sw::shard<0>>;
      const auto before = figures::some(3 * 2 * 7 * 4, 0), rows = figures::some(3 * 2 * 2 * 4, 1);
      const auto cache =
          sw::dtensor_of<double, sw::shape<3, 2, 7, 4>, mesh<N, M>, on_dp, sw::on<tp<M>, sw::shard<3>>>::distribute(e,
                                                                                                                    before);
      const auto fresh =
          sw::dtensor_of<double, sw::shape<3, 2, 2, 4>, mesh<N, M>, on_dp, sw::on<tp<M>, sw::shard<3>>>::distribute(e, rows);
      const std::vector<std::int32_t> at{5, 0, 2};
      const auto position = sw::dtensor_of<std::int32_t, sw::shape<3>, mesh<N, M>, on_dp>::distribute(e, at);
      auto want = before;
      for (int b = 0; b < 3; ++b)
        for (int h = 0; h < 2; ++h)
          for (int t = 0; t < 2; ++t)
            for (int c = 0; c < 4; ++c)
              want[static_cast<std::size_t>(((b * 2 + h) * 7 + at[static_cast<std::size_t>(b)] + t) * 4 + c)] =
                  rows[static_cast<std::size_t>(((b * 2 + h) * 2 + t) * 4 + c)];
      CHECK(figures::apart(figures::whole(sw::cache_update<2>(cache, fresh, position)), want) == 0);
      CHECK(figures::apart(figures::whole(sw::cache_update<-2>(cache, fresh, position)), want) == 0);
      CHECK(figures::apart(figures::whole(cache), before) == 0);
      sw::copy_(cache, sw::cache_update<2>(cache, fresh, position));
      CHECK(figures::apart(figures::whole(cache), want) == 0);
    });
  };
  check(std::integral_constant<int, 1>{}, std::integral_constant<int, 1>{});
  check(std::integral_constant<int, 2>{}, std::integral_constant<int, 2>{});
  check(std::integral_constant<int, 4>{}, std::integral_constant<int, 1>{});
  check(std::integral_constant<int, 1>{}, std::integral_constant<int, 3>{});
}

TEST_CASE("position_ids: an id that int32 does not hold is refused") {
  sw::launch<mesh<1, 1>>([](auto& rank) {
    sw::eager e(rank);
    const auto ids = sw::dtensor_of<std::int32_t, sw::shape<1, 2>, mesh<1, 1>>::distribute(e, std::vector<std::int32_t>(2));
    const auto from = [&](std::int32_t at) {
      const auto position =
          sw::dtensor_of<std::int32_t, sw::shape<1>, mesh<1, 1>>::distribute(e, std::vector<std::int32_t>{at});
      return sw::position_ids(ids, position).to_local().data;
    };
    const auto last = from(2147483646);
    CHECK(last[0] == 2147483646);
    CHECK(last[1] == 2147483647);
    CHECK(test::thrown([&] { (void)from(2147483647); }).find("ids of int32 end at 2147483647") != std::string::npos);
  });
}

TEST_CASE("position_ids and rotary_embedding: positions counted from each sequence's own, cut along the time too") {
  sw::launch<mesh<2, 2>>([&](auto& rank) {
    sw::eager e(rank);
    const std::vector<std::int32_t> at{7, 0, 100};
    const auto position =
        sw::dtensor_of<std::int32_t, sw::shape<3>, mesh<2, 2>, sw::on<dp<2>, sw::shard<0>>>::distribute(e, at);
    const auto ids = sw::dtensor_of<std::int32_t, sw::shape<3, 5>, mesh<2, 2>, sw::on<dp<2>, sw::shard<0>>,
                                    sw::on<tp<2>, sw::shard<1>>>::distribute(e, std::vector<std::int32_t>(15, 4));
    const auto all = sw::position_ids(ids, position).full_tensor();
    for (int b = 0; b < 3; ++b)
      for (int t = 0; t < 5; ++t)
        CHECK(all.to_local().data[static_cast<std::size_t>(b * 5 + t)] == at[static_cast<std::size_t>(b)] + t);
    using x_of =
        sw::dtensor_of<double, sw::shape<3, 2, 5, 4>, mesh<2, 2>, sw::on<dp<2>, sw::shard<0>>, sw::on<tp<2>, sw::shard<2>>>;
    const auto numbers = figures::some(3 * 2 * 5 * 4, 0);
    const auto turned = figures::whole(sw::rotary_embedding(x_of::distribute(e, numbers), position));
    for (int b = 0; b < 3; ++b) {
      const auto alone = figures::whole(sw::rotary_embedding(x_of::distribute(e, numbers), at[static_cast<std::size_t>(b)]));
      for (int i = 0; i < 40; ++i)
        CHECK(turned[static_cast<std::size_t>(b * 40 + i)] == alone[static_cast<std::size_t>(b * 40 + i)]);
    }
  });
}

namespace {

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("kv_cache: a position that the cache does not have is refused, with the sequence and what to do") {
  const auto at = [&](std::vector<std::int32_t> position, int time) {
    return refusal([&] {
      sw::launch<mesh<2, 1>>([&](auto& rank) {
        sw::executor<step_program<double, false, 2, 1>, std::remove_reference_t<decltype(rank)>> step(rank);
        step.initialise(1);
        step.resize(time);
        step.set_input(0, std::vector<std::int32_t>(static_cast<std::size_t>(B * time), 1));
        step.set_input(1, position);
        step.run({});
      });
    });
  };
  CHECK(at({0, 3, L - 1, 0, 1}, 1) == "");
  CHECK(at({0, 0, 0, L - 2, 0}, 2) == "");
  CHECK(at({0, 0, 0, L, 0}, 1).find("sequence 3 has position 12 and 1 new tokens, and the cache has 12 positions") !=
        std::string::npos);
  CHECK(at({0, L - 1, 0, 0, 0}, 2).find("sequence 1 has position 11 and 2 new tokens") != std::string::npos);
  CHECK(at({0, 0, 0, 0, -1}, 1).find("sequence 4 has position -1, which is negative") != std::string::npos);
}

// In bf16 products are rounded; the cache and attention over it are float.
TEST_CASE("kv_cache: a model in bf16 attends in the cache's float") {
  using rounded = sw::forward_step<
      net_of<true, false>::model, step_task<sw::dyn<L>, 2>,
      plan<2, 2, sw::at<"layers.*.attn.cache", sw::cache_heads<tp<2>>, sw::cache_batch<dp<2>>>, sw::mixed<sw::bf16>>,
      mesh<2, 2>, sw::pipeline<>, float>;
  sw::launch<mesh<2, 2>>([&](auto& rank) {
    sw::executor<rounded> low(rank);
    sw::executor<step_program<float, false, 2, 2>> full(rank);
    CHECK(low.buffer_spec(0).type == sw::dtype::f32);
    low.initialise(3);
    full.initialise(3);
    for (int at = 0; at < 6; ++at) {
      const auto logits = [&](auto& run, auto type) {
        run.resize(1);
        run.set_input(0, std::vector<std::int32_t>(B, at));
        run.set_input(1, std::vector<std::int32_t>(B, at));
        run.run({});
        const auto block = run.template output<decltype(type)>(0);
        std::vector<double> all;
        for (std::size_t i = 0; i < block.size(); ++i) all.push_back(static_cast<double>(block[i]));
        return all;
      };
      const auto one = logits(low, sw::bf16{}), other = logits(full, float{});
      double largest = 0;
      for (const double x : other) largest = std::fmax(largest, std::abs(x));
      CHECK(apart(one, other) < 0.05 * largest);
      CHECK(apart(one, other) > 0);
    }
  });
}

// Law: the buffers are written where they lie. Of a step no value but the result of the cache's own update has their size, and that one
// takes no memory.
TEST_CASE("kv_cache: a step moves its rows alone, and takes no memory of the cache's size beside the cache") {
  using program = step_program<double, false, 1, 1>;
  const auto& g = program::program;
  const auto& plan = program::memory::value;
  int updates = 0, copies = 0;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    if (n.op == sw::op_code::custom && n.in[0] >= 0 && g.nodes[n.in[0]].op == sw::op_code::module_buffer) {
      ++updates;
      CHECK(plan.owner[i] == n.in[0]);
      CHECK(plan.bytes[i] == 0);
    }
    if (n.op == sw::op_code::assign) copies += plan.owner[n.in[1]] == n.in[0] ? 0 : 1;
  }
  CHECK(updates == 2 * layer_count);
  CHECK(copies == 0);
}

namespace {

// The buffer as it was before the write is read behind it.
template <class Bound = sw::unbound>
struct read_late : sw::module<read_late<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::buffer<sw::shape<2, 3>, sw::init::ones>, kept));
  constexpr auto forward(const auto& x, const auto& position) const {
    const auto before = kept * 1.0;
    const auto view = sw::redistribute<dp<1>, sw::replicate>(kept);  // a value, moved or not
    sw::copy_(kept, sw::cache_update<1>(kept, x, position));
    return before + view + kept * 10.0;
  }
};
struct late_task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<2, 1>>, sw::input_tensor<std::int32_t, sw::shape<2>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& position) const { return model(x, position); }
};

}  // namespace

TEST_CASE("cache_update: what a buffer was before the write is read behind it") {
  sw::launch<mesh<1, 1>>([&](auto& rank) {
    sw::executor<sw::forward_step<read_late, late_task, sw::plan<>, mesh<1, 1>, sw::pipeline<>, double>> run(
        rank, sw::executor_checks::poison);
    run.initialise(1);
    run.set_input(0, std::vector<double>{5, 7});
    run.set_input(1, std::vector<std::int32_t>{2, 0});
    run.run({});
    const auto y = run.template output<double>(0);
    const std::vector<double> want{12, 12, 52, 72, 12, 12};
    for (std::size_t i = 0; i < 6; ++i) CHECK(y.data[i] == want[i]);
    run.run({});
    const auto again = run.template output<double>(0);
    const std::vector<double> then{12, 12, 60, 84, 12, 12};
    for (std::size_t i = 0; i < 6; ++i) CHECK(again.data[i] == then[i]);
  });
}
