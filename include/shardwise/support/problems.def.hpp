// SPDX-License-Identifier: Apache-2.0
// The list of problems: one name and one sentence each (what was given; what is required; the smallest fix).
// Included wherever SHARDWISE_X(name, text) is defined, once for each use: nvcc quotes the whole line of a macro.

#ifndef SHARDWISE_X
#define SHARDWISE_X(name, text)
#endif

// clang-format off: a table

// --- meshes, placements, specs ---------------------------------------------------------------------------------------

SHARDWISE_X(mesh_axis_used_twice,
            "mesh: a mesh axis is listed twice; every axis of a mesh is a type of its own: declare a second struct "
            "derived from axis<N>")
SHARDWISE_X(mesh_axis_count,
            "mesh: no axis or more than 4 axes are given; a mesh has 1 to 4 axes: merge two of them into one axis, or "
            "name one axis of size 1 for a single rank")
SHARDWISE_X(mesh_not_an_axis,
            "mesh: an argument is no mesh axis; a mesh lists types derived from axis<N>, N being the axis's number of ranks: "
            "derive the struct from it, as in struct dp : sw::axis<2> {}")
SHARDWISE_X(mesh_bad_axis, "mesh: a mesh axis must have at least one rank; derive it from axis<N> with N >= 1")
SHARDWISE_X(submesh_axes,
            "submesh: an axis named here is not an axis of the mesh, or the axes are not in the mesh's order; name axes "
            "of mesh<...>, each once, in the order in which the mesh lists them")
SHARDWISE_X(flatten_size,
            "flattened: the new axis has not as many ranks as the axes that it replaces have together; derive it from "
            "axis<N> with N the product of their sizes")
SHARDWISE_X(flatten_name,
            "flattened: the new axis is already an axis of the mesh; declare a struct of its own, derived from axis<N>")
SHARDWISE_X(unflatten_size,
            "unflattened: the new axes have not as many ranks together as the axis that they replace; derive them from "
            "axis<N> with sizes whose product is its size")
SHARDWISE_X(placed_mesh_count,
            "placed_mesh: the number of world ranks differs from the number of ranks of the mesh; give one for each rank, "
            "in row-major order")
SHARDWISE_X(placed_mesh_ranks,
            "placed_mesh: a world rank is negative or given twice; every rank of a mesh is another rank of the world")
SHARDWISE_X(axis_not_in_mesh,
            "placement: the mesh axis named here is not an axis of the tensor's mesh; name one of the axes in "
            "mesh<...>, or add the axis to the mesh")
SHARDWISE_X(axis_then_placement,
            "placement: a mesh axis and a placement are named as a pair, the axis first, and here the first is no mesh axis or "
            "the second no placement (replicate, reduced, shard<d>, partial<>); write on<axis, placement>, as in "
            "on<dp, shard<0>>, and redistribute<axis, placement>(x), as in redistribute<dp, replicate>(x)")
SHARDWISE_X(not_a_placement,
            "placement: what is given where a placement belongs is none; write replicate, reduced, shard<d>, shard<d, block> or "
            "partial<>, or name the mesh axis too: on<axis, placement>")
SHARDWISE_X(shard_dim_missing, "placement: shard is given without the dim that it splits; write shard<d>, as in shard<0>")
SHARDWISE_X(placement_axis_twice,
            "placement: a mesh axis is given two placements; keep one on<axis, placement> for each axis")
SHARDWISE_X(placement_count,
            "placement: the number of placements differs from the number of mesh axes; give one placement for each "
            "axis, or name them with on<axis, placement>")
SHARDWISE_X(shard_dim_out_of_range,
            "placement: shard<d> names a dim that the tensor does not have; d must be at least 0 and less than the "
            "tensor's rank (for the last dim of a rank-k tensor write shard<k-1>)")
SHARDWISE_X(dyn_declared,
            "dyn: the bound of a run-time extent is from 2 to 2^48 - 1, and the number of its size from 0 to 3; write dyn<64> for the "
            "program's first run-time size, dyn<512, 1> for its second")
SHARDWISE_X(layout_sizes,
            "optimize_layout: expected_sizes names a run-time size that no run of the program has; each is from 1 to the bound of the "
            "size in its place, in the order in which resize takes them, and there are no more than the program has")
SHARDWISE_X(dyn_product_declared,
            "tensor: a declared extent is a product of several run-time sizes (dyn), whose bounds it does not tell; declare a dim for "
            "each, dyn<8> and dyn<64, 1>, and flatten or reshape them in the program")
SHARDWISE_X(shard_block_does_not_divide,
            "placement: shard<d, block> needs a block that divides the extent of dim d; choose a block (for example "
            "the size of a head) that divides it")
SHARDWISE_X(strided_shard_factor,
            "placement: the factor of strided_shard<d, factor> is not the product of the sizes of later mesh axes that "
            "split dim d before it; give that product (at most 255), or write shard<d> where no later axis splits the dim")
SHARDWISE_X(norm_order,
            "norm: partial_norm<P> and vector_norm<P> need an order P from 1 to 32767; give the order of the norm that is meant "
            "(ranks' maximum norms are partial<reduction::max>)")
SHARDWISE_X(partial_norm_type,
            "placement: partial_norm<P> is of float or double elements, since its reduction takes roots; write "
            "sw::cast<float>(tensor)")
SHARDWISE_X(uneven_shard,
            "placement: even<shard<d>> needs an extent that the mesh axis divides; pad the tensor's dim, choose "
            "another axis size, or drop even<...> to allow uneven shards")
SHARDWISE_X(rank_too_large, "tensor: the rank exceeds 8; merge dims with reshape first")
SHARDWISE_X(element_type,
            "tensor: the element type is none that tensors have; elements are float, double, sw::bf16 or sw::f16, std::int32_t for "
            "ids, labels and masks, std::int64_t and bool: name one of them first, before the shape, as in input_tensor<float, "
            "shape<32, 10>, placements...>, and convert the data to it")
SHARDWISE_X(tensor_shape,
            "tensor: what is given where the shape belongs is none; name the element type, then the extents as shape<...>, then "
            "the placements, as in input_tensor<float, shape<32, 10>, on<dp, shard<0>>>")
SHARDWISE_X(tensor_mesh,
            "tensor: what is given where the mesh belongs is no mesh<...>; name the element type, the shape and the mesh before "
            "the placements, as in dtensor_of<float, shape<32, 10>, mesh<dp, tp>, on<dp, shard<0>>>")
SHARDWISE_X(tensor_too_large,
            "tensor: its elements take more bytes than 2^60, which no sum of buffers may pass; give smaller extents")
SHARDWISE_X(mesh_too_large,
            "mesh: it has more ranks than 2^31 - 1; give its axes fewer ranks")
SHARDWISE_X(meshes_differ, "operands live on different meshes; bind both to one mesh<...> type")
SHARDWISE_X(mixed_tensors,
            "operands are no tensors of one kind: a tensor meets a plain value, or an eager tensor meets one that is being "
            "traced; make a tensor of the plain value with from_local or distribute, and hand a traced function all its "
            "tensors as arguments")
SHARDWISE_X(rule_missing,
            "this operation has no rule that places its result (it is a leaf, a marker, an update, or what only passes write); "
            "call the function that makes it instead of applying it")
SHARDWISE_X(kernel_missing,
            "this operation has no kernel for the element type here; arithmetic exists for floating-point elements: convert "
            "the operand to float or double")
SHARDWISE_X(kernel_unwritten,
            "the library's list says that this operation runs a kernel, and none is written; specialise host::kernel<op_code> in "
            "operations/<family>/host.hpp, cuda::kernel<op_code> in device.cuh beside it, which runtime/host/kernels.hpp and "
            "runtime/cuda/kernels.cuh include, or write 0 for it in propagation/op.hpp")
SHARDWISE_X(types_differ, 
            "operands have different element types, and nothing is converted that is not written; write sw::cast<float>(operand), "
            "of the other's type, or declare both alike: an input is of the type that input_tensor<type, ...> names, a model's "
            "parameters of the type that train_step names behind the pipeline (float), an eager model's of bind_eager's")
SHARDWISE_X(needs_floating_point,
            "this operation needs floating-point elements; write sw::cast<float>(operand)")
SHARDWISE_X(number_not_int32,
            "a number that becomes an element of an int32 tensor is not whole, or not from -2147483648 to 2147483647; give such "
            "a number, or make the tensor float or double")
SHARDWISE_X(number_not_probability, "dropout: the probability is not from 0 to 1; give one that is")
SHARDWISE_X(loss_number,
            "loss: a number is out of its range: beta is at least 0, delta above 0, and label_smoothing's share from 0 to 1; give one "
            "that is")
SHARDWISE_X(needs_integers, "this operation needs int32 indices; give it a tensor of std::int32_t, or write sw::cast<std::int32_t>(operand)")
SHARDWISE_X(dims_as_arguments,
            "tensor: dims, extents and counts are template arguments, since they decide the result's type; write sum<0>(x), "
            "softmax<-1>(x), reshape<4, 8>(x), permute<0, 2, 1>(x), topk<5>(x), and a join's dim before its tensors: cat<1>(x, y)")
SHARDWISE_X(value_as_template_argument,
            "tensor: a probability is a value, no template argument; pass it behind the tensor: dropout(x, 0.1)")
SHARDWISE_X(comparison_operator,
            "tensor: < > <= >= == != are no operators of tensors; gt, lt, ge, le, eq and ne give an int32 tensor of 0 and 1: write "
            "where(gt(x, 0.), x, y)")
SHARDWISE_X(compound_assignment,
            "tensor: += -= *= /= are no operators of tensors, since a sum may have another type than its operands; make a new "
            "tensor, const auto z = x + y, or write in place: add_(x, y), mul_(x, y)")
SHARDWISE_X(tensor_condition,
            "tensor: it stands where a truth value is wanted (if, while, ?:, !, &&); a traced tensor has no value while its program "
            "is made: write where(mask, x, y), which chooses element by element; of an eager tensor of one element ask item()")
SHARDWISE_X(tensor_subscript,
            "tensor: [] is no operator of tensors; write select<dim, index>(x), slice<dim, start, length>(x) or "
            "index_select<dim>(x, indices), and read an eager tensor's elements from to_local().data")
SHARDWISE_X(traced_value,
            "traced tensor: it has no value while its program is made, so that item(), full_tensor(), to_local(), conversions to "
            "numbers and printing are of eager tensors alone; return it, and read it from the executor: loss(), output(i)")
SHARDWISE_X(dyn_product,
            "reshape: several dims with run-time extents (dyn) would become one, or one would be cut, and no extent that is given says "
            "which of them it is a product of; give it: extent_product(dyn<8>, dyn<64, 1>), or flatten the dims, or call view with -1")
SHARDWISE_X(dyn_square,
            "reshape: dims that scale with one run-time size (dyn) would be multiplied, and an extent scales with each size once; keep "
            "them dims of their own")

// --- pointwise -------------------------------------------------------------------------------------------------------

SHARDWISE_X(broadcast_extents,
            "pointwise: the operands' extents do not broadcast: aligned from the right, extents must be equal or 1; "
            "reshape or expand one operand")
