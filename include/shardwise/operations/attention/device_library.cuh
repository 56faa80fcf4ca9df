// SPDX-License-Identifier: Apache-2.0
// Attention of two-byte elements by the registered library (runtime/cuda/attention_library.hpp), where it takes the call.
#pragma once

#include <shardwise/operations/attention/device_tiles.cuh>
#include <shardwise/runtime/cuda/attention_library.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

template <class... P>
bool are_aligned(const P*... p) {
  return (... && (p && reinterpret_cast<std::uintptr_t>(p) % 16 == 0));
}

template <class T, class C>
attention_request request_of(const host::attention_call<T, C>& x) {
  const auto strides = [](const auto& b) { return attention_strides{b.batch, b.head, b.time}; };
  attention_request r;
  r.type = dtype_v<T>;
  r.extents = {x.batch, x.heads, x.key_heads, x.queries, x.keys, x.size, x.value_size};
  r.q = strides(x.q);
  r.k = strides(x.k);
  r.v = strides(x.v);
  r.out = strides(host::attention_block<const T>(nullptr, x.a, x.heads, x.queries, x.value_size));
  r.causal = x.a.causal != 0;
  r.window = x.a.window;
  r.first_query = r.causal || r.window > 0 ? x.first_query : 0;  // nothing else depends on it
  r.scale = static_cast<float>(x.scale);
  r.biased = x.bias || x.mask || x.documents;
  r.dropped = x.key != nullptr;
  return r;
}

template <class T, class C>
attention_request request_of(const host::attention_call<T, C>& x, const T* out, const float* lse) {
  attention_request r = request_of(x);
  r.statistics = lse != nullptr;
  r.whole = are_aligned(x.q.data, x.k.data, x.v.data, out);
  return r;
}
template <class T, class C>
attention_request request_of(const host::attention_call<T, C>& x, const host::attention_gradients<T, C>& g) {
  attention_request r = request_of(x);
  r.adjoint = true;
  r.ordered = are_attention_adjoints_ordered();
  r.whole = are_aligned(x.q.data, x.k.data, x.v.data, g.dout.data, g.dq.data, g.dk.data, g.dv.data);
  return r;
}
// Whether a library takes it that has not run it yet; its plan is built, which no capture allows.
inline bool is_left_to_run(const attention_request& r) {
  const attention_library* const library = attention_library_for(r);
  return library && !library->has_run(r);
}

// Whether a library has queued it. lse: null where nobody wants it.
template <class T, class C>
bool attend_by_library(const host::attention_call<T, C>& x, T* out, float* lse, void* scratch, cudaStream_t stream) {
  const attention_request r = request_of(x, out, lse);
  const attention_library* const library = attention_library_for(r, stream);
  if (!library) return false;
  attention_pointers p;
  p.q = x.q.data;
  p.k = x.k.data;
  p.v = x.v.data;
  p.out = out;
  p.lse = lse;
  library->run(r, p, scratch, workspace_of(r), stream);
  return true;
}

// What stands for out in an adjoint that is given delta alone. Libraries read out for nothing but delta = sum of dout out over the
// size, and the projection of out on dout, delta dout / |dout|^2, has the same sum; it is never longer than out. Where dout is 0 it has
// none but 0: another delta, which only a gradient of lse could bring, gives gradients that are no numbers, so that nobody takes them for
// right. A warp for each row, which is scaled by its largest element, so that no square is lost.
template <class T>
__global__ void __launch_bounds__(threads)
    project_rows(const __grid_constant__ host::attention_block<const T> dout, const float* delta,
                 const __grid_constant__ host::attention_block<T> to, std::int64_t rows, std::int64_t heads,
                 std::int64_t times, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t n = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32; n < rows; n += step) {
    const std::int64_t t = n % times, h = n / times % heads, b = n / times / heads;
    const T* const x = dout.at(b, h, t);
    T* const y = to.at(b, h, t);
    float most = 0, squares = 0;
    for (std::int64_t i = lane; i < size; i += 32) most = fmaxf(most, fabsf(static_cast<float>(x[i])));
    for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, d));
    const float unit = most > 0 ? most : 1;
    for (std::int64_t i = lane; i < size; i += 32) {
      const float e = static_cast<float>(x[i]) / unit;
      squares += e * e;
    }
    for (int d = 16; d > 0; d /= 2) squares += __shfl_xor_sync(0xffffffffU, squares, d);
    const float none = delta[n] == 0 ? squares : nanf("");  // of zeros 0, of what is no number none
    const float factor = most > 0 ? delta[n] / unit / squares : none;
    for (std::int64_t i = lane; i < size; i += 32) y[i] = static_cast<T>(factor * (static_cast<float>(x[i]) / unit));
  }
}

// Whether a library has queued the adjoint. Of `scratch` it takes what the record asks for: the projection, and the workspace.
template <class T, class C>
bool attend_back_by_library(const host::attention_call<T, C>& x, const host::attention_gradients<T, C>& g, void* scratch,
                            cudaStream_t stream) {
  const attention_request r = request_of(x, g);
  const attention_library* const library = attention_library_for(r, stream);
  if (!library) return false;
  T* const out = static_cast<T*>(scratch);
  const std::int64_t rows = x.batch * x.heads * x.queries, blocks = tiles_of(rows, threads / 32);
  project_rows<T><<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), threads, 0, stream>>>(
      g.dout, g.delta, host::attention_block<T>(out, x.a, x.heads, x.queries, x.value_size), rows, x.heads, x.queries,
      x.value_size);
  check_launch("attention_adjoint: projection");
  attention_pointers p;
  p.q = x.q.data;
  p.k = x.k.data;
  p.v = x.v.data;
  p.out = out;
  p.lse = const_cast<float*>(g.lse);
  p.dout = g.dout.data;
  p.dq = g.dq.data;
  p.dk = g.dk.data;
  p.dv = g.dv.data;
  library->run(r, p, static_cast<std::byte*>(scratch) + operations::attention_projection_bytes(r.extents), workspace_of(r),
               stream);
  return true;
}

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
