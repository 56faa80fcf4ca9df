// SPDX-License-Identifier: Apache-2.0
// Styles: how a module's parameters are placed on a mesh axis and how its input and output are redistributed there. What a
// style redistributes is a tensor of its own, moved or not: a module that writes its input in place does not write its
// caller's, on any mesh.
#pragma once

#include <string_view>

#include <shardwise/graph/functions/functions.hpp>
#include <shardwise/module/plan.hpp>

namespace shardwise::inline v0_1 {

// What a module is to a style; modules declare it as a nested `kind`.
enum class module_kind : std::uint8_t { other, linear, embedding, norm };

// Options of the tensor-parallel styles.
template <class Placement>
struct input {};
template <class Placement>
struct output {};

namespace detail {

template <template <class> class Option, class Default, class... Given>
struct option {
  using type = Default;
};
template <template <class> class Option, class Default, class P, class... Rest>
struct option<Option, Default, Option<P>, Rest...> {
  using type = P;
};
template <template <class> class Option, class Default, class Other, class... Rest>
struct option<Option, Default, Other, Rest...> : option<Option, Default, Rest...> {};

struct maybe_placement {
  bool given = false;
  placement value{};
};

struct style_base {
  static constexpr bool whole_model = false;
  template <class X>
  static constexpr auto enter(const X& x) {
    return x;
  }
  template <class X>
  static constexpr auto after_product(const X& x) {  // before a linear's bias is added
    return x;
  }
  template <class X>
  static constexpr auto leave(const X& x) {
    return x;
  }
  static constexpr maybe_placement parameter(module_kind, std::string_view, int) { return {}; }
};

}  // namespace detail

// Linear: weight (out, in) and bias split by output features; embedding: by features. The input must be whole on the
// axis (or is gathered, with input<shard<d>>) and becomes reduced, so its gradient is summed over the axis; the output
// stays sharded along its last dim. Block > 1 splits by whole groups of features (heads).
template <class Axis, int Block = 1, class... Options>
struct colwise : detail::style_base {
  using axis = Axis;
  using from = typename detail::option<input, replicate, Options...>::type;
  using to = typename detail::option<output, void, Options...>::type;
  static constexpr bool accepts(module_kind k) { return k == module_kind::linear || k == module_kind::embedding; }

  static constexpr detail::maybe_placement parameter(module_kind k, std::string_view name, int) {
    if (k == module_kind::embedding) return {true, shard_value(1, Block)};
    return {name == "weight" || name == "bias", shard_value(0, Block)};
  }
  template <class X>
  static constexpr auto enter(const X& x) {
    if constexpr (!is_floating(X::sp.type)) {
      return x;  // an embedding's indices
    } else {
      constexpr int a = X::mesh_type::template index_of<Axis>;
      constexpr placement p = X::sp.place[a];
      constexpr placement declared = detail::normal_placement<from>(X::sp.rank);
      constexpr problem wrong = declared.is_shard() ? (p == declared ? problem::none : problem::style_declared_input)
                                : p.is_whole()      ? problem::none
                                                    : problem::colwise_input;
      if constexpr (wrong != problem::none) return detail::refused<wrong, detail::no_node, colwise, operand_t<X::sp>>(x);
      else return redistribute<Axis, reduced>(x);
    }
  }
  template <class X>
  static constexpr auto leave(const X& x) {
    if constexpr (std::is_void_v<to>) return x;
    else return redistribute<Axis, to>(x);
  }
};

// Linear: weight (out, in) split by input features, so the product is partial; it is summed (output replicate, the
// default) or scattered (output<shard<d>>) before the bias is added. The bias is replicate in the first case; in the
// second it meets a sharded tensor and is reduced: its gradient is summed over the axis.
// Embedding: the table split by rows, each rank giving those that it owns, summed or scattered likewise. The indices must
// be whole on the axis (or are gathered, with input<shard<d>>).
template <class Axis, int Block = 1, class... Options>
struct rowwise : detail::style_base {
  using axis = Axis;
  using from = typename detail::option<input, replicate, Options...>::type;
  using to = typename detail::option<output, replicate, Options...>::type;
  static constexpr bool accepts(module_kind k) { return k == module_kind::linear || k == module_kind::embedding; }