SHARDWISE_X(pointwise_placements,
            "pointwise: the operands are placed differently on a mesh axis; redistribute one operand so that both are "
            "sharded along the same dim (same split boundaries), or both have the same placement (a factor of a "
            "partial operand must be reduced)")
SHARDWISE_X(pointwise_needs_reduced,
            "pointwise: one operand is sharded on a mesh axis and the other, which is broadcast along that dim, is "
            "replicate there, so its gradient would silently miss a sum; write redistribute<axis, reduced>(operand), "
            "or make the parameter reduced in the plan")
SHARDWISE_X(partial_nonlinear,
            "a partial (not yet summed) value enters an operation that is not linear in it, so the result would be "
            "wrong; sum it first: redistribute<axis, replicate>(operand) or redistribute<axis, shard<d>>(operand)")
SHARDWISE_X(partial_add,
            "add: one operand is partial on a mesh axis and the other is not, so it would be added once per rank; "
            "reduce the partial operand first, or make the other partial with redistribute<axis, partial<>>(operand)")

SHARDWISE_X(where_partial,
            "where: one of the two values is partial on a mesh axis and the other is not, so the other would count once "
            "per rank; reduce the partial one first, or make the other partial with redistribute<axis, partial<>>(operand)")

// --- contraction -----------------------------------------------------------------------------------------------------

SHARDWISE_X(contraction_extents,
            "matmul: the contracted dims have different extents; the inner extents of lhs and rhs must be equal: "
            "transpose or reshape an operand")
SHARDWISE_X(contraction_batch,
            "matmul: the batch dims of lhs and rhs differ; both need the same leading extents, or rhs must have rank 2")
SHARDWISE_X(contraction_rank,
            "matmul: an operand has the wrong number of dims; both operands of matmul need rank 2 or more, linear "
            "needs a weight of rank 2, attention needs rank 4: reshape the operand")
SHARDWISE_X(contraction_one_sided,
            "matmul: one operand is sharded on its contracting dim and the other is not; redistribute the other "
            "operand to shard of its contracting dim on that axis (or the sharded one to replicate)")
SHARDWISE_X(contraction_needs_reduced,
            "matmul: one operand is sharded on a free dim and the other is replicate on that axis, so its gradient "
            "would silently miss a sum; write redistribute<axis, reduced>(operand), or make the parameter reduced in "
            "the plan")
SHARDWISE_X(contraction_split,
            "matmul: both operands are sharded on one dim with different split boundaries; shard both with the same "
            "block")
SHARDWISE_X(contraction_placements,
            "matmul: no rule admits these placements on a mesh axis; admitted are: both replicate, both reduced, the "
            "same batch dim or the contracting dim sharded on both sides, one free dim sharded with the other operand "
            "reduced, or one operand partial with the other reduced")

// --- reductions, softmax, norms --------------------------------------------------------------------------------------

SHARDWISE_X(dim_out_of_range,
            "the dim is out of range; it must be less than the tensor's rank, negative dims count from the end")
SHARDWISE_X(partial_other_reduction,
            "amax, amin, prod: the operand is partial with another reduction than this one, and the largest of sums is no "
            "sum of the largest; reduce it first: redistribute<axis, replicate>(operand)")
SHARDWISE_X(var_dim_sharded,
            "var, std: a reduced dim is sharded, and squares are taken around the mean of all ranks, which costs a "
            "collective; name the mesh axis, as in var_over<axis, dims...>(x), or gather the dim first")
SHARDWISE_X(var_dyn,
            "var, std: a reduced dim has a run-time extent (dyn), so the number of elements is not known here; take the "
            "mean of squares of x - mean(x, keepdim), which divides by the run's number")
SHARDWISE_X(topk_count,
            "topk, sort: more elements are asked for than the dim has, or none; K must be from 1 to the dim's extent, and to the "
            "smallest one where it is run-time (dyn)")
SHARDWISE_X(topk_dim_sharded,
            "topk, argmax, argmin: the dim that is searched is sharded, so positions would be the ranks' own; gather it "
            "first: redistribute<axis, replicate>(operand), or shard another dim")
SHARDWISE_X(softmax_dim_sharded,
            "softmax: the dim that softmax normalises over is sharded; gather it first: redistribute<axis, "
            "replicate>(operand), or shard another dim")
SHARDWISE_X(attention_shapes,
            "scaled_dot_product_attention: queries, keys and values do not fit: all three are (batch, heads, time, size), or "
            "(batch, time, heads, size) with head_layout::bthd, of equal batch, heads and size, keys and values of equal time; "
            "permute or reshape the one that differs, name the other head_layout, or, where keys and values have fewer heads, which "
            "divide the queries', say attention_options{.enable_gqa = true}")
SHARDWISE_X(attention_dyn,
            "scaled_dot_product_attention: the heads' size has a run-time extent (dyn), so 1 / sqrt(size) is not known here; keep "
            "the size static, and the batch, the heads or the time run-time")
SHARDWISE_X(attention_options,
            "scaled_dot_product_attention: the window is at least 0, the dropout a probability from 0 to 1, the scale finite; "
            "correct the attention_options")
SHARDWISE_X(attention_mask_shape,
            "scaled_dot_product_attention: the bias or mask does not broadcast to (batch, heads, time of the queries, time of the keys); "
            "each of its dims, counted from the last, must be that extent or 1: reshape it")
SHARDWISE_X(attention_documents_shape,
            "scaled_dot_product_attention: documents are the ids (batch, time) of queries and keys alike, so both have that time; "
            "reshape the ids, or give a mask for keys of another time")
SHARDWISE_X(attention_together,
            "scaled_dot_product_attention: these operands do not go together: beside q, k, v stand a bias, or a mask, or documents(ids), "
            "or a bias and then documents(ids) without dropout; write the others into the bias, as minus infinity where a key is hidden")
SHARDWISE_X(attention_bias_gradient,
            "scaled_dot_product_attention: a gradient is asked for of the bias, and the operation, which never stores its scores, has "
            "none; detach the bias, or write the attention as matmul, add, softmax and matmul")
SHARDWISE_X(attention_groups,
            "scaled_dot_product_attention: the heads are cut through a group: of fewer key heads than query heads each rank must hold "
            "whole groups; cut over an axis whose ranks divide the key heads, or gather the heads: redistribute<axis, reduced>(operand)")
SHARDWISE_X(attention_placements,
            "scaled_dot_product_attention: no rule admits these placements on a mesh axis; admitted are: all replicate, all reduced, all "
            "cut along the batch, or along the heads, queries cut along their time or values along their size with the others reduced; "
            "a bias is cut as the scores are and reduced where it is broadcast: redistribute an operand so")
SHARDWISE_X(cache_shapes,
            "cache: the new rows do not fit the cache: both are of equal extents, the batch first, but along the dim of positions, which "
            "is not the batch, is known while compiling, and of which the cache has at least as many as there are new rows or queries; "
            "give the cache more positions, or permute or reshape the one that differs")
SHARDWISE_X(cache_position,
            "cache: the position is one int32 for each sequence, (batch), which says how many of its tokens came before; ids of "
            "position_ids are (batch, time): give a position of the first operand's batch")
SHARDWISE_X(cache_options,
            "cached_attention: a query of a cache sees what came before it, and no weight is dropped; leave causal and dropout of "
            "attention_options as they are")
SHARDWISE_X(cache_training,
            "kv_cache: the module trains, and no gradient flows through a cache; train with scaled_dot_product_attention, and give the "
            "model that generates, a forward_step's, the cache in its place: parameters have the same names")
SHARDWISE_X(cache_placements,
            "cache: no rule admits these placements on a mesh axis; admitted are: all replicate or reduced, all cut along the batch, the "
            "position with them, or, with the position replicate, all along the heads, the queries along their time or values along "
            "their size; the positions of a cache stay whole: redistribute an operand so, or place the cache with cache_heads and "
            "cache_batch")
SHARDWISE_X(scan_dim_sharded,
            "cumsum: the dim is sharded, and a running sum needs the elements before it; run it along another dim, or gather this one "
            "first: redistribute<axis, replicate>(operand)")
SHARDWISE_X(padding_row,
            "embedding: the table has no such row for padding; give padding_idx<row> from 0 to the number of rows, or from minus that "
            "number to -1")
SHARDWISE_X(einsum_equation,
            "einsum: the equation is not one: it is a letter for each dim of an operand, a comma between two operands, an arrow and the "
            "result's letters, each letter once an operand and those of the result in an operand, as in einsum<ij,jk->ik> of two matrices")
SHARDWISE_X(einsum_letters,
            "einsum: an operand's letters are not as many as its dims; write one for each dim")
SHARDWISE_X(rotary_shape,
            "rotary_embedding: the operand must be (batch, heads, time, size), or (batch, time, heads, size) with "
            "rotary_options{.layout = head_layout::bthd}, of an even size that is known while compiling; reshape it")
SHARDWISE_X(rotary_base,
            "rotary_embedding: the base is finite and above 0; correct rotary_options, 10000 is what most models have")
SHARDWISE_X(rotary_placements,
            "rotary_embedding: the size is sharded, which would part the pairs that are turned; cut another dim, or gather this one "
            "first: redistribute<axis, replicate>(operand)")
SHARDWISE_X(glu_odd,
            "glu: the dim is halved, so its extent must be even; give an even extent, or another dim: glu<dim>(operand)")
SHARDWISE_X(causal_rank, "softmax: the causal form needs at least two dims (queries, keys), the last two")
SHARDWISE_X(norm_dim_sharded,
            "norm: the normalised (last) dim is sharded; gather it first: redistribute<axis, replicate>(operand), or "
            "shard another dim")
SHARDWISE_X(norm_weight_shape,
            "norm: weight and bias must have rank 1 and the extent of the last dim of the input; change the norm's "
            "number of features")
SHARDWISE_X(norm_weight_placement,
            "norm: the input is sharded on a mesh axis while weight or bias is not reduced there, so their gradient "
            "would silently miss a sum; make them reduced in the plan (sequence_parallel or data_parallel on that axis)")
SHARDWISE_X(loss_class_dim_sharded,
            "cross entropy: the class dim of the logits is sharded; gather it first: redistribute<axis, "
            "replicate>(logits), or keep it sharded with loss_parallel_cross_entropy<axis>(logits, target)")
SHARDWISE_X(loss_parallel_not_sharded,
            "loss_parallel_cross_entropy: the logits are not sharded along their last (class) dim on this mesh axis; name "
            "the axis that shards the classes, or use cross_entropy")
SHARDWISE_X(loss_target_shape,
            "cross entropy: the targets must have the logits' shape without the last (class) dim; reshape logits or "
            "targets")
SHARDWISE_X(loss_target_placement,
            "cross entropy: logits and targets are placed differently on a mesh axis; shard both along the same dim "
            "or neither")
SHARDWISE_X(embedding_rank, "embedding: the table must have rank 2 (rows, features); reshape it")
SHARDWISE_X(embedding_placements,
            "embedding: no rule admits these placements; admitted are: table reduced with indices sharded, table "
            "shard<0> (the result is then partial) or shard<1> with indices not sharded, or both not sharded")

// --- views -----------------------------------------------------------------------------------------------------------

