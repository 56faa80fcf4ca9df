// SPDX-License-Identifier: Apache-2.0
// The attributes of the library's operations, by name: what the words of a node's op_attr mean. Read with attributes_of<T>(a),
// written with pack_attributes(T{...}), as those of users' own operations are. All members are words; a mask has a bit a dim, a
// packed placement is read by unpack_placement (propagation/transition.hpp), yes and no are 1 and 0. What is not listed has none.
#pragma once

#include <shardwise/propagation/op.hpp>
#include <shardwise/vocabulary/dyn.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

// --- leaf -----------------------------------------------------------------------------------------------------------------

// param, module_buffer, input: which of the program's; state: also whose it is.
struct leaf_attributes {
  std::int64_t index;
  std::int64_t parameter;  // of a state: the parameter whose it is, -1: of none
  std::int64_t which;      // of its states, a state_kind. A state begins as its node's number f says, 0 for most
};
enum state_kind : std::int64_t {
  first_moment = 0,
  second_moment = 1,
  step_count = 2,
  kept_value = 3,  // for the next iteration
  spare_storage =
      4,  // no state, but storage that is input `parameter`'s behind a run, and has the input's storage then (set_)
  scale_state = 5,            // of a dynamic loss scale: the scale,
  scale_counts = 6,           // its counts
  step_factor = 7,            // and the step's factor
  kept_gradient = 8,          // the sum of a parameter's gradients (keep_gradients)
  largest_second_moment = 9,  // of all steps (amsgrad)
  gradient_norm = 10          // of the last step (report_norm)
};
// Whether a state outlives a run and belongs to the optimizer: is copied from program to program, set and read.
constexpr bool belongs_to_optimizer(const leaf_attributes& of) {
  return of.which == scale_state || of.which == scale_counts ||
         (of.parameter >= 0 && of.which != spare_storage && of.which != kept_gradient);
}
// Of a param also: the optimizer's group that updates it (param_group), 0 the main one, -1 none: it is frozen.
struct parameter_attributes {
  std::int64_t index;
  std::int64_t parameter, which;  // as of leaf_attributes: of a state
  std::int64_t group;
  std::int64_t split_states;  // mesh axes, as bits, over which the optimizer's states are split while the parameter is whole
};
// rand, randn, bernoulli, dropout: equal sites draw equal numbers. Of a graph in the making: numbered as they are recorded.
struct random_attributes {
  std::int64_t site;
};
struct arange_attributes {
  std::int64_t first, step;
};

// --- movement -------------------------------------------------------------------------------------------------------------

struct redistribute_attributes {
  std::int64_t axis;         // of the mesh
  std::int64_t to;           // packed placement
  std::int64_t unshard{};    // an unsharding, where it makes a parameter whole for the group that stores it in shards
  std::int64_t batch{};      // neighbours with one number run as one collective (graph/batches.hpp); 0: alone
  std::int64_t cotangent{};  // as of a cast
};
// What becomes of a parameter that a group has gathered for the forward pass.
enum class unsharding : std::int64_t {
  none,   // no gathered parameter
  kept,   // the backward pass reads it too
  freed,  // the backward pass gathers it again: until the pass reshard_parameters has seen to it a mark, after it a fact
  again,  // the one gathered again
};
// A claim about blocks: where the operand's cotangent arrives before it is redistributed.
struct relabel_attributes {
  std::int64_t cotangent[max_axes];  // packed placement on each axis
  std::int64_t unlabelled;           // mask of axes for which nobody has said it
};

// --- contraction ----------------------------------------------------------------------------------------------------------

// Labels of each tensor's dims: 4 bits a dim, dim 0 lowest, labels from 1.
struct einsum_attributes {
  std::int64_t lhs, rhs, out;
  std::int64_t keeps_sums;  // the sum of lhs over the contracted dims is stored in operand 2, a room
};

// --- reduction ------------------------------------------------------------------------------------------------------------

