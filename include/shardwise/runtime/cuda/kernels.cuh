// SPDX-License-Identifier: Apache-2.0
// All device kernels, one struct per operation over local blocks, and the tables of what launches them.
#pragma once

#include <shardwise/operations/contraction/device.cuh>
#include <shardwise/operations/embedding/device.cuh>
#include <shardwise/operations/fill/device.cuh>
#include <shardwise/operations/indexing/device.cuh>
#include <shardwise/operations/join/device.cuh>
#include <shardwise/operations/leaf/device.cuh>
#include <shardwise/operations/loss/device.cuh>
#include <shardwise/operations/movement/device.cuh>
#include <shardwise/operations/norm/device.cuh>
#include <shardwise/operations/pointwise/device.cuh>
#include <shardwise/operations/reduction/device.cuh>
#include <shardwise/operations/row/device.cuh>
#include <shardwise/operations/update/device.cuh>
#include <shardwise/operations/view/device.cuh>
#include <shardwise/operations/written/device.cuh>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <op_code Op, class T>
concept kernel_written = requires(const call& c, context& ctx) { kernel<Op>::template run<T>(c, ctx); };

template <op_code Op, class T>
constexpr launcher written_launcher() {
  if constexpr (kernel_written<Op, T>) {
    return &kernel<Op>::template run<T>;
  } else {
    static_assert(raise<problem::kernel_unwritten, typename shardwise::detail::op_tag<Op>::type, T>::ok);
    return nullptr;
  }
}

// Kernels of elements of two bytes, which are computed with in float: what a transformer's step runs on them. The others are not
// written; an optimizer's are of float, behind casts.
constexpr bool has_low_kernel(op_code op) {
  constexpr op_code others[] = {op_code::einsum,     op_code::sum,          op_code::expand,     op_code::norm_stats,
                                op_code::norm_apply, op_code::norm,         op_code::norm_dx,    op_code::norm_dw,
                                op_code::norm_dw_db, op_code::embedding,    op_code::lse,        op_code::nll,
                                op_code::nll_dx,     op_code::softmax,      op_code::softmax_dx, op_code::fill,
                                op_code::cast,       op_code::embedding_dw, op_code::dropout};
  for (const op_code o : others)
    if (o == op) return true;
  return rules::only_moves(op) || op == op_code::redistribute || is_comparison(op) || rules::is_scalar(op);
}

// What launches one operation on elements of T; null where there is no kernel, and for fused ones, which are those of
// their expressions. Integers are only moved and compared. Instantiates the kernels of that operation alone.
template <op_code Op, class T>
constexpr launcher launcher_for() {
  constexpr bool moves = rules::only_moves(Op) || Op == op_code::redistribute || is_comparison(Op);
  if constexpr (runs_kernel(Op) && Op != op_code::opaque && Op != op_code::custom && Op != op_code::fused &&
                (std::is_floating_point_v<T> || moves || Op == op_code::cast ||
                 (is_floating_element<T> && has_low_kernel(Op))))
    return written_launcher<Op, T>();
  else return nullptr;
}

// What launches neighbours of one operation together; null where its record says that each goes out alone.
using launcher_of_all = void (*)(const call*, std::size_t, context&);
template <op_code Op, class T>
constexpr launcher_of_all launcher_for_all() {
  if constexpr (traits_of(Op).launch == launching::alone || launcher_for<Op, T>() == nullptr) {
    return nullptr;
  } else {
    static_assert(
        requires(const call* c, context& ctx) { kernel<Op>::template run_all<T>(c, std::size_t{1}, ctx); },
        "an operation whose record says that neighbours go out together has run_all beside run in its device.cuh");
    return &kernel<Op>::template run_all<T>;
  }
}

// All of them, by operation.
template <class T>
struct launchers {
  static constexpr launcher table[static_cast<int>(op_code::count)] = {
#define SHARDWISE_X(name, kernel) launcher_for<op_code::name, T>(),
      SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
  };
  static constexpr launcher_of_all all[static_cast<int>(op_code::count)] = {
#define SHARDWISE_X(name, kernel) launcher_for_all<op_code::name, T>(),
      SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
  };
};

template <class T>
launcher launcher_of(op_code op) {
  return launchers<T>::table[static_cast<int>(op)];
}

// Launchers by element type, beside those of a program's own: written by SHARDWISE_DEVICE_ELEMENTS when the program starts.
struct element_launchers {
  const launcher* one = nullptr;
  const launcher_of_all* all = nullptr;

  template <class T>
  static constexpr element_launchers of() {
    return {launchers<T>::table, launchers<T>::all};
  }
  static element_launchers& beside(dtype t) {
    static element_launchers table[dtypes];
    return table[static_cast<int>(t)];
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// At namespace scope of one CUDA source: kernels of elements of this type for programs whose element type is another one. Price: the
// time to compile them, which programs without such tensors do not pay.
#define SHARDWISE_DEVICE_ELEMENTS(type)                                        \
  static const bool SHARDWISE_DEVICE_ELEMENTS_NAME(__LINE__) = [] {            \
    ::shardwise::cuda::element_launchers::beside(::shardwise::dtype_v<type>) = \
        ::shardwise::cuda::element_launchers::of<type>();                      \
    return true;                                                               \
  }()
#define SHARDWISE_DEVICE_ELEMENTS_NAME(line) SHARDWISE_DEVICE_ELEMENTS_JOIN(line)
#define SHARDWISE_DEVICE_ELEMENTS_JOIN(line) shardwise_device_elements_of_line_##line