SHARDWISE_X(reshape_count,
            "reshape: the number of elements differs; the product of the new extents must equal the product of the "
            "old ones")
SHARDWISE_X(reshape_crosses_shard,
            "reshape: a sharded dim is merged or split so that the new dims would cut across shard boundaries; shard "
            "by whole groups (for example shard<d, head_size>, colwise<axis, head_size>) or redistribute before the "
            "reshape")
SHARDWISE_X(reshape_dyn,
            "reshape: a dim with run-time extent (dyn) would become dims that do not scale with the same run-time sizes, or would not "
            "be their multiple; give the extents as multiples of the same dyn<bound, size>, or keep the dim apart")
SHARDWISE_X(permute_not_a_permutation,
            "permute: the dims given are not a permutation of 0..rank-1; list every dim once")
SHARDWISE_X(slice_out_of_range, "slice: the range leaves the dim's extent; start and length must fit into it")
SHARDWISE_X(slice_dim_sharded,
            "slice: the sliced dim is sharded; redistribute it to replicate first, or slice another dim (only an end that "
            "leaves the ranks' chunks as large as they are may be cut off)")

// --- joins, broadcast views, indexing, padding, random fills -----------------------------------------------------------

SHARDWISE_X(cat_shapes,
            "cat: the operands have different ranks, or different extents in a dim that is not joined; reshape or slice "
            "them so that they differ in the joined dim alone")
SHARDWISE_X(cat_dim_sharded,
            "cat: an operand is sharded on the dim that is joined, and the blocks of the result would lie on other ranks; "
            "gather it first: redistribute<axis, replicate>(operand), or shard another dim")
SHARDWISE_X(cat_placements,
            "cat: the operands are placed differently on a mesh axis; redistribute them so that all are alike: replicate, "
            "reduced, sharded on one other dim, or partial with one reduction")
SHARDWISE_X(split_sizes,
            "split: the sizes do not add up to the dim's extent, or one is negative; give sizes from 0 whose sum is the "
            "extent (chunk<dim, n>: n from 1)")
SHARDWISE_X(view_infer,
            "view: more than one extent is -1, or the number of elements is no multiple of the others' product; leave one "
            "extent to infer and let the others divide the number of elements")
SHARDWISE_X(view_not_dense,
            "view: the tensor is not stored densely in this order (it is permuted, cut, broadcast or channels-last); write "
            "reshape, which copies it where it must")
SHARDWISE_X(memory_format_rank,
            "contiguous: the format channels_last is of tensors with 4 dims (batch, channels, height, width), and this one has "
            "another number; give it 4 with view or unsqueeze first, or ask for memory_format::contiguous")
SHARDWISE_X(expand_extents,
            "expand: only dims of extent 1, and new ones in front, can be made longer; give every other dim its own extent "
            "or -1")
SHARDWISE_X(expand_dim_sharded,
            "expand: a dim of extent 1 that is sharded would be made longer, while most ranks have nothing of it; gather "
            "it first: redistribute<axis, replicate>(operand)")
SHARDWISE_X(index_shape,
            "indexing: the operands' extents do not fit: tensor, index and source need one rank and equal extents beside "
            "the indexed dim, where index and source are equal too; slice or expand one of them")
SHARDWISE_X(index_rank,
            "index_select: the index must have rank 1; flatten it, or write gather for an index of the tensor's rank")
SHARDWISE_X(index_dim_sharded,
            "indexing: the indexed dim is sharded, and an index may name an element of any rank; gather the dim first: "
            "redistribute<axis, replicate>(operand), or shard another dim")
SHARDWISE_X(index_placements,
            "indexing: no rule admits these placements on a mesh axis; admitted are: tensor, index and source sharded alike "
            "on a dim that is not indexed (an index of rank 1 then replicate), none of them sharded, or, to read or to add, "
            "an index sharded along the indexed dim (the tensor that is read then reduced)")
SHARDWISE_X(pad_negative, "constant_pad: a number of elements is negative, or there are more than two for each dim; numbers "
            "are pairs from the last dim on, each from 0: cut with slice")
SHARDWISE_X(pad_dim_sharded,
            "constant_pad: the padded dim is sharded, and the blocks of the result would lie on other ranks; gather it "
            "first: redistribute<axis, replicate>(operand), or shard another dim")
SHARDWISE_X(triangle_rank, "tril, triu: the operand needs at least two dims, the last two are the matrix; reshape it")
SHARDWISE_X(random_partial,
            "random: random numbers are asked for in a partial tensor, where the ranks' numbers would be summed; name "
            "another placement, or redistribute the operand first: redistribute<axis, replicate>(operand)")
SHARDWISE_X(dyn_dim_changed,
            "a dim with run-time extent (dyn) would be joined, padded, indexed or expanded, which static offsets do not "
            "allow; keep the dyn dim out of the operation")
SHARDWISE_X(dyn_meets_static,
            "a dim with run-time extent (dyn) meets a dim of another operand whose extent is static: they are equal only while the "
            "run-time size is the bound; declare both as dyn<bound>, or neither")

// --- redistribution and gradients ------------------------------------------------------------------------------------

SHARDWISE_X(redistribute_target_missing,
            "redistribute: no placement to go to is named, or none for a mesh axis; write redistribute<axis, "
            "placement>(x), or redistribute<on<axis, placement>, ...>(x) for several axes")
SHARDWISE_X(redistribute_nested,
            "redistribute: another mesh axis splits what this one leaves of the dim (a later one, or an earlier one whose "
            "shard is strided); redistribute that axis before this one, or name both in one redistribute")
SHARDWISE_X(redistribute_no_strided,
            "redistribute: under the policy seed_era there are no strided shards, and one is given or asked for; use the "
            "policy late, or write shard<d>")
SHARDWISE_X(redistribute_partial_op,
            "redistribute: a gradient is asked for through a partial with a reduction other than sum and avg, which has no "
            "adjoint; reduce with sums (a norm is the root of a sum of powers), or ask for gradients of inputs that do not "
            "pass through it")
SHARDWISE_X(redistribute_partial_op_changes,
            "redistribute: a partial tensor would change its reduction, and the ranks' shares under one reduction are "
            "none under another; redistribute the axis to replicate first")
SHARDWISE_X(redistribute_shard_to_partial,
            "redistribute: a shard would become partial, but ranks have no shares of what they do not hold; redistribute "
            "the axis to replicate first, or keep the shard (one axis by itself may go from a shard to partial<> alone)")
SHARDWISE_X(redistribute_halo,
            "redistribute: halos are exchanged from equal shards of one dim alone, and what has them is not redistributed; call the "
            "function of windows on a tensor that is sharded so")
SHARDWISE_X(redistribute_whole_to_partial,
            "redistribute: a whole tensor has no shares under this reduction; partial of sum, avg, max and min can be made "
            "of it (under the policy seed_era: of sum), a product or a norm cannot; name one of these, or keep the tensor whole")
SHARDWISE_X(redistribute_mixed_partials,
            "redistribute: the tensor is partial with different reductions on two axes, and the order in which they are "
            "reduced would count; redistribute one axis at a time, in the order that is meant")
SHARDWISE_X(redistribute_tensors_differ,
            "redistribution: the two tensors have different extents or element types; only placements can change: give "
            "both the same shape and element type")
SHARDWISE_X(gradient_reduced_twice,
            "reduce_gradient: the gradient is not partial on this mesh axis, so reducing it again would count it once "
            "per rank; remove the second reduction")
SHARDWISE_X(gradient_unreduced,
            "optimizer: the gradient is still partial on a mesh axis, so every rank would take a different step; "
            "reduce it first: reduce_gradient<axis>(gradient)")
SHARDWISE_X(gradient_placement,
            "optimizer: parameter and gradient are sharded differently; redistribute the gradient to the parameter's "
            "placement")
SHARDWISE_X(gradient_shape,
            "optimizer: parameter and gradient have different extents or element types; pass the gradient of this "
            "very parameter")

SHARDWISE_X(fsdp_factor,
            "reshard: parameters are to be kept over a number of ranks that does not divide the axis; it should be a factor "
            "of the axis' size: 1 keeps them whole, the size itself frees them all")

// --- local tensors, functions ------------------------------------------------------------------------------------------

SHARDWISE_X(to_local_stack,
            "to_local: the ranks' blocks cannot be laid side by side: the tensor is a scalar, or every dim is sharded "
            "unevenly or by blocks; reshape the scalar to shape<1>, or redistribute the tensor to replicate or to an even "
            "shard first")
SHARDWISE_X(to_local_gradient,
            "to_local: the gradient placement does not fit the tensor's: of a tensor sharded on an axis the gradient is "
            "sharded alike; of a whole or partial one it is replicate, reduced, partial<> or a shard of one of its dims "
            "that splits it after all other axes do")
SHARDWISE_X(from_local_blocks,
            "from_local: the ranks' blocks are not those of the tensor declared here; give the shape whose blocks under "
            "these placements have the local extents on every rank, or from_local without a shape for equal blocks")
SHARDWISE_X(from_local_operand,
            "from_local: the operand is not local: every mesh axis must shard it, so that each rank holds a block of its "
            "own; take it from to_local, or use redistribute to change placements")
SHARDWISE_X(to_local_gradient_missing,
            "to_local: a gradient is asked for through the blocks of a tensor that is replicate on a mesh axis, and nothing says "
            "how it arrives there; write to_local<grad<partial<>>>(x) if ranks use their blocks differently (each one's gradient "
            "is a summand), to_local<grad<replicate>>(x) if all do the same, one placement per mesh axis or on<axis, placement>")
SHARDWISE_X(opaque_placements,
            "opaque: the operands are placed differently on a mesh axis, so that a rank would compute with parts that do not "
            "belong together, and the result's placement could not be told; redistribute them so that on each axis all are whole "
            "or all are the same shard, redistribute<axis, replicate>(operand), or make one that is whole beside shards of the first "
            "operand reduced, since each rank gives a summand of its gradient: redistribute<axis, reduced>(operand)")
SHARDWISE_X(opaque_adjoint,
            "opaque: the function has a member adjoint that cannot be called with its blocks; make it a static member template, "
            "of which adjoint<k>(dx, dy, x...) writes the cotangent of operand k: template <int K> static void "
            "adjoint(std::span<T> dx, std::span<const T> dy, std::span<const T>... x), one x an operand")
SHARDWISE_X(opaque_too_many,
            "opaque: the function calls more than 8 opaque functions; merge some of them, or split the function")
SHARDWISE_X(convolution_rank,
            "conv2d: images are of four dims (batch, channels, height, width), weights of four (outputs, channels of a group, kernel "
            "height, kernel width); reshape the operand, with a batch of one if there is none")
SHARDWISE_X(convolution_channels,
            "conv2d: the image's channels are not those of the weight times the groups; give the weight (outputs, channels / groups, "
            "kernel height, kernel width)")
SHARDWISE_X(convolution_groups, "conv2d: the groups do not divide the outputs; give a weight of a multiple of them")
SHARDWISE_X(convolution_kernel,
            "conv2d: the kernel, with its dilation, is larger than the padded image; give a larger padding or a smaller kernel")
