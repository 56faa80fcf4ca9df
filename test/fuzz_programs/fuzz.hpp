// SPDX-License-Identifier: Apache-2.0
// What generated programs are run with: the same function at once, as a traced program and by the executor, on a mesh and on
// one rank. Blocks are put together here, without the library's collectives, and compared with what the generator computed.
// With SHARDWISE_TEST_DEVICES ranks are GPUs, which run compiled programs alone, since eager tensors are the host's: whatever a program
// says, it runs as its step, twice, by executors of their own, and gives the same bits both times.
#pragma once

#include <shardwise/module/hana.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/module/muon.hpp>
#include <shardwise/more_functions.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/cross_entropy.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/fuse/partial_lower.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/executor/iterated.hpp>
#include <shardwise/shardwise.hpp>
#include <shardwise/vocabulary/flat_group.hpp>

#include "../support/custom_operations.hpp"
#include "../support/custom_results.hpp"
#include "../support/place.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fuzz {

namespace sw = shardwise;

// A user's own operation: tanh(x) y.
inline constexpr sw::custom_operation gate_slope{.name = "gate_slope",
                                                 .operands = 3,
                                                 .record = sw::operations::pointwise(sw::linearity::first),
                                                 .adjoint = &sw::autodiff::unknown};
inline constexpr sw::autodiff::adjoint_rule gate_adjoint = sw::autodiff::pulled<3>([](sw::autodiff::pullback& p) {
  const int x = p.n.in[0], y = p.n.in[1];
  if (p.wants(0)) p.give_summed(0, p.make(gate_slope, {}, 0, p.dy, x, y));
  if (p.wants(1)) p.give_summed(1, p.make(sw::op_code::mul, p.dy, p.make(sw::op_code::tanh, x)));
});
inline constexpr sw::custom_operation gate{
    .name = "gate", .operands = 2, .record = sw::operations::pointwise(sw::linearity::none), .adjoint = &gate_adjoint};

}  // namespace fuzz

template <>
struct shardwise::formula<fuzz::gate> {
  template <class m, class T>
  static constexpr T value(T x, T y) {
    return m::tanh(x) * y;
  }
};
template <>
struct shardwise::formula<fuzz::gate_slope> {
  template <class m, class T>
  static constexpr T value(T dy, T x, T y) {
    const T t = m::tanh(x);
    return dy * y * (T(1) - t * t);
  }
};

#if defined(SHARDWISE_TEST_DEVICES)
// kernels.cu compiles the kernels of elements, for all programs of a binary: a program's own list is empty, and an executor then asks for
// those of SHARDWISE_DEVICE_ELEMENTS. Price of the other way: a minute and 16 MB for each source of programs.
template <class E, class Needed>
struct shardwise::cuda::detail::compiled_list<shardwise::detail::type_list<E, std::int32_t>, Needed> {
  static launcher none(op_code) { return nullptr; }
  static launcher_of_all none_together(op_code) { return nullptr; }
  static constexpr compiled_element list[1] = {{dtype_v<E>, &none, &none_together, nullptr, {}, {}, {}, {}}};
};
#endif

namespace fuzz {

#if defined(SHARDWISE_TEST_DEVICES)
inline constexpr bool on_gpus = true;
template <class Mesh>
using rank_of = sw::cuda_rank<Mesh>;
#else
inline constexpr bool on_gpus = false;
template <class Mesh>
using rank_of = sw::thread_rank<Mesh>;
#endif

// An operation with three results, of which these read one or two.
template <class X>
constexpr auto one_result(const X& x) {
  return std::get<0>(sw::call<described::lines>(x));
}
template <class X>
constexpr auto two_results(const X& x) {
  const auto all = sw::call<described::lines>(x);
  return sw::tanh(std::get<0>(all)) + sw::unsqueeze<-1>(std::get<1>(all));
}
template <class X>
constexpr auto three_results(const X& x) {
  const auto [e, sums, where] = sw::call<described::lines>(x);
  return where;
}

inline const double inf = HUGE_VAL, nan = NAN;

template <int Index, int Size>
struct ax : sw::axis<Size> {};

// A mesh and its axes under fixed names; programs of fewer axes do not use the others.
template <int... N>
struct world;
template <int A>
struct world<A> {
  using A0 = ax<0, A>;
  using A1 = ax<1, 1>;
  using A2 = ax<2, 1>;
  using mesh = sw::mesh<A0>;
};
template <int A, int B>
struct world<A, B> {
  using A0 = ax<0, A>;
  using A1 = ax<1, B>;
  using A2 = ax<2, 1>;
  using mesh = sw::mesh<A0, A1>;
};
template <int A, int B, int C>
struct world<A, B, C> {
  using A0 = ax<0, A>;
  using A1 = ax<1, B>;
  using A2 = ax<2, C>;
  using mesh = sw::mesh<A0, A1, A2>;
};
template <class W>
struct alone;
template <int... N>
struct alone<world<N...>> {
  using type = world<N / N...>;
};

template <class... T>
struct list {};

struct numbers {
  int count;
  const double* data;
};

struct twice_and {
  template <class T>
  void operator()(std::span<T> out, std::span<const T> x, std::span<const T> y) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = 2 * x[i] + y[i];
  }
  template <int K, class T>
  static void adjoint(std::span<T> d, std::span<const T> dz, std::span<const T>, std::span<const T>) {
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = K == 0 ? 2 * dz[i] : dz[i];
  }
};

// --- what a rank has computed -----------------------------------------------------------------------------------------------

struct block {
  sw::spec sp{};
  std::int64_t ext[sw::max_rank]{}, origin[sw::max_rank]{};
  std::vector<double> v;  // row-major
};

// mixed: the first statements at once, the others as a program of what those gave. faked: at once and by the executor, on
// each rank without its peers.
enum way : unsigned { eager = 1, compiled = 2, traced = 4, gradients = 8, compiled_gradients = 16, mixed = 32, faked = 64 };
constexpr int ways = 6;
constexpr bool differentiates(int w) { return w == 3 || w == 4; }
// The ways of a program as ranks run it: on GPUs every way is that of its compiled program.
constexpr unsigned as_run(unsigned ways_of) {
  if (!on_gpus) return ways_of;
  return ((ways_of & (eager | compiled | traced | mixed | faked)) != 0 ? unsigned{compiled} : 0U) |
         ((ways_of & (gradients | compiled_gradients)) != 0 ? unsigned{compiled_gradients} : 0U);
}
inline const char* const way_name[ways] = {"eager", "compiled", "traced", "value_and_grad", "gradient_step", "mixed"};

// Of one mesh: by way, number of the result and rank.
struct book {
  int ranks = 0;
  const int* sizes = nullptr;
  int axes = 0;
  std::vector<std::vector<block>> results[ways], after[ways];  // [way][k][rank]
  std::vector<std::vector<block>> first;                       // parameters as training begins, where they are compared
  std::vector<std::int64_t> sent[ways];                        // bytes of [way][rank * axes + axis], of eager and compiled

  block& at(std::vector<std::vector<block>>& v, std::size_t k, int rank) { return v[k][static_cast<std::size_t>(rank)]; }
};

