// SPDX-License-Identifier: Apache-2.0
// The passes that a plan implies, which train steps run before those of their pipeline.
#pragma once

#include <shardwise/module/bind.hpp>
#include <shardwise/pass/communication/batch_collectives.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/reshard.hpp>
#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/pass/rematerialise/recompute.hpp>

namespace shardwise::inline v0_1 {
struct remove_copy_from_optimizer;

template <class P>  // a pass that a plan implies: errors print it
struct implied_pass;
template <class P>
struct fact<implied_pass<P>> : detail::type_fact<"implied_pass", P> {};
}  // namespace shardwise::inline v0_1

namespace shardwise::inline v0_1::detail {

// What one pass is implied by: recompute by any checkpoint.
template <class Plan>
struct implied_passes {
  using type = std::conditional_t<plan_traits<Plan>::checkpoints != 0, pipeline<recompute>, pipeline<>>;
};

template <class Plan>
inline constexpr bool implies_passes = !std::is_same_v<typename implied_passes<Plan>::type, pipeline<>>;

// Whether the program, or the library, has the operation that a checkpoint names.
template <class Name, class Graph>
constexpr bool is_operation(const Graph& g) {
  bool found = Name::is_ours;
  for (int k = 0; !found && k < g.custom_count; ++k) found = is_same_name(g.customs[k]->name.value, Name::text.text);
  return found;
}

template <class Name>
struct nearest_operations {
  static constexpr best_paths found = [] {
    best_paths b;
    for (int op = 0; op < static_cast<int>(op_code::count); ++op)
      if (is_of_forward(static_cast<op_code>(op))) {
        path_buffer p;
        p.push(name_of(static_cast<op_code>(op)));
        b.offer(p, Name::view);
      }
    const auto offer = [&](const char* more) {
      path_buffer p;
      p.push(more);
      b.offer(p, Name::view);
    };
    for (const transition t : collectives) offer(name_of(t));
    for (const char* more : {"collectives", "matmul", "linear", "gelu", "layer_norm", "rms_norm"}) offer(more);
    return b;
  }();
  static constexpr auto a = exact_string<found.path[0].size>(found.path[0].view());
  static constexpr auto b = exact_string<found.path[1].size>(found.path[1].view());
  static constexpr auto c = exact_string<found.path[2].size>(found.path[2].view());
  using type = nearest<a, b, c>;
};
template <bool Known, class Name, class Entry>
struct known_operation {
  static constexpr bool ok = true;
};
template <class Name, class Entry>
struct known_operation<false, Name, Entry> {
  static constexpr bool ok =
      raise<problem::checkpoint_operation, plan_entry<Entry>, typename nearest_operations<Name>::type>::ok;
};
template <class Source, class Entry, class Names>
struct known_operations {
  static constexpr bool ok = true;
};
template <class Source, class Entry, bool Keeps, class... Names>
struct known_operations<Source, Entry, checkpoint_by_name<Keeps, Names...>> {
  static constexpr bool ok = (known_operation<is_operation<Names>(Source::value), Names, Entry>::ok && ...);
};
template <class Source, class Plan>
struct plan_operations;
template <class Source, class... E>
struct plan_operations<Source, plan<E...>> {
  static constexpr bool ok = (known_operations<Source, E, typename entry_traits<E>::checkpoint::names>::ok && ...);
};

// Source's graph behind the passes that Plan implies.
template <class Plan, class Source>
struct planned {
#if !SHARDWISE_DEVICE_PASS
  static_assert(plan_operations<Source, Plan>::ok);
#endif
  using type = typename run_pipeline<Source, typename implied_passes<Plan>::type>::type;
};

// --- fully_shard: passes among those of the program's pipeline --------------------------------------------------------------

// A pipeline with P right before the first pass that Behind holds for, or that declares to come after P, or else last; as it is if it
// lists P.
template <class P, template <class> class Behind, class Done, class Pipeline>
struct inserted;
template <class P, template <class> class Behind, class... D>
struct inserted<P, Behind, pipeline<D...>, pipeline<>> {
  using type = pipeline<D..., P>;
};
template <class P, template <class> class Behind, class... D, class Q, class... R>
struct inserted<P, Behind, pipeline<D...>, pipeline<Q, R...>>
    : std::conditional_t<(Behind<Q>::value || is_listed<P, typename apply_after_of<Q>::type>),
                         std::type_identity<pipeline<D..., P, Q, R...>>,
                         inserted<P, Behind, pipeline<D..., Q>, pipeline<R...>>> {};
template <class P, class Pipeline>
inline constexpr bool lists = false;
template <class P, class... Q>
inline constexpr bool lists<P, pipeline<Q...>> = (std::is_same_v<P, Q> || ... || false);
template <class P, template <class> class Behind, class Pipeline>
using with_pass =
    std::conditional_t<lists<P, Pipeline>, std::type_identity<Pipeline>, inserted<P, Behind, pipeline<>, Pipeline>>;

// P stands where the plan puts it: of the passes behind it none may be one that P must come after. The sentence names
// the pass before which it stands, Next, and the plan's entries, since P was never written.
template <class Plan, class Pass>
struct implying_entries;
template <class... E>
struct implying_entries<plan<E...>, batch_collectives>
    : joined_lists<type_list<>, std::conditional_t<(!std::is_void_v<typename entry_traits<E>::sharding> ||
                                                    any_splits_states(entry_styles<E>{})),
                                                   type_list<plan_entry<E>>, type_list<>>...> {};
template <bool Late, class Plan, class P, class Next, class Q>
struct not_late {
  static constexpr bool ok = true;
};
template <class Plan, class P, class Next, class Q>
struct not_late<true, Plan, P, Next, Q> {
  using order = type_list<Q, pass_order::must_precede<Next>, implied_pass<P>>;
  static constexpr bool ok = raise_list<problem::pass_behind_implied,
                                        typename joined_lists<order, typename implying_entries<Plan, P>::type>::type>::ok;
};
template <class Plan, class P, class All, class Rest = All>
struct implied_in_order {
  using type = All;
};
template <class Plan, class P, class All, class Q, class... R>
struct implied_in_order<Plan, P, All, pipeline<Q, R...>> : implied_in_order<Plan, P, All, pipeline<R...>> {};
template <class Plan, class P, class All, class Next, class... R>
struct implied_in_order<Plan, P, All, pipeline<P, Next, R...>> {
  template <class Q>
  static constexpr bool late = is_listed<Q, typename apply_after_of<P>::type>;
#if !SHARDWISE_DEVICE_PASS
  static_assert((not_late<late<R>, Plan, P, Next, R>::ok && ... && true));
#endif
  using type = std::conditional_t<(late<R> || ... || false), pipeline<>, All>;  // one mistake is one error
};

// What computes values again reads what is gathered again: gathers come right behind the last pass that does.
template <class Pipeline, class Done = pipeline<>, class Held = pipeline<>>
struct with_reshard;
template <class... D, class... H>
struct with_reshard<pipeline<>, pipeline<D...>, pipeline<H...>> {
  using type = pipeline<D..., reshard_parameters, H...>;
};
template <class P, class... R, class... D, class... H>
    struct with_reshard<pipeline<P, R...>, pipeline<D...>, pipeline<H...>> : std::conditional_t < requires {
  typename P::computes_again;
}, with_reshard<pipeline<R...>, pipeline<D..., H..., P>>, with_reshard < pipeline<R...>, pipeline<D...>, pipeline < H...,
    P >>>{};

// Batches are made where collectives stand, before anything moves them and behind all that might come between them.
template <class P>
    struct moves_collectives : std::bool_constant < requires {
  typename P::moves_collectives;
}>{};

// The passes of a program's pipeline, and those that groups of parameters in shards imply: of a forward pass, and of a train step,
// where optimizer states in shards imply batches, too.
template <class Plan, class Pipeline, bool Shards = plan_traits<Plan>::any_shards>
struct with_batches {
  using type = Pipeline;
};
template <class Plan, class Pipeline>
struct with_batches<Plan, Pipeline, true>
    : std::conditional_t<lists<batch_collectives, Pipeline>, std::type_identity<Pipeline>,
                         implied_in_order<Plan, batch_collectives,
                                          typename with_pass<batch_collectives, moves_collectives, Pipeline>::type>> {};
template <class Plan, class Pipeline, bool Shards = plan_traits<Plan>::any_shards>
struct with_shards : with_batches<Plan, Pipeline, splits_any_states<Plan>> {};
template <class Plan, class Pipeline>
struct with_shards<Plan, Pipeline, true> : with_batches<Plan, typename with_reshard<Pipeline>::type> {};

// --- data_parallel with buckets ---------------------------------------------------------------------------------------------

// What must come behind buckets, though it need not say so: what moves collectives, writes kernels, or removes the copies that
// buckets make.
template <class P>
struct follows_buckets : std::bool_constant<moves_collectives<P>::value || expression_writer<P> ||
                                            std::is_same_v<P, remove_copy_from_optimizer>> {};

template <class Pass>
inline constexpr bool makes_buckets = std::is_same_v<typename key_of<Pass>::type, comm_fusion>;

// A train step's pipeline with the buckets that its plan says.
template <class Plan, class Mesh, class Pipeline, bool Buckets = any_buckets<Plan>>
struct with_buckets {
  using type = Pipeline;
};
template <class Plan, class Mesh, class... P>
struct with_buckets<Plan, Mesh, pipeline<P...>, true> {
#if !SHARDWISE_DEVICE_PASS
  static_assert((raise<(makes_buckets<P> ? problem::buckets_twice : problem::none), Plan, P>::ok && ... && true));
#endif
  using pass = typename batch_axes<Plan, Mesh>::template in_buckets<comm_fusion_on_axes>;
  using type = typename std::conditional_t<(makes_buckets<P> || ... || false), std::type_identity<pipeline<P...>>,
                                           inserted<pass, follows_buckets, pipeline<>, pipeline<P...>>>::type;
};

// All passes of a train step, in order, but for those that run before its pipeline.
template <class Plan, class Mesh, class Pipeline>
using passes_of_step = typename with_shards<Plan, typename with_buckets<Plan, Mesh, Pipeline>::type>::type;

}  // namespace shardwise::inline v0_1::detail