SHARDWISE_X(convolution_options, "conv2d: stride, dilation and groups are at least 1 and padding at least 0, all but groups at most 32767; correct the "
            "options")
SHARDWISE_X(convolution_same, "conv2d: same padding keeps height and width at a stride of 1 alone; give the padding as numbers, or a stride of 1")
SHARDWISE_X(convolution_dyn, "conv2d: a run-time extent may be the batch's alone; give channels, sizes and kernels static extents")
SHARDWISE_X(convolution_placements,
            "conv2d: images and weights are cut along the batch, height or width (the weight reduced; height and width each by one axis, "
            "in equal shards, of at most 65535 elements and windows that reach at most 127 beyond), along outputs (the image reduced) or along the channels of both, which gives a partial result, and with "
            "groups not along channels; redistribute an operand so")
SHARDWISE_X(pool_rank, "max_pool2d, avg_pool2d, interpolate: images are of four dims (batch, channels, height, width); reshape the operand, with a batch of one "
            "if there is none")
SHARDWISE_X(pool_options, "max_pool2d, avg_pool2d: kernel, stride and dilation are at least 1, padding at most half of a window and divisor_override not negative, all "
            "but that at most 32767, and means have no dilation; correct the options")
SHARDWISE_X(pool_kernel,
            "max_pool2d, avg_pool2d: the kernel is larger than the padded image, the image has no row or no column, or a dilated window none of its "
            "elements; "
            "give a smaller kernel or a larger image")
SHARDWISE_X(pool_dyn, "max_pool2d, avg_pool2d, interpolate: height and width are static extents; give a run-time extent to the batch or to the channels")
SHARDWISE_X(pool_placements,
            "max_pool2d, avg_pool2d: images are cut along the batch, the channels, height or width "
            "(these each by one axis, in equal shards, of at most 65535 elements and windows that reach at most 127 beyond), and a partial one has no largest elements; redistribute the operand so")
SHARDWISE_X(pool_positions, "max_pool2d: positions are an int32 tensor with the extents of the windows' results; give those that max_pool2d_with_indices "
            "gave")
SHARDWISE_X(interpolation_options,
            "interpolate: sizes, and a factor's numerator and denominator, are from 1 to 1073741823, image and result have pixels, and "
            "align_corners goes with bilinear alone; correct the size, the factor or the option")
SHARDWISE_X(interpolation_placements,
            "interpolate: images are cut along the batch or the channels, and, each by one axis in equal shards, along height and width where the "
            "result has a whole number of pixels for one of the image, or one for a whole number, of at most 85, and no more than 65535 along it; redistribute the operand so, or "
            "take such a size")
SHARDWISE_X(channel_norm_rank,
            "batch_norm, group_norm: tensors are of at least two dims (batch, channels, ...); reshape the operand, with a batch of one if "
            "there is none")
SHARDWISE_X(channel_norm_dyn,
            "batch_norm, group_norm: a run-time extent may be the batch's alone; give channels, height and width static extents")
SHARDWISE_X(channel_norm_weight,
            "batch_norm, group_norm: weight, bias and running statistics are of one dim with a number for each channel; give them the "
            "channels' extent")
SHARDWISE_X(channel_norm_statistics,
            "batch_norm, group_norm: the statistics, or a gradient, are not those of the tensor's extents; call batch_norm or group_norm, "
            "which make them")
SHARDWISE_X(channel_norm_placements,
            "batch_norm, group_norm: tensors are cut along channels, with weight and bias cut alike and no group cut through, or along any "
            "other dim, with weight and bias reduced there, and are not partial; redistribute an operand so")
SHARDWISE_X(batch_norm_values,
            "batch_norm: training needs more than 1 value per channel, since one value is its own mean; give a larger batch or image, or "
            "evaluate")
SHARDWISE_X(group_norm_groups, "group_norm: the groups do not divide the channels; give at least 1 group, of equally many channels each")
SHARDWISE_X(extreme_empty,
            "max, min: the dim has no elements, so nothing is the largest or the smallest; name a dim that has some")
SHARDWISE_X(extreme_placements,
            "max, min: the dim is sharded, or the operand partial, and a rank's largest element is not the largest of all; redistribute "
            "the operand to shards of other dims, or whole (amax alone gives partial<reduction::max> over a sharded dim)")
SHARDWISE_X(custom_too_many,
            "call: the program calls more than 16 different custom operations; give one of them an attribute that chooses, or "
            "split the program")
SHARDWISE_X(custom_name,
            "call: a custom operation's name is a word of letters, digits and underscores that is no operation's or collective's of "
            "the library and does not end in an underscore and a number, so that a graph's names are its nodes' own; give .name "
            "another word")
SHARDWISE_X(custom_name_twice,
            "call: two custom operations of one program have the same name, so that names of nodes would say nothing; give one of "
            "them another .name")
SHARDWISE_X(custom_operand_count, "call: a custom operation has from one to eight operands; put several into one tensor, or split it")
SHARDWISE_X(custom_operands,
            "call: the custom operation takes another number of operands; its record says how many (.operands), give it as many "
            "tensors")
SHARDWISE_X(custom_record,
            "call: a custom operation is pointwise or computed, moves or computes elements of its operands' type, draws no "
            "random numbers and writes into no operand; make its record with operations::pointwise or operations::by_rows")
SHARDWISE_X(custom_placements,
            "call: no row of the custom operation's record admits these placements on a mesh axis; redistribute an operand so that "
            "one does, or add the row, and its proof")
SHARDWISE_X(result_record,
            "call: a custom operation with several results is computed, has 2 to 8 of them (.results), a shape that takes the "
            "result's number, and rows that are results_rows; make its record with operations::by_rows of such functions")
SHARDWISE_X(result_rows,
            "call: a row of the custom operation's record does not place as many results as it has; write {{operands...}, "
            "{results...}} with a placement for each result in every row")
SHARDWISE_X(result_type,
            "call: of several results the first has the operands' element type, and each other one has that or is int32; return "
            "such a spec from the record's shape, and put int32 results behind the values")
SHARDWISE_X(result_number,
            "call: the operation has no result of this number; results are counted from 0, and its record says how many there are "
            "(.results)")
SHARDWISE_X(adjoint_nodes,
            "call: an adjoint appends more nodes than it states; state in pulled<N>, or by a function of the operand and the specs, how many "
            "it appends at most for one operand: one for each make, and one more for each operand of that which may not lie contiguously")
SHARDWISE_X(adjoint_dy,
            "call: an adjoint reads dy of an operation with several results, each of which has a cotangent of its own; ask has(k) "
            "whether the gradient depends on result k, and cotangent(k) for its node")
SHARDWISE_X(result_formula,
            "call: a formula computes one result; specialise shardwise::host_kernel<operation> (and shardwise::device_kernel"
            "<operation> for GPUs) for an operation with several")
SHARDWISE_X(local_map_operand,
            "local_map: an operand is not placed as in_placements says (or is cut elsewhere than another one); redistribute it, or "
            "name the placement that it has")
SHARDWISE_X(local_map_result,
            "local_map: on a mesh axis where an operand is cut or partial the result is shard or partial, and where all are whole it "
            "is whole: ranks see no more than their blocks; name such a placement in out_placements")
SHARDWISE_X(local_map_whole,
            "local_map: an operand is replicate on an axis that cuts another one, so ranks would use it in their own ways and its "
            "gradient would not be equal on all; write reduced for it there")
SHARDWISE_X(custom_kernel,
            "call: the custom operation has no kernel here; specialise shardwise::formula<operation> if it is elementwise, else "
            "shardwise::host_kernel<operation> (and shardwise::device_kernel<operation> for GPUs)")
SHARDWISE_X(opaque_gradient,
            "opaque: a gradient is asked for through an opaque function, of which nothing is known; give it an "
            "adjoint for that operand (template <int K> static void adjoint(std::span<T> dx, std::span<const T> dy, "
            "std::span<const T>... x), see graph/functions/opaque.hpp), write it with shardwise operations, or ask for gradients of "
            "inputs that do not pass through it")
SHARDWISE_X(opaque_adjoint_placements,
            "opaque: a gradient is asked for of a replicate operand where the function's result is reduced on a mesh axis, so that "
            "each rank's adjoint gives a summand where all must have the sum; make the operand reduced there, or the first one "
            "replicate: redistribute<axis, reduced>(operand)")
SHARDWISE_X(gradient_missing,
            "gradient: a gradient is asked for through an operation that has no adjoint (an adjoint itself, an update, or "
            "what a pass has written); write the value with operations that have one, or ask for gradients of inputs that "
            "do not pass through it")
SHARDWISE_X(opaque_backend,
            "opaque: an opaque function runs on the host, and the step's backend calls none there; give the step sw::host_backend or "
            "sw::cuda_backend, write the function with shardwise operations, or say calls_host_functions in a backend of your own that "
            "does")
SHARDWISE_X(function_outputs,
            "function: it returns nothing that is an output of a program; return one tensor, a std::tuple of tensors, or "
            "sw::outputs of named ones")
SHARDWISE_X(gradient_input,
            "gradient: the input named here does not exist, has integer elements, or is partial with a reduction other "
            "than sum and avg; name floating-point inputs by their position")
SHARDWISE_X(gradient_unused,
            "gradient: the first output does not depend on the input named here, so its gradient is zero; remove it from "
            "wrt<...>")

// --- modules and plans -----------------------------------------------------------------------------------------------

SHARDWISE_X(program_plan,
            "program: what is given where the plan belongs is no plan<...>; the order is train_step<Model, Task, Plan, Mesh, "
            "Optimizer, Pipeline, float, Backend>, and styles and entries stand in a plan: plan<data_parallel<axis>, at<path, "
            "colwise<axis>>>")
SHARDWISE_X(program_mesh,
            "program: what is given where the mesh belongs is no mesh<...>; the order is train_step<Model, Task, Plan, Mesh, "
            "Optimizer, Pipeline, float, Backend>, forward_step the same without Optimizer, function_step<F, Mesh, Inputs>, and a "
            "mesh is mesh<axes...>: name it there")
SHARDWISE_X(program_optimizer,
            "program: what is given where the optimizer belongs is none; the order is train_step<Model, Task, Plan, Mesh, Optimizer, "
            "Pipeline, float, Backend>: write sgd<>, adam<>, adamw<> or clip_norm of one of them before the pipeline")
SHARDWISE_X(schedule_numbers,
            "schedule_of: the schedule's numbers make no rates: rates and factors are finite and at least 0, numbers of steps at least 1, "
            "one_cycle_schedule's rising from 0 to 1 and its divisors above 0; correct them")
SHARDWISE_X(sgd_momentum,
            "sgd: its argument says whether there is momentum, and is a number here; the momentum itself is a value of the run: "
            "write sgd<true>, and set step_env::momentum")
SHARDWISE_X(sgd_nesterov,
            "sgd: Nesterov's form goes a further share of the momentum, and there is none; write sgd<true, sgd_form::nesterov>")
SHARDWISE_X(sgd_dampening,
            "sgd: dampening lessens the gradient's share of the momentum, and there is none; write sgd<true, sgd_form::dampened>, or "
            "sgd<> without it")