template <class T>
block block_of(const sw::local_block<T>& b, const sw::spec& s) {
  block r;
  r.sp = s;
  std::int64_t at[sw::max_rank]{};
  for (int d = 0; d < b.layout.rank; ++d) {
    r.ext[d] = b.layout.ext[d];
    r.origin[d] = b.layout.origin[d];
  }
  for (std::int64_t i = 0; i < b.layout.numel(); ++i) {
    std::int64_t offset = 0;
    for (int d = 0; d < b.layout.rank; ++d) offset += at[d] * b.layout.str[d];
    r.v.push_back(static_cast<double>(b.data[static_cast<std::size_t>(offset)]));
    for (int d = b.layout.rank - 1; d >= 0 && ++at[d] == b.layout.ext[d]; --d) at[d] = 0;
  }
  return r;
}

inline bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }
inline bool same_bits(double a, double b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0; }

struct whole {
  std::vector<double> v;
  std::string error;
};

// The logical value of the ranks' blocks: united where they are shards, reduced where partial, and equal elsewhere.
inline whole assemble(const book& b, const std::vector<block>& blocks) {
  whole r;
  const sw::spec& s = blocks[0].sp;
  std::size_t n = 1;
  for (int d = 0; d < s.rank; ++d) n *= static_cast<std::size_t>(s.extent[d]);
  struct part {
    std::vector<double> v;
    std::vector<char> set;
  };
  std::vector<part> parts(blocks.size());
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    part& p = parts[k];
    const block& from = blocks[k];
    p.v.assign(n, 0);
    p.set.assign(n, 0);
    std::int64_t at[sw::max_rank]{};
    for (double value : from.v) {
      std::size_t g = 0;
      for (int d = 0; d < s.rank; ++d)
        g = g * static_cast<std::size_t>(s.extent[d]) + static_cast<std::size_t>(from.origin[d] + at[d]);
      if (g >= n) {
        r.error = "a block reaches beyond the tensor";
        return r;
      }
      p.v[g] = value;
      p.set[g] = 1;
      for (int d = s.rank - 1; d >= 0 && ++at[d] == from.ext[d]; --d) at[d] = 0;
    }
  }
  int stride = 1;
  for (int a = b.axes - 1; a >= 0; stride *= b.sizes[a], --a) {
    const sw::placement p = s.place[a];
    for (int rank = 0; rank < b.ranks; ++rank) {
      if ((rank / stride) % b.sizes[a] != 0) continue;
      part sum = parts[static_cast<std::size_t>(rank)];
      for (int m = 1; m < b.sizes[a]; ++m) {
        const part& other = parts[static_cast<std::size_t>(rank + m * stride)];
        for (std::size_t i = 0; i < n; ++i) {
          if (p.is_shard()) {
            if (sum.set[i] && other.set[i]) r.error = "two ranks hold one element of a sharded tensor";
            if (other.set[i]) sum.v[i] = other.v[i], sum.set[i] = 1;
          } else if (sum.set[i] != other.set[i]) {
            r.error = "ranks hold different elements of a tensor that their axis does not shard";
          } else if (!sum.set[i]) {
          } else if (p.is_whole()) {
            if (!same(sum.v[i], other.v[i]))
              r.error = "ranks " + std::to_string(rank) + " and " + std::to_string(rank + m * stride) +
                        " hold different values of a tensor that is whole on their axis: element " + std::to_string(i) +
                        " is " + std::to_string(sum.v[i]) + " and " + std::to_string(other.v[i]);
          } else {
            double& x = sum.v[i];
            const double y = other.v[i];
            switch (p.op) {
              case sw::reduction::sum: x += y; break;
              case sw::reduction::avg: x += y; break;
              case sw::reduction::product: x *= y; break;
              case sw::reduction::max: x = std::isnan(x) || std::isnan(y) ? nan : x > y ? x : y; break;
              case sw::reduction::min: x = std::isnan(x) || std::isnan(y) ? nan : x < y ? x : y; break;
              default: x = std::pow(std::pow(std::abs(x), p.order()) + std::pow(std::abs(y), p.order()), 1.0 / p.order());
            }
          }
        }
      }
      if (p.is_partial() && p.op == sw::reduction::avg)
        for (double& x : sum.v) x /= b.sizes[a];
      for (int m = 0; m < b.sizes[a]; ++m) parts[static_cast<std::size_t>(rank + m * stride)] = sum;
    }
  }
  r.v = parts[0].v;
  for (std::size_t i = 0; i < n; ++i)
    if (!parts[0].set[i]) r.error = "no rank holds element " + std::to_string(i);
  return r;
}

// --- running ----------------------------------------------------------------------------------------------------------------

template <class X>
void keep(book& b, std::vector<std::vector<block>>& to, int rank, std::size_t k, const X& x) {
  using type = std::remove_cvref_t<X>;
  b.at(to, k, rank) = block_of(x.to_local(), type::sp);
}

