// SPDX-License-Identifier: Apache-2.0
// message: the whole text of an error as a constant: the problem's sentence, then its facts as "name: value; name: value."
// What raise gives a static_assert as its message, where the compiler takes computed ones (see SHARDWISE_COMPUTED_MESSAGES).
#pragma once

#include <shardwise/support/facts.hpp>
#include <shardwise/support/finding.hpp>
#include <shardwise/support/spelling.hpp>

namespace shardwise::inline v0_1 {

// The sentence alone, also for errors that only a run can know.
constexpr std::string_view sentence(problem p) {
  switch (p) {
#define SHARDWISE_X(name, text) \
  case problem::name: return "shardwise: " text ".";
#include <shardwise/support/problems.def.hpp>
    case problem::none: break;
  }
  return "";
}

// All that an error says: what a fact's name and value may depend on.
template <problem P, class... Facts>
struct told {
  static constexpr problem what = P;
};

// What a fact is called and how its value is written. Specialised beside the fact's type; facts of one name that follow each
// other are joined by commas.
template <class Fact>
struct fact {
  template <class Said>
  static constexpr std::string_view name() {
    return "given";
  }
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    written<Fact>::put(out);
  }
};

// Nothing was given.
template <>
struct fact<void> {
  template <class Said>
  static constexpr std::string_view name() {
    return {};
  }
  template <class Said, class Sink>
  static constexpr void put(Sink&) {}
};

// A type that stands for several facts: those.
template <class Fact>
struct facts_in {
  using type = detail::type_list<Fact>;
};

namespace detail {

// What specialisations of `fact` inherit: a name that depends on nothing.
template <fixed_string Name>
struct fact_named {
  template <class Said>
  static constexpr std::string_view name() {
    return Name.view();
  }
};
template <fixed_string Name, auto Number>
struct number_fact : fact_named<Name> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, std::int64_t{Number});
  }
};
template <fixed_string Name, class T>
struct type_fact : fact_named<Name> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    written<T>::put(out);
  }
};
template <fixed_string Name, class... T>
struct types_fact : fact_named<Name> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    put_list(out, type_list<T...>{});
  }
};
template <fixed_string Name, fixed_string... Text>
struct quoted_fact : fact_named<Name> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    bool first = true;
    (
        [&] {
          if (Text.view().empty()) return;
          text::put(out, first ? "\"" : ", \"");
          text::put(out, Text.view());
          out.push_back('"');
          first = false;
        }(),
        ...);
  }
};

struct number_names {
  std::string_view have, want;
};

// What the two numbers of a problem are. Without a dim, what is said of extents is said of ranks.
constexpr number_names numbers_of(problem p, bool of_dim) {
  switch (p) {
    case problem::norm_order: return {"order", "least order"};
    case problem::dyn_declared: return {"bound", "largest bound"};
    case problem::layout_sizes: return {"expected", "bound"};
    case problem::shard_dim_out_of_range:
    case problem::dim_out_of_range: return {"dim named", "rank"};
    case problem::shard_block_does_not_divide: return {"block", "extent"};
    case problem::strided_shard_factor: return {"factor", "product of the later axes' sizes"};
    case problem::uneven_shard: return {"extent", "ranks"};
    case problem::placement_count: return {"placements", "mesh axes"};
    case problem::rank_too_large: return {"rank", "largest rank"};
    case problem::fsdp_factor: return {"ranks asked for", "ranks in all"};
    case problem::low_precision_sum: return {"ranks", "at most"};
    case problem::opaque_too_many: return {"opaque functions", "at most"};
    case problem::convolution_rank: return {"rank", "required rank"};
    case problem::convolution_channels: return {"channels", "required channels"};
    case problem::convolution_groups: return {"outputs", "groups"};
    case problem::convolution_kernel: return {"kernel", "padded extent"};
    case problem::pool_rank: return {"rank", "required rank"};
    case problem::channel_norm_rank: return {"rank", "least rank"};
    case problem::channel_norm_weight: return {"extent", "channels"};
    case problem::group_norm_groups: return {"channels", "groups"};
    case problem::pool_kernel: return {"kernel", "padded extent"};
    case problem::result_number: return {"result", "results"};
    case problem::custom_too_many: return {"custom operations", "at most"};
    case problem::topk_count: return {"elements asked for", "extent"};
    case problem::slice_out_of_range: return {"end of the slice", "extent"};
    case problem::reshape_count: return {"elements of the new extents", "elements of the tensor"};
    case problem::graph_full: return {"needed", "capacity"};
    case problem::move_count: return {"moved", "at most"};
    case problem::split_one_sided: return {"gradients named", "gradients of the block"};
    case problem::norm_weight_shape: return {"extent of the weight", "extent of the last dim"};
    case problem::broadcast_extents: return {of_dim ? "extent" : "rank", of_dim ? "other extent" : "other rank"};
    case problem::index_shape:
    case problem::cat_shapes:
    case problem::expand_extents:
    case problem::slice_scatter_shape:
    case problem::loss_target_shape:
    case problem::gradient_shape: return {of_dim ? "extent" : "rank", of_dim ? "required extent" : "required rank"};
    case problem::contraction_batch:
    case problem::contraction_extents: return {"extent", "other extent"};
    case problem::plan_too_large: return {"entries", "at most"};
    case problem::move_hazard: return {"number of the node", "number of the destination"};
    case problem::embedding_rank:
    case problem::index_rank:
    case problem::triangle_rank: return {"rank", "required rank"};
    default: return {"given", "required"};
  }
}