SHARDWISE_X(sgd_nesterov_dampened,
            "sgd: Nesterov's form and dampening exclude each other, as in torch.optim.SGD; write sgd<true, sgd_form::nesterov> or "
            "sgd<true, sgd_form::dampened>")
SHARDWISE_X(amsgrad_moments,
            "amsgrad: what it keeps is the largest of Adam's second moments, and this optimizer has none; write amsgrad<adam<>> or "
            "amsgrad<adamw<>>, and clip_norm, clip_value and maximize around it")
SHARDWISE_X(muon_group,
            "muon: it names a group of parameters to be updated by AdamW that the plan does not have; name one of the plan's, or add it "
            "there: param_group<name, patterns...>")
SHARDWISE_X(clip_value_order,
            "clip_value: values are clipped behind the norm, which is that of gradients as they come; clip_norm stands outside: write "
            "clip_norm<clip_value<...>>")
SHARDWISE_X(program_pipeline,
            "program: what is given where the pipeline belongs is no pipeline<...>; passes are listed in one, pipeline<pass, ...>, "
            "even a single one, and an optimizer is an argument of train_step alone: forward_step and function_step go without")
SHARDWISE_X(program_element,
            "program: what is given where the element type of the parameters belongs is neither float nor double; write it between "
            "the pipeline and the backend: train_step<Model, Task, Plan, Mesh, Optimizer, Pipeline, float, Backend>")
SHARDWISE_X(program_low_precision,
            "program: parameters and optimizer states are to be stored in elements of two bytes, in which small updates are lost; "
            "give float there, and let modules compute in the type wanted by the plan: plan<mixed<sw::bf16>, ...>")
SHARDWISE_X(program_backend,
            "program: what is given where the backend belongs, as the last argument, is none; write host_backend or cuda_backend, or "
            "leave it out")
SHARDWISE_X(program_inputs,
            "program: there is no list of inputs; a task declares it, using inputs = sw::inputs<...>, and function_step takes it after "
            "the mesh: inputs<input_tensor<...>, ...>, with an input_tensor or input_like for each tensor of the call")
SHARDWISE_X(task_call,
            "task: it cannot be called with the model and one tensor for each entry of its inputs; give it as many parameters: "
            "constexpr auto operator()(const auto& model, const auto& x, ...) const, one after the model for each of inputs<...>")
SHARDWISE_X(plan_path_unmatched,
            "plan: this path names no module of the model, and for frozen no parameter; see plan_entry<...> for the path and "
            "nearest<...> for the names that come closest")
SHARDWISE_X(plan_style_of_parameter,
            "plan: this path names a parameter or buffer, and styles and modes apply to modules, as checkpoints do, frozen alone to "
            "a parameter; end the path at the module that has it, whose style places all its parameters and buffers, and of whose "
            "parameters param_group<name, pattern> takes those that match")
SHARDWISE_X(plan_style_wrong_module,
            "plan: this style does not apply to the module that the path names; colwise and rowwise apply to linear and "
            "embedding, sequence_parallel to layer_norm and rms_norm; a list takes none: name its "
            "elements, for example with '.*'")
SHARDWISE_X(plan_axis_not_in_mesh,
            "plan: a style names a mesh axis that the mesh does not have; name one of the axes in mesh<...>")
SHARDWISE_X(plan_style_twice,
            "plan: two styles of one entry place the parameters of a module on the same mesh axis; keep one of them")
SHARDWISE_X(plan_not_an_entry,
            "plan: an entry is neither at<path, styles...> nor a style of the whole model such as data_parallel<axis>, or "
            "what at<path, ...> lists is no style; name the module that a style is for: at<path, style>, with an empty path "
            "for the model itself, and a style for a placement: colwise<axis> or rowwise<axis> instead of shard<d>")
SHARDWISE_X(plan_entry_without_style,
            "plan: an entry names a path and no style, and would do nothing; give it the styles of the modules there, as in "
            "at<path, colwise<axis>>, or take it out")
SHARDWISE_X(plan_mode_beside,
            "plan: an entry names a mode, frozen or a param_group beside something else; a style holds for the modules that the "
            "path names, these for all below them too: give each an entry of its own, at<path, eval_mode>")
SHARDWISE_X(mixed_type,
            "mixed: an element type is given that is no floating-point number; modules compute in sw::bf16, sw::f16, float or "
            "double: mixed<sw::bf16>")
SHARDWISE_X(mixed_option,
            "mixed: an option is given that it does not have; it has reduce_dtype<T>, output_dtype<T> and cast_forward_inputs<false>: "
            "keep those")
SHARDWISE_X(mixed_option_twice, "mixed: an option is given twice, and says one thing of the modules named; keep one of the two")
SHARDWISE_X(mixed_buffer,
            "mixed: the path names a buffer, and buffers stay in the element type of the step; name the module that has it, or "
            "parameters, or cast the buffer where it is read: cast<sw::bf16>(buffer)")
SHARDWISE_X(mixed_output,
            "mixed: output_dtype is said of a list or of a parameter, which is not called and returns nothing; name the module "
            "whose output is meant, of a list its elements, with a path that ends in '.*', or leave output_dtype out")
SHARDWISE_X(mixed_result,
            "mixed: output_dtype is said of a module whose forward returns no single tensor, so it is not known what is cast; cast "
            "in its forward, and leave output_dtype out")
SHARDWISE_X(mixed_eager,
            "mixed: a module of an eager model is called while the plan stores its parameters in another element type than it "
            "computes in, and nothing casts them there; compute gradients with value_and_grad and results with a forward_step, or "
            "bind the model without mixed")
SHARDWISE_X(dynamic_scale_factor,
            "dynamic_loss_scale: its scale, growth or backoff is not a power of two (the backoff of at least 2), so that gradients "
            "would be rounded when they are divided; give such numbers, as dynamic_loss_scale<65536, 2000, 2, 2> has")
SHARDWISE_X(dynamic_scale_interval,
            "dynamic_loss_scale: its interval is not between 1 and 2^24 steps, which floats count one by one; give such a number, "
            "as dynamic_loss_scale<65536, 2000> has")
SHARDWISE_X(dynamic_scale_eager,
            "value_and_grad: the plan has a dynamic_loss_scale, whose state a train_step keeps and adjusts, and an eager model has "
            "none; train with train_step, or give the plan a loss_scale<1024>")
SHARDWISE_X(scaler_state_missing,
            "scaler_state: the program keeps none, because its plan has no dynamic_loss_scale or nothing is trained; add "
            "dynamic_loss_scale<> to the plan of a train_step, or do not ask")
SHARDWISE_X(gradient_norm_missing,
            "gradient_norm: the program keeps none, because its optimizer does not report it or nothing is trained; wrap the optimizer "
            "of the train_step, as in report_norm<clip_norm<adamw<>>>, or do not ask")
SHARDWISE_X(loss_scale_factor,
            "loss_scale: its factor is not a power of two, so that gradients would be rounded when they are divided by it; "
            "give 1, 2, 4, ..., such as loss_scale<65536>")
SHARDWISE_X(reduce_within_ranks, "reduce_within: the number of ranks is less than 1; give how many ranks may sum elements of two bytes")
SHARDWISE_X(precision_twice,
            "plan: loss_scale or reduce_within is given more than once, and a program has one of each; keep one")
SHARDWISE_X(data_parallel_option,
            "data_parallel: an option is given that it does not have; it has average_gradients, shard_optimizer_states and "
            "buckets<mebibytes>")
SHARDWISE_X(data_parallel_option_twice, "data_parallel: an option is given twice; keep one of the two")
SHARDWISE_X(data_parallel_buckets,
            "data_parallel: a bucket of gradients is to hold a number of mebibytes that is less than 1 or more than 1048576; "
            "buckets<25>, or buckets<>, is PyTorch's bucket_cap_mb")
SHARDWISE_X(data_parallel_buckets_states,
            "data_parallel: buckets hold gradients that are all-reduced, and with shard_optimizer_states they are reduce-scattered, "
            "those of a module side by side; keep one of the two options")
SHARDWISE_X(buckets_mixed,
            "plan: of the styles that split the batch over one mesh axis some put gradients into buckets and others do not, or into "
            "others; a bucket takes the gradients of all modules as they come, so give all of these styles the same buckets<...>, "
            "or none")
SHARDWISE_X(buckets_twice,
            "plan: data_parallel has buckets, and the pipeline a pass that puts gradients into buckets too; leave out the pass, or the "
            "option buckets")
SHARDWISE_X(average_gradients_mixed,
            "plan: of the styles that split the batch over one mesh axis some average gradients and some sum them, and one loss "
            "has one gradient; give average_gradients to all of them or to none")
SHARDWISE_X(fully_shard_option,
            "fully_shard: an option is given that it does not have; it has reshard_after_forward<...>, shard_over<axis>, "
            "replicate_over<axis>, average_gradients and flat_parameters")
SHARDWISE_X(fully_shard_option_twice, "fully_shard: an option is given twice; keep one of the two")
SHARDWISE_X(fully_shard_hybrid_axes,
            "fully_shard: parameters are to be sharded and replicated over one and the same mesh axis; hybrid sharding takes two: "
            "fully_shard<shards, replicate_over<copies>>")
SHARDWISE_X(fully_shard_groups,
            "fully_shard: parameters are to be kept over some of the ranks after the forward pass, and these ranks are no axis of "
            "the mesh; make it two axes, the second of as many ranks as are to keep them, and split the batch over both: "
            "fully_shard<outer, shard_over<inner>, reshard_after_forward<inner::size>>")
SHARDWISE_X(fully_shard_same_axis,
            "fully_shard: parameters are to be split twice over one mesh axis; shard_over names a second one, or leave it out: "
            "fully_shard<outer, shard_over<inner>>")
SHARDWISE_X(fully_shard_list,
            "fully_shard: the path names a list of modules, which has no forward of its own, so there is no time at which its "
            "parameters would be gathered; name its elements, for example with '.*', each of which becomes a group")
SHARDWISE_X(fully_shard_twice,
            "fully_shard: one entry of the plan has it twice, and a parameter belongs to one group; keep one, with "
            "shard_over<axis> or replicate_over<axis> for a second axis over which the batch is split")
SHARDWISE_X(fully_shard_beside_data_parallel,
            "plan: parameters are stored whole on a mesh axis by data_parallel and in shards by fully_shard; keep one of them: "
            "fully_shard<axis> as an entry of its own is a group of all parameters that no other one has")
SHARDWISE_X(fully_shard_placed,
            "fully_shard: a style of the module already places this tensor on a mesh axis over which the module's group splits the "
            "batch; give the style another axis of the mesh, or keep fully_shard from the module")
SHARDWISE_X(fully_shard_eager,
            "fully_shard: a module of an eager model is called while its parameters are stored in shards, and nothing gathers them "
            "there; compute gradients with value_and_grad and results with a forward_step, or bind the model with data_parallel")
SHARDWISE_X(flat_parameters_axes,
            "fully_shard: flat_parameters are split over one axis, and shard_over names a second one; leave that out, or leave out "
            "flat_parameters")
SHARDWISE_X(flat_parameters_beside,
            "fully_shard: the plan has flat_parameters, and beside them mixed, frozen, param_group, accumulate, keep_gradients or "
            "shard_optimizer_states, which treat each parameter by itself; leave that out, or leave out flat_parameters")