  static constexpr detail::maybe_placement parameter(module_kind k, std::string_view name, int) {
    if (name == "weight") return {true, shard_value(k == module_kind::embedding ? 0 : 1, Block)};
    constexpr placement p = detail::placement_of<to>::value;
    return {true, p.is_shard() ? reduced_value() : p};
  }
  template <class X>
  static constexpr auto enter(const X& x) {
    constexpr int a = X::mesh_type::template index_of<Axis>;
    constexpr placement p = X::sp.place[a], declared = detail::normal_placement<from>(X::sp.rank);
    constexpr bool indices = !is_floating(X::sp.type);
    constexpr bool ready = indices ? p.is_whole() : p.is_shard(X::sp.rank - 1);
    // a whole input is cut without communication, as PyTorch's input_layouts=Replicate()
    constexpr problem wrong = declared.is_shard() ? (p == declared ? problem::none : problem::style_declared_input)
                              : ready || (!indices && p.is_whole()) ? problem::none
                                                                    : problem::rowwise_input;
    if constexpr (wrong != problem::none) return detail::refused<wrong, detail::no_node, rowwise, operand_t<X::sp>>(x);
    else if constexpr (ready) return x;
    else if constexpr (indices) return redistribute<Axis, replicate>(x);
    else return redistribute<Axis, shard<X::sp.rank - 1, Block>>(x);
  }
  template <class X>
  static constexpr auto after_product(const X& x) {
    return redistribute<Axis, to>(x);
  }
};

// Norms (and any module) between tensor-parallel regions: the input is sharded along SequenceDim, parameters are
// reduced, so that their gradients are summed over the axis: the reduction that is forgotten by hand.
template <class Axis, int SequenceDim = 1>
struct sequence_parallel : detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(module_kind k) { return k == module_kind::norm; }
  static constexpr detail::maybe_placement parameter(module_kind, std::string_view, int) { return {true, reduced_value()}; }
  template <class X>
  static constexpr auto enter(const X& x) {
    constexpr int a = X::mesh_type::template index_of<Axis>;
    constexpr bool ready = X::sp.place[a].is_shard(SequenceDim);
    if constexpr (ready) return x;
    else return detail::refused<problem::sequence_parallel_input, detail::no_node, sequence_parallel, operand_t<X::sp>>(x);
  }
};

// Redistributes the first argument of a module's call to To on Axis; with From, checks what arrives.
template <class Axis, class To, class From = void>
struct prepare_input : detail::style_base {
  using axis = Axis;
  template <class X>
  static constexpr bool as_declared = [] {
    if constexpr (std::is_void_v<From>) return true;
    else return X::sp.place[X::mesh_type::template index_of<Axis>] == detail::normal_placement<From>(X::sp.rank);
  }();
  static constexpr bool accepts(module_kind) { return true; }
  template <class X>
  static constexpr auto enter(const X& x) {
    if constexpr (!as_declared<X>)
      return detail::refused<problem::style_declared_input, detail::no_node, prepare_input, operand_t<X::sp>>(x);
    else return redistribute<Axis, To>(x);
  }
};

// Styles in messages: their number is 1 where it is left out.
template <template <class, int, class...> class Style, class Axis, int Number, class... Options>
  requires std::is_base_of_v<detail::style_base, Style<Axis, Number, Options...>>
struct written<Style<Axis, Number, Options...>> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    using type = Style<Axis, Number, Options...>;
    text::put_spelling(out, text::template_name(spelling<type>()));
    out.push_back('<');
    written<Axis>::put(out);
    if (Number != 1 || sizeof...(Options) > 0) {
      text::put(out, ", ");
      text::put(out, std::int64_t{Number});
    }
    ((text::put(out, ", "), written<Options>::put(out)), ...);
    out.push_back('>');
  }
};

// Redistributes a module's result to To on Axis.
template <class Axis, class To>
struct prepare_output : detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(module_kind) { return true; }
  template <class X>
  static constexpr auto leave(const X& x) {
    return redistribute<Axis, To>(x);
  }
};