template <class T>
std::vector<T> typed(const numbers& n) {
  std::vector<T> v(static_cast<std::size_t>(n.count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<T>(n.data[i]);
  return v;
}

template <class List>
struct on_inputs;
template <class... X>
struct on_inputs<list<X...>> {
  using types = sw::inputs<sw::input_like<X>...>;
  static constexpr std::size_t count = sizeof...(X);

  template <class Rank, std::size_t... I>
  static auto make(const sw::eager<Rank>& on, const numbers* data, std::index_sequence<I...>) {
    return std::tuple<typename X::template on_rank<Rank>...>{X::distribute(on, typed<typename X::element>(data[I]))...};
  }
  static auto make(const auto& on, const numbers* data) { return make(on, data, std::index_sequence_for<X...>{}); }

  template <class Executor>
  static void load(Executor& e, [[maybe_unused]] const numbers* data, [[maybe_unused]] const auto& like) {
    int k = 0;
#ifdef FUZZ_COPY_INPUTS  // blocks as eager tensors have them: leaves set_input out
    std::apply(
        [&](const auto&... x) {
          ((std::memcpy(e.template input<typename X::element>(k).data(), x.to_local().data.data(),
                        x.to_local().data.size_bytes()),
            ++k),
           ...);
        },
        like);
#else
    ((e.set_input(k, typed<typename X::element>(data[k])), ++k), ...);
#endif
  }
  // The inputs' blocks after a run: a program that writes its inputs leaves them changed.
  template <class Executor>
  static void keep_inputs(Executor& e, book& b, std::vector<std::vector<block>>& to, int rank, const auto& like) {
    std::apply(
        [&](const auto&... x) {
          int k = 0;
          (
              [&] {
                using T = typename X::element;
                block r = block_of(x.to_local(), X::sp);
                const auto now = e.template input<T>(k);
                for (std::size_t i = 0; i < r.v.size(); ++i) r.v[i] = static_cast<double>(now[i]);
                b.at(to, static_cast<std::size_t>(k), rank) = r;
                ++k;
              }(),
              ...);
        },
        like);
  }
  template <class Executor>
  static void keep_copied_inputs(Executor& e, book& b, std::vector<std::vector<block>>& to, int rank) {
    int k = 0;
    (
        [&] {
          using T = typename X::element;
          const int id = e.find(sw::op_code::input, k);
          const auto now = e.template value<T>(id);
          b.at(to, static_cast<std::size_t>(k++), rank) = block_of(sw::local_block<T>{now, e.layout_of(id)}, X::sp);
        }(),
        ...);
  }
  template <class Step>
  static auto at_once(const auto& x) {
    return std::apply(
        [](const auto& first, const auto&... more) {
          return std::remove_cvref_t<decltype(first)>::template run<Step>(first, more...);
        },
        x);
  }
  template <class F, int... Wrt>
  static auto differentiate(const auto& x) {
    return std::apply([](const auto&... v) { return sw::value_and_grad<F, Wrt...>(v...); }, x);
  }
};

inline void room(std::vector<std::vector<block>>& v, std::size_t k, int ranks) {
  v.resize(k);
  for (auto& r : v) r.resize(static_cast<std::size_t>(ranks));
}

template <class Tuple>
void keep_all(book& b, std::vector<std::vector<block>>& to, int rank, const Tuple& t) {
  std::apply(
      [&](const auto&... x) {
        std::size_t k = 0;
        (keep(b, to, rank, k++, x), ...);
      },
      t);
}

// What programs say since some of those in failed/ were written.
template <class P>
constexpr int run_times_of() {
  if constexpr (requires { P::run_times; }) return P::run_times;
  else return 0;
}
template <class P>
constexpr bool finite_of() {
  if constexpr (requires { P::checks; }) return sw::has_check(P::checks, sw::executor_checks::finite);
  else return false;
}
template <class P, class Rank>
constexpr sw::executor_checks checks_of() {
  if constexpr (std::is_same_v<Rank, sw::fake_rank<typename Rank::mesh_type>>)
    return sw::executor_checks::poison;  // its numbers mean nothing
  else if constexpr (on_gpus)            // which have no poison
    return finite_of<P>() ? sw::executor_checks::finite : sw::executor_checks::none;
  else if constexpr (requires { P::checks; }) return P::checks;
  else return sw::executor_checks::poison;
}
template <class P>
constexpr bool named_of() {
  if constexpr (requires { P::named; }) return P::named;
  else return false;
}

// With the extents that it has in this run.
template <class T>
block run_time_block(const sw::local_block<T>& b, const sw::spec& s) {
  block r = block_of(b, s);
  for (int d = 0; d < s.rank; ++d) r.sp.extent[d] = b.layout.global[d];
  return r;
}

template <class Rank>
void take_counts(std::vector<std::int64_t>& to, Rank& rank) {
  for (int a = 0; a < Rank::mesh_type::axes; ++a)
    to[static_cast<std::size_t>(rank.index() * Rank::mesh_type::axes + a)] = rank.bytes_written(a);
}

template <class P, class W, class Step, class Inputs, class Rank>
void execute(book& b, int w, Rank& rank, const numbers* data, const auto& like, const sw::step_env& env, bool inputs_too) {
  auto e = std::make_unique<sw::executor<Step, Rank>>(rank, checks_of<P, Rank>());
  const auto take = [&](std::size_t first) {
    const auto& g = Step::program;
    for (int k = 0; k < g.output_count; ++k) {
      const sw::spec& s = g.spec_of(g.outputs[k]);
      block& to = b.at(b.results[w], first + static_cast<std::size_t>(k), rank.index());
      if (s.type == sw::dtype::f64) to = run_time_block(e->template output<double>(k), s);
      else if (s.type == sw::dtype::f32) to = run_time_block(e->template output<float>(k), s);
      else to = run_time_block(e->template output<std::int32_t>(k), s);
    }
    if constexpr (named_of<P>()) {
      const std::vector<double> named = block_of(e->template output<"r0">(), g.spec_of(g.outputs[0])).v,
                                &numbered = b.at(b.results[w], first, rank.index()).v;
      bool one = named.size() == numbered.size();
      for (std::size_t i = 0; one && i < named.size(); ++i) one = same_bits(named[i], numbered[i]);
      if (!one) throw std::logic_error("the output named r0 is another one");
    }
  };
  if constexpr (constexpr int times = run_times_of<P>(); times > 0) {
    for (int i = 0; i < times; ++i) {
      if constexpr (requires { P::second_run_time; }) e->resize(P::run_time[i], P::second_run_time[i]);
      else e->resize(P::run_time[i]);
      Inputs::load(*e, data + static_cast<std::size_t>(i) * Inputs::count, like);
      e->run(env);
      take(P::results / times * static_cast<std::size_t>(i));
    }
    return;
  }
  for (int round = 0; round < 2; ++round) {  // a second run starts from poisoned storage
    Inputs::load(*e, data, like);
    if constexpr (P::arrives && !sw::detail::without_peers<Rank>)
      if (round == 1) P::template arrive<W>(*e, std::get<0>(like));  // the first input is on its way when the program starts
    e->run(env);
    if (round == 0) take_counts(b.sent[w], rank);
  }
  take(0);
  if (inputs_too) Inputs::keep_inputs(*e, b, b.after[w], rank.index(), like);
}

// On GPUs blocks are copied. Every run is done again with the same inputs, by the same graph: what an executor keeps between runs may not be
// seen in its results.
template <class P, class Step, class Inputs, class Rank>
void execute_copied(book& b, int w, Rank& rank, const numbers* data, const sw::step_env& env, bool inputs_too) {
  auto e = std::make_unique<sw::executor<Step, Rank>>(rank, checks_of<P, Rank>());
  const auto& g = Step::program;
  const auto result = [&](int k) {
    const sw::spec& s = g.spec_of(g.outputs[k]);
    const auto as = [&](const auto& values) {
      using T = typename std::remove_cvref_t<decltype(values)>::value_type;
      return run_time_block(sw::local_block<T>{values, e->layout_of(g.outputs[k])}, s);
    };
    if (s.type == sw::dtype::f64) return as(e->template output<double>(k));
    if (s.type == sw::dtype::f32) return as(e->template output<float>(k));
    return as(e->template output<std::int32_t>(k));
  };
  const auto differ = [](const block& x, const block& y) {
    if (x.v.size() != y.v.size()) return true;
    for (std::size_t i = 0; i < x.v.size(); ++i)
      if (!same_bits(x.v[i], y.v[i])) return true;
    return false;
  };
  const auto run = [&](const numbers* of, std::size_t first) {
    for (int round = 0; round < 2; ++round) {
      Inputs::load(*e, of, std::tuple<>{});
      e->run(env);
      for (int k = 0; k < g.output_count; ++k) {
        block& to = b.at(b.results[w], first + static_cast<std::size_t>(k), rank.index());
        block now = result(k);
        if (round == 1 && differ(now, to))
          throw std::logic_error("result " + std::to_string(k) + " has other bits when the program runs again");
        to = std::move(now);
      }
    }
    if constexpr (named_of<P>()) {
      const auto named = e->template output<"r0">();
      using T = typename decltype(named)::value_type;
      if (differ(run_time_block(sw::local_block<T>{named, e->layout_of(g.outputs[0])}, g.spec_of(g.outputs[0])), result(0)))
        throw std::logic_error("the output named r0 is another one");
    }
  };
  if constexpr (constexpr int times = run_times_of<P>(); times > 0) {
    for (int i = 0; i < times; ++i) {
      if constexpr (requires { P::second_run_time; }) e->resize(P::run_time[i], P::second_run_time[i]);
      else e->resize(P::run_time[i]);
      run(data + static_cast<std::size_t>(i) * Inputs::count, P::results / times * static_cast<std::size_t>(i));
    }
  } else {
    run(data, 0);
    if (inputs_too) Inputs::keep_copied_inputs(*e, b, b.after[w], rank.index());
  }
}

template <class F, class Mesh, class... X>
auto run_rest(const std::tuple<X...>& x) {
  using step = sw::function_step<F, Mesh, sw::inputs<sw::input_like<X>...>>;
  return on_inputs<list<X...>>::template at_once<step>(x);
}

template <class P, class W>
void rooms(book& b) {
  using mesh = typename W::mesh;
  for (int w = 0; w < ways; ++w) {
    room(b.results[w], P::results + (differentiates(w) ? P::gradients : 0), mesh::size);
    room(b.after[w], on_inputs<typename P::template inputs<W>>::count, mesh::size);
    b.sent[w].assign(static_cast<std::size_t>(mesh::size * mesh::axes), 0);
  }
}

// Program P as steps, on GPUs.
template <class P, class W, unsigned Ways, class Rank>
void on_gpu(Rank& rank, book& b) {
  using mesh = typename W::mesh;
  using F = typename P::template f<W>;
  using inputs = on_inputs<typename P::template inputs<W>>;
  using backend = test::place::backend;
  if (rank.index() == 0) rooms<P, W>(b);
  rank.barrier();
  sw::step_env env;
  env.seed = 11;
  env.step = 1;
  if constexpr ((Ways & compiled) != 0)
    execute_copied<P, sw::function_step<F, mesh, typename inputs::types, typename P::pipeline, backend>, inputs>(
        b, 1, rank, P::data, env, P::writes_inputs);
  if constexpr ((Ways & compiled_gradients) != 0)
    execute_copied<P, sw::gradient_step<F, mesh, typename inputs::types, typename P::wrt, typename P::pipeline, backend>,
                   inputs>(b, 4, rank, P::data, env, P::writes_inputs);
}

// Ways of running program P on the ranks of W; results in `b`.
template <class P, class W, unsigned Ways, class Rank>
void on_rank(Rank& rank, book& b) {
  using mesh = typename W::mesh;
  using F = typename P::template f<W>;
  using inputs = on_inputs<typename P::template inputs<W>>;
  sw::eager on(rank);
  const auto begin = [&] { on.start_step(11, 1); };
  if (rank.index() == 0 || sw::detail::without_peers<Rank>) rooms<P, W>(b);
  rank.barrier();
  sw::step_env env;
  env.seed = 11;
  env.step = 1;
  if constexpr ((Ways & eager) != 0) {
    begin();
    const auto x = inputs::make(on, P::data);
    rank.reset_counts();
    keep_all(b, b.results[0], rank.index(), sw::detail::result_tensors(std::apply(F{}, x)));
    take_counts(b.sent[0], rank);
    keep_all(b, b.after[0], rank.index(), x);
  }
  if constexpr ((Ways & compiled) != 0) {
    rank.reset_counts();
    using step = sw::function_step<F, mesh, typename inputs::types, typename P::pipeline>;
    execute<P, W, step, inputs>(b, 1, rank, P::data, inputs::make(on, P::data), env, P::writes_inputs);
  }
  if constexpr ((Ways & traced) != 0) {
    using step = sw::function_step<F, mesh, typename inputs::types>;
    begin();
    const auto x = inputs::make(on, P::data);
    keep_all(b, b.results[2], rank.index(), inputs::template at_once<step>(x));
    keep_all(b, b.after[2], rank.index(), x);
  }
  if constexpr ((Ways & gradients) != 0) {
    begin();
    const auto x = inputs::make(on, P::data);
    keep_all(b, b.results[3], rank.index(), P::template differentiate<F, inputs>(x));
    keep_all(b, b.after[3], rank.index(), x);
  }
  if constexpr ((Ways & compiled_gradients) != 0) {
    using step = sw::gradient_step<F, mesh, typename inputs::types, typename P::wrt, typename P::pipeline>;
    execute<P, W, step, inputs>(b, 4, rank, P::data, inputs::make(on, P::data), env, P::writes_inputs);
  }
  if constexpr ((Ways & mixed) != 0) {
    begin();
    const auto half = std::apply(typename P::template head<W>{}, inputs::make(on, P::data));
    keep_all(b, b.results[5], rank.index(), run_rest<typename P::template tail<W>, mesh>(half));
  }
}

// --- comparing --------------------------------------------------------------------------------------------------------------

struct verdict {
  const char* program;
  std::string said;
  void say(const std::string& text) {
    if (said.size() < 2000) said += "FAILED " + std::string(program) + ": " + text + "\n";
  }
};

inline std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", v);
  return text;
}

inline void compare(verdict& to, const std::string& where, const whole& have, const double* want, std::size_t n,
                    double tolerance) {
  if (!have.error.empty()) return to.say(where + ": " + have.error);
  if (have.v.size() != n)
    return to.say(where + ": " + std::to_string(have.v.size()) + " elements, expected " + std::to_string(n));
  for (std::size_t i = 0; i < n; ++i) {
    const double a = have.v[i], w = want[i];
    const bool close = same(a, w) || std::abs(a - w) <= tolerance * (1 + std::abs(w));
    if (!close) return to.say(where + ": element " + std::to_string(i) + " is " + number(a) + ", expected " + number(w));
  }
}

inline void compare_blocks(verdict& to, const std::string& where, const std::vector<block>& a, const std::vector<block>& b) {
  for (std::size_t r = 0; r < a.size(); ++r) {
    if (a[r].v.size() != b[r].v.size()) return to.say(where + ": rank " + std::to_string(r) + " has other extents");
    for (std::size_t i = 0; i < a[r].v.size(); ++i)
      if (!same_bits(a[r].v[i], b[r].v[i]))
        return to.say(where + ": rank " + std::to_string(r) + ", element " + std::to_string(i) + " of its block is " +
                      number(a[r].v[i]) + " and " + number(b[r].v[i]));
  }
}

struct expectation {
  const numbers* results;  // those of the function; null: the one-rank run says
  const numbers* after;    // the inputs afterwards
  const numbers* gradients;
  std::size_t result_count, input_count, gradient_count;
  double tolerance, gradient_tolerance, mesh_tolerance;  // between one rank and the mesh
  bool passes;                                           // whether compiled programs run passes
  unsigned written;                                      // bits of the inputs that the program writes
};

inline void check_world(verdict& to, const std::string& on, const book& b, unsigned how, const expectation& e) {
  for (int w = 0; w < ways; ++w) {
    if (!((how >> w) & 1U)) continue;
    const std::string where = std::string(way_name[w]) + " on " + on;
    if (e.results)
      for (std::size_t k = 0; k < e.result_count; ++k)
        compare(to, where + ", result " + std::to_string(k), assemble(b, b.results[w][k]), e.results[k].data,
                static_cast<std::size_t>(e.results[k].count), e.tolerance);
    if (e.results && differentiates(w))
      for (std::size_t k = 0; k < e.gradient_count; ++k)
        compare(to, where + ", gradient " + std::to_string(k), assemble(b, b.results[w][e.result_count + k]),
                e.gradients[k].data, static_cast<std::size_t>(e.gradients[k].count), e.gradient_tolerance);
    const bool at_once = w == 0 || w == 2 || w == 3;
    for (std::size_t k = 0; e.after && k < e.input_count; ++k)
      if (at_once || ((e.written >> k) & 1U))
        compare(to, where + ", input " + std::to_string(k) + " afterwards", assemble(b, b.after[w][k]), e.after[k].data,
                static_cast<std::size_t>(e.after[k].count), e.tolerance);
  }
  // whatever runs the same nodes gives the same bits
  const auto alike = [&](int v, int w, std::size_t count) {
    if (!((how >> v) & 1U) || !((how >> w) & 1U)) return;
    for (std::size_t k = 0; k < count; ++k)
      compare_blocks(to, std::string(way_name[v]) + " and " + way_name[w] + " on " + on + ", result " + std::to_string(k),
                     b.results[v][k], b.results[w][k]);
  };
  if (!e.passes) {  // a pass may compute in another order
    alike(0, 1, e.result_count);
    alike(3, 4, e.result_count + e.gradient_count);
  }
  alike(0, 2, e.result_count);
  alike(0, 5, e.result_count);
}

inline void check_one_rank(verdict& to, const book& one, unsigned how_one, const book& mesh, unsigned how,
                           const expectation& e) {
  const auto first = [](unsigned set, unsigned of) {
    for (int w = 0; w < ways; ++w)
      if ((((set & of) >> w) & 1U) != 0) return w;
    return -1;
  };
  const auto pair = [&](unsigned of, std::size_t begin, std::size_t end) {
    const int v = first(how_one, of), w = first(how, of);
    if (v < 0 || w < 0) return;
    for (std::size_t k = begin; k < end; ++k) {
      const whole want = assemble(one, one.results[v][k]);
      if (!want.error.empty()) to.say(std::string(way_name[v]) + " on one rank: " + want.error);
      compare(to,
              std::string(way_name[w]) + " on the mesh against " + way_name[v] + " on one rank, result " + std::to_string(k),
              assemble(mesh, mesh.results[w][k]), want.v.data(), want.v.size(), e.mesh_tolerance);
    }
  };
  pair(eager | compiled | traced | mixed, 0, e.result_count);
  pair(gradients | compiled_gradients, 0, e.result_count + e.gradient_count);
}

inline int failures = 0, programs = 0, skipped = 0;

// Of two runs from the same start.
inline void compare_runs(verdict& to, const std::string& on, const book& a, const book& b) {
  for (int w = 0; w < ways; ++w)
    for (const auto& [what, first, second] :
         {std::tuple{"result ", &a.results[w], &b.results[w]}, std::tuple{"input afterwards ", &a.after[w], &b.after[w]}})
      for (std::size_t k = 0; k < first->size(); ++k)
        compare_blocks(to, std::string(way_name[w]) + " on " + on + ", run twice, " + what + std::to_string(k), (*first)[k],
                       (*second)[k]);
}

template <class Mesh>
bool launched(verdict& to, const char* on, book& b, void (*body)(rank_of<Mesh>&, book&)) {
  book again;
  for (book* each : {&b, &again}) {
    each->ranks = Mesh::size;
    each->axes = Mesh::axes;
    each->sizes = Mesh::sizes.data();
  }
  try {
    test::place::launch<Mesh>([&b, &again, body](rank_of<Mesh>& rank) {
      body(rank, b);
      if constexpr (on_gpus) body(rank, again);
    });
    if constexpr (on_gpus) compare_runs(to, on, b, again);
  } catch (const std::exception& e) {
    to.say(std::string("on ") + on + ": " + e.what());
    return false;
  }
  return true;
}

// On each rank without its peers: what is computed at once and by the executor is the same bits; blocks have the extents that
// the rank's have among its peers, and as many bytes would be sent; where nothing is, the blocks are those, too.
template <class P, class W>
void check_fake(verdict& to, const book& mesh, const expectation& e) {
  using mesh_type = typename W::mesh;
  using rank_type = sw::fake_rank<mesh_type>;
  for (int q = 0; q < mesh_type::size; ++q) {
    book b;
    const std::string where = "fake rank " + std::to_string(q);
    bool talks = true;
    try {
      sw::launch_fake<mesh_type>(q, [&](rank_type& rank) {
        rank.keep_log(true);
        on_rank<P, W, eager | compiled, rank_type>(rank, b);
        talks = !rank.log().empty();
      });
    } catch (const std::exception& x) {
      return to.say(where + ": " + x.what());
    }
    const auto at = static_cast<std::size_t>(q);
    for (std::size_t k = 0; k < e.result_count; ++k) {
      const block &alone = b.results[0][k][at], &program = b.results[1][k][at], &real = mesh.results[0][k][at];
      bool same = alone.v.size() == real.v.size() && program.v.size() == real.v.size();
      for (int d = 0; d < real.sp.rank; ++d)
        same = same && alone.ext[d] == real.ext[d] && program.ext[d] == real.ext[d] && alone.origin[d] == real.origin[d] &&
               program.origin[d] == real.origin[d];
      if (!same) return to.say(where + ", result " + std::to_string(k) + ": a block of other extents than among peers");
      if (!e.passes) compare_blocks(to, where + ", eager and compiled, result " + std::to_string(k), {alone}, {program});
      if (!talks) compare_blocks(to, where + " and among peers, result " + std::to_string(k), {alone}, {real});
    }
    for (int w = 0; w < (e.passes ? 1 : 2); ++w)
      for (std::size_t a = 0; a < static_cast<std::size_t>(mesh_type::axes); ++a) {
        const std::size_t i = at * static_cast<std::size_t>(mesh_type::axes) + a;
        if (!mesh.sent[w].empty() && b.sent[w][i] != mesh.sent[w][i] && (w == 0 || mesh.sent[w][i] != 0))
          to.say(where + ", " + way_name[w] + ": " + std::to_string(b.sent[w][i]) + " bytes are sent along axis " +
                 std::to_string(a) + ", among peers " + std::to_string(mesh.sent[w][i]));
      }
  }
}

template <class W, unsigned Ways, class P>
bool run_on(verdict& to, const char* on, book& b) {
  using mesh = typename W::mesh;
  if constexpr (on_gpus) return launched<mesh>(to, on, b, on_gpu<P, W, Ways, rank_of<mesh>>);
  else return launched<mesh>(to, on, b, on_rank<P, W, Ways, rank_of<mesh>>);
}

// Whether there are GPUs for the ranks of W, where ranks are GPUs; says so and counts where there are not. A program that runs on one rank as well
// does so in any case.
template <class W>
bool has_place() {
  const bool has = test::place::has(W::mesh::size);
  if (!has) ++skipped;
  return has;
}

template <class P, class W, unsigned Said, unsigned SaidAlone>
void check(const char* name) {
  constexpr unsigned Ways = as_run(Said), WaysAlone = as_run(SaidAlone);
  std::printf("program %s\n", name);
  std::fflush(stdout);
  ++programs;
  verdict v{name, {}};
  book mesh, one;
  const expectation e = P::expected();
  const bool ran = has_place<W>() && run_on<W, Ways, P>(v, "the mesh", mesh);
  if (ran) check_world(v, "the mesh", mesh, Ways, e);
  if constexpr ((Ways & faked) != 0)
    if (ran) check_fake<P, W>(v, mesh, e);
  if constexpr (WaysAlone != 0) {
    const bool alone_ran = run_on<typename alone<W>::type, WaysAlone, P>(v, "one rank", one);
    if (alone_ran) check_world(v, "one rank", one, WaysAlone, e);
    if (ran && alone_ran) check_one_rank(v, one, WaysAlone, mesh, Ways, e);
  }
  if (!v.said.empty()) {
    ++failures;
    std::fputs(v.said.c_str(), stdout);
    std::fflush(stdout);
  }
}

// --- training ---------------------------------------------------------------------------------------------------------------

// Placements as the generator works them out from a plan's text: 0 replicate, 1 reduced, 2 + d a shard of dim d.
inline int placement_number(const sw::placement& p) {
  return p.is_replicate() ? 0 : p.is_reduced() ? 1 : p.is_shard() && p.splits_like(sw::shard_value(0)) ? 2 + p.dim : -1;
}
inline void check_places(const std::string& what, const sw::spec& s, const int* want) {
  for (int a = 0; a < s.axes; ++a) {
    const sw::placement p = s.place[a];
    if (want[a] < 0 && p.is_shard(0)) continue;  // behind a later axis, or plain where that has one rank
    if (placement_number(p) != want[a])
      throw std::logic_error(what + " is placed as number " + std::to_string(placement_number(p)) + " on axis " +
                             std::to_string(a) + ", the plan says " + std::to_string(want[a]));
  }
}

// Of a parameter, as the generator works it out from a plan's text: the number of elements before it in its group's flat parameter, -1
// if it is in none, and of all of them.
struct run_in_flat {
  std::int64_t begin, total;
};
// A parameter's or a buffer's block: on GPUs a copy.
template <class Executor>
auto parameter_values(Executor& e, int i) {
  if constexpr (on_gpus) return e.get_parameter(i);
  else return e.parameter(i);
}
template <class Executor>
auto buffer_values(Executor& e, int i) {
  if constexpr (on_gpus) return e.get_buffer(i);
  else return e.buffer(i);
}
// A parameter as all ranks together have it, as one block; of a flat one a rank has the elements that lie in its part, in a row.
template <class P, class W, class Executor>
block whole_parameter(Executor& e, int i, const int* coordinate) {
  using mesh = typename W::mesh;
  const auto all = e.full_parameter(P::names[i]);
  block r;
  r.sp = e.parameter_spec(i);
  for (auto& p : r.sp.place) p = sw::placement{};
  for (int d = 0; d < r.sp.rank; ++d) r.ext[d] = r.sp.extent[d];
  r.v.assign(all.begin(), all.end());
  using placed = typename P::template placed<W>;
  if (placed::flat == nullptr || placed::flat[i].begin < 0) return r;
  const auto [begin, total] = placed::flat[i];
  const std::int64_t count = static_cast<std::int64_t>(all.size()), ranks = mesh::sizes[P::flat_axis];
  const std::int64_t part = (total + ranks - 1) / ranks, from = part * coordinate[P::flat_axis];
  const std::int64_t low = std::clamp<std::int64_t>(from - begin, 0, count),
                     high = std::clamp<std::int64_t>(from + part - begin, 0, count);
  const auto& l = e.parameter_layout(i);
  const auto own = parameter_values(e, i);
  const std::string what = std::string("flat parameter ") + P::names[i];
  if (l.rank != 1 || l.ext[0] != high - low || static_cast<std::int64_t>(own.size()) != high - low ||
      (high > low && l.origin[0] != low))
    throw std::logic_error(what + ": a rank has " + std::to_string(l.ext[0]) + " elements from number " +
                           std::to_string(l.origin[0]) + " on; by the plan " + std::to_string(high - low) + " from " +
                           std::to_string(low) + " on");
  for (std::int64_t k = low; k < high; ++k)
    if (!same_bits(static_cast<double>(own[static_cast<std::size_t>(k - low)]), r.v[static_cast<std::size_t>(k)]))
      throw std::logic_error(what + ": a rank's block and full_parameter differ at element " + std::to_string(k));
  return r;
}

// all_reduce, all_reduce_1 to all_reduce_8.
constexpr sw::fixed_string<13> reduction_name(int k) {
  sw::fixed_string<13> name{"all_reduce_0"};
  name.text[11] = static_cast<char>('0' + k);
  if (k == 0) name.text[10] = '\0';
  return name;
}
// The last collective of several gradients, and its updates, in the next iteration before the first node that reads what they
// update; a step without one stays as it is.
template <class Program>
constexpr int last_bucket() {
  const auto& g = Program::program;
  int last = -1;
  for (int k = 0; k < 9; ++k) {
    int at = sw::find_node(g, reduction_name(k).text);
    bool goes_on = false;  // to a reduction over another axis: then no update reads it
    for (int a = 0; at >= 0 && a < g.spec_of(at).axes; ++a) goes_on = goes_on || g.spec_of(at).place[a].is_partial();
    if (goes_on) continue;
    while (at >= 0 && g.nodes[at].op == sw::op_code::redistribute) at = g.nodes[at].in[0];
    if (at >= 0 && g.nodes[at].op == sw::op_code::pack) last = k;
  }
  return last;
}
struct no_move {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr const auto& value = Source::value;
  };
};
template <int Bucket, bool Table>
struct move_of {
  static constexpr auto collective = sw::exact_string<(Bucket == 0 ? 10 : 12)>(reduction_name(Bucket).text);
  using type = std::conditional_t<Table, sw::iter_move_grads_and_optimizers<collective, "embedding">,
                                  sw::iter_move_grads_and_optimizers<collective, "einsum">>;
};
template <bool Table>
struct move_of<-1, Table> {
  using type = no_move;
};
template <class Step, bool Table>
using moved_bucket = typename move_of<last_bucket<Step>(), Table>::type;