SHARDWISE_X(flat_parameters_placed,
            "fully_shard: a parameter of a group with flat_parameters is split by a style of its module; keep the style from the "
            "module, give the module a fully_shard of its own without flat_parameters, or leave out flat_parameters")
SHARDWISE_X(flat_parameters_differ,
            "fully_shard: of the parameters of a group with flat_parameters a style reduces the gradients of some over a mesh axis over "
            "which those of the others are not reduced; give the module of the style a fully_shard of its own, or leave out "
            "flat_parameters")
SHARDWISE_X(flat_parameters_decay,
            "fully_shard: the optimizer decays matrices alone, and in flat_parameters matrices and vectors are one; let it decay all, "
            "or leave out flat_parameters")
SHARDWISE_X(flat_parameters_muon,
            "fully_shard: muon makes the steps of matrices orthogonal, and flat_parameters has none: matrices and vectors are one there; "
            "leave out flat_parameters, or take adamw<>")
SHARDWISE_X(flat_parameters_eager,
            "fully_shard: an eager model is bound with a plan with flat_parameters, and its parameters are tensors of their own; leave "
            "out flat_parameters in its plan, which computes the same")
SHARDWISE_X(flat_parameters_iterated,
            "iterated: the step has flat_parameters, whose update cannot be moved parameter by parameter; leave out flat_parameters, or run "
            "the step itself")
SHARDWISE_X(checkpoint_of_list,
            "plan: a checkpoint is given to a list, which is not called as one; give it to the list's elements, by a path "
            "that ends in '.*', or to the module that has the list")
SHARDWISE_X(checkpoint_twice,
            "plan: an entry lists several checkpoints, which say different things of what a module keeps; keep one of checkpoint, "
            "checkpoint_except<...> and checkpoint_only<...>")
SHARDWISE_X(checkpoint_of_nothing,
            "checkpoint_only: no operation is named, so nothing would be computed again; name those that are, such as gelu, or "
            "take the checkpoint out of the plan")
SHARDWISE_X(checkpoint_operation,
            "plan: a checkpoint names what is no operation of the library or of the program; name operations as the program's text "
            "prints them, such as einsum or all_gather; nearest<...> has the names that come closest")
SHARDWISE_X(checkpoint_depth,
            "plan: more than 31 checkpoints lie in each other; leave out some of the inner ones")
SHARDWISE_X(param_group_unnamed, "param_group: its name is empty; name the group: param_group<name, patterns...>")
SHARDWISE_X(param_group_unmatched,
            "plan: this param_group has no parameter: below the modules that its path names no parameter has a name like its "
            "patterns, so nothing would be updated by it; see plan_entry<...> for the entry and nearest<...> for the parameters' "
            "names that come closest")
SHARDWISE_X(param_group_overruled,
            "plan: every parameter that this param_group names is in the group of a later entry, or of one with a path, so nothing "
            "would be updated by it; order the entries, or narrow the later one's path or patterns")
SHARDWISE_X(param_group_frozen,
            "plan: this param_group names a parameter that is frozen, which no optimizer updates; narrow the entry to what is "
            "trained, with at<path, param_group<...>> or its patterns, or take what is frozen out of the one with the group")
SHARDWISE_X(frozen_nothing,
            "plan: this entry freezes modules that have no parameters, or a buffer, and would do nothing; name a parameter, or "
            "modules that have some, or take it out")
SHARDWISE_X(param_group_unknown,
            "group: the plan has no param_group of this name; see the groups that it has, or name it there: "
            "param_group<name, patterns...>")
SHARDWISE_X(param_group_other,
            "run: the numbers that are given are for groups of parameters that this program's plan does not have; declare them for "
            "the program: env_of<step> env")
SHARDWISE_X(all_frozen,
            "train_step: the plan freezes every parameter of the model, so there is nothing to train; take a forward_step, or "
            "freeze the modules and parameters that are not trained: at<path, frozen>")
SHARDWISE_X(accumulate_count,
            "accumulate: the number of micro-batches is less than 1; name into how many pieces each rank's rows are cut, as in "
            "accumulate<4>, or take it out of the plan")
SHARDWISE_X(accumulate_twice,
            "plan: accumulate is given more than once, and a step has one number of micro-batches; keep one of them")
SHARDWISE_X(accumulate_rows,
            "accumulate: each rank's rows of an input (dim 0) are not cut into this many equal micro-batches; make the extent a "
            "multiple of the number of micro-batches times the ranks that split the dim, take another number, or give the input "
            "whole to every micro-batch: accumulate<n, whole_inputs<i>>")
SHARDWISE_X(accumulate_without_rows,
            "accumulate: an input has no rows to cut: it is a scalar, or its dim 0 has a run-time extent; give it whole to every "
            "micro-batch, accumulate<n, whole_inputs<i>>, or give the dim its extent")
SHARDWISE_X(accumulate_blocks,
            "accumulate: dim 0 of an input is split by blocks of several rows, or in strides, and micro-batches are cut from equal, "
            "plain shards of rows; split it by shard<0>, or give it whole to every micro-batch: accumulate<n, whole_inputs<i>>")
SHARDWISE_X(accumulate_whole_input,
            "accumulate: whole_inputs names an input that the task does not have; number them from 0 in the order of the task's "
            "inputs")
SHARDWISE_X(accumulate_nothing,
            "accumulate: the task has no input that is cut, so all micro-batches would be the same; take accumulate out of the "
            "plan, or one of the inputs out of whole_inputs")
SHARDWISE_X(keep_gradients_option,
            "keep_gradients: an option given is none of its options; of gradients in shards there is no_sync: keep_gradients<>, "
            "keep_gradients<no_sync>")
SHARDWISE_X(keep_gradients_twice,
            "plan: keep_gradients is given more than once, and a step keeps one sum of each gradient; keep one of them")
SHARDWISE_X(keep_gradients_scaled,
            "plan: keep_gradients stands beside a dynamic_loss_scale, which a step adjusts by the gradients of one run, and sums of several "
            "are kept; give a loss_scale<1024>, or accumulate<N>, which has all pieces in one run")
SHARDWISE_X(keep_gradients_missing,
            "executor: accumulate, update and zero_gradients are for programs that keep gradients from run to run, and this one does "
            "not; call run(env), or put keep_gradients<> into the plan of its train_step")
SHARDWISE_X(keep_gradients_iterated,
            "iterated: the step keeps gradients from run to run (keep_gradients), and its updates run when they are asked for, not in "
            "the next iteration; take keep_gradients out of the plan, or run the step without moves")
SHARDWISE_X(plan_too_large, "plan: more than 32 entries; merge entries with '*' in their paths")
SHARDWISE_X(colwise_input,
            "colwise: the input must be replicate or reduced on the style's axis; gather it with the option "
            "input<shard<d>>, or with prepare_input, or redistribute before the call")
SHARDWISE_X(rowwise_input,
            "rowwise: the input must be sharded along its last dim on the style's axis, or whole there; precede it by "
            "a colwise module or write redistribute<axis, shard<last>>(input) (an embedding's indices must be whole: gather "
            "them with the option input<shard<d>>, or redistribute before the call)")
SHARDWISE_X(sequence_parallel_input,
            "sequence_parallel: the input must be sharded along the sequence dim on the style's axis; redistribute it "
            "there first")
SHARDWISE_X(style_declared_input,
            "style: the input is not placed as the style's input<...> option declares; declare the placement that "
            "arrives, or redistribute before the call")
SHARDWISE_X(module_input,
            "module: the input's last dim differs from the module's number of input features; change the module's "
            "size or reshape the input")
SHARDWISE_X(module_members_missing,
            "module: it has data, but registers no members, so a plan cannot reach them; declare them in public as "
            "SHARDWISE_MEMBERS(Bound, (type, name), ...)")
SHARDWISE_X(module_base,
            "module: it does not derive from sw::module<itself, its binding>; write: template <class Bound = sw::unbound> "
            "struct name : sw::module<name<Bound>, Bound>, with its own name twice and the Bound that it is given")
SHARDWISE_X(module_member_kind,
            "module: a registered member is neither a module, nor a list of modules (sw::repeat), nor an sw::parameter; "
            "register only those, and declare other data beside them")
SHARDWISE_X(child_index,
            "child: a member is bound with another index than its place among the registered members, from 0; hand it "
            "sw::child<Bound, required>, or declare the members as SHARDWISE_MEMBERS(Bound, (type, name), ...), which counts "
            "by itself")
SHARDWISE_X(child_forgotten,
            "child: a member is not bound, so a plan cannot reach its parameters; hand it sw::child<Bound, required>, or "
            "declare the members as SHARDWISE_MEMBERS(Bound, (type, name), ...), which binds by itself")
SHARDWISE_X(child_of_no_binding,
            "child: its first argument, or that of SHARDWISE_MEMBERS, is not the module's binding; write the Bound of template "
            "<class Bound = sw::unbound>: SHARDWISE_MEMBERS(Bound, (type, name), ...)")
SHARDWISE_X(member_template,
            "members: a module's template stands where a member's type belongs; give it its arguments, which may be none, as in "
            "(block<>, name)")
SHARDWISE_X(module_binding_hidden,
            "module: which of its template arguments is the binding cannot be told, since they are not values and types with "
            "one sw::unbound; declare in it: template <class B> using rebound = name<..., B>")
SHARDWISE_X(module_unbound,
            "module: it is called, but no plan has bound it: it is no registered member of the module that calls it; add it "
            "to that module's SHARDWISE_MEMBERS (with BOOST_HANA_DEFINE_STRUCT, hand it its sw::child<Bound, index>)")
SHARDWISE_X(hana_not_included,
            "module: its members are registered by BOOST_HANA_DEFINE_STRUCT, which the library reads with one more header; write "
            "#include <shardwise/module/hana.hpp> before it, or register them by SHARDWISE_MEMBERS")
SHARDWISE_X(parameter_unregistered,
            "module: a parameter is used that is no registered member of its module, or is a member of a module that is "
            "none; list every parameter and module that forward uses in SHARDWISE_MEMBERS(Bound, (type, name), ...)")
SHARDWISE_X(module_forward_missing,
            "module: it is called and has no forward; declare in public: constexpr auto forward(const auto& x) const")
SHARDWISE_X(module_forward_const,
            "module: its forward is not const, and a model does not change while it runs; write: constexpr auto forward(const "
            "auto& x) const")
SHARDWISE_X(module_forward_void,
            "module: its forward returns nothing; end it with a return of the module's result")
SHARDWISE_X(module_needs_tensor,
            "module: it is called with something that is no tensor; make a tensor of plain values with from_local or "
            "distribute, and pass it first")
SHARDWISE_X(parameter_partial,
            "style: a parameter would be partial on a mesh axis, and every rank would update its summand by the whole gradient; "
            "a style places parameters replicate, reduced or shard")
SHARDWISE_X(buffer_partial,
            "style: a buffer would be partial on a mesh axis, and its initial value would be counted once a rank; a style places "
            "buffers replicate, reduced or shard")