// An option of data_parallel and fully_shard: gradients are averaged over the ranks that split the batch instead of summed, as
// in PyTorch. Without it they are those of the program's loss, which is summed over these ranks.
//
// Law: the parameters' gradients are those of the loss over the product of the axes' sizes, before anything is clipped or
// updated; outputs, the loss among them, are as without. The cotangent that the backward pass begins with is divided, so it
// costs no operation. One loss has one cotangent, so all styles of an axis say it or none.
struct average_gradients {};

// An option of data_parallel: parameters stay whole on every rank of the axis, and of the optimizer's states each rank stores the
// rows of its chunk alone, ceil(rows / ranks): ZeRO's first stage, PyTorch's ZeroRedundancyOptimizer. A step reduce-scatters the
// gradients, each rank updates its rows, and the updated rows are gathered, those of a module's parameters side by side.
//
// Law: values are those without it, bit for bit but for the order in which a reduction adds. An even parameter sends what its
// all-reduce sent. The price: each step copies the parameters once, and while a module's rows are gathered its parameters are
// there twice. Where tensor parallelism splits the rows too, it does so first. The states of parameters without dims are whole.
struct shard_optimizer_states {};

// An option of data_parallel: a step sums gradients on the axis bucket by bucket, as PyTorch's DistributedDataParallel with
// bucket_cap_mb: in the order in which the backward pass computes them, the first bucket is closed at one mebibyte, the others at
// CapMiB of them, each is one all-reduce over the range of memory in which its gradients are computed.
//
// Law: every element has the summands that it has without, in their order, so values are the same bits (on GPUs as far as NCCL's
// order of a sum does not depend on where an element lies). It is the pass comm_fusion_in_place on this axis alone, among those of the step's pipeline
// and before what must come behind buckets; a pipeline that has such a pass of its own is refused beside it. Eager training, which
// runs no passes, sums each gradient by itself.
template <std::int64_t CapMiB = 25>
struct buckets {};

namespace detail {
inline constexpr std::int64_t largest_bucket = std::int64_t{1} << 20;  // mebibytes

template <class... Options>
struct bucket_option {
  static constexpr int given = 0;
  static constexpr std::int64_t mebibytes = 0;
};
template <class Other, class... More>
struct bucket_option<Other, More...> : bucket_option<More...> {};
template <std::int64_t CapMiB, class... More>
struct bucket_option<buckets<CapMiB>, More...> {
  static constexpr int given = 1 + bucket_option<More...>::given;
  static constexpr std::int64_t mebibytes = CapMiB;
};

template <class Option, class... Given>
inline constexpr int times_given = (0 + ... + (std::is_same_v<Option, Given> ? 1 : 0));
template <class Option, class... Given>
inline constexpr bool has_option = times_given<Option, Given...> > 0;

template <class... Options>
constexpr problem data_parallel_problem() {
  constexpr int averages = times_given<average_gradients, Options...>,
                shards = times_given<shard_optimizer_states, Options...>;
  using in_buckets = bucket_option<Options...>;
  if (averages + shards + in_buckets::given != static_cast<int>(sizeof...(Options))) return problem::data_parallel_option;
  if (averages > 1 || shards > 1 || in_buckets::given > 1) return problem::data_parallel_option_twice;
  if (in_buckets::given == 0) return problem::none;
  if (in_buckets::mebibytes < 1 || in_buckets::mebibytes > largest_bucket) return problem::data_parallel_buckets;
  return shards > 0 ? problem::data_parallel_buckets_states : problem::none;
}
}  // namespace detail

// A style of the whole plan: the batch is sharded on Axis, so every parameter is reduced there and its gradient is
// summed over the axis once before the optimizer may use it. Options: average_gradients, shard_optimizer_states, buckets.
template <class Axis, class... Options>
struct data_parallel : detail::style_base {
  static constexpr problem wrong = detail::data_parallel_problem<Options...>();
  using axis = Axis;
  using split_batch = detail::type_list<Axis>;
  static constexpr bool averages = detail::has_option<average_gradients, Options...>;
  static constexpr bool splits_states = detail::has_option<shard_optimizer_states, Options...>;
  static constexpr std::int64_t bucket_mebibytes = detail::bucket_option<Options...>::mebibytes;  // 0: none
  static constexpr bool whole_model = true;
  static constexpr bool accepts(module_kind) { return true; }
};

}  // namespace shardwise::inline v0_1