template <class P, class W, unsigned Ways, class Rank>
void train_on_rank(Rank& rank, book& b) {
  using mesh = typename W::mesh;
  using placed = typename P::template placed<W>;
  using plan = typename placed::plan;
  using task = typename placed::task;
  using T = typename P::element;
  if (rank.index() == 0) {
    for (int w = 0; w < 2; ++w) room(b.results[w], P::results, mesh::size);
    if (P::has_flat) room(b.first, P::parameters, mesh::size);
  }
  rank.barrier();
  sw::grouped_env<typename sw::detail::groups_of_plan<plan>::type> env;
  P::set(env);
  if constexpr ((Ways & compiled) != 0) {
    using step = sw::train_step<P::template model, task, plan, mesh, typename P::optimizer, typename P::pipeline, T,
                                test::place::backend>;
    const auto run = [&](auto& e, auto& leaves, const auto& step_of) {
      leaves.initialise(5);
      if (leaves.parameter_count() != static_cast<int>(P::parameters))
        throw std::logic_error("the program has another number of parameters");
      for (int i = 0; i < leaves.parameter_count(); ++i) {
        check_places("compiled parameter " + std::to_string(i), leaves.parameter_spec(i), placed::places + i * mesh::axes);
        if (leaves.parameter_name(i) != P::names[i])
          throw std::logic_error("parameter " + std::to_string(i) + " is named " + leaves.parameter_name(i) + ", not " +
                                 P::names[i]);
        if constexpr (P::has_flat)
          b.at(b.first, static_cast<std::size_t>(i), rank.index()) =
              whole_parameter<P, W>(leaves, i, rank.coordinate().data());
        leaves.set_parameter(i, typed<T>(P::start[i]));
      }
      if (leaves.buffer_count() != static_cast<int>(P::buffers))
        throw std::logic_error("the program has another number of buffers");
      for (int i = 0; i < leaves.buffer_count(); ++i) {
        const int at = static_cast<int>(P::parameters) + i;
        check_places("compiled buffer " + std::to_string(i), leaves.buffer_spec(i), placed::places + at * mesh::axes);
        leaves.set_buffer(i, typed<T>(P::start[at]));
      }
      for (int s = 0; s < P::steps; ++s) {
        const auto part = [&](auto values) {
          values.resize(values.size() / P::batch * static_cast<std::size_t>(P::batches[s]));
          return values;
        };
        if constexpr (P::dynamic) e.resize(P::batches[s]);
        leaves.set_input(0, part(typed<typename placed::x::element>(P::data[0])));
        leaves.set_input(1, part(typed<T>(P::data[1])));
        env.step = s + 1;
        block& loss = b.at(b.results[1], static_cast<std::size_t>(s), rank.index());
        loss.sp = step::program.spec_of(step::program.outputs[0]);
        loss.v = {static_cast<double>(step_of(s))};
      }
      for (int i = 0; i < leaves.parameter_count(); ++i) {
        block& to = b.at(b.results[1], static_cast<std::size_t>(P::steps + i), rank.index());
        if constexpr (P::has_flat) {
          to = whole_parameter<P, W>(leaves, i, rank.coordinate().data());
        } else {
          const auto own = parameter_values(leaves, i);
          to = block_of(sw::local_block<T>{own, leaves.parameter_layout(i)}, leaves.parameter_spec(i));
        }
      }
      for (int i = 0; i < leaves.buffer_count(); ++i) {
        const auto own = buffer_values(leaves, i);
        b.at(b.results[1], static_cast<std::size_t>(P::steps) + P::parameters + static_cast<std::size_t>(i), rank.index()) =
            block_of(sw::local_block<T>{own, leaves.buffer_layout(i)}, leaves.buffer_spec(i));
      }
    };
    if constexpr (P::iterates && !on_gpus) {  // moves between iterations are the host's; GPUs run the step that they move in
      auto e = std::make_unique<sw::iterated_executor<typename P::template iterated<step>, Rank>>(
          rank, sw::executor_checks::poison);
      run(*e, e->main(), [&](int s) {
        e->run(env, s + 1 == P::steps);
        return e->loss();
      });
    } else {
      auto e = std::make_unique<sw::executor<step, Rank>>(rank, test::place::checks);
      run(*e, *e, [&](int) {
        e->run(env);
        return e->loss();
      });
    }
  }
  if constexpr ((Ways & eager) != 0) {
    sw::eager on(rank);
    sw::bind_eager<P::template model, plan, mesh, T, Rank> model{};
    int k = 0;
    sw::for_each_parameter(model, [&]<class X>(const std::string& path, X& t) {
      check_places("eager parameter " + path, X::sp, placed::places + k * mesh::axes);
      t = X::distribute(on, typed<T>(P::start[k++]));
    });
    sw::for_each_buffer(model, [&]<class X>(const std::string& path, X& t) {
      check_places("eager buffer " + path, X::sp, placed::places + k * mesh::axes);
      t = X::distribute(on, typed<T>(P::start[k++]));
    });
    sw::eager_optimizer<typename P::optimizer, std::remove_cvref_t<decltype(model)>> optimizer;
    const auto in = [&](int j) {
      return std::pair{placed::x::distribute(on, typed<typename placed::x::element>(P::data[2 * j])),
                       placed::y::distribute(on, typed<T>(P::data[2 * j + 1]))};
    };
    for (int s = 0; s < P::steps; ++s) {
      env.step = s + 1;
      on.start_step(3, s + 1);
      const auto [x, y] = in(0);
      auto first = sw::value_and_grad(task{})(model, x, y);
      block& loss = b.at(b.results[0], static_cast<std::size_t>(s), rank.index());
      loss = block_of(first.loss.to_local(), first.loss.sp);
      if constexpr (P::accumulates) {
        const auto [x2, y2] = in(1);
        const auto second = sw::value_and_grad(task{})(model, x2, y2);
        const block more = block_of(second.loss.to_local(), second.loss.sp);
        for (std::size_t i = 0; i < loss.v.size(); ++i) loss.v[i] = (loss.v[i] + more.v[i]) * P::loss_factor;
        P::accumulate(first.gradients, second.gradients);
      }
      optimizer.step(model, first.gradients, env);
    }
    k = 0;
    const auto keep = [&]<class X>(const std::string&, X& t) {
      b.at(b.results[0], static_cast<std::size_t>(P::steps + k++), rank.index()) = block_of(t.to_local(), X::sp);
    };
    sw::for_each_parameter(model, keep);
    sw::for_each_buffer(model, keep);
  }
}

