// SPDX-License-Identifier: Apache-2.0
// Sums, means, sums of squares, extremes, products and norms of vectors over dims on a device, with their adjoints.
#pragma once

#include <shardwise/operations/reduction/device_squares.cuh>
#include <shardwise/runtime/cuda/device/norm_functors.cuh>
#include <shardwise/runtime/cuda/device/reduce.cuh>
#include <shardwise/operations/written/device.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <>
struct kernel<op_code::sum> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const std::int64_t n = attributes_of<sum_attributes>(c.a).mean == 0 ? 1 : host::detail::summed_count(c.a, c.l[0]);
    const layout& o = c.l[result];
    if constexpr (is_floating_element<T>)
      if (const int last = c.l[0].rank - 1;
          last > 0 && attributes_of<sum_attributes>(c.a).dims == (std::int64_t{1} << last) - 1 &&
          detail::sum_columns<T>(op_code::sum, c.l[0], c.p[0], as<T>(c.p[result]), o.str[o.rank - 1], static_cast<double>(n),
                                 c.workspace, ctx))
        return;
    detail::sum_into<T, false>(op_code::sum, c, static_cast<double>(n), ctx);
  }
};

// The sums are floats of two-byte elements, too.
template <>
struct kernel<op_code::sumsq> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::sum_into<T, true, computed_in<T>>(op_code::sumsq, c, 1, ctx);
  }
  template <class T, expression E>
  static void run_then(const call& c, context& ctx) {
    using C = computed_in<T>;
    if (c.l[result].numel() == 1) detail::sum_into<T, true, C>(op_code::sumsq, c, 1, ctx, epilogue_of<C, E>(c));
    else {
      run<T>(c, ctx);
      evaluate<C, E>(op_code::sumsq, c, ctx);
    }
  }

  // Of several, each adds the operands behind its first to its sum; one alone leaves that to its expression. What lies densely is
  // one launch, whatever its size; of the others the sums are kept aside first, where anything is added to them.
  template <class T>
  static void run_all(const call* calls, std::size_t count, context& ctx) {
    if (count == 1) return run<T>(calls[0], ctx);
    using C = computed_in<T>;
    bool adds = false;
    for (std::size_t i = 0; i < count; ++i) adds = adds || calls[i].all_inputs > calls[i].inputs;
    std::byte* const scratch = static_cast<std::byte*>(calls[0].workspace);
    detail::squares<T> list(reinterpret_cast<C*>(scratch),
                            reinterpret_cast<double*>(scratch + device_scratch::square_parts_begin));
    for (std::size_t i = 0; i < count; ++i) {
      call c = calls[i];
      const bool in_list = is_dense(c.l[0]) && c.l[result].numel() == 1;
      list.make_room(in_list ? c.l[0].numel() : 0, ctx);
      if (!in_list) {
        if (adds) c.p[result] = list.aside();
        c.workspace = scratch + device_scratch::squares_aside_bytes;
        run<T>(c, ctx);
        if (!adds) continue;
      }
      const C* add[max_fused_inputs - 1]{};
      for (int k = c.inputs; k < c.all_inputs; ++k) add[k - c.inputs] = as<C>(c.p[k]);
      list.append(in_list ? as<T>(c.p[0]) : nullptr, c.l[0].numel(), as<C>(calls[i].p[result]), add);
    }
    list.flush(ctx);
  }

 private:
  static bool is_dense(const layout& x) { return static_cast<std::int64_t>(x.span()) == x.numel(); }
};

template <class T>
struct expand_functor {
  T count;
  __device__ T operator()(T x) const { return x / count; }
};

