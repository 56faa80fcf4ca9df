// SPDX-License-Identifier: Apache-2.0
// accumulate: a train step takes its batch in equal pieces, one after the other, and adds their gradients before it reduces them.
#pragma once

#include <array>

#include <shardwise/graph/functions/functions.hpp>
#include <shardwise/graph/functions/joins.hpp>
#include <shardwise/graph/sym.hpp>
#include <shardwise/module/inputs.hpp>
#include <shardwise/module/outputs.hpp>
#include <shardwise/module/plan.hpp>

namespace shardwise::inline v0_1 {

// Inputs, by position, that every micro-batch reads whole: positions, tables, numbers.
template <int... Index>
struct whole_inputs {
  static constexpr int most = [] {
    int m = -1;
    for (const int i : {-1, Index...}) m = i > m ? i : m;
    return m;
  }();
  static constexpr bool negative = ((Index < 0) || ... || false);
  static constexpr bool holds(int input) { return ((input == Index) || ... || false); }
};

// An entry of a plan: plan<data_parallel<dp>, accumulate<4>>. The inputs of a train step have the whole batch; of each but the
// whole ones every rank's own rows (dim 0) are cut into N equal pieces, piece k being its k-th, so nothing is sent; the task is
// called with the first pieces, differentiated, and so on, and one update follows. As N backward passes under no_sync and one
// optimizer step in PyTorch.
//
// Laws: loss = (loss_1 + loss_2 + ... + loss_N) / N, and gradients are this loss's: of a task whose loss is a mean over rows, up to
// rounding those of the whole batch. Every other output has one dim more, in front: out[k] is what the call for piece k returned.
// A parameter's gradient is reduced (all-reduce, reduce-scatter) once a step, as without accumulate. Groups of fully_shard that free
// their parameters gather them twice for each piece, others once a step. Each call draws numbers of its own, and buffers are
// written N times in order. A micro-batch is a copy of its rows, so what a task writes into it is not written into the input.
//
// Memory: peak_bytes <= that of the step on one micro-batch without accumulate + the inputs + one gradient for each parameter, the
// largest twice (a sum stands beside what is added) + the parameters that groups of fully_shard keep whole for the backward pass.
// Gradients are whole here, not in shards.
// Price: those copies, and one addition for each parameter and piece; a program N times as long, and as long to compile.
// Programs that train nothing compute the batch whole. Batches of which each is a run of its own: keep_gradients.
template <int N, class Whole = whole_inputs<>>
struct accumulate {
  static_assert(raise<(N < 1 ? problem::accumulate_count : problem::none), accumulate>::ok);
  static constexpr int shardwise_micro_batches = N < 1 ? 1 : N;
  using whole = Whole;
};

namespace detail {

// The accumulate of a plan; one micro-batch if it has none.
template <class... E>
struct accumulation_among {
  using type = accumulate<1>;
};
template <class E, class... More>
struct accumulation_among<E, More...> : accumulation_among<More...> {};
template <class E, class... More>
  requires is_accumulation<E>
struct accumulation_among<E, More...> {
  using type = E;
};
template <class Plan>
struct accumulation_of {
  using type = accumulate<1>;
};
template <class... E>
struct accumulation_of<plan<E...>> : accumulation_among<E...> {};

// Over how many ranks the rows of a tensor are split.
constexpr std::int64_t ranks_of_rows(const spec& s) {
  std::int64_t n = 1;
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_shard(0)) n *= s.axis_size[a];
  return n;
}

// Why the rows of an input are not cut into N pieces on every rank.
constexpr problem cut_problem(const spec& s, std::int64_t pieces) {
  if (s.rank == 0 || is_dyn(s, 0)) return problem::accumulate_without_rows;
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_shard(0) && (s.place[a].block != 1 || s.place[a].is_strided())) return problem::accumulate_blocks;
  const std::int64_t all = ranks_of_rows(s) * pieces;
  return s.extent[0] == 0 || s.extent[0] % all != 0 ? problem::accumulate_rows : problem::none;
}

// Piece K of N of every rank's rows, as a tensor of its own: with R ranks and N m rows on each the rows are seen as (R, N m), of
// which the ranks split the first dim, and cut along the second. All pieces are of one type.
template <int N, int K, class X>
constexpr auto micro_batch(const X& x) {
  constexpr std::int64_t ranks = ranks_of_rows(spec(X::sp)), rows = X::sp.extent[0] / (ranks * N);
  if constexpr (ranks == 1) return contiguous(equal_part<0, K * rows, rows>(x));
  else return flatten<0, 1>(equal_part<1, K * rows, rows>(unflatten<0, ranks, N * rows>(x)));
}