template <class W, unsigned Ways, class P>
bool train_on(verdict& to, const char* on, book& b) {
  using mesh = typename W::mesh;
  return launched<mesh>(to, on, b, train_on_rank<P, W, Ways, rank_of<mesh>>);
}

template <class P, class W, unsigned Said, unsigned SaidAlone>
void train(const char* name) {
  constexpr unsigned Ways = as_run(Said), WaysAlone = as_run(SaidAlone);
  static_assert(!on_gpus || !P::accumulates,
                "gradients that are accumulated by hand are eager tensors, which GPUs have none of");
  std::printf("program %s\n", name);
  std::fflush(stdout);
  ++programs;
  verdict v{name, {}};
  book mesh, one;
  const expectation e = P::expected();
  // the eager loss is the ranks' shares, the step's is their sum: parameters alone are compared bit for bit
  const auto bits = [&](const book& b) {
    if constexpr (Ways == (eager | compiled))
      for (std::size_t k = P::steps; k < P::results; ++k)
        compare_blocks(v, "eager and compiled training, parameter " + std::to_string(k - P::steps), b.results[0][k],
                       b.results[1][k]);
  };
  const auto against_generator = [&](const book& b, unsigned how, const char* on) {
    for (int w = 0; w < 2; ++w)
      if ((how >> w) & 1U)
        for (std::size_t k = 0; k < P::results; ++k)
          compare(v,
                  std::string(way_name[w]) + " on " + on + ", " + (k < P::steps ? "loss " : "parameter ") +
                      std::to_string(k < P::steps ? k : k - P::steps),
                  assemble(b, b.results[w][k]), e.results[k].data, static_cast<std::size_t>(e.results[k].count),
                  e.tolerance);
  };
  const bool ran = has_place<W>() && train_on<W, Ways, P>(v, "the mesh", mesh);
  if (ran) {
    bits(mesh);
    against_generator(mesh, Ways, "the mesh");
  }
  if constexpr (WaysAlone != 0) {
    const bool alone_ran = train_on<typename alone<W>::type, WaysAlone, P>(v, "one rank", one);
    if (alone_ran && !ran) against_generator(one, WaysAlone, "one rank");
    if (alone_ran && ran) {
      check_one_rank(v, one, WaysAlone, mesh, Ways, e);
      for (std::size_t k = 0; k < mesh.first.size(); ++k)
        for (const block& r : mesh.first[k])
          compare_blocks(v, std::string("initial values of ") + P::names[k] + " on the mesh and on one rank", {r},
                         {one.first[k][0]});
    }
  }
  if (!v.said.empty()) {
    ++failures;
    std::fputs(v.said.c_str(), stdout);
    std::fflush(stdout);
  }
}

