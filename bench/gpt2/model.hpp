// SPDX-License-Identifier: Apache-2.0
// GPT-2 124M (12 layers of width 768, 12 heads, 1024 positions, 50304 tokens, tied head) and its training step. One source makes
// several programs; the compiler is given
//   GPT2_ELEMENT  the element type (float)
//   GPT2_BATCH    sequences of a step (8)
//   GPT2_VOCABULARY  tokens that there are (50304)
//   GPT2_MIXED    what modules compute in beside it (nothing: GPT2_ELEMENT alone), sw::bf16
//   GPT2_PASSES   the pipeline's pass (sw::fuse_kernels); with GPT2_MERGED sw::merge_products before it and, of a mixed step,
//                sw::join_norm_adjoints and sw::join_casts behind it: nvcc splits macros at commas
//   GPT2_BACKEND  cuda_backend, or cuda_backend_tf32
//   GPT2_NAME     what the figures are called ("float32")
#pragma once

#include <shardwise/shardwise.hpp>

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/join_casts.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>

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
#if defined(GPT2_MERGED)
#ifdef GPT2_MIXED
#define GPT2_PASSES sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints, sw::join_casts
#else  // the joined adjoint of float norms is nine times slower than its two kernels: bench/results/gpt2.md
#define GPT2_PASSES sw::merge_products, sw::fuse_kernels
#endif
#elif !defined(GPT2_PASSES)
#define GPT2_PASSES sw::fuse_kernels
#endif
#ifndef GPT2_BACKEND
#define GPT2_BACKEND cuda_backend
#endif
#ifdef GPT2_MIXED
#define GPT2_PLAN sw::plan<sw::data_parallel<dp>, sw::mixed<GPT2_MIXED>>
#define GPT2_ACTIVATION GPT2_MIXED
#else
#define GPT2_PLAN sw::plan<sw::data_parallel<dp>>
#define GPT2_ACTIVATION GPT2_ELEMENT
#endif
#ifndef GPT2_NAME
#define GPT2_NAME "float32"
#endif

namespace gpt2 {

namespace sw = shardwise;
namespace tt = train_text;

struct dp : sw::axis<1> {};
using mesh = sw::mesh<dp>;
using size = tt::config<GPT2_BATCH, 1024, 768, 12, 12, GPT2_VOCABULARY>;
using element = GPT2_ELEMENT;
using activation = GPT2_ACTIVATION;  // what the floor's bytes and products are of
template <class Backend>
using step = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp>, GPT2_PLAN, mesh, sw::clip_norm<sw::adamw<true>>,
                            sw::pipeline<GPT2_PASSES>, element, Backend>;

// The model's numbers, and not the library's count of them: what the floor is worked out from.
inline constexpr double rows = static_cast<double>(size::batch) * size::time, width = size::width, layers = size::layers,
                        vocabulary = size::bytes,
                        parameters =
                            (vocabulary + size::time) * width + layers * (12 * width * width + 13 * width) + 2 * width;

}  // namespace gpt2
