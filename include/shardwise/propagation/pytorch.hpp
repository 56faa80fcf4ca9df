// SPDX-License-Identifier: Apache-2.0
// Where PyTorch's distributed tensors are known to be odd or wrong, and what this library does instead; as a table of
// constants that a test walks. Sources: the issues named, and the rules as read in PyTorch of mid-2024 and 2.11.
#pragma once

namespace shardwise::inline v0_1 {

enum class decision : unsigned char {
  right,       // the result is right, or the program does not compile
  seed_era,    // right by default; redistribution_policy::seed_era, or the function named, does as PyTorch does
  as_pytorch,  // the same choice in implicit mode, where it affects cost or placement and never a value
};

// `test` is a path below test/, whose text has `name`, or is named after the sentence that refuses the program.
struct known_difference {
  const char* name;
  const char* pytorch;
  const char* here;
  decision made;
  const char* test;
};

inline constexpr known_difference known_differences[] = {
    // --- values
    {"partial_plus_number", "adds the number on every rank (pytorch#163193); 2.11 sums first",
     "does not compile; in implicit mode the sum is taken first", decision::right, "dist/known_differences.cpp"},
    {"partial_times_partial", "2.11 labels the product of shares a partial sum",
     "does not compile; in implicit mode both sums are taken first", decision::right, "dist/known_differences.cpp"},
    {"sum_of_maximum", "a sum, a maximum or a mean keeps whatever reduction its operand is still to have",
     "only sums of partial sums are; others do not compile, in implicit mode they are reduced first", decision::right,
     "dist/known_differences.cpp"},
    {"product_of_partials", "a linear contraction of two partial operands is a row of the rule",
     "does not compile: only one operand of a product may be partial, the other reduced", decision::right,
     "fail/contraction_placements.cpp"},
    {"nll_uneven", "a mean over uneven shards is an average of averages, and is refused",
     "a mean is a sum over the global count", decision::right, "dist/known_differences.cpp"},
    {"view_across_shards", "12 x 8 by columns, viewed as 16 x 6, is called rows (pytorch#179502)",
     "a view across the boundaries of shards does not compile; implicit mode gathers first", decision::right,
     "fail/silent_pytorch_179502.cpp"},
    {"random_shards",
     "offsets are rounded to 4 elements, so that small shards draw equal numbers, and values depend on "
     "the mesh (pytorch#168058)",
     "a number is a function of seed, step, place and global element", decision::right, "dist/known_differences.cpp"},
    {"split_partial", "splitting a partial tensor is not implemented", "a slice of a partial tensor is partial",
     decision::right, "dist/known_differences.cpp"},
    {"random_partial", "random operations refuse partial tensors", "a dropout masks every rank's share alike",
     decision::right, "dist/known_differences.cpp"},
    {"like_of_partial", "a tensor made like a partial one is replicate, while the rule calls its model partial",
     "a constant beside a partial tensor is replicate, and their sum does not compile", decision::right,
     "fail/partial_add_number.cpp"},
    {"rowwise_bias", "the bias of a row-wise layer is divided by the ranks and summed, which rounds",
     "it is added once, to the sum", decision::right, "golden/simple_model.cpp"},
    // --- gradients
    {"gradient_of_whole", "the gradient of replicate and of partial tensors alike is replicate",
     "four placements and their duals; dtensor_view calls them as PyTorch does", decision::right,
     "static/vocabulary/placement.cpp"},
    {"to_local_of_partial", "the gradient of a partial tensor's blocks is taken for partial, so it is summed again",
     "by default the dual: equal on all ranks; to_local<grad<...>> says otherwise", decision::right,
     "dist/known_differences.cpp"},
    // --- splits and redistribution
    {"nested_offsets", "offsets of nested shards follow a rule of thumb (pytorch#161368)", "the nested intervals themselves",
     decision::right, "static/vocabulary/spec.cpp"},
    {"from_local_extents", "the whole is the local extent times the ranks, and placements are not counted",
     "blocks that are not the tensor's do not compile; from_local_unchecked keeps such a claim, without operations",
     decision::seed_era, "fail/from_local_blocks.cpp"},
    {"one_rank_axes", "the contraction's strategies leave out axes of one rank", "every axis has its placement",
     decision::right, "dist/known_differences.cpp"},
    {"empty_shards", "chunks of ceil(n / ranks), so that the last ranks may hold nothing, which begins at n", "the same",
     decision::as_pytorch, "static/vocabulary/spec.cpp"},
    {"identical_shards", "on several axes a shard reaches a shard through replicate, even where it is one already",
     "straight, where no other axis is in the way", decision::seed_era, "static/propagation/planner.cpp"},
    {"replicate_to_partial", "every rank holds the value over the ranks, which rounds; only sums are made",
     "coordinate 0 holds the value and the others zeros", decision::seed_era, "dist/redistribution/pairs.cpp"},
    {"padded_scatter", "an uneven scatter leaves a view into padded storage",
     "the block is dense; redistribute_padded leaves the view", decision::seed_era, "dist/dtensor_compile/padded.cpp"},
    {"right_to_left_shards", "an order of its own for axes that shard one dim, or strided shards",
     "the order of the mesh's axes", decision::right, "dist/known_differences.cpp"},
    // --- choices of implicit mode
    {"first_operand_leads", "add(P, R) keeps P for free, add(R, P) is R with an all-reduce", "the same",
     decision::as_pytorch, "static/operations/strategy.cpp"},
    {"costs", "a replicate source costs nothing wherever it goes; an all-reduce counts 2 N - 1 hops", "the same",
     decision::as_pytorch, "static/operations/strategy.cpp"},
    {"partial_in_products", "2.11 keeps a partial operand of a product partial; the seed era scatters it",
     "as the seed era; written, a partial times a reduced operand is partial without communication", decision::as_pytorch,
     "static/operations/strategy.cpp"},
    {"flattened_columns", "(4, 6) by columns to 24: the seed era gathers first, 2.11 refuses",
     "does not compile; implicit mode gathers first", decision::as_pytorch, "static/operations/strategy.cpp"},
    // --- element types
    {"reduce_dtype_default",
     "gradients are summed over ranks in the type that parameters are used in, where no reduce_dtype is given",
     "in the step's element type, float; in two bytes where reduce_dtype says so, over a stated number of ranks",
     decision::right, "dist/module/mixed_precision.cpp"},
    {"no_master_weights", "an optimizer over parameters in bf16 loses small updates in silence",
     "does not compile; a plan's mixed<bf16> uses parameters in bf16 and stores them in float", decision::right,
     "fail/program_low_precision.cpp"},
    // --- plans
    {"path_atoms", "'a.b' also styles a child 'b' of the module that has 'a'", "a path names one place", decision::right,
     "dist/known_differences.cpp"},
    {"unmatched_path", "ignored, or a warning", "does not compile, and says which names come closest", decision::right,
     "fail/plan_path_unmatched.cpp"},
    {"negative_layouts", "declared and actual placements are compared before S(-1) is the last dim",
     "a dim counted from the end is that dim", decision::right, "dist/known_differences.cpp"},
    {"hybrid_axes", "sharding over two axes: the documentation shards the first, the code replicates on it",
     "axes have names", decision::right, "static/vocabulary/flat_group.cpp"},
    {"tp_not_inner", "tensor parallelism only on the last axis of a mesh", "on any axis", decision::right,
     "dist/known_differences.cpp"},
};

}  // namespace shardwise::inline v0_1