// --- making tensors ---------------------------------------------------------------------------------------------------------

struct rows_and_width {
  std::int64_t rows, width;
};

inline void demand(verdict& v, bool good, const std::string& what) {
  if (!good) v.say(what);
}

// A group of parameters: every element is at one place, and chunks are disjoint.
template <int Ranks>
void check_flat_group(verdict& v, const std::vector<rows_and_width>& all) {
  sw::flat_group<8> g(Ranks);
  for (const auto& e : all) g.add(e.rows, e.width);
  std::vector<int> held(static_cast<std::size_t>(g.gather_output()), 0);
  for (std::size_t k = 0; k < all.size(); ++k)
    for (std::int64_t i = 0; i < g.entries[static_cast<int>(k)].numel(); ++i) {
      const auto at = g.position(static_cast<int>(k), i);
      const sw::interval rows = g.rows_of(static_cast<int>(k), at.rank);
      const std::int64_t row = i / all[k].width;
      demand(v, row >= rows.begin && row < rows.begin + rows.size,
             "a flat group puts a row on a rank that does not hold it");
      ++held[static_cast<std::size_t>(g.gathered(static_cast<int>(k), i))];
    }
  std::int64_t padding = 0, used = 0;
  for (int r = 0; r < Ranks; ++r) padding += g.padding(r);
  for (const int h : held) {
    demand(v, h <= 1, "a flat group puts two elements in one place");
    used += h;
  }
  demand(v, used + padding == g.gather_output(), "a flat group's padding and elements are not its size");
}