// What the task is called with for an input.
template <class In, int N>
struct micro_input {
  template <class Mesh>
  struct spec_type {
    using whole = sym<In::template spec_type<Mesh>::value, Mesh>;
    static constexpr spec value = decltype(micro_batch<N, 0>(std::declval<const whole&>()))::sp;
  };
};
template <class Inputs, class Accumulation, class Positions>
struct micro_inputs;
template <class... In, class Accumulation, std::size_t... I>
struct micro_inputs<inputs<In...>, Accumulation, std::index_sequence<I...>> {
  static constexpr int pieces = Accumulation::shardwise_micro_batches;
  using type = inputs<std::conditional_t<Accumulation::whole::holds(static_cast<int>(I)), In, micro_input<In, pieces>>...>;
};
template <class Inputs, class Accumulation, bool Cuts = (Accumulation::shardwise_micro_batches > 1)>
struct called_inputs {
  using type = Inputs;
};
template <class Inputs, class Accumulation>
struct called_inputs<Inputs, Accumulation, true>
    : micro_inputs<Inputs, Accumulation, std::make_index_sequence<static_cast<std::size_t>(Inputs::count)>> {};

// Input At, or its piece K.
template <class Accumulation, int K, int At, class X>
constexpr auto piece_of_input(const X& x) {
  if constexpr (Accumulation::whole::holds(At)) return x;
  else return micro_batch<Accumulation::shardwise_micro_batches, K>(x);
}

constexpr problem loss_problem(const spec& s) {
  if (s.rank != 0) return problem::loss_not_scalar;
  if (is_low_precision(s.type)) return problem::loss_low_precision;
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_shard() || (s.place[a].is_partial() && s.place[a].op != reduction::sum))
      return problem::loss_not_summable;
  return problem::none;
}

// A loss that is none is told as it is.
template <class X, std::size_t N>
constexpr auto mean_of_losses(const std::array<X, N>& x) {
  if constexpr (!resolved<X> || loss_problem(spec(X::sp)) != problem::none) {
    return x[0];
  } else {
    auto total = add(x[0], x[1]);
    for (std::size_t k = 2; k < N; ++k) total = add(total, x[k]);
    return scale(total, 1.0 / static_cast<double>(N));
  }
}

// Each output of a task that was called N times, by its nodes: f(the mean) for the loss, f(all of them in a new dim) for others.
// Last: what the last call returned, for the types.
template <class Results, int N, class R, class F>
constexpr void join_results(const R& last, const int (*ids)[N], F&& f) {
  int output = 0;
  Results::each(last, [&](const auto& x) {
    using type = std::remove_cvref_t<decltype(x)>;
    const int* const id = ids[output];
    if constexpr (!resolved<type>) {
      f(x);
    } else {
      std::array<type, static_cast<std::size_t>(N)> all{};
      for (int k = 0; k < N; ++k) all[static_cast<std::size_t>(k)] = type{x.b, id[k]};
      if (output == 0) f(mean_of_losses(all));
      else f(stack<0>(all));
    }
    ++output;
  });
}

// Whether a plan's accumulate fits the inputs of a task: said before anything is traced, of the first input that is wrong.
template <class Accumulation, class Mesh, class Inputs>
struct accumulated_inputs;
template <class Accumulation, class Mesh, class... In>
struct accumulated_inputs<Accumulation, Mesh, inputs<In...>> {
  using whole = typename Accumulation::whole;
  static constexpr int pieces = Accumulation::shardwise_micro_batches, count = static_cast<int>(sizeof...(In));
  struct input_spec {
    int at;
    spec value;
  };
  // The first input that is not cut as it should be; at == count: there is none.
  static constexpr input_spec wrong = [] {
    input_spec r{count, spec{}};
    int i = 0;
    const auto look = [&](const spec& s) {
      if (r.at == count && !whole::holds(i) && cut_problem(s, pieces) != problem::none) r = {i, s};
      ++i;
    };
    (look(In::template spec_type<Mesh>::value), ...);
    return r;
  }();
  static constexpr bool cuts = [] {
    bool any = false;
    for (int i = 0; i < count; ++i) any = any || !whole::holds(i);
    return any;
  }();
  static constexpr bool ok = [] {
    if constexpr (whole::negative || whole::most >= count)
      return raise<problem::accumulate_whole_input, Accumulation, have<whole::most>, want<count - 1>>::ok && false;
    else if constexpr (!cuts) return raise<problem::accumulate_nothing, Accumulation>::ok && false;
    else if constexpr (wrong.at == count) return true;
    else {
      constexpr spec given = wrong.value;
      constexpr problem what = cut_problem(given, pieces);
      if constexpr (what == problem::accumulate_rows)
        return raise<what, Accumulation, operand_t<given>, have<given.extent[0]>, want<ranks_of_rows(given) * pieces>>::ok &&
               false;
      else return raise<what, Accumulation, operand_t<given>>::ok && false;
    }
  }();
};
// Arguments: a program_arguments.
template <class Arguments, class Task, class Plan, class Mesh>
struct accumulation_arguments {
  static constexpr bool ok = [] {
    if constexpr (!Arguments::ok) return false;
    else {
      using accumulation = typename accumulation_of<Plan>::type;
      if constexpr (accumulation::shardwise_micro_batches == 1) return true;
      else return accumulated_inputs<accumulation, Mesh, typename Task::inputs>::ok;
    }
  }();
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
