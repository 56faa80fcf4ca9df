// SPDX-License-Identifier: Apache-2.0
// cuDNN's attention, registered as this program's attention library. Include it in exactly one source of a program, compiled apart
// (it has cuDNN's front end in it), with convolution.hpp beside it; CMake's shardwise::cudnn does that. Nothing else includes it.
//
// Differences to the library's own kernels: sums are cuDNN's, so bits differ from theirs; keys that a query does not see have the
// weight 0 and are multiplied by it where they share a tile with keys that it sees, so that no number (NaN) among such values reaches
// the result.
#pragma once

#include <shardwise/runtime/cuda/cudnn/attention_graphs.hpp>

#include <unordered_map>

namespace shardwise::inline v0_1::cuda::cudnn {

// What the program's arena has for it was settled when it was compiled.
inline void require_bytes(const plan<attention_request>& p) {
  const attention_request& r = p.request;
  const std::int64_t most = r.adjoint ? operations::attention_library_call_bytes(r.extents, r.ordered)
                                      : operations::attention_library_forward_bytes;
  if (p.bytes > most)
    throw std::runtime_error("shardwise: attention by cuDNN " + version() + ": " + text_of(r) + " wants " +
                             std::to_string(p.bytes) + " bytes of workspace; programs are planned with at most " +
                             std::to_string(most) +
                             " (operations/attention/library_bytes.hpp): use another version of cuDNN, or call "
                             "use_attention_library(nullptr) before the executor is made");
}

inline void build(plan<attention_request>& p, cudnnHandle_t handle) {
  p.why = refusal_of(p.request);
  if (!p.why.empty()) return;
  p.graph = graph_of(p.request).get();
  fe::error_t e = p.graph->build(handle, {fe::HeurMode_t::A});
  if (e.is_good()) e = p.graph->get_workspace_size(p.bytes);
  if (e.is_bad()) p.why = "cuDNN " + version() + ": " + e.get_message();
  else require_bytes(p);
}
inline const plan<attention_request>& plan_of(const attention_request& r, CUstream_st* stream) {
  return plan_cache<attention_request>::get().of(r, stream, "attention",
                                                 [](auto& p, cudnnHandle_t handle) { build(p, handle); });
}

// --- slices of an adjoint ---------------------------------------------------------------------------------------------------

// Those of a request, whose plans are for `rows` rows of the batch and `key_heads` heads of keys, fewer at the end.
template <class F>
void each_slice(const attention_request& r, F&& f) {
  const attention_extents& e = r.extents;
  const operations::attention_slice s =
      r.adjoint ? operations::attention_slice_of(e, r.ordered) : operations::attention_slice{e.batch, e.key_heads};
  for (std::int64_t b = 0; b < e.batch; b += s.rows)
    for (std::int64_t h = 0; h < e.key_heads; h += s.key_heads) {
      attention_request part = r;
      part.extents =
          e.part(b + s.rows < e.batch ? s.rows : e.batch - b, h + s.key_heads < e.key_heads ? s.key_heads : e.key_heads - h);
      f(part, b, h);
    }
}

inline void* moved(const void* p, std::int64_t elements) {  // of two bytes
  return const_cast<char*>(static_cast<const char*>(p)) + 2 * elements;
}

inline attention_pointers pointers_of(const attention_request& r, const attention_pointers& p, std::int64_t b,
                                      std::int64_t h) {
  const std::int64_t group = r.extents.group();
  const auto at = [&](const void* x, const attention_strides& s, std::int64_t head) {
    return x ? moved(x, b * s.batch + head * s.head) : nullptr;
  };
  attention_pointers a;
  a.q = at(p.q, r.q, h * group);
  a.k = at(p.k, r.k, h);
  a.v = at(p.v, r.v, h);
  a.out = at(p.out, r.out, h * group);
  a.dout = at(p.dout, r.out, h * group);
  a.lse = p.lse ? p.lse + (b * r.extents.heads + h * group) * r.extents.queries : nullptr;
  a.dq = at(p.dq, r.q, h * group);
  a.dk = at(p.dk, r.k, h);
  a.dv = at(p.dv, r.v, h);
  return a;
}

// Zeros for the gradient of the keys that nobody sees.
inline void clear_unseen(const attention_request& r, void* gradient, const attention_strides& s, std::int64_t size,
                         cudaStream_t stream) {
  const attention_extents& e = r.extents;
  const std::int64_t seen = seen_keys(r), unseen = e.keys - seen;
  if (unseen == 0) return;
  const bool by_heads = s.time < s.head;  // the times of a head side by side; else the heads of a time
  const std::size_t width = static_cast<std::size_t>(2 * unseen * (by_heads ? size : e.key_heads * size));
  for (std::int64_t b = 0; b < e.batch; ++b)
    cuda::check(cudaMemset2DAsync(moved(gradient, b * s.batch + seen * s.time),
                                  by_heads ? static_cast<std::size_t>(2 * s.head) : width, 0, width,
                                  by_heads ? static_cast<std::size_t>(e.key_heads) : 1, stream),
                "cudaMemset2DAsync");
}

inline void run_plan(const plan<attention_request>& p, const attention_pointers& a, void* workspace, cudaStream_t stream) {
  std::unordered_map<std::int64_t, void*> of{
      {id_q, const_cast<void*>(a.q)}, {id_k, const_cast<void*>(a.k)}, {id_v, const_cast<void*>(a.v)}, {id_out, a.out}};
  if (a.lse) of[id_lse] = a.lse;
  if (p.request.adjoint) {
    of[id_dout] = const_cast<void*>(a.dout);
    of[id_dq] = a.dq;
    of[id_dk] = a.dk;
    of[id_dv] = a.dv;
  }
  run_plan(p, of, workspace, stream, "attention");
}

// --- the table --------------------------------------------------------------------------------------------------------------

inline std::string refusal(const attention_request& r, CUstream_st* stream) {
  std::string why = fills_unseen(r) ? "" : "keys that nobody sees lie apart";
  each_slice(r, [&](const attention_request& part, std::int64_t, std::int64_t) {
    if (why.empty()) why = plan_of(part, stream).why;
  });
  return why;
}

inline void run(const attention_request& r, const attention_pointers& p, void* workspace, std::int64_t bytes,
                CUstream_st* stream) {
  each_slice(r, [&](const attention_request& part, std::int64_t b, std::int64_t h) {
    const plan<attention_request>& of = plan_of(part, stream);
    if (!of.why.empty()) throw std::logic_error("shardwise: attention by cuDNN: " + text_of(part) + ": " + of.why);
    if (of.bytes > bytes)
      throw std::logic_error("shardwise: attention by cuDNN: " + text_of(part) + " wants " + std::to_string(of.bytes) +
                             " bytes of workspace and is given " + std::to_string(bytes) +
                             "; give it workspace_of(request)");
    run_plan(of, pointers_of(r, p, b, h), workspace, stream);
  });
  if (!r.adjoint) return;
  clear_unseen(r, p.dk, r.k, r.extents.size, stream);
  clear_unseen(r, p.dv, r.v, r.extents.value_size, stream);
}

inline bool has_run(const attention_request& r) {
  bool all = true;
  each_slice(r, [&](const attention_request& part, std::int64_t, std::int64_t) { all = all && plan_of(part, nullptr).ran; });
  return all;
}

inline constexpr attention_library attention{&name, &refusal, &run, &has_run};

// When the program begins.
inline const bool attention_registered = (use_attention_library(&attention), true);

}  // namespace shardwise::inline v0_1::cuda::cudnn
