// SPDX-License-Identifier: Apache-2.0
// widened: kernels of float run on elements of two bytes. Law: operands are read as floats, everything between is computed in
// float, and each result is rounded once. Price: a copy of every block of two bytes, in the call's scratch.
#pragma once

#include <shardwise/propagation/scratch.hpp>
#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// Where each element of a block lies, stored densely but for dims along which it is one element, broadcast.
inline layout dense_where_it_varies(const layout& x) {
  layout l = x;
  std::int64_t step = 1;
  for (int d = l.rank - 1; d >= 0; --d) {
    if (x.str[d] == 0) continue;
    l.str[d] = step;
    step *= l.ext[d];
  }
  return l;
}
inline std::int64_t stored_elements(const layout& x) {
  std::int64_t n = 1;
  for (int d = 0; d < x.rank; ++d) n *= x.str[d] == 0 && x.ext[d] != 0 ? 1 : x.ext[d];
  return n;
}

// f(offset in `to`, offset in `from`) for the elements of two layouts of one block.
template <class F>
void each_stored(const layout& to, const layout& from, const F& f) {
  walk<2> w;
  for (int d = 0; d < from.rank; ++d) {
    const std::int64_t s[2] = {to.str[d], from.str[d]};
    w.push(from.str[d] == 0 && from.ext[d] != 0 ? 1 : from.ext[d], s);
  }
  w.merge();
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    for (std::int64_t i = 0; i < n; ++i) f(off[0] + i * s[0], off[1] + i * s[1]);
  });
}
template <class Low>
void widen(const Low* x, const layout& from, float* o, const layout& to) {
  each_stored(to, from, [=](std::int64_t a, std::int64_t b) { o[a] = static_cast<float>(x[b]); });
}
template <class Low>
void narrow(const float* x, const layout& from, Low* o, const layout& to) {
  each_stored(to, from, [=](std::int64_t a, std::int64_t b) { o[a] = Low(x[b]); });
}

// The blocks of a call, Low ones as floats. What a call writes is written back when it has run.
template <class Low>
class widened {
 public:
  // `writes`: the operands written into, bit by bit.
  widened(const call& c, unsigned writes) : given_(c), wide_(c), at_(static_cast<std::byte*>(c.workspace)), writes_(writes) {
    for (int k = 0; k < c.all_inputs; ++k) operand(k);
    if (c.results) {
      several_ = *c.results;
      for (int k = 0; k < max_results; ++k)
        if (several_.p[k] && several_.type[k] == dtype_v<Low>) {
          several_.p[k] = place(several_.l[k]);
          several_.type[k] = dtype::f32;
        }
      wide_.results = &several_;
    } else if (c.p[result] && c.type[result] == dtype_v<Low>) {
      for (int k = 0; k < c.all_inputs; ++k)
        if (c.p[k] == c.p[result] && (writes >> k & 1U) != 0) of_result_ = k;  // an update's result is what it writes
      if (of_result_ >= 0) {
        wide_.p[result] = wide_.p[of_result_];
        wide_.l[result] = wide_.l[of_result_];
      } else {
        wide_.l[result] = dense_where_it_varies(c.l[result]);
        wide_.p[result] = place(wide_.l[result]);
      }
      wide_.type[result] = dtype::f32;
    }
    wide_.workspace = at_;
  }
  const call& as_floats() const { return wide_; }

  void write_back() const {
    for (int k = 0; k < given_.all_inputs; ++k)
      if ((writes_ >> k & 1U) != 0 && is_low(k)) back(k);
    if (given_.results) {
      for (int k = 0; k < max_results; ++k)
        if (several_.p[k] && given_.results->type[k] == dtype_v<Low>)
          narrow(static_cast<const float*>(several_.p[k]), several_.l[k], static_cast<Low*>(given_.results->p[k]),
                 given_.results->l[k]);
    } else if (is_low(result) && of_result_ < 0) {
      back(result);
    }
  }

 private:
  bool is_low(int k) const { return given_.p[k] && given_.type[k] == dtype_v<Low>; }
  void operand(int k) {
    if (!is_low(k)) return;
    wide_.l[k] = dense_where_it_varies(given_.l[k]);
    float* const to = place(wide_.l[k]);
    widen(static_cast<const Low*>(given_.p[k]), given_.l[k], to, wide_.l[k]);
    wide_.p[k] = to;
    wide_.type[k] = dtype::f32;
  }
  float* place(const layout& l) {
    float* const p = reinterpret_cast<float*>(at_);
    at_ += widened_block::align(stored_elements(l) * static_cast<std::int64_t>(sizeof(float)));
    return p;
  }
  void back(int k) const {
    narrow(static_cast<const float*>(wide_.p[k]), wide_.l[k], static_cast<Low*>(given_.p[k]), given_.l[k]);
  }

  const call& given_;
  call wide_;
  runtime::result_blocks several_;
  std::byte* at_;
  unsigned writes_;
  int of_result_ = -1;
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
