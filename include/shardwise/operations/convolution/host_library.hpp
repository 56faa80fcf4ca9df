// SPDX-License-Identifier: Apache-2.0
// A convolution as a registered library is asked for it: a rank's blocks, or one thread's part of them.
#pragma once

#include <shardwise/operations/convolution/host_windows.hpp>
#include <shardwise/runtime/host/convolution_library.hpp>
#include <shardwise/runtime/host/finite.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace convolution_detail {

// Whether an operand is one piece of memory and has finite numbers alone.
template <class T>
bool is_finite_piece(const kernel_arguments<T>& k, int operand) {
  std::int64_t span = 1;
  for (int d = 0; d < 4; ++d) span += (k.extent(operand, d) - 1) * k.stride(operand, d);
  return span == k.size(operand) && is_finite(k.in(operand), span);
}

inline runtime::convolution_request request_of(const convolution_blocks& b, runtime::convolution_pass pass, dtype type) {
  runtime::convolution_request r;
  r.pass = pass;
  r.type = type;
  r.n = b.n;
  r.c = b.c;
  r.h = b.h;
  r.w = b.w;
  r.o = b.o;
  r.i = b.i;
  r.kh = b.kh;
  r.kw = b.kw;
  r.oh = b.oh;
  r.ow = b.ow;
  r.groups = b.a.groups;
  for (int d = 0; d < 2; ++d) {
    r.stride[d] = b.a.stride[d];
    r.before[d] = b.a.padding[d];
    r.behind[d] = b.a.padding[d] + b.a.further[d];
    r.dilation[d] = b.a.dilation[d];
  }
  for (int d = 0; d < 4; ++d) {
    r.image[d] = b.x.of[d];
    r.weight[d] = b.weight.of[d];
    r.result[d] = b.y.of[d];
  }
  return r;
}

// X, Weight, Y: operands that are x, the weight and y; -1: the result.
template <int X, int Weight, int Y>
inline constexpr runtime::convolution_pass pass_of = Y < 0   ? runtime::convolution_pass::forward
                                                     : X < 0 ? runtime::convolution_pass::image_gradient
                                                             : runtime::convolution_pass::weight_gradient;

// Whether what is multiplied with the image's padding, if it has any, is finite: asked of a whole call, whose parts are no pieces.
template <int X, int Weight, int Y, class T>
bool is_finite_factor(const convolution_blocks& b, const kernel_arguments<T>& k) {
  if (!taps_of(b, 0).is_padded() && !taps_of(b, 1).is_padded()) return true;
  return is_finite_piece(k, pass_of<X, Weight, Y> == runtime::convolution_pass::weight_gradient ? 0 : 1);
}

// Whether the library computed it; else nothing is written.
template <int X, int Weight, int Y, class T>
bool run_library(const runtime::convolution_library& library, const convolution_blocks& b, const kernel_arguments<T>& k,
                 bool finite) {
  const auto at = [&](int operand) { return operand < 0 ? k.out() : const_cast<T*>(k.in(operand)); };
  runtime::convolution_request r = request_of(b, pass_of<X, Weight, Y>, dtype_v<T>);
  r.finite = finite;
  return library.run(r, {at(X), at(Weight), at(Y)});
}

// A thread's part as a call of its own, which either kernel may compute: images where there are enough of them; else whole groups, or
// channels of what the pass computes. Gradients of weights are sums over images, and are cut the second way alone.
template <int X, int Weight, int Y, class T>
class convolution_part {
 public:
  convolution_part(const convolution_blocks& b, const kernel_arguments<T>& k) {
    constexpr runtime::convolution_pass pass = pass_of<X, Weight, Y>;
    convolution_attributes a = b.a;
    c_.inputs = c_.all_inputs = 2;
    for (const int operand : {0, 1, -1}) lay(operand, k);
    if (pass != runtime::convolution_pass::weight_gradient && b.n >= k.shares()) {
      const interval of = k.share(b.n);
      cut(X, 0, of);
      cut(Y, 0, of);
    } else if (b.a.groups > 1) {
      const interval of = k.share(b.a.groups);
      const std::int64_t outputs = b.outputs_of_group();
      cut(X, 1, {of.begin * b.i, of.size * b.i});
      cut(Weight, 0, {of.begin * outputs, of.size * outputs});
      cut(Y, 1, {of.begin * outputs, of.size * outputs});
      a.groups = static_cast<std::int32_t>(of.size);
    } else if (pass == runtime::convolution_pass::image_gradient) {
      const interval of = k.share(b.c);
      cut(X, 1, of);
      cut(Weight, 1, of);
    } else {
      const interval of = k.share(b.o);
      cut(Weight, 0, of);
      cut(Y, 1, of);
    }
    c_.a = pack_attributes(a);
    q_.scratch = k.scratch();
    q_.has_scratch = true;
  }
  kernel_arguments<T> arguments() const { return {c_, q_}; }

 private:
  static int index(int operand) { return operand < 0 ? int{result} : operand; }
  void lay(int operand, const kernel_arguments<T>& k) {
    runtime::layout& l = c_.l[index(operand)];
    l.rank = 4;
    for (int d = 0; d < 4; ++d) {
      l.ext[d] = l.global[d] = operand < 0 ? k.extent(d) : k.extent(operand, d);
      l.str[d] = operand < 0 ? k.stride(d) : k.stride(operand, d);
    }
    q_.p[index(operand)] = operand < 0 ? k.out() : const_cast<T*>(k.in(operand));
  }
  void cut(int operand, int dim, interval of) {
    runtime::layout& l = c_.l[index(operand)];
    l.ext[dim] = of.size;
    q_.p[index(operand)] += of.begin * l.str[dim];
  }

  call c_;
  operands<T> q_;
};

}  // namespace convolution_detail

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
