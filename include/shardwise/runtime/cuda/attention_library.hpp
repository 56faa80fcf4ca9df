// SPDX-License-Identifier: Apache-2.0
// attention_library: attention by somebody else's kernels. What they are asked, how they are registered, and which of them or of
// the library's own kernels ran. Free of CUDA headers and of any library's: shardwise::cudnn registers one (cudnn/attention.hpp).
#pragma once

#include <cstdint>
#include <string>

#include <shardwise/operations/attention/library_bytes.hpp>
#include <shardwise/runtime/cuda/library_registry.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/dtype.hpp>

namespace shardwise::inline v0_1::cuda {

// Strides in elements of a block of four dims; the elements of the last one, the size, lie side by side.
struct attention_strides {
  std::int64_t batch = 0, head = 0, time = 0;
  bool operator==(const attention_strides&) const = default;
};

// Everything that a plan is made for. Gradients lie as their operands do, dout as out; statistics are float (batch, heads, queries),
// side by side.
struct attention_request {
  dtype type = dtype::bf16;
  bool adjoint = false;
  bool ordered = true;     // of an adjoint: sums in one order, so that equal operands give equal bits
  bool statistics = true;  // of a forward pass: lse is wanted
  attention_extents extents;
  attention_strides q, k, v, out;
  bool causal = false;
  std::int64_t window = 0;       // > 0: query i sees keys i - window + 1 .. i alone
  std::int64_t first_query = 0;  // where query 0 stands among the keys
  float scale = 1;
  // What keeps a request from libraries: a null pointer of a result that they write always, or one that no vector of 16 bytes fits;
  // a bias, a mask or documents; weights that are dropped.
  bool whole = true, biased = false, dropped = false;

  bool operator==(const attention_request&) const = default;
};

struct attention_pointers {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* out = nullptr;   // an adjoint reads it
  float* lse = nullptr;  // an adjoint reads it; null: not wanted
  const void* dout = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

struct attention_library {
  std::string (*name)();  // with its version
  // Why it does not take the request; empty: it does, and its plan for the current device is built. Throws where it is to be built
  // and the stream, if one is given, is being captured.
  std::string (*refusal)(const attention_request&, CUstream_st* stream);
  // Runs what it takes on the stream and allocates nothing. `bytes` of workspace are those of workspace_of; throws where the plan
  // wants more.
  void (*run)(const attention_request&, const attention_pointers&, void* workspace, std::int64_t bytes, CUstream_st* stream);
  // Whether it has run what it takes on the current device: a first run may load code, which a capture forbids.
  bool (*has_run)(const attention_request&);
};

inline std::int64_t workspace_of(const attention_request& r) {
  return r.adjoint ? operations::attention_library_adjoint_bytes(r.extents, r.ordered)
                   : operations::attention_library_forward_bytes;
}

// --- which one runs -------------------------------------------------------------------------------------------------------

using attention_registry = library_registry<attention_request, attention_library>;

// What attention of two-byte elements runs by from now on where it can; null: the library's own kernels. A program that links
// shardwise::cudnn has it registered when main begins. Steps that are captured keep what they were captured with.
inline void use_attention_library(const attention_library* library) { attention_registry::get().use(library); }
inline const attention_library* used_attention_library() { return attention_registry::get().used(); }

// Whether a library's adjoints add in one order, as they do unless told otherwise. Without it they may be faster, and two runs of a
// step may differ in their last bits. For executors that are made from now on.
inline void order_attention_adjoints(bool ordered) { attention_registry::get().order(ordered); }
inline bool are_attention_adjoints_ordered() { return attention_registry::get().is_ordered(); }

// "adjoint of bfloat16, batch 16, heads 12, 1024 queries, 1024 keys, size 64, causal, ordered".
inline std::string text_of(const attention_request& r) {
  const attention_extents& e = r.extents;
  const auto n = [](std::int64_t x) { return std::to_string(x); };
  std::string s = std::string(r.adjoint ? "adjoint" : "forward") + " of " + name_of(r.type) + ", batch " + n(e.batch) +
                  ", heads " + n(e.heads);
  if (e.key_heads != e.heads) s += " on " + n(e.key_heads);
  s += ", " + n(e.queries) + " queries, " + n(e.keys) + " keys, size " + n(e.size);
  if (e.value_size != e.size) s += " and " + n(e.value_size);
  if (r.causal) s += ", causal";
  if (r.window > 0) s += ", window " + n(r.window);
  if (r.first_query > 0) s += ", from query " + n(r.first_query);
  if (r.biased) s += ", biased";
  if (r.dropped) s += ", dropped";
  return s + (r.adjoint && r.ordered ? ", ordered" : "");
}

// What no library is asked; empty: nothing.
inline std::string common_refusal(const attention_request& r) {
  if (!is_low_precision(r.type)) return "elements of two bytes alone are taken";
  if (r.biased) return "a bias, a mask or documents are given";
  if (r.dropped) return "weights are dropped by masks of this library";
  if (!r.whole) return "a result is not wanted, or a block does not begin at a multiple of 16 bytes";
  const attention_extents& e = r.extents;
  if (e.batch <= 0 || e.heads <= 0 || e.key_heads <= 0 || e.queries <= 0 || e.keys <= 0 || e.size <= 0 || e.value_size <= 0)
    return "a block is empty";
  return {};
}

// The registered library if it takes the request; null: the caller's own kernel is to run on the stream. Says so to
// attention_report. Without a stream it asks in advance.
inline const attention_library* attention_library_for(const attention_request& r, CUstream_st* stream = nullptr) {
  return attention_registry::get().library_for(r, common_refusal(r), stream);
}

// A line for each distinct attention that was launched or captured in this process: what it is, what ran it, and if that was the
// library's own kernel, why. Replays of a captured step launch nothing anew.
inline std::string attention_report() { return attention_registry::get().report(); }
inline void clear_attention_report() { attention_registry::get().clear(); }

}  // namespace shardwise::inline v0_1::cuda
