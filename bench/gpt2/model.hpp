// SPDX-License-Identifier: Apache-2.0
// GPT-2 124M (12 layers of width 768, 12 heads, 1024 positions, 50304 tokens, tied head) and its training step. One source makes
// several programs; the compiler is given
//   GPT2_ELEMENT  the element type (float)
//   GPT2_BATCH    sequences of a step and GPU (8)
//   GPT2_GPUS     how many GPUs there are (1); several split the batch, and
//     nothing       each holds all parameters: gradients are summed in buckets of 25 MiB beside the backward pass
//     GPT2_SHARDED  parameters, gradients and moments in shards, gathered layer by layer (FSDP)
//     GPT2_TENSOR   do not split the batch but every layer's features and heads (tensor parallelism)
//   GPT2_VOCABULARY  tokens that there are (50304)
//   GPT2_MIXED    what modules compute in beside it (nothing: GPT2_ELEMENT alone), sw::bf16
//   GPT2_REDUCE   the type in which gradients of a mixed step are summed over GPUs (float)
//   GPT2_PASSES   the pipeline's pass (sw::fuse_kernels); with GPT2_MERGED sw::merge_products before it and, of a mixed step,
//                sw::join_norm_adjoints and sw::join_casts behind it: nvcc splits macros at commas
//   GPT2_TUNED    a device's table: the pipeline is sw::tuned<sw::GPT2_TUNED>, whatever GPT2_PASSES says
//   GPT2_BACKEND  cuda_backend, or cuda_backend_tf32, or cuda_backend_tf32x3 (compiled for sm_90a)
//   GPT2_NAME     what the figures are called ("float32")
#pragma once

#include <shardwise/core.hpp>

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/join_casts.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/tune/tuned.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include "../../examples/train_text/model.hpp"

#ifndef GPT2_ELEMENT
#define GPT2_ELEMENT float
#endif
#ifndef GPT2_BATCH
#define GPT2_BATCH 8
#endif
#ifndef GPT2_VOCABULARY
#define GPT2_VOCABULARY 50304
#endif
#ifndef GPT2_GPUS
#define GPT2_GPUS 1
#endif
#if GPT2_GPUS == 1
#define GPT2_BESIDE
#elif defined(GPT2_SHARDED)
#define GPT2_BESIDE , sw::prefetch<1>
#else
#define GPT2_BESIDE , sw::expedite_comms, sw::schedule_comm_wait
#endif
#if defined(GPT2_MERGED)
#ifdef GPT2_MIXED
#define GPT2_PASSES sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints, sw::join_casts GPT2_BESIDE
#else  // the joined adjoint of float norms of this width takes 1.2 of the time of its two kernels: bench/results/gpt2.md
#define GPT2_PASSES sw::merge_products, sw::fuse_kernels
#endif
#elif !defined(GPT2_PASSES)
#define GPT2_PASSES sw::fuse_kernels
#endif
#ifdef GPT2_TUNED
#define GPT2_PIPELINE sw::tuned<sw::GPT2_TUNED GPT2_BESIDE>
#else
#define GPT2_PIPELINE sw::pipeline<GPT2_PASSES>
#endif
#ifndef GPT2_BACKEND
#define GPT2_BACKEND cuda_backend
#endif
#ifdef GPT2_MIXED
#ifdef GPT2_REDUCE
#define GPT2_PRECISION , sw::mixed<GPT2_MIXED, sw::reduce_dtype<GPT2_REDUCE>>
#else
#define GPT2_PRECISION , sw::mixed<GPT2_MIXED>
#endif
#define GPT2_ACTIVATION GPT2_MIXED
#else
#define GPT2_PRECISION
#define GPT2_ACTIVATION GPT2_ELEMENT
#endif
#ifndef GPT2_NAME
#define GPT2_NAME "float32"
#endif

namespace gpt2 {

namespace sw = shardwise;
namespace tt = train_text;

inline constexpr int gpus = GPT2_GPUS;
#ifdef GPT2_TENSOR
inline constexpr int copies = 1;  // parts of the batch
#else
inline constexpr int copies = gpus;
#endif
struct dp : sw::axis<copies> {};
struct tp : sw::axis<gpus / copies> {};
using mesh = sw::mesh<dp, tp>;
using size = tt::config<GPT2_BATCH * copies, 1024, 768, 12, 12, GPT2_VOCABULARY>;
using element = GPT2_ELEMENT;
using activation = GPT2_ACTIVATION;  // what the floor's bytes and products are of
#ifdef GPT2_SHARDED
using plan = sw::plan<sw::fully_shard<dp>, sw::at<"layers.*", sw::fully_shard<dp>> GPT2_PRECISION>;
#elif defined(GPT2_TENSOR)
using plan = tt::megatron<size, tp, sw::data_parallel<dp> GPT2_PRECISION>;
#elif GPT2_GPUS > 1
using plan = sw::plan<sw::data_parallel<dp, sw::buckets<25>> GPT2_PRECISION>;
#else
using plan = sw::plan<sw::data_parallel<dp> GPT2_PRECISION>;
#endif
template <class Backend>
using step = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp>, plan, mesh, sw::clip_norm<sw::adamw<true>>,
                            GPT2_PIPELINE, element, Backend>;

// The model's numbers, and not the library's count of them: what the floor of one GPU is worked out from. Rows: of one GPU's batch.
inline constexpr double rows = static_cast<double>(GPT2_BATCH) * size::time, width = size::width, layers = size::layers,
                        vocabulary = size::bytes,
                        parameters =
                            (vocabulary + size::time) * width + layers * (12 * width * width + 13 * width) + 2 * width;

}  // namespace gpt2