// sum, sumsq (never a mean), and expand, sum's adjoint, which has those of its sum.
struct sum_attributes {
  std::int64_t dims;  // mask of summed dims
  std::int64_t kept;  // mask of those that stay with extent 1
  std::int64_t mean;
};
// vector_norm, and vector_norm_dx (cotangent, operand, norms).
struct vector_norm_attributes {
  std::int64_t dims, kept;  // as of a sum
  std::int64_t order;
};
// amax, amin, prod, prod_dx: the dims stay with extent 1.
struct extent_one_attributes {
  std::int64_t dims;
};

// --- pointwise ------------------------------------------------------------------------------------------------------------

struct sqrt_attributes {
  std::int64_t zero_at_zero;  // its gradient at 0 is 0 (a standard deviation's), else infinite
};
struct contiguous_attributes {
  std::int64_t format;  // memory_format of the copy
};
struct cast_attributes {
  std::int64_t type;  // dtype of the result
  std::int64_t
      cotangent{};  // of a parameter's use: one more than the dtype that cotangents of the result have; 0: the result's own
};
struct mask_keep_attributes {
  std::int64_t where_zero;  // zero where the mask is not 0; else: zero where it is
};

// --- rows, norms, losses ----------------------------------------------------------------------------------------------------

struct softmax_attributes {
  std::int64_t causal;  // key position <= query position, the last two dims
};
// norm_stats, norm_apply and their adjoints; norm, norm_dx_dw, which only passes write.
struct norm_attributes {
  std::int64_t rms;     // 1/rms alone; else mean and 1/sigma
  std::int64_t biased;  // with bias; norm_dx_dw: row 1 of its last operand is the sum of dy over all dims but the last
  std::int64_t keeps_statistics;  // norm: stored in its last operand, a room
};
// Positions along the last dim, int32, of equals the first. A NaN is the largest.
struct topk_attributes {
  std::int64_t count;
  std::int64_t smallest;  // 0 the largest; 1 the smallest, a NaN last; 2 the smallest, a NaN first (argmin)
};
// take_dx: the last dim of the result, take's operand.
struct take_dx_attributes {
  std::int64_t extent;                  // as shape<...> has it
  std::int64_t bound[max_dyn_sizes]{};  // of its run-time sizes, else 0
};
// nll, nll_dx.
struct nll_attributes {
  std::int64_t ignores;  // rows whose target is `ignored` do not count
  std::int64_t ignored;
};

// --- embedding, indexing ----------------------------------------------------------------------------------------------------

struct embedding_dw_attributes {
  std::int64_t rows;           // of the table
  std::int64_t cut[max_axes];  // its packed placement on each axis that shards rows, else 0
};
// gather, index_select, scatter_dsrc; scatter_add, index_add, whose result has `extent` there.
struct index_attributes {
  std::int64_t dim;
  std::int64_t extent;
};
struct scatter_attributes {
  std::int64_t dim;
  std::int64_t zeros;  // writes zeros (two operands; else the number f is written)
};
struct one_hot_attributes {
  std::int64_t classes;
  std::int64_t type;  // dtype of the result
};

// --- views, joins, fills ------------------------------------------------------------------------------------------------------

struct permute_attributes {
  std::int64_t from;  // source dim of each dim: 4 bits a dim, dim 0 lowest
};
// slice, slice_scatter (operand 0, with operand 1 in place of that slice), and pad, a slice's adjoint.
struct slice_attributes {
  std::int64_t dim, start;
  std::int64_t length;       // of the slice; pad: the full extent
  std::int64_t one_of_many;  // of parts that are of one type, the first too: none is taken for the beginning of its storage
  std::int64_t
      apart{};  // no two slices of the operand that say so share an element, and nothing else reads it: their gradients are written
                // side by side into one tensor, not added up
};
struct cat_attributes {
  std::int64_t dim;
};
struct triangle_attributes {
  std::int64_t diagonal;
  std::int64_t upper;
};

// --- opaque -----------------------------------------------------------------------------------------------------------------

struct opaque_attributes {
  std::int64_t function;  // in the graph's table
  std::int64_t
      cotangent;  // 0: a call of it; k: the cotangent of operand k - 1 of one, whose operands come before the result's cotangent
};
struct getitem_attributes {
  std::int64_t result;  // which one of its operand, a node of an operation with several: see item_of in graph/graph.hpp
};
inline constexpr int custom_word =
    5;  // of a user's operation: its index in the graph's table; the words before are the user's

