// SPDX-License-Identifier: Apache-2.0
// Graphs of cuDNN for attention and its adjoint, one for each distinct request. Included by attention.hpp beside it alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <shardwise/runtime/cuda/attention_library.hpp>
#include <shardwise/runtime/cuda/cudnn/plan_cache.hpp>

namespace shardwise::inline v0_1::cuda::cudnn {

// Numbers by which a graph knows its tensors.
enum tensor_id : std::int64_t { id_q = 1, id_k, id_v, id_out, id_lse, id_dout, id_dq, id_dk, id_dv };

// The keys that somebody sees. Of causal queries that begin later than the keys the last one must be the last key's: cuDNN lays its
// diagonal through the first corner or through the last one.
inline std::int64_t seen_keys(const attention_request& r) {
  const std::int64_t end = r.first_query + r.extents.queries;
  return (r.causal || r.window > 0) && end < r.extents.keys ? end : r.extents.keys;
}

// Why cuDNN is not asked, whatever its version.
inline std::string refusal_of(const attention_request& r) {
  const attention_extents& e = r.extents;
  const bool bounded = r.causal || r.window > 0;
  if (e.heads % e.key_heads != 0) return "the heads of queries are no multiple of those of keys";
  if (e.size % 8 != 0 || e.value_size % 8 != 0) return "the size of a head is no multiple of 8";
  for (const attention_strides& s : {r.q, r.k, r.v, r.out})
    if (s.batch % 8 != 0 || s.head % 8 != 0 || s.time % 8 != 0) return "a stride is no multiple of 8 elements";
  if (bounded && r.first_query > 0 && r.first_query + e.queries > e.keys)
    return "queries that do not begin at the first key go beyond the last one";
  if (r.window > 0 && e.queries > seen_keys(r)) return "a window, and more queries than keys: some see nothing";
  if (r.adjoint && e.queries == 1 && seen_keys(r) == 1) return "one query and one key";
  return {};
}

// Whether the keys that nobody sees get gradients of zero by one fill for each row of the batch: asked of a whole request.
inline bool fills_unseen(const attention_request& r) {
  const auto filled = [&](const attention_strides& s, std::int64_t size) {
    return s.time < s.head ? s.time == size : s.head == size && s.time == r.extents.key_heads * size;
  };
  return !r.adjoint || seen_keys(r) == r.extents.keys || (filled(r.k, r.extents.size) && filled(r.v, r.extents.value_size));
}

// A graph before it is built for a device.
class graph_of {
 public:
  explicit graph_of(const attention_request& r) : r_(r), graph_(std::make_shared<fe::graph::Graph>()) {
    graph_->set_io_data_type(r.type == dtype::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (r.adjoint) backward();
    else forward();
  }
  const std::shared_ptr<fe::graph::Graph>& get() const { return graph_; }

 private:
  using tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
  using numbers = std::vector<std::int64_t>;

  template <class Tensor>
  void lay(Tensor& t, tensor_id id) const {
    const attention_extents& e = r_.extents;
    const std::int64_t keys = seen_keys(r_);
    const auto as = [&](std::int64_t heads, std::int64_t times, std::int64_t size, const attention_strides& s) {
      t.set_dim({e.batch, heads, times, size}).set_stride({s.batch, s.head, s.time, 1});
    };
    t.set_uid(id);
    if (id == id_q || id == id_dq) as(e.heads, e.queries, e.size, r_.q);
    if (id == id_k || id == id_dk) as(e.key_heads, keys, e.size, r_.k);
    if (id == id_v || id == id_dv) as(e.key_heads, keys, e.value_size, r_.v);
    if (id == id_out || id == id_dout) as(e.heads, e.queries, e.value_size, r_.out);
    if (id != id_lse) return;
    t.set_dim({e.batch, e.heads, e.queries, 1}).set_stride({e.heads * e.queries, e.queries, 1, 1});
    t.set_data_type(fe::DataType_t::FLOAT);
  }
  tensor operand(const char* name, tensor_id id) {
    fe::graph::Tensor_attributes t;
    t.set_name(name);
    lay(t, id);
    return graph_->tensor(t);
  }
  void result(const tensor& t, tensor_id id) {
    t->set_output(true);
    lay(*t, id);
  }

  template <class Options>
  Options options(const char* name) const {
    Options o;
    o.set_name(name);
    o.set_attn_scale(r_.scale);
    if (r_.causal || r_.window > 0) {
      o.set_diagonal_alignment(r_.first_query > 0 ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                                  : fe::DiagonalAlignment_t::TOP_LEFT);
      o.set_diagonal_band_right_bound(0);
    }
    if (r_.window > 0) o.set_diagonal_band_left_bound(static_cast<int>(r_.window));
    return o;
  }
  void forward() {
    auto o = options<fe::graph::SDPA_attributes>("attention");
    o.set_generate_stats(r_.statistics);
    const auto [out, lse] = graph_->sdpa(operand("q", id_q), operand("k", id_k), operand("v", id_v), o);
    result(out, id_out);
    if (r_.statistics) result(lse, id_lse);
  }
  void backward() {
    auto o = options<fe::graph::SDPA_backward_attributes>("attention_adjoint");
    o.set_deterministic_algorithm(r_.ordered);
    const auto [dq, dk, dv] =
        graph_->sdpa_backward(operand("q", id_q), operand("k", id_k), operand("v", id_v), operand("out", id_out),
                              operand("dout", id_dout), operand("lse", id_lse), o);
    result(dq, id_dq);
    result(dk, id_dk);
    result(dv, id_dv);
  }

  const attention_request& r_;
  std::shared_ptr<fe::graph::Graph> graph_;
};

}  // namespace shardwise::inline v0_1::cuda::cudnn