// Ranks along axes, as the mesh says and as its submesh, flattened and unflattened, says.
template <class Mesh, class A0, class A1>
void check_submeshes(verdict& v) {
  if constexpr (Mesh::axes >= 2) {
    using pair = sw::submesh<Mesh, A0, A1>;
    using flat = sw::flattened<pair, ax<9, A0::size * A1::size>, A0, A1>;
    static_assert(pair::size == A0::size * A1::size && flat::size == pair::size);
    static_assert(std::is_same_v<sw::unflattened<flat, ax<9, A0::size * A1::size>, A0, A1>, pair>);
    for (int r = 0; r < Mesh::size; ++r) {
      const auto g = Mesh::template group<A0, A1>(r);
      const int mine = Mesh::template local_rank<A0, A1>(r);
      demand(v, g[static_cast<std::size_t>(mine)] == r, "a rank is not where its submesh says");
      for (std::size_t k = 0; k < g.size(); ++k) {
        const auto c = pair::coordinate(static_cast<int>(k));
        const auto whole = Mesh::coordinate(g[k]);
        demand(v, whole[0] == c[0] && whole[1] == c[1], "a submesh's coordinates are not the mesh's");
      }
    }
  }
}

template <class T, class Shape, class W, class... P, class Rank>
void make_on_rank(Rank& rank, book& b, const numbers& data) {
  using mesh = typename W::mesh;
  using X = sw::dtensor_of<T, Shape, mesh, P...>;
  sw::eager on(rank);
  int k = 0;
  const auto put = [&](const auto& t) {
    const block mine = block_of(t.to_local(), std::remove_cvref_t<decltype(t)>::sp);
    if (rank.index() == 0) b.results[0].emplace_back(static_cast<std::size_t>(mesh::size));
    rank.barrier();
    b.at(b.results[0], static_cast<std::size_t>(k++), rank.index()) = mine;
    rank.barrier();
  };
  const auto values = typed<T>(data);
  const auto x = X::distribute(on, values);
  put(x);
  put(X::distribute_from_first(on, rank.index() == 0 ? values : std::vector<T>{}));
  const std::vector<T> local = [&] {
    const block mine = block_of(x.to_local(), X::sp);
    return std::vector<T>(mine.v.begin(), mine.v.end());
  }();
  put(X::from_local(on, local, sw::local_check::replicas));
  put(x.full_tensor());
  auto e = sw::empty<T, Shape, P...>(on);
  if (!local.empty()) std::memcpy(const_cast<T*>(e.to_local().data.data()), local.data(), local.size() * sizeof(T));
  put(e);
  put(sw::zeros<T, Shape, P...>(on));
  put(X::zeros(on));
  put(sw::ones<T, Shape, P...>(on));
  put(X::ones(on));
  put(sw::full<T, Shape, P...>(on, T(3)));
  put(X::full(on, T(3)));
  if constexpr (std::is_floating_point_v<T>) {
    put(sw::rand<T, Shape, P...>(on, 5));
    put(X::rand(on, 5));
    put(sw::randn<T, Shape, P...>(on, 5));
    put(X::randn(on, 5));
    if constexpr (((!P::is_partial()) && ...)) put(X::initial(on, sw::init_kind::normal, 0.5, 7, "some.path"));
    const double total = static_cast<double>(sw::sum(sw::zeros<T, Shape>(on) + 2.0).item());
    if (total != 2.0 * data.count) throw std::logic_error("the sum of twos is " + number(total));
  }
  if (!x.has_value() || &x.rank() != &rank || !x.shares_storage_with(x))
    throw std::logic_error("a tensor does not know its rank");
  auto through = x;
  if (through.local_mdspan().extent(0) != static_cast<std::size_t>(x.to_local().layout.ext[0]))
    throw std::logic_error("local_mdspan has other extents");
}