// --- updates ------------------------------------------------------------------------------------------------------------------

// clipped: the last operand is the factor of gradients: 1 one number, 2 two of a dynamic loss scale, the factor, of which less than 0
// says that nothing is updated, and how many steps were so before.
struct sgd_attributes {
  std::int64_t clipped;
  std::int64_t momentum;  // 2: Nesterov's
  std::int64_t none;
  std::int64_t group;  // of all updates: see optimizer_group
};
struct adam_attributes {
  std::int64_t clipped;    // as of sgd
  std::int64_t decoupled;  // weight decay: AdamW
  std::int64_t
      counts;  // operand 4 counts the steps (then it is clipped by 2 or not); else the run's number of the step is taken
  std::int64_t group;
};
// Of which: 0 the next first moment of (m, gradient, parameter), 1 the next second one of (v, gradient, parameter), 2 the next parameter of
// (parameter, m, v, steps). Of adam_term_with: 0, 1, or 3, the larger one of (largest second moment, v). Of muon_direction 3. Clipped as of sgd, 0 or 2.
struct adam_term_attributes {
  std::int64_t clipped;
  std::int64_t decoupled;
  std::int64_t which;
  std::int64_t group;
};
// (factor [2], scale, counts [2], sum of all gradients' squares), of which all but the last are states that it writes.
struct adjust_scale_attributes {
  std::int64_t clips;            // by the run's max_norm
  std::int64_t growth, backoff;  // the scale is multiplied by growth, divided by backoff
  std::int64_t interval;         // good steps before it grows
};
// What sgd_with, adam_with, lion and adam_term_with do beside their formula, bit by bit: a word behind those of sgd, adam and adam_term.
enum update_option : std::int64_t {
  dampens = 1,        // SGD: the gradient's share of the momentum is less by the run's dampening, but in the first step
  keeps_largest = 2,  // Adam: behind the second moment the largest one so far, which divides (amsgrad)
  clips_values = 4,   // elements of gradients by the run's clip_value
  maximises = 8       // goes up the gradient
};
constexpr std::int64_t update_options_of(const op_attr& a) { return a.v[4]; }

constexpr bool is_adam(op_code op) { return op == op_code::adam || op == op_code::adam_with; }
constexpr bool is_adam_term(op_code op) { return op == op_code::adam_term || op == op_code::adam_term_with; }
constexpr bool is_sgd(op_code op) { return op == op_code::sgd || op == op_code::sgd_with; }
// A value on an optimizer's way, of operands of equal blocks, as their record says (adam_term_attributes): Muon's has two.
constexpr bool is_optimizer_term(op_code op) { return is_adam_term(op) || op == op_code::muon_direction; }
// What applies a gradient, operand 1, to a parameter.
constexpr bool is_optimizer(op_code op) { return (op >= op_code::sgd && op <= op_code::muon) || is_optimizer_term(op); }
// Whether it reads the run's number of the step: Adam, where it does not count its own, and the first step of a dampened momentum.
constexpr bool reads_step_number(op_code op, const op_attr& a) {
  return (is_adam(op) && attributes_of<adam_attributes>(a).counts == 0) ||
         (op == op_code::sgd_with && (update_options_of(a) & dampens) != 0);
}
// Whose numbers an optimizer's operation reads: 0 the run's, else those of that group of parameters.
constexpr std::int64_t optimizer_group(op_code op, const op_attr& a) { return is_optimizer(op) ? a.v[3] : 0; }

// --- written by passes alone, after differentiation (graph/expression.hpp, graph/storage.hpp) ------------------------------------

struct fused_attributes {
  real constant[4];  // of its expression
};
struct copy_attributes {
  std::int64_t sets;  // copy_: 1: operand 0, an input, gets operand 1's storage; nothing is written
};
struct storage_attributes {
  std::int64_t at;  // pack: the element at which the first operand that is no pack begins; unpack: at which the slot begins
  std::int64_t goes_on;  // pack: where operand 0, a pack, ends
  std::int64_t leaves;   // pack: of leaves
};

}  // namespace shardwise::inline v0_1