// Adjoint of sum: operand 0 is the (smaller) cotangent, spread over the result's summed dims.
template <>
struct kernel<op_code::expand> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout& out = c.l[result];
    std::int64_t si[max_rank]{};
    host::detail::sum_strides(c.a, out, c.l[0], si);
    walk<2> w;
    for (int i = 0; i < out.rank; ++i) {
      const int d = host::stored_dim(out, i);
      const std::int64_t s[2] = {out.str[d], si[d]};
      w.push(out.ext[d], s);
    }
    w.merge();
    using C = computed_in<T>;
    const C count = static_cast<C>(attributes_of<sum_attributes>(c.a).mean != 0 ? host::detail::summed_count(c.a, out) : 1);
    map(op_code::expand, w, pointers<T, 2>{{as<T>(c.p[result]), as<T>(c.p[0])}}, expand_functor<C>{count}, ctx);
  }
};

// A NaN stays. Every float is a double, so that folding in double gives the host's bits.
struct max_fold {
  static constexpr double start = -static_cast<double>(INFINITY);
  __device__ double operator()(double a, double b) const { return a < b || !(b == b) ? b : a; }
};
struct min_fold {
  static constexpr double start = static_cast<double>(INFINITY);
  __device__ double operator()(double a, double b) const { return b < a || !(b == b) ? b : a; }
};
struct product_fold {
  static constexpr double start = 1;
  __device__ double operator()(double a, double b) const { return a * b; }
};

namespace detail {

template <class T, class Fold>
void fold_into(op_code op, const call& c, context& ctx) {
  const layout &x = c.l[0], &out = c.l[result];
  walk<2> kept, folded;
  for (int d = 0; d < x.rank; ++d) {
    const bool reduced = (attributes_of<extent_one_attributes>(c.a).dims >> d) & 1;
    const std::int64_t s[2] = {reduced ? 0 : out.str[d], x.str[d]};
    (reduced ? folded : kept).push(x.ext[d], s);
  }
  kept.merge();
  folded.merge();
  reduce<T, Fold>(op, c, kept, folded, element_value<T, false>{as<T>(c.p[0])}, T(1), ctx);
}

}  // namespace detail

template <>
struct kernel<op_code::amax> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::fold_into<T, max_fold>(op_code::amax, c, ctx);
  }
};
template <>
struct kernel<op_code::amin> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::fold_into<T, min_fold>(op_code::amin, c, ctx);
  }
};
template <>
struct kernel<op_code::prod> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::fold_into<T, product_fold>(op_code::prod, c, ctx);
  }
};

namespace detail {

// kept: cotangent, x, result; folded: x, result. A thread for each product, twice over its elements: the products
// before and after each one are running ones. Those before lie in the result until the others are there: of two-byte elements
// they are rounded once more.
template <class T>
__global__ void __launch_bounds__(256)
    prod_dx_kernel(const __grid_constant__ strided<3> kept, const __grid_constant__ strided<2> folded, const T* dy,
                   const T* x, T* out) {
  for (std::uint32_t r = blockIdx.x * blockDim.x + threadIdx.x; r < kept.count; r += gridDim.x * blockDim.x) {
    std::int64_t at[3], off[2];
    kept.offsets(r, at);
    using C = computed_in<T>;
    C before = C(dy[at[0]]), after = C(1);
    for (std::uint32_t i = 0; i < folded.count; ++i) {
      folded.offsets(i, off);
      out[at[2] + off[1]] = T(before);
      before *= C(x[at[1] + off[0]]);
    }
    for (std::uint32_t i = folded.count; i-- > 0;) {
      folded.offsets(i, off);
      T& o = out[at[2] + off[1]];
      o = T(C(o) * after);
      after *= C(x[at[1] + off[0]]);
    }
  }
}

}  // namespace detail

template <>
struct kernel<op_code::prod_dx> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout &dy = c.l[0], &x = c.l[1], &out = c.l[result];
    walk<3> kept;
    walk<2> folded;
    for (int d = 0; d < x.rank; ++d) {
      const std::int64_t s[3] = {dy.str[d], x.str[d], out.str[d]};
      if ((attributes_of<extent_one_attributes>(c.a).dims >> d) & 1) folded.push(x.ext[d], s + 1);
      else kept.push(x.ext[d], s);
    }
    kept.merge();
    folded.merge();
    if (points(folded) == 0) return;
    if (points(folded) >= most_points)
      throw device_error(name_of(op_code::prod_dx), "2^31 or more elements are multiplied; reduce one dim after another");
    const std::int64_t zero[2]{};
    const strided<2> f = make_strided(folded, zero);
    each_piece(kept, [&](const walk<3>& w, const std::int64_t* base) {
      const strided<3> k = make_strided(w, base);
      launch(op_code::prod_dx, &detail::prod_dx_kernel<T>, grid_for((std::int64_t{k.count} + 255) / 256, ctx), 256,
             ctx.stream, k, f, as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[result]));
    });
  }
};