template <class T>
inline constexpr bool is_at_dim = false;
template <int Dim>
inline constexpr bool is_at_dim<at_dim<Dim>> = true;
template <class Said>
inline constexpr bool says_dim = false;
template <problem P, class... Facts>
inline constexpr bool says_dim<told<P, Facts...>> = (false || ... || is_at_dim<Facts>);

// No fact is longer than this; a program's type may be.
inline constexpr int fact_capacity = 480;

struct fact_buffer {
  text_buffer<fact_capacity> out{};
  template <class Sink>
  constexpr void copy_to(Sink& to) const {
    text::put(to, out.view());
    if (out.size() > fact_capacity) text::put(to, " ...");
  }
};

constexpr std::string_view plural_of(std::string_view name) {
  if (name == "operand") return "operands";
  if (name == "placement") return "placements";
  if (name == "axis") return "axes";
  if (name == "style") return "styles";
  if (name == "pass") return "passes";
  return name;
}

// What is said of the facts so far: the name of the last one. Facts without a value are left out.
template <class Said, class Fact, class Sink>
constexpr std::string_view put_fact(Sink& out, std::string_view before, std::string_view next) {
  fact_buffer value;
  fact<Fact>::template put<Said>(value.out);
  if (value.out.size() == 0) return before;
  const std::string_view name = fact<Fact>::template name<Said>();
  if (name == before) {
    text::put(out, ", ");
  } else {
    text::put(out, before.empty() ? " Here: " : "; ");
    text::put(out, name == next ? plural_of(name) : name);
    text::put(out, ": ");
  }
  value.copy_to(out);
  return name;
}

template <class... Lists>
struct joined_lists;
template <class... A>
struct joined_lists<type_list<A...>> {
  using type = type_list<A...>;
};
template <class... A, class... B, class... More>
struct joined_lists<type_list<A...>, type_list<B...>, More...> : joined_lists<type_list<A..., B...>, More...> {};

template <problem P, class Sink, class... Facts>
constexpr void put_message(Sink& out, type_list<Facts...>) {
  text::put(out, sentence(P));
  const std::string_view name[] = {fact<Facts>::template name<told<P, Facts...>>()..., std::string_view()};
  std::string_view before;
  const std::string_view* next = name;
  ((before = put_fact<told<P, Facts...>, Facts>(out, before, *++next)), ...);
  if (!before.empty()) out.push_back('.');
}

}  // namespace detail

template <long long N>
struct fact<have<N>> {
  template <class Said>
  static constexpr std::string_view name() {
    return detail::numbers_of(Said::what, detail::says_dim<Said>).have;
  }
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, std::int64_t{N});
  }
};
template <long long N>
struct fact<want<N>> {
  template <class Said>
  static constexpr std::string_view name() {
    return detail::numbers_of(Said::what, detail::says_dim<Said>).want;
  }
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, std::int64_t{N});
  }
};
template <int Dim>
struct fact<at_dim<Dim>> : detail::number_fact<"dim", Dim> {};
template <int Index>
struct fact<at_operand<Index>> : detail::fact_named<"at fault"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    constexpr std::string_view ordinal[] = {"the first", "the second", "the third",   "the fourth",
                                            "the fifth", "the sixth",  "the seventh", "the eighth"};
    static_assert(Index >= 0 && Index < 8);
    text::put(out, ordinal[Index]);
    text::put(out, " operand");
  }
};
template <fixed_string Path>
struct fact<in_module<Path>> : detail::fact_named<"module"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, Path.view().empty() ? "the model itself" : Path.view());
  }
};
template <fixed_string Name>
struct fact<at_node<Name>> : detail::fact_named<"node"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, Name.view());
  }
};
template <fixed_string... Names>
struct fact<reading<Names...>> : detail::fact_named<"which reads"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    bool first = true;
    ((text::put(out, first ? "" : ", "), text::put(out, Names.view()), first = false), ...);
  }
};

// Exactly as long as the text is: what a static_assert takes.
template <problem P, class... Facts>
struct message {
  using facts = typename detail::joined_lists<detail::type_list<>, typename facts_in<Facts>::type...>::type;
  static constexpr int length = [] {
    text_buffer<0> count;
    detail::put_message<P>(count, facts{});
    return count.size();
  }();
  static constexpr text_buffer<length> text = [] {
    text_buffer<length> out;
    detail::put_message<P>(out, facts{});
    return out;
  }();
  static constexpr std::size_t size() { return static_cast<std::size_t>(length); }
  static constexpr const char* data() { return text.text; }
  static constexpr std::string_view view() { return text.view(); }
};

}  // namespace shardwise::inline v0_1
