// SPDX-License-Identifier: Apache-2.0
// Kernels of convolutions called by hand, on blocks of floats in either memory format; processor time, medians.
#pragma once

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <shardwise/shardwise.hpp>
#include <vector>

namespace by_hand {

namespace sw = shardwise;
using sw::runtime::call;
using sw::runtime::layout;
using sw::runtime::result;

inline double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
inline double median(std::vector<double> t) {
  std::sort(t.begin(), t.end());
  return t[t.size() / 2];
}

struct block {
  layout l;
  std::vector<float> values;

  block(const std::array<std::int64_t, 4>& extent, bool channels_last) {
    l.rank = 4;
    for (int d = 0; d < 4; ++d) l.ext[d] = l.global[d] = extent[static_cast<std::size_t>(d)];
    const std::int64_t last[] = {l.ext[1] * l.ext[2] * l.ext[3] + 1, 1, l.ext[3] * l.ext[1], l.ext[1]};
    if (channels_last) l.make_dense_as(last);
    else l.make_dense();
    values.resize(static_cast<std::size_t>(l.numel()));
  }
  float& at(const std::int64_t* i) {
    return values[static_cast<std::size_t>(i[0] * l.str[0] + i[1] * l.str[1] + i[2] * l.str[2] + i[3] * l.str[3])];
  }
  template <class F>
  void each(const F& f) {
    std::int64_t i[4];
    for (i[0] = 0; i[0] < l.ext[0]; ++i[0])
      for (i[1] = 0; i[1] < l.ext[1]; ++i[1])
        for (i[2] = 0; i[2] < l.ext[2]; ++i[2])
          for (i[3] = 0; i[3] < l.ext[3]; ++i[3]) f(i);
  }
  void fill(std::int64_t salt) {
    std::int64_t at_most = salt;
    each([&](const std::int64_t* i) { at(i) = static_cast<float>((at_most += 7919) % 401) / 100.0F - 2.0F; });
  }
};

// f(arguments) of an operation that reads a and b and writes out; scratch is kept from call to call.
template <class F>
void with(const sw::operation& o, const sw::convolution_attributes& attributes, block& a, block& b, block& out, const F& f) {
  sw::spec specs[3]{};
  const block* const all[] = {&a, &b, &out};
  for (int i = 0; i < 3; ++i) {
    specs[i].rank = 4;
    specs[i].type = sw::dtype::f32;
    for (int d = 0; d < 4; ++d) specs[i].extent[d] = all[i]->l.ext[d];
  }
  const sw::spec* const in[] = {&specs[0], &specs[1]};
  call c;
  c.a = sw::pack_attributes(attributes);
  c.inputs = c.all_inputs = 2;
  sw::host::operands<float> q;
  for (int i = 0; i < 3; ++i) {
    c.l[i < 2 ? i : result] = all[i]->l;
    q.p[i < 2 ? i : result] = const_cast<float*>(all[i]->values.data());
  }
  static std::vector<float> scratch;
  const std::size_t room = static_cast<std::size_t>(o.host_scratch.value(c.a, in, 2, specs[2])) / sizeof(float) + 16;
  if (scratch.size() < room) scratch.resize(room);
  q.scratch = scratch.data();
  while (reinterpret_cast<std::uintptr_t>(q.scratch) % 64 != 0) ++q.scratch;
  q.has_scratch = true;
  f(sw::kernel_arguments<float>(c, q));
}

inline void forward(const sw::convolution_attributes& a, block& x, block& weight, block& y) {
  with(sw::operations::convolution, a, x, weight, y, [](const auto& k) { sw::host_kernel<sw::custom::conv2d>::run(k); });
}
inline void image_gradient(const sw::convolution_attributes& a, block& y, block& weight, block& x) {
  with(sw::operations::convolution_dx, a, y, weight, x,
       [](const auto& k) { sw::host_kernel<sw::custom::conv2d_dx>::run(k); });
}
inline void weight_gradient(const sw::convolution_attributes& a, block& y, block& x, block& weight) {
  with(sw::operations::convolution_dw, a, y, x, weight,
       [](const auto& k) { sw::host_kernel<sw::custom::conv2d_dw>::run(k); });
}
// One block as another lies, by the kernel that programs have for it.
inline void copy(block& from, block& to) {
  call c;
  c.inputs = c.all_inputs = 1;
  c.l[0] = from.l;
  c.l[result] = to.l;
  c.p[0] = from.values.data();
  c.p[result] = to.values.data();
  sw::runtime::compute<sw::op_code::contiguous, float>(c, sw::step_env{});
}

}  // namespace by_hand