SHARDWISE_X(mode_unsaid,
            "training: the module does not know whether it trains, since no program has bound it; make it a registered member of "
            "the model of a train_step or forward_step, or say it in the plan that it is bound with: plan<train_mode>")
SHARDWISE_X(mode_expected,
            "with_mode: what is given where the mode belongs is none; give train_mode or eval_mode: with_mode<eval_mode>(model)")
SHARDWISE_X(shared_parameters_differ,
            "with_parameters_of: the two programs do not have the same parameters and buffers: one of them has another name, shape, "
            "element type or number; give both one model")
SHARDWISE_X(shared_parameters_placed,
            "with_parameters_of: a parameter or buffer lies otherwise in the two programs, so that one block cannot be both; give both "
            "one plan, and the program that evaluates no pass that moves parameters, or copy them with copy_parameters")
SHARDWISE_X(shared_parameters_mesh,
            "with_parameters_of: the two programs are of different meshes; give both one mesh, or copy with copy_parameters")
SHARDWISE_X(shared_parameters_written,
            "with_parameters_of: the program writes into parameters or buffers, which would be the other program's; let its modules "
            "evaluate (eval_mode), or give it its own with copy_parameters")
SHARDWISE_X(shared_parameters_executor,
            "executor: the program's parameters are those of another program's executor (with_parameters_of), and an executor of that "
            "program is not given; write executor<with_parameters_of<judge, step>> test(rank, run), run an executor<step> of this rank")
SHARDWISE_X(copied_parameters_differ,
            "copy_parameters: the two programs do not have the same parameters: one of them has another name, shape, element "
            "type or number; copy between programs of one model, or one by one with gather_parameter and set_parameter")
SHARDWISE_X(copied_parameters_placed,
            "copy_parameters: a parameter is placed differently in the two programs, so that its blocks are not the same part "
            "of it, and this rank has no peers to take the rest from; give both programs one plan, or run on ranks that are there")
SHARDWISE_X(copied_buffers_differ,
            "copy_parameters: the two programs have the same parameters and not the same buffers: one of them has another name, "
            "shape, element type or number; copy between programs of one model, or one by one with set_parameter, and "
            "gather_buffer and set_buffer")
SHARDWISE_X(copied_buffers_placed,
            "copy_parameters: a buffer is placed differently in the two programs, so that its blocks are not the same part of it, "
            "and this rank has no peers to take the rest from; give both programs one plan, or run on ranks that are there")
SHARDWISE_X(copied_ranks_differ,
            "copy_parameters: the two programs are of meshes with different numbers of ranks, of which none is both; carry over "
            "what one holds whole, with full_parameter and set_parameter, full_state and set_state")
SHARDWISE_X(copied_states_differ,
            "copy_state: the two programs do not keep the same states of the same parameters; give both one optimizer, the same frozen "
            "modules, and both or neither fused_optimizer or foreach_optimizer, whose lists count steps")
SHARDWISE_X(weight_unmapped,
            "weight_names: this parameter or buffer of the program has no name in the file; add an entry for it, "
            "named_as<path, name>, in which * stands for a number")
SHARDWISE_X(weight_mapped_twice,
            "weight_names: this parameter or buffer of the program has several entries, of which one is its name in the file; "
            "leave the others out, or let their paths name fewer parameters")
SHARDWISE_X(weight_path_unmatched,
            "weight_names: this path names no parameter or buffer of the program; write it as describe_plan prints it, with * in place "
            "of a number")
SHARDWISE_X(weight_name_numbers,
            "weight_names: the name in the file has more * than the path of its entry, and each stands for a number of the path; write "
            "as many * into the path, or the number itself into the name")
SHARDWISE_X(weight_form_rank,
            "weight_names: the entry of this parameter or buffer says transposed, and it is no matrix, or takes a part along a dim that it "
            "does not have; say transposed of matrices alone, and part_of along one of its dims")
SHARDWISE_X(weight_form_heads,
            "weight_names: the entry of this parameter or buffer says interleaved_heads<Size>, and its dim 0 is not a whole number of heads "
            "of so many rows; give the number of rows of one head")
SHARDWISE_X(launch_ranks_differ,
            "launch: the two meshes have different numbers of ranks, and each thread is a rank of both; give meshes of as many "
            "ranks, or launch one after the other")
SHARDWISE_X(task_result,
            "task: it returns something that is neither a tensor nor named tensors; return the loss, or with metrics beside it "
            "outputs(named<...>(loss), named<...>(accuracy)), the loss first")
SHARDWISE_X(output_named_twice,
            "task: two of its outputs have one name; give each named<...> a name of its own")
SHARDWISE_X(output_unknown,
            "output: the program has no output of this name; name one of those that its task returns as outputs(named<...>(x), "
            "...), which are listed behind it")
SHARDWISE_X(loss_not_scalar,
            "train_step: the loss must be a scalar (rank 0); reduce it with mean or sum over all dims")
SHARDWISE_X(loss_low_precision,
            "train_step: the loss is stored in elements of two bytes, which keep two or three digits of it; cast what it is computed "
            "from to float, cast<float>(y), or let the model return float: mixed<sw::bf16, output_dtype<float>>")
SHARDWISE_X(loss_scale_missing,
            "train_step: gradients flow through sw::f16, in which small ones become zeros, and the plan does not say by what the loss "
            "is scaled; add dynamic_loss_scale<> or loss_scale<65536> to the plan, compute in sw::bf16, or say loss_scale<1>: no scaling is wanted")
SHARDWISE_X(low_precision_sum,
            "program: a tensor with elements of two bytes is summed over more ranks than is allowed, and each summand is rounded to "
            "two or three digits; cast it to float before it is summed, leave reduce_dtype<float> to the plan's mixed, or "
            "allow it in the plan: reduce_within<ranks>")
SHARDWISE_X(loss_not_summable,
            "train_step: the loss is partial with a reduction other than sum, so it is not the sum of the ranks' "
            "losses; return mean(...) or sum(...) of the per-element losses")

SHARDWISE_X(dyn_bounds_differ,
            "step: the program has dyn dims of one run-time size and different bounds; give dims that are equally long the same "
            "dyn<bound>, those that scale with it multiples (reshape keeps them in step), and another size its own number: dyn<bound, 1>")
SHARDWISE_X(dyn_size_left_out,
            "step: the numbers of the program's run-time sizes leave one out; number them from 0, in the order in which resize is "
            "given them: dyn<bound>, dyn<bound, 1>, dyn<bound, 2>")

// --- passes ----------------------------------------------------------------------------------------------------------

SHARDWISE_X(pass_not_a_pass,
            "pipeline: this type is not a pass; a pass declares 'using shardwise_pass = void;' and a member template "
            "run<Source> whose value is the new graph, or a function apply(graph&) that returns a finding")
SHARDWISE_X(pass_not_a_graph,
            "pass: the first argument of the pass must be a graph, and this type has none; give a type whose constant "
            "'value' is a graph: a traced function, a step's graph, or the result of another pass")
SHARDWISE_X(pass_twice, "pipeline: cannot apply a pass twice, and this one is listed twice; remove one")
SHARDWISE_X(pass_too_late,
            "pipeline: passes that are applied already must be applied after this one; list it before those that "
            "must_precede<...> names")
SHARDWISE_X(pass_behind_implied,
            "pipeline: this pass must be applied before implied_pass<...>, which plan_entry<...> of the plan implies and which "
            "is applied right before the pass that must_precede<...> names; list this pass before that one")
SHARDWISE_X(pass_prerequisites,
            "pipeline: the passes that missing_prerequisite<...> names are the prerequisites of this one but are not "
            "applied; list them before it, after those of applied_passes<...>")
SHARDWISE_X(pass_broke_promise,
            "pipeline: a pass changed what it declares to preserve; mend the pass, or take the property out of its "
            "'preserves'")
SHARDWISE_X(memory_budget,
            "rematerialise: The valid ranges for memory budget are 0 <= m <= 1, in percent 0 to 100; give the percentage "
            "of the activations' bytes that may stay")
SHARDWISE_X(descendants_of_nothing,
            "find_all_descendants: No parent nodes are given, or one that the graph does not have; name at least one node "
            "by its id, for example with find_node(graph, name)")
SHARDWISE_X(split_empty,
            "split_fused_optimizer: The given split_gradients is empty. Name at least one gradient by its position in the "
            "block's list")
SHARDWISE_X(split_one_sided,
            "split_fused_optimizer: At least one split optimizer does not have input. Name some of the block's gradients, "
            "but not all of them")
SHARDWISE_X(split_unsupported,
            "split_fused_optimizer: Only fused_adam is supported now, and there is no such block here; list fused_optimizer "
            "before it, and number blocks from 0 in the order of get_all_fused_optimizer_blocks")
SHARDWISE_X(optim_step_missing,
            "optimizer block: Cannot find step node (foreach_add) for the optimizer node within 5 levels of its operands; "
            "let the update read the list of counters that an advance node has counted")
SHARDWISE_X(comm_unknown,
            "iter_move_grads_and_optimizers: Cannot find a communication of that name in the graph; names are those of the "
            "graph's text, such as all_reduce_1")
SHARDWISE_X(comm_unused,
            "iter_move_grads_and_optimizers: that communication is not used by any fused optimizer; name one whose result a "
            "fused update reads, and list fused_optimizer in the pipeline")
SHARDWISE_X(move_destination,
            "move_to_next_iter_before: there is no node of that name in the graph to move before; names are those of the "
            "graph's text, such as relu")
SHARDWISE_X(move_frozen,
            "move_to_next_iter_before: The cross-iteration movement has been frozen for the given iteration; move before it is "
            "finalized")
SHARDWISE_X(move_count,
            "move_to_next_iter_before: more than 8 groups are moved, or a move names more than 16 nodes; name the first node "
            "of what is moved, whose descendants go with it, or move fewer groups")
SHARDWISE_X(move_not_leaf,
            "move_to_next_iter_before: The target nodes must satisfy one of the following conditions: the user of the node is "
            "in the target nodes too, or there is no user; take what find_all_descendants gives")
SHARDWISE_X(move_user_output,
            "move_to_next_iter_before: has not supported moving the nodes that produce users output result; move nodes that "
            "no output of the graph depends on")
SHARDWISE_X(move_hazard,
            "move_to_next_iter_before: a value that a moved update writes is read before it would be written, or one that it "
            "reads is written before; choose an earlier destination, or move updates of parameters that are read later")
SHARDWISE_X(move_numbered,
            "move_to_next_iter_before: a moved node depends on the run's number of the step (an update without counters, or "
            "random draws), which is another one in the next iteration; list fused_optimizer or foreach_optimizer before")
SHARDWISE_X(lowering_admits,
            "partial_lower: the predicate of supported operations admits a collective, a wait, an update or a leaf, which no "
            "subgraph can hold; let it be false where core_operations::holds(graph, node) is")
SHARDWISE_X(graph_cycle,
            "graph: a node reads a node that does not come before it; a pass broke the order: emit operands before "
            "their users")
SHARDWISE_X(graph_full,
            "graph: a pass's result does not fit the capacity of a graph made at run time; make the graph with room for more "
            "nodes and specs, or run the pass on a constant")
