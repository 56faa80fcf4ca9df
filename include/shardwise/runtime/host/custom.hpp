// SPDX-License-Identifier: Apache-2.0
// Kernels of users' own operations on the host: what they are made from, and what they are given.
#pragma once

#include <stdexcept>
#include <utility>

#include <shardwise/graph/tensor.hpp>
#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// Specialise it for an elementwise operation: `value<m>(x, y, ...)` is the result's element, m the device's functions (exp,
// log, tanh, erf, sqrt, sin, cos, pow, less, from(double)). With one more argument it gets the call's real parameter, or, if it has
// `using attributes = A;`, an A. It must be constexpr and use +, -, *, / and m alone: then it runs on GPUs, and in proofs over
// integers.
template <const custom_operation& Op>
struct formula;

// Specialise it for any other: `run(arguments)` with kernel_arguments<T> computes this rank's block of the result, or of each
// result that is wanted. One that says `static constexpr bool in_shares = true;` computes of n pieces of its work, which do not need
// each other, those that arguments.share(n) names: a rank's threads run it at once, each on its share (rank.compute_threads).
template <const custom_operation& Op>
struct host_kernel;

template <const custom_operation& Op>
concept has_formula = requires { sizeof(formula<Op>); };
template <const custom_operation& Op>
concept has_host_kernel = requires { sizeof(host_kernel<Op>); };

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Typed pointers to several results: to those of T, and to those of int32.
template <class T>
struct result_pointers {
  T* p[max_results]{};
  std::int32_t* index[max_results]{};
  const runtime::layout* l = nullptr;
};
template <class T>
result_pointers<T> pointers_of(const runtime::result_blocks& r) {
  result_pointers<T> q;
  q.l = r.l;
  for (int k = 0; k < max_results; ++k) {
    if (r.type[k] == dtype_v<T>) q.p[k] = static_cast<T*>(r.p[k]);
    if (r.type[k] == dtype::i32) q.index[k] = static_cast<std::int32_t*>(r.p[k]);
  }
  return q;
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

// One rank's blocks, elements of T: densely stored row-major, or, where the record says strided, by the strides given here, which may be
// channels-last. Where a block lies in its tensor: extents and origin.
template <class T>
class SHARDWISE_HIDDEN kernel_arguments {
 public:
  constexpr kernel_arguments(const runtime::call& c, const host::operands<T>& q, const host::result_pointers<T>* r = nullptr)
      : c_(c), q_(q), r_(r) {}

  constexpr T* out() const { return q_.p[runtime::result]; }
  constexpr const T* in(int operand) const { return q_.p[operand]; }
  // The operand that the record names as indices.
  constexpr const std::int32_t* index() const { return q_.index; }

  // Of several results, by number. One that is not wanted has no pointer and must not be written.
  constexpr bool wanted(int result) const { return r_->p[result] || r_->index[result]; }
  constexpr T* out(int result) const { return r_->p[result]; }
  constexpr std::int32_t* index_out(int result) const { return r_->index[result]; }
  constexpr std::int64_t size_of_result(int result) const { return r_->l[result].numel(); }
  constexpr std::int64_t extent_of_result(int result, int dim) const { return r_->l[result].ext[dim]; }
  constexpr std::int64_t origin_of_result(int result, int dim) const { return r_->l[result].origin[dim]; }

  constexpr int rank(int operand) const { return c_.l[operand].rank; }
  constexpr std::int64_t extent(int operand, int dim) const { return c_.l[operand].ext[dim]; }
  constexpr std::int64_t size(int operand) const { return c_.l[operand].numel(); }
  // In elements; of an operand that is broadcast 0.
  constexpr std::int64_t stride(int operand, int dim) const { return c_.l[operand].str[dim]; }
  constexpr int rank() const { return rank(runtime::result); }
  constexpr std::int64_t extent(int dim) const { return extent(runtime::result, dim); }
  constexpr std::int64_t size() const { return size(runtime::result); }
  constexpr std::int64_t stride(int dim) const { return stride(runtime::result, dim); }
  // Of the whole tensor: its extent, and where this block begins.
  constexpr std::int64_t whole_extent(int operand, int dim) const { return c_.l[operand].global[dim]; }
  constexpr std::int64_t origin(int operand, int dim) const { return c_.l[operand].origin[dim]; }

  // The bytes that the record asks for (host_scratch, device_scratch), aligned for any vector; what lies there before is
  // nobody's, and so is what the kernel leaves. A kernel that is run in constants, as proofs do, keeps elements of T there.
  // Throws std::logic_error where the record asks for none.
  constexpr T* scratch() const {
    if (!q_.has_scratch)
      throw std::logic_error(
          "shardwise: a kernel of one's own reads scratch() and its operation's record asks for none; state host_scratch and "
          "device_scratch in the record, as with_scratch does");
    return q_.scratch;
  }

  // Of n pieces of the work those to compute; all of them unless the kernel says in_shares.
  constexpr interval share(std::int64_t n) const {
    const std::int64_t begin = n * c_.share / c_.shares;
    return {begin, n * (c_.share + 1) / c_.shares - begin};
  }

  // How many threads share the work.
  constexpr int shares() const { return c_.shares; }

  // Those of `call`.
  template <class A>
  constexpr A attributes() const {
    return attributes_of<A>(c_.a);
  }
  constexpr std::int64_t attribute(int i) const { return c_.a.v[i]; }
  constexpr double number() const { return c_.f; }

 private:
  const runtime::call& c_;
  const host::operands<T>& q_;
  const host::result_pointers<T>* r_;
};

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

template <const custom_operation& Op, class M, class T, class... Given>
concept formula_takes = requires { formula<Op>::template value<M, T>(std::declval<Given>()...); };

// What a formula is given beside its operands: its call's attributes, or its real parameter, if it takes either.
template <const custom_operation& Op, class T>
struct formula_parameter {
  T value;
  constexpr explicit formula_parameter(const call& c) : value(math<T>::from(c.f)) {}
  template <class M, class... X>
  constexpr T of(X... x) const {
    if constexpr (formula_takes<Op, M, T, X..., T>) return formula<Op>::template value<M, T>(x..., value);
    else return formula<Op>::template value<M, T>(x...);
  }
};
template <const custom_operation& Op, class T>
  requires requires { typename formula<Op>::attributes; }
struct formula_parameter<Op, T> {
  typename formula<Op>::attributes value;
  constexpr explicit formula_parameter(const call& c) : value(attributes_of<typename formula<Op>::attributes>(c.a)) {}
  template <class M, class... X>
  constexpr T of(X... x) const {
    return formula<Op>::template value<M, T>(x..., value);
  }
};

// A formula that says `static constexpr bool in_vectors = true;` stands between SHARDWISE_UNFUSED_BEGIN and its end, so that its loop
// may be compiled for wider instruction sets without changing a bit.
template <const custom_operation& Op>
concept in_vectors = requires { requires formula<Op>::in_vectors; };

template <const custom_operation& Op, class T, std::size_t... K>
constexpr void run_formula(const call& c, const operands<T>& q, std::index_sequence<K...>) {
  constexpr int count = 1 + static_cast<int>(sizeof...(K));
  const layout* const in[] = {&c.l[K]...};
  const formula_parameter<Op, T> f(c);
  broadcast_walk<count>(c.l[result], in).each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    T* const to = q.p[result] + off[0];
    const T* const from[] = {q.p[K] + off[K + 1]...};
    if (s[0] == 1 && ((s[K + 1] == 1) && ...)) {
      if constexpr (in_vectors<Op>) {
        if (!std::is_constant_evaluated()) {
          independent_loop<T>(n, [=](std::int64_t i) { to[i] = f.template of<math<T>>(from[K][i]...); });
          return;
        }
      }
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) to[i] = f.template of<math<T>>(from[K][i]...);
    } else {
      const auto apart = [&](std::int64_t i) { to[i * s[0]] = f.template of<math<T>>(from[K][i * s[K + 1]]...); };
      if constexpr (in_vectors<Op>) plain_loop(n, apart);
      else
        for (std::int64_t i = 0; i < n; ++i) apart(i);
    }
  });
}

}  // namespace detail