namespace detail {

template <class T>
struct power_value {
  const T* x;
  int order;
  __device__ double operator()(const std::int64_t* off) const {
    return norm_power<double>{order}(static_cast<double>(x[off[1]]));
  }
};

template <class T>
struct store_root {
  T* out;
  norm_root<double> root;
  __device__ void operator()(const std::int64_t* at, double total) const { out[at[0]] = static_cast<T>(root(total)); }
};

template <class T>
struct norm_slope {
  int order;
  __device__ T operator()(T dy, T x, T n) const {
    if (n == T(0) || x == T(0)) return T(0);
    if (!(x == x)) return x;
    const T ratio = (x < T(0) ? -x : x) / n;
    T r = x < T(0) ? -dy : dy;
    for (int k = 1; k < order; ++k) r *= ratio;
    return r;
  }
};

}  // namespace detail

namespace detail {

// The cotangent and the norm are floats.
template <class T>
struct norm_slope_at {
  T* out;
  const computed_in<T>* dy;
  const T* x;
  const computed_in<T>* norm;
  norm_slope<computed_in<T>> slope;
  __device__ void operator()(const std::int64_t* at) const {
    out[at[0]] = static_cast<T>(slope(dy[at[1]], static_cast<computed_in<T>>(x[at[2]]), norm[at[3]]));
  }
};

}  // namespace detail

// The roots of the sums of powers, floats of two-byte elements, too.
template <>
struct kernel<op_code::vector_norm> {
  template <class T>
  static void run(const call& c, context& ctx) {
    using C = computed_in<T>;
    const layout &x = c.l[0], &out = c.l[result];
    const auto of = attributes_of<vector_norm_attributes>(c.a);
    const int order = static_cast<int>(of.order);
    std::int64_t so[max_rank]{};
    host::detail::sum_strides(c.a, x, out, so);
    walk<2> kept, summed;
    for (int d = 0; d < x.rank; ++d) {
      const std::int64_t s[2] = {so[d], x.str[d]};
      ((of.dims >> d) & 1 ? summed : kept).push(x.ext[d], s);
    }
    kept.merge();
    summed.merge();
    detail::reduce_to<sum_fold>(op_code::vector_norm, c, kept, summed, detail::power_value<T>{as<T>(c.p[0]), order},
                                detail::store_root<C>{as<C>(c.p[result]), norm_root<double>{order}}, ctx);
  }
};

template <>
struct kernel<op_code::vector_norm_dx> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout& out = c.l[result];
    std::int64_t sy[max_rank]{}, sn[max_rank]{};
    host::detail::sum_strides(c.a, out, c.l[0], sy);
    host::detail::sum_strides(c.a, out, c.l[2], sn);
    walk<4> w;
    for (int d = 0; d < out.rank; ++d) {
      const std::int64_t s[4] = {out.str[d], sy[d], c.l[1].str[d], sn[d]};
      w.push(out.ext[d], s);
    }
    w.merge();
    using C = computed_in<T>;
    const detail::norm_slope<C> slope{static_cast<int>(attributes_of<vector_norm_attributes>(c.a).order)};
    if constexpr (std::is_same_v<C, T>)
      map(op_code::vector_norm_dx, w, pointers<T, 4>{{as<T>(c.p[result]), as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[2])}},
          slope, ctx);
    else
      launch_points(op_code::vector_norm_dx, w,
                    detail::norm_slope_at<T>{as<T>(c.p[result]), as<C>(c.p[0]), as<T>(c.p[1]), as<C>(c.p[2]), slope}, ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