// Every way to make a tensor, on the mesh and on one rank: the whole is what was said, and random numbers do not see the mesh.
template <class T, class Shape, class W, class... P>
void make(const char* name, const numbers& data, const std::vector<rows_and_width>& group) {
  std::printf("program %s\n", name);
  std::fflush(stdout);
  ++programs;
  verdict v{name, {}};
  book mesh, one;
  static const numbers* given;
  given = &data;
  const bool ran = launched<typename W::mesh>(v, "the mesh", mesh, [](sw::thread_rank<typename W::mesh>& rank, book& b) {
    make_on_rank<T, Shape, W, P...>(rank, b, *given);
  });
  using lone = typename alone<W>::type;
  const bool alone_ran = launched<typename lone::mesh>(
      v, "one rank", one,
      [](sw::thread_rank<typename lone::mesh>& rank, book& b) { make_on_rank<T, Shape, lone, P...>(rank, b, *given); });
  if (ran && alone_ran)
    for (std::size_t k = 0; k < mesh.results[0].size(); ++k) {
      const whole want = assemble(one, one.results[0][k]), have = assemble(mesh, mesh.results[0][k]);
      compare(v, "tensor " + std::to_string(k) + " against one rank", have, want.v.data(), want.v.size(), 0);
      const auto n = static_cast<std::size_t>(data.count);
      const double filled = k < 5 ? 0 : k < 7 ? 0 : k < 9 ? 1 : 3;
      const std::vector<double> constant(n, filled);
      if (k < 11) compare(v, "tensor " + std::to_string(k), have, k < 5 ? data.data : constant.data(), n, 0);
    }
  check_flat_group<W::mesh::size>(v, group);
  check_submeshes<typename W::mesh, typename W::A0, typename W::A1>(v);
  if (!v.said.empty()) {
    ++failures;
    std::fputs(v.said.c_str(), stdout);
    std::fflush(stdout);
  }
}

inline int summary() {
  if (skipped > 0)
    std::printf("skipped: fewer GPUs than ranks for %d of %d programs, which ran on one rank at most\n", skipped, programs);
  std::printf("%d programs, %d failed\n", programs, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace fuzz