// The kernel of a custom operation.
template <const custom_operation& Op>
struct custom_kernel {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&,
                            const result_pointers<T>* several = nullptr) {
    if constexpr (has_formula<Op> && Op.record.results > 1) {
      static_assert(raise<problem::result_formula, shardwise::detail::custom_tag<Op>, T>::ok);
    } else if constexpr (has_formula<Op>) {
      detail::run_formula<Op, T>(c, q, std::make_index_sequence<static_cast<std::size_t>(Op.operands.value)>{});
    } else if constexpr (has_host_kernel<Op>) {
      host_kernel<Op>::run(kernel_arguments<T>(c, q, several));
    } else {
      static_assert(raise<problem::custom_kernel, shardwise::detail::custom_tag<Op>, T>::ok);
    }
  }
};

template <const custom_operation& Op>
constexpr cut_kind custom_cut() {
  if constexpr (has_formula<Op>) return cut_kind::places;
  else if constexpr (requires { requires host_kernel<Op>::in_shares; }) return cut_kind::shares;
  else return cut_kind::whole;
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

namespace runtime {
inline namespace SHARDWISE_HOST_BUILD {

template <const custom_operation& Op, class T>
__attribute__((noinline)) void compute_custom(const call& c, const step_env& env) {
  host::operands<T> q;
  for (int k = 0; k <= max_inputs; ++k) q.p[k] = static_cast<T*>(c.p[k]);
  constexpr int index = Op.record.indices;
  if constexpr (index >= 0) q.index = static_cast<const std::int32_t*>(c.p[index]);
  constexpr bool has_scratch = static_cast<bool>(Op.record.host_scratch.value);  // a constant: no record in the object
  q.has_scratch = has_scratch;
  if constexpr (has_scratch) q.scratch = static_cast<T*>(c.workspace);
  if constexpr (Op.record.results > 1) {
    const host::result_pointers<T> several = host::pointers_of<T>(*c.results);
    host::custom_kernel<Op>::template run<T>(c, q, env, &several);
  } else {
    host::custom_kernel<Op>::template run<T>(c, q, env);
  }
}

// No constant: of an operation whose kernel is compiled apart nothing is read here (extern_kernels.hpp).
template <const custom_operation& Op>
__attribute__((noinline)) host::cut_kind cut_of_custom() {
  return host::custom_cut<Op>();
}

template <const custom_operation& Op, class T, class Rank>
void run_custom(const call& c, const step_env& env, Rank&) {
  compute_custom<Op, T>(c, env);
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace runtime

}  // namespace shardwise::inline v0_1