SHARDWISE_X(graph_storage,
            "graph: a pack or unpack does not fit its operands: packed values need storage of their own, begin at multiples "
            "of 64 bytes and are placed as the pack is; take packs from emit_pack and slots from its offsets")
SHARDWISE_X(graph_packed_twice,
            "graph: a tensor is placed twice, by one pack or by two, and lies where the last of them says; a pass copied a pack or "
            "packed what was packed before: let all readers unpack the one pack, and leave its operands out of others")
SHARDWISE_X(prefetch_count,
            "prefetch: groups are gathered a number of groups ahead of their use, which is 1 or more; leave the pass out to gather "
            "each group where it is used")
SHARDWISE_X(graph_batch,
            "graph: a batch of collectives is not whole: its members must be neighbours, move elements of one type on one axis by "
            "the same transition, and read none of each other's results, and numbers of batches rise along the graph; a pass took "
            "it apart: apply that pass before batch_collectives")
SHARDWISE_X(graph_results,
            "graph: a node with several results is read as a tensor, or one of its results is named twice or not there; read it "
            "by one getitem node for each result, and nothing else but such a node by getitem")
SHARDWISE_X(graph_unplaced,
            "graph: a node's extents or placement are not what its operation's rule gives for its operands; a pass "
            "broke the graph: take a new node's spec from infer")

SHARDWISE_X(pending_unwaited,
            "redistribute_async: a pending tensor of this program is never waited for; take the tensor with "
            "std::move(p).wait(), or redistribute without async")
SHARDWISE_X(pending_kept,
            "pending: wait() takes the tensor out of the pending one, which is then empty; say so where it is called: "
            "std::move(p).wait()")
SHARDWISE_X(pending_taken,
            "pending: wait() is called on a pending tensor that was waited for already or was moved from; keep the tensor that the "
            "first wait() gave: const auto y = std::move(p).wait()")
SHARDWISE_X(pending_operand,
            "pending: a tensor that is still on its way is given to an operation; operations take tensors that are there: "
            "pass std::move(p).wait()")
SHARDWISE_X(comm_no_output,
            "schedule_comm_wait: Found a allreduce that has zero outputs/users (or another collective that has none); use "
            "its result, or let dead code elimination remove it before")
SHARDWISE_X(comm_wait_too_far,
            "schedule_comm_wait: The wait nodes are too far away from the comm node: a wait reads neither a collective nor "
            "an input through at most 4 views; make it read the collective itself")

// --- mutation --------------------------------------------------------------------------------------------------------

SHARDWISE_X(slice_scatter_shape,
            "slice_scatter: the part has another rank or other extents than the slice that it replaces; give it those of the "
            "tensor, except in the dim that is sliced")
SHARDWISE_X(slice_scatter_placements,
            "slice_scatter: the part is placed otherwise than the tensor that it is written into; redistribute it to the "
            "tensor's placements first")
SHARDWISE_X(mutation_result,
            "in place: the result has other extents, placements or elements than the tensor that it is written to, which keeps "
            "its own; redistribute the other operand to the tensor's placements first, or use the operation without underscore")
SHARDWISE_X(mutation_overlap,
            "in place: more than one element of the written-to tensor refers to a single memory location, as in an expanded "
            "tensor; write to the tensor before it is expanded, or use the operation without underscore")
SHARDWISE_X(mutation_leaf,
            "in place: a leaf Variable that requires grad is being used in an in-place operation, itself or through a view: a "
            "parameter, or an input that a gradient is asked for; use the operation without underscore, whose result is no leaf")
SHARDWISE_X(buffer_gradient,
            "in place: the loss reads a buffer behind a write of what depends on a parameter, and no gradient flows through a "
            "buffer; read the value that is written instead: const auto now = lerp(buffer, mean, 0.1); copy_(buffer, now)")
SHARDWISE_X(set_other,
            "set_: the data has other extents, another element type or other placements than the tensor that is to have its storage; "
            "view or redistribute the data first")
SHARDWISE_X(set_const,
            "set_: the tensor is const, and a const tensor keeps its storage; take it by reference, auto& x")
SHARDWISE_X(set_input_only,
            "set_: only an input of the program can get other storage, itself and not a view of it; what the program computes is a "
            "name: use the data itself from here on")
SHARDWISE_X(set_data,
            "set_: the data is no tensor that the program computes, all of its storage and for this input alone: it is an input, a "
            "parameter or a buffer, or a part of a tensor; add 0 to it, or give a tensor made for this")
SHARDWISE_X(set_written,
            "set_: the tensor or its data is written in place afterwards, which each would have to see in the other; write before "
            "set_")
SHARDWISE_X(set_view,
            "set_: a view of the tensor from before set_ is read afterwards; it is of the old storage, whose values the program does "
            "not keep: read it before, or make the view anew")
SHARDWISE_X(set_differentiated,
            "set_: the program computes gradients, and storage is exchanged in programs without them alone: function_step or "
            "forward_step")
SHARDWISE_X(set_backend,
            "set_: the program is for a backend that does not exchange the storage of inputs; give the step the host's, "
            "sw::host_backend, or copy_ instead")
SHARDWISE_X(mutation_view,
            "functionalise: what is written in place is a view that cannot be written through: an expanded tensor, a detached one, or "
            "the local blocks of a tensor that some axis does not shard; write to the tensor it is a view of")
SHARDWISE_X(mutation_implicit_view,
            "in place: the tensor is a view made of an implicit tensor, which may be redistributed first and is then no part of "
            "it; take the view of the strict tensor, as in relu_(narrow<0, 0, 2>(strict(x))), or use the operation without underscore")
SHARDWISE_X(mutation_updates,
            "functionalise: the graph updates a tensor that it also writes in place; apply functionalise before the optimizer")
SHARDWISE_X(mutation_left,
            "mutation: the graph writes tensors in place, and what a node computes would depend on where it stands; apply "
            "functionalise to it first")

// --- execution -------------------------------------------------------------------------------------------------------

SHARDWISE_X(program_expected,
            "executor: what is given where the program belongs is none; make one of a model with train_step or forward_step (of a "
            "function with function_step or gradient_step), and give that: executor<step>")
SHARDWISE_X(executor_rank,
            "executor: it needs a rank of its program's own mesh, and of the kind that it names, and is given another one, or none; "
            "make it in the function that launch runs on that mesh, launch<mesh>([](auto& rank) { executor<step> run(rank); ... }), "
            "and name another kind of rank: executor<step, std::remove_reference_t<decltype(rank)>>")
SHARDWISE_X(explain_header,
            "executor: SHARDWISE_EXPLAIN is set, and the header by which programs write themselves is not included; include "
            "<shardwise/shardwise.hpp> or <shardwise/cuda.cuh>, or <shardwise/io/explanation/programs.hpp> beside the narrow headers")
SHARDWISE_X(run_without_env,
            "executor: run takes the numbers of the step as one step_env, and is given something else; set its fields: "
            "step_env env; env.lr = 0.01; env.step = 1; run(env)")
SHARDWISE_X(set_input_tensor,
            "set_input: it is given an eager tensor (dtensor); it takes the values of the whole tensor, row-major: "
            "set_input(i, values), as read from full_tensor().to_local().data, or a pending tensor of redistribute_async")
SHARDWISE_X(launch_mesh,
            "launch: what is given where the mesh belongs is no mesh<...>; name the mesh of the program, not the program: "
            "launch<mesh>(f)")
SHARDWISE_X(mesh_choice_sizes,
            "mesh_choice: the number of ranks must say which mesh runs: give at least one mesh<...>, nothing else, and no two of "
            "equally many ranks")
SHARDWISE_X(within_process_axes,
            "within_process: an axis named here is not an axis of the mesh, or is named twice; name axes of mesh<...>, each once: those "
            "whose ranks are threads of one process")
SHARDWISE_X(within_process_choice,
            "launch_mpi: the number of processes must say which mesh runs, and two meshes of the mesh_choice need equally many; let "
            "them differ in the axes that within_process does not name")
SHARDWISE_X(by_nccl_axes,
            "by_nccl: an axis named here is not an axis of the mesh, or is named twice; name axes of mesh<...>, each once: those along "
            "which NCCL connects GPUs; along the others MPI connects their processes")
SHARDWISE_X(launch_function,
            "launch: the function given cannot be called with a rank; it is run once for each and takes it by reference: "
            "launch<mesh>([](auto& rank) { ... })")
SHARDWISE_X(cuda_not_included,
            "launch_cuda: ranks on GPUs are not declared here; include shardwise/cuda.cuh, in a source that nvcc compiles (.cu), and "
            "link shardwise::nccl; ranks as threads of the host are launched by launch<mesh>(f)")
SHARDWISE_X(backend_not_cuda,
            "executor: the step's memory is planned for the host's kernels, and this rank is a GPU; give train_step or "
            "forward_step the backend sw::cuda_backend")
SHARDWISE_X(tf32_element,
            "executor: the step's backend computes products by TF32, which float32 alone has, and the step's elements are others; give it the backend sw::cuda_backend, or float as its element type")
SHARDWISE_X(full_output_bool,
            "full_output: of elements of type bool there is no whole vector, whose elements would be bits; return the output as "
            "cast<std::int32_t>(y), or read this rank's block by output<bool>(index)")
SHARDWISE_X(tuned_factors,
            "pipeline: this pass decides by times of products whose factors were rounded to TF32, and the backend does not round them, or "
            "the other way round; give cuda_backend a table like h200, and cuda_backend_tf32 one like h200_tf32")
SHARDWISE_X(distribute_placed,
            "distribute: the tensor given has other extents, placements, elements or another mesh than the tensor asked "
            "for; distribute takes whole data, or a tensor that is placed so already: redistribute this one")
SHARDWISE_X(rank_member_missing,
            "backend: the rank type lacks the member that rank_member:: names, or has it with another signature; give it "
            "that member as shardwise/runtime/rank.hpp declares it")
SHARDWISE_X(program_member_missing,
            "executor: the program lacks the member that program_member:: names, or has it with another type; a program is a "
            "train_step, forward_step, function_step or gradient_step, or has the members that "
            "shardwise/runtime/program/offered.hpp declares")
SHARDWISE_X(hook_body,
            "forward_hooks: a hook's body cannot be called with the module's tensor; give it operator()(const auto& x) const, or say "
            "hook_bodies::opaque of one that works on blocks")
SHARDWISE_X(tracker_hook,
            "module_tracker: a hook given is no function of a tracked_module; write [&](sw::tracked_module m) { ... }, or nullptr for "
            "none")
SHARDWISE_X(tracker_pipeline,
            "run_tracked: the step has passes that write its program anew, its own or those that its plan implies, takes its batch in "
            "pieces (accumulate) or keeps gradients (keep_gradients), so that what happens to a module has no place among its calls any "
            "more; give the step an empty pipeline<> and a plan without fully_shard, shard_optimizer_states, buckets, accumulate and "
            "keep_gradients, or replay the module_events of its task")
SHARDWISE_X(tracker_views,
            "run_tracked: a module is called with a tensor of which a view has been written in place, and looking at the tensor there "
            "makes another program of the step; call the module with the view, or replay the module_events_of the task")

// clang-format on

#undef SHARDWISE_X
