// SPDX-License-Identifier: Apache-2.0
// checkpoint: modules of a plan whose values are computed again for the backward pass instead of being kept for it.
#pragma once

#include <string_view>

#include <shardwise/graph/checkpoint.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// What a name stands for: an operation as graphs print it, a collective, all of them, or a function that is made of a few.
struct named_operations {
  std::uint64_t operations[4]{};
  std::uint32_t collectives = 0;

  constexpr void add(op_code op) {
    operations[static_cast<unsigned>(op) / 64] |= std::uint64_t{1} << (static_cast<unsigned>(op) % 64);
  }
  constexpr bool any() const { return (operations[0] | operations[1] | operations[2] | operations[3] | collectives) != 0; }
};

constexpr bool ends_in(std::string_view text, std::string_view end) {
  if (text.size() < end.size()) return false;
  for (std::size_t i = 0; i < end.size(); ++i)
    if (text[text.size() - end.size() + i] != end[i]) return false;
  return true;
}
// Adjoints' operations and what only passes write are in no forward pass; leaves and updates are no values that a module computes.
constexpr bool is_of_forward(op_code op) {
  if (is_leaf(op) || is_update(op) || op == op_code::custom || op == op_code::getitem) return false;
  for (const op_code written :
       {op_code::fused, op_code::norm, op_code::norm_dw_db, op_code::norm_dx_dw, op_code::nll_dx_loss, op_code::room,
        op_code::part, op_code::pack, op_code::unpack, op_code::copy_, op_code::clip_factor})
    if (op == written) return false;
  const std::string_view name = name_of(op);
  return !ends_in(name, "_dx") && !ends_in(name, "_dw") && !ends_in(name, "_dsrc");
}

constexpr bool same_text(std::string_view a, std::string_view b) { return a.size() == b.size() && ends_in(a, b); }

constexpr named_operations operations_named(std::string_view name) {
  named_operations r;
  for (int op = 0; op < static_cast<int>(op_code::count); ++op)
    if (is_of_forward(static_cast<op_code>(op)) && same_text(name, name_of(static_cast<op_code>(op))))
      r.add(static_cast<op_code>(op));
  for (const transition t : collectives)
    if (same_text(name, name_of(t)) || same_text(name, "collectives")) r.collectives |= 1U << static_cast<unsigned>(t);
  if (same_text(name, "matmul") || same_text(name, "linear")) r.add(op_code::einsum);
  if (same_text(name, "gelu")) r.add(op_code::gelu_tanh), r.add(op_code::gelu_erf);
  if (same_text(name, "layer_norm") || same_text(name, "rms_norm")) r.add(op_code::norm_stats), r.add(op_code::norm_apply);
  return r;
}

// One name of a policy, and as a text that lasts.
template <fixed_string Name>
struct operation_name {
  static constexpr auto text = Name;
  static constexpr std::string_view view = text.view();
  static constexpr bool is_ours = operations_named(text.view()).any();  // else it must be a user's
};

template <bool Keeps, class... Names>
struct checkpoint_by_name {
  static constexpr const char* texts[sizeof...(Names) + 1] = {Names::text.text..., nullptr};
  static constexpr checkpoint_policy policy = [] {
    checkpoint_policy p{{0, 0, 0, 0}, 0, 0, texts, Keeps};
    p.customs = static_cast<std::int32_t>(sizeof...(Names));
    const std::string_view names[sizeof...(Names) + 1] = {Names::view..., {}};
    for (std::size_t k = 0; k < sizeof...(Names); ++k) {
      const named_operations n = operations_named(names[k]);
      for (int w = 0; w < 4; ++w) p.operations[w] |= n.operations[w];
      p.collectives |= n.collectives;
    }
    return p;
  }();
};

template <class T>
inline constexpr bool is_checkpoint = requires { T::shardwise_checkpoint; };

}  // namespace detail

// Of what a call of the module computes, the backward pass finds its inputs alone (and parameters and buffers); what it reads of the
// rest is computed again, right before it reads the first of it: the same operations on the same values, hence the same bits.
// Collectives are repeated, draws are the same since they are functions of their site, and writes happen once: a buffer that the
// call updates is updated in the forward pass alone (PyTorch's non-reentrant checkpoint updates it twice). What nothing in the
// backward pass reads is not repeated, and functions that nothing is known of (opaque) never are: their results stay. Results of the
// call that are read elsewhere stay as long as those need them. Calls within the call: a checkpoint inside a checkpoint is computed
// once more for each of the two. A module that is called several times is checkpointed call by call.
// Price: at most the call's forward pass. Of n equal blocks in a row the backward pass holds n inputs and the inside of one block.
// An entry of a plan, alone (the whole model), in at<path, checkpoint>, or beside styles; of several entries that name a module the
// last one holds. A program without a backward pass is as it was.
struct checkpoint {
  static constexpr checkpoint_policy shardwise_checkpoint{{0, 0, 0, 0}, 0, 0, nullptr, true};
  using names = void;
};

// The same, but the results of the named operations stay: checkpoint_except<"matmul", "collectives">. Names: operations as graphs
// print them ("einsum", "softmax", "all_gather"), all "collectives", users' own by their names, and the functions "matmul",
// "linear", "gelu", "layer_norm", "rms_norm".
template <fixed_string... Operation>
struct checkpoint_except {
  using names = detail::checkpoint_by_name<true, detail::operation_name<Operation>...>;
  static constexpr const checkpoint_policy& shardwise_checkpoint = names::policy;
};

// The same, but all results stay other than those of the named operations, and views: checkpoint_only<"gelu", "softmax">.
template <fixed_string... Operation>
struct checkpoint_only {
  static_assert(raise<(sizeof...(Operation) == 0 ? problem::checkpoint_of_nothing : problem::none), checkpoint_only>::ok);
  using names = detail::checkpoint_by_name<false, detail::operation_name<Operation>...>;
  static constexpr const checkpoint_policy& shardwise_checkpoint = names::policy;
};

}  // namespace shardwise::inline v0_1
