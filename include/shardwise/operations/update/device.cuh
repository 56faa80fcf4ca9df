// SPDX-License-Identifier: Apache-2.0
// Optimizer updates on a device, in place on parameter and states; the step's numbers are read from the device's memory. A kernel is of
// the gradient's type, which may have two bytes: parameters, states and arithmetic are then float, with the bits of a cast before it.
// Hence each product that goes into a sum is fused with it by name.
#pragma once

#include <shardwise/operations/update/loss_scale.hpp>
#include <shardwise/operations/update/options.hpp>
#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/runtime/cuda/device/takes_element.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// Parameter, gradient and up to two states, of equal length, or three if Largest; a state that is not there is null.
template <class T, bool Largest = false>
struct update_arrays {
  using C = computed_in<T>;
  C* p;
  const T* g;
  C *m, *v;
  const C* clip;  // the factor, null: there is none
};
template <class T>
struct update_arrays<T, true> : update_arrays<T> {
  computed_in<T>* largest;
};
template <class Rule>
inline constexpr bool keeps_third_state = requires { Rule::keeps_third; };

template <class T, int V, bool Largest, class Step>
__device__ void update_pack(const update_arrays<T, Largest>& a, std::int64_t i, const Step& step) {
  using C = computed_in<T>;
  using P = pack<C, V>;
  P p = *reinterpret_cast<P*>(a.p + i), m{}, v{};
  [[maybe_unused]] P largest{};
  const pack<T, V> g = *reinterpret_cast<const pack<T, V>*>(a.g + i);
  if (a.m) m = *reinterpret_cast<P*>(a.m + i);
  if (a.v) v = *reinterpret_cast<P*>(a.v + i);
  if constexpr (Largest) largest = *reinterpret_cast<P*>(a.largest + i);
#pragma unroll
  for (int j = 0; j < V; ++j) {
    if constexpr (Largest) step(p.v[j], static_cast<C>(g.v[j]), m.v[j], v.v[j], largest.v[j]);
    else step(p.v[j], static_cast<C>(g.v[j]), m.v[j], v.v[j]);
  }
  *reinterpret_cast<P*>(a.p + i) = p;
  if (a.m) *reinterpret_cast<P*>(a.m + i) = m;
  if (a.v) *reinterpret_cast<P*>(a.v + i) = v;
  if constexpr (Largest) *reinterpret_cast<P*>(a.largest + i) = largest;
}

// Updates of one optimizer side by side in one launch: most parameters are small, and a launch each would be most of a
// small model's step.
template <class T, class Rule>
struct update_item {
  update_arrays<T, keeps_third_state<Rule>> a;
  std::int64_t n;
  Rule rule;
  std::uint32_t first_block;
  std::uint32_t packs;  // 1 if every array is aligned to its packs: 16 bytes, and as many elements of a gradient
};
inline constexpr int updates_at_once = 128;
template <class T, class Rule>
struct update_list {
  update_item<T, Rule> item[updates_at_once];
  int count, chunk;  // elements of a block
};
// A block takes a pack a thread, and up to four where there are more blocks than a device holds at once: each further one waits for the way to
// memory once more.
inline constexpr int update_threads = 256, update_packs = 4, update_blocks_at_once = 1024;

// Rule::step is made of the step's numbers once a thread.
template <class T, class Rule>
__global__ void __launch_bounds__(update_threads)
    update_kernel(const __grid_constant__ update_list<T, Rule> list, const device_env* env) {
  using C = computed_in<T>;
  constexpr int V = vector_of<C>;
  int k = 0;  // the last item that begins no later than this block
  for (int end = list.count; end - k > 1;) {
    const int middle = (k + end) / 2;
    if (blockIdx.x >= list.item[middle].first_block) k = middle;
    else end = middle;
  }
  const update_item<T, Rule>& u = list.item[k];
  if (u.a.clip && *u.a.clip < C(0)) return;  // a step that a dynamic loss scale skips
  const typename Rule::step step(u.rule, *env, u.a.clip ? *u.a.clip : C(1));
  const std::int64_t begin = std::int64_t{blockIdx.x - u.first_block} * list.chunk;
  const std::int64_t end = begin + list.chunk < u.n ? begin + list.chunk : u.n;
  const std::int64_t packed = u.packs ? begin + (end - begin) / V * V : begin;
  for (std::int64_t i = begin + std::int64_t{threadIdx.x} * V; i < packed; i += update_threads * V)
    update_pack<T, V>(u.a, i, step);
  for (std::int64_t i = packed + threadIdx.x; i < end; i += update_threads) update_pack<T, 1>(u.a, i, step);
}

// `item_of(call)` -> arrays and rule of one update.
template <class T, class Rule, class F>
void update_all(op_code op, const call* calls, std::size_t count, context& ctx, F&& item_of) {
  using C = computed_in<T>;
  if (is_low_precision(dtype_v<T>) && calls[0].type[0] == dtype_v<T>) refuse_element(op, dtype_v<T>);
  update_list<T, Rule> list;
  list.count = 0;
  const auto flush = [&] {
    if (list.count == 0) return;
    std::uint32_t blocks = 0;
    for (int packs = 1; packs <= update_packs; packs *= 2) {
      list.chunk = update_threads * vector_of<C> * packs;
      blocks = 0;
      for (int k = 0; k < list.count; ++k) {
        list.item[k].first_block = blocks;
        blocks += static_cast<std::uint32_t>((list.item[k].n + list.chunk - 1) / list.chunk);
      }
      if (blocks <= update_blocks_at_once) break;
    }
    launch(op, &update_kernel<T, Rule>, blocks, update_threads, ctx.stream, list, ctx.env);
    list.count = 0;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t n = calls[i].l[0].numel();
    if (n == 0) continue;
    update_item<T, Rule> u = item_of(calls[i]);
    u.n = n;
    u.packs = 1;
    for (const void* p : {static_cast<const void*>(u.a.p), static_cast<const void*>(u.a.m), static_cast<const void*>(u.a.v)})
      if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) u.packs = 0;
    if constexpr (keeps_third_state<Rule>)
      if (reinterpret_cast<std::uintptr_t>(u.a.largest) % 16 != 0) u.packs = 0;
    if (reinterpret_cast<std::uintptr_t>(u.a.g) % sizeof(pack<T, vector_of<C>>) != 0) u.packs = 0;
    list.item[list.count++] = u;
    if (list.count == updates_at_once) flush();
  }
  flush();
}

}  // namespace detail

template <class T>
struct sgd_rule {
  double decay;  // the parameter's share of weight_decay
  bool momentum, nesterov;

  struct step {
    T lr, mu, decay, factor;
    bool momentum, nesterov;
    __device__ step(const sgd_rule& r, const device_env& e, T clip)
        : lr(static_cast<T>(e.env.lr)),
          mu(static_cast<T>(e.env.momentum)),
          decay(static_cast<T>(e.env.weight_decay * r.decay)),
          factor(clip),
          momentum(r.momentum),
          nesterov(r.nesterov) {}
    __device__ void operator()(T& p, T g, T& m, T&) const {
      T d = math<T>::fma(decay, p, g * factor);
      if (momentum) {
        m = math<T>::fma(mu, m, d);
        d = nesterov ? math<T>::fma(mu, m, d) : m;
      }
      p = math<T>::fma(-lr, d, p);
    }
  };
};

// operands: parameter, gradient [, momentum buffer] [, clip factor]
template <>
struct kernel<op_code::sgd> {
  template <class T>
  static void run(const call& c, context& ctx) {
    run_all<T>(&c, 1, ctx);
  }
  // Consecutive updates of different parameters.
  template <class T>
  static void run_all(const call* calls, std::size_t count, context& ctx) {
    using C = computed_in<T>;
    using item = detail::update_item<T, sgd_rule<C>>;
    detail::update_all<T, sgd_rule<C>>(op_code::sgd, calls, count, ctx, [](const call& c) {
      const auto of = attributes_of<sgd_attributes>(c.a);
      const bool clipped = of.clipped != 0, momentum = of.momentum != 0;
      return item{{as<C>(c.p[0]), as<T>(c.p[1]), momentum ? as<C>(c.p[2]) : nullptr, nullptr,
                   clipped ? as<C>(c.p[c.inputs - 1]) : nullptr},
                  0,
                  sgd_rule<C>{c.f, momentum, of.momentum == 2},
                  0,
                  0};
    });
  }
};

template <class T>
struct adam_rule {
  double decay;
  bool decoupled;
  const T* steps;    // null: the run's number of the step,
  const T* skipped;  // if it is not null, less these
  __device__ bool has_own_number() const { return steps || skipped; }
  __device__ double number(const device_env& e) const {
    return steps ? static_cast<double>(*steps) : static_cast<double>(e.env.step) - static_cast<double>(*skipped);
  }

  struct step {
    T b1, b2, rest1, rest2, eps, size, root, coupled, shrink, factor;
    __device__ step(const adam_rule& r, const device_env& e, T clip)
        : b1(static_cast<T>(e.env.beta1)),
          b2(static_cast<T>(e.env.beta2)),
          rest1(static_cast<T>(1 - e.env.beta1)),
          rest2(static_cast<T>(1 - e.env.beta2)),
          eps(static_cast<T>(e.env.eps)),
          size(static_cast<T>(r.has_own_number() ? e.env.lr / (1 - ::pow(e.env.beta1, r.number(e))) : e.adam_rate)),
          root(static_cast<T>(r.has_own_number() ? 1 / ::sqrt(1 - ::pow(e.env.beta2, r.number(e))) : e.adam_root)),
          coupled(r.decoupled ? T(0) : static_cast<T>(e.env.weight_decay * r.decay)),
          shrink(r.decoupled ? static_cast<T>(1 - e.env.lr * (e.env.weight_decay * r.decay)) : T(1)),
          factor(clip) {}
    __device__ T gradient(T g, T p) const { return math<T>::fma(coupled, p, g); }
    __device__ T first(T m, T g) const { return math<T>::fma(b1, m, rest1 * g); }
    __device__ T second(T v, T g) const { return math<T>::fma(b2, v, rest2 * g * g); }
    __device__ T parameter(T p, T m, T v) const {
      return math<T>::fma(p, shrink, -(size * m / math<T>::fma(math<T>::sqrt(v), root, eps)));
    }
    __device__ void operator()(T& p, T given, T& m, T& v) const {
      const T g = gradient(given * factor, p);
      m = first(m, g);
      v = second(v, g);
      p = parameter(p, m, v);
    }
  };
};

// operands: parameter, gradient, first moment, second moment [, steps] [, factor]
template <>
struct kernel<op_code::adam> {
  template <class T>
  static void run(const call& c, context& ctx) {
    run_all<T>(&c, 1, ctx);
  }
  template <class T>
  static void run_all(const call* calls, std::size_t count, context& ctx) {
    using C = computed_in<T>;
    using item = detail::update_item<T, adam_rule<C>>;
    detail::update_all<T, adam_rule<C>>(op_code::adam, calls, count, ctx, [](const call& c) {
      const auto of = attributes_of<adam_attributes>(c.a);
      const bool clipped = of.clipped != 0, decoupled = of.decoupled != 0;
      const C* const by = clipped ? as<C>(c.p[c.inputs - 1]) : nullptr;
      return item{{as<C>(c.p[0]), as<T>(c.p[1]), as<C>(c.p[2]), as<C>(c.p[3]), by},
                  0,
                  adam_rule<C>{c.f, decoupled, of.counts != 0 ? as<C>(c.p[4]) : nullptr, of.clipped == 2 ? by + 1 : nullptr},
                  0,
                  0};
    });
  }
};

// The same with options, and Lion: operations/update/options.hpp.
template <class T>
struct sgd_with_rule {
  double decay;
  std::int64_t options, flavour;
  const T* skipped;

  struct step {
    operations::optioned_gradient<math<T>, T> given;
    operations::sgd_options_step<math<T>, T> with;
    __device__ step(const sgd_with_rule& r, const device_env& e, T clip)
        : given(e.env, r.options, clip),
          with(e.env, r.options, r.flavour,
               static_cast<double>(e.env.step) - (r.skipped ? static_cast<double>(*r.skipped) : 0.0), r.decay) {}
    __device__ void operator()(T& p, T g, T& m, T&) const {
      T d = with.decayed(given(g), p);
      if (with.has_momentum) {
        m = with.next(m, d);
        d = with.direction(d, m);
      }
      p = with.moved(p, d);
    }
  };
};

template <>
struct kernel<op_code::sgd_with> {
  template <class T>
  static void run(const call& c, context& ctx) {
    run_all<T>(&c, 1, ctx);
  }
  template <class T>
  static void run_all(const call* calls, std::size_t count, context& ctx) {
    using C = computed_in<T>;
    using item = detail::update_item<T, sgd_with_rule<C>>;
    detail::update_all<T, sgd_with_rule<C>>(op_code::sgd_with, calls, count, ctx, [](const call& c) {
      const auto of = attributes_of<sgd_attributes>(c.a);
      const C* const by = of.clipped != 0 ? as<C>(c.p[c.inputs - 1]) : nullptr;
      return item{{as<C>(c.p[0]), as<T>(c.p[1]), of.momentum != 0 ? as<C>(c.p[2]) : nullptr, nullptr, by},
                  0,
                  sgd_with_rule<C>{c.f, update_options_of(c.a), of.momentum, of.clipped == 2 ? by + 1 : nullptr},
                  0,
                  0};
    });
  }
};

template <class T>
struct adam_with_rule : adam_rule<T> {
  std::int64_t options;

  struct step : adam_rule<T>::step {
    operations::optioned_gradient<math<T>, T> given;
    __device__ step(const adam_with_rule& r, const device_env& e, T clip)
        : adam_rule<T>::step(r, e, T(1)), given(e.env, r.options, clip) {}
    __device__ void operator()(T& p, T g, T& m, T& v) const {
      moments(p, g, m, v);
      p = this->parameter(p, m, v);
    }
    __device__ void operator()(T& p, T g, T& m, T& v, T& largest) const {
      moments(p, g, m, v);
      largest = operations::largest_moment<math<T>, T>(largest, v);
      p = this->parameter(p, m, largest);
    }
    __device__ void moments(T p, T g, T& m, T& v) const {
      const T d = this->gradient(given(g), p);
      m = this->first(m, d);
      v = this->second(v, d);
    }
  };
};
template <class T>
struct amsgrad_rule : adam_with_rule<T> {
  static constexpr bool keeps_third = true;
};

// operands: parameter, gradient, first moment, second moment [, largest second moment] [, steps] [, factor]
template <>
struct kernel<op_code::adam_with> {
  template <class T>
  static void run(const call& c, context& ctx) {
    run_all<T>(&c, 1, ctx);
  }
  template <class T>
  static void run_all(const call* calls, std::size_t count, context& ctx) {
    for (std::size_t i = 0, end; i < count; i = end) {  // neighbours that keep it, or do not
      const bool largest = keeps(calls[i]);
      for (end = i + 1; end < count && keeps(calls[end]) == largest;) ++end;
      if (largest) run_alike<T, amsgrad_rule>(calls + i, end - i, ctx);
      else run_alike<T, adam_with_rule>(calls + i, end - i, ctx);
    }
  }

 private:
  static bool keeps(const call& c) { return (update_options_of(c.a) & keeps_largest) != 0; }
  template <class T, template <class> class Rule>
  static void run_alike(const call* calls, std::size_t count, context& ctx) {
    using C = computed_in<T>;
    detail::update_all<T, Rule<C>>(op_code::adam_with, calls, count, ctx, [](const call& c) {
      constexpr bool largest = detail::keeps_third_state<Rule<C>>;
      const auto of = attributes_of<adam_attributes>(c.a);
      const C* const by = of.clipped != 0 ? as<C>(c.p[c.inputs - 1]) : nullptr;
      detail::update_item<T, Rule<C>> u{};
      u.a.p = as<C>(c.p[0]);
      u.a.g = as<T>(c.p[1]);
      u.a.m = as<C>(c.p[2]);
      u.a.v = as<C>(c.p[3]);
      u.a.clip = by;
      if constexpr (largest) u.a.largest = as<C>(c.p[4]);
      u.rule.decay = c.f;
      u.rule.decoupled = of.decoupled != 0;
      u.rule.steps = of.counts != 0 ? as<C>(c.p[largest ? 5 : 4]) : nullptr;
      u.rule.skipped = of.clipped == 2 ? by + 1 : nullptr;
      u.rule.options = update_options_of(c.a);
      return u;
    });
  }
};

template <class T>
struct lion_rule {
  double decay;
  std::int64_t options;

  struct step {
    operations::optioned_gradient<math<T>, T> given;
    operations::lion_step<math<T>, T> with;
    __device__ step(const lion_rule& r, const device_env& e, T clip) : given(e.env, r.options, clip), with(e.env, r.decay) {}
    __device__ void operator()(T& p, T x, T& m, T&) const {
      const T g = given(x);
      p = with.moved(p, m, g);
      m = with.next(m, g);
    }
  };
};

// operands: parameter, gradient, momentum [, factor]
template <>
struct kernel<op_code::lion> {
  template <class T>
  static void run(const call& c, context& ctx) {
    run_all<T>(&c, 1, ctx);
  }
  template <class T>
  static void run_all(const call* calls, std::size_t count, context& ctx) {
    using C = computed_in<T>;
    using item = detail::update_item<T, lion_rule<C>>;
    detail::update_all<T, lion_rule<C>>(op_code::lion, calls, count, ctx, [](const call& c) {
      const auto of = attributes_of<sgd_attributes>(c.a);
      return item{
          {as<C>(c.p[0]), as<T>(c.p[1]), as<C>(c.p[2]), nullptr, of.clipped != 0 ? as<C>(c.p[c.inputs - 1]) : nullptr},
          0,
          lion_rule<C>{c.f, update_options_of(c.a)},
          0,
          0};
    });
  }
};

template <class T>
struct muon_rule {
  double rate;
  std::int64_t options;

  struct step {
    operations::optioned_gradient<math<T>, T> given;
    operations::muon_step<math<T>, T> with;
    __device__ step(const muon_rule& r, const device_env& e, T clip) : given(e.env, r.options, clip), with(e.env, r.rate) {}
    __device__ void operator()(T& p, T g, T& m, T& direction) const {
      p = with.moved(p, direction);
      m = with.next(m, given(g));
    }
  };
};

// operands: parameter, gradient, direction, momentum [, factor]. The direction is written back as it is.
template <>
struct kernel<op_code::muon> {
  template <class T>
  static void run(const call& c, context& ctx) {
    run_all<T>(&c, 1, ctx);
  }
  template <class T>
  static void run_all(const call* calls, std::size_t count, context& ctx) {
    using C = computed_in<T>;
    using item = detail::update_item<T, muon_rule<C>>;
    detail::update_all<T, muon_rule<C>>(op_code::muon, calls, count, ctx, [](const call& c) {
      const auto of = attributes_of<sgd_attributes>(c.a);
      return item{
          {as<C>(c.p[0]), as<T>(c.p[1]), as<C>(c.p[3]), as<C>(c.p[2]), of.clipped != 0 ? as<C>(c.p[c.inputs - 1]) : nullptr},
          0,
          muon_rule<C>{c.f, update_options_of(c.a)},
          0,
          0};
    });
  }
};

namespace detail {

inline constexpr int flat_threads = 256;

inline unsigned flat_blocks(std::int64_t n) {
  const std::int64_t blocks = (n + flat_threads - 1) / flat_threads;
  return static_cast<unsigned>(blocks < 65'536 ? blocks : 65'536);
}

// Which: as the attribute of adam_term.
template <class T>
__global__ void __launch_bounds__(flat_threads)
    adam_term_kernel(T* out, const T* x, const T* y, const T* z, const T* steps, const T* by, int which, adam_rule<T> rule,
                     std::int64_t n, const device_env* env) {
  rule.steps = steps;
  const T factor = by ? *by : T(1);
  const typename adam_rule<T>::step with(rule, *env, factor);
  const std::int64_t stride = std::int64_t{gridDim.x} * flat_threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * flat_threads + threadIdx.x; i < n; i += stride) {
    if (factor < T(0)) out[i] = x[i];  // a step that a dynamic loss scale skips
    else if (which == 2) out[i] = with.parameter(x[i], y[i], z[i]);
    else if (which == 0) out[i] = with.first(x[i], with.gradient(y[i] * factor, z[i]));
    else out[i] = with.second(x[i], with.gradient(y[i] * factor, z[i]));
  }
}

template <class T>
__global__ void __launch_bounds__(flat_threads)
    adam_term_with_kernel(T* out, const T* x, const T* y, const T* z, const T* by, int which, adam_with_rule<T> rule,
                          std::int64_t n, const device_env* env) {
  const T factor = by ? *by : T(1);
  const typename adam_with_rule<T>::step with(rule, *env, factor);
  const std::int64_t stride = std::int64_t{gridDim.x} * flat_threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * flat_threads + threadIdx.x; i < n; i += stride) {
    if (factor < T(0)) out[i] = x[i];  // a step that a dynamic loss scale skips
    else if (which == 3) out[i] = operations::largest_moment<math<T>, T>(x[i], y[i]);
    else if (which == 0) out[i] = with.first(x[i], with.gradient(with.given(y[i]), z[i]));
    else out[i] = with.second(x[i], with.gradient(with.given(y[i]), z[i]));
  }
}

template <class T>
__global__ void __launch_bounds__(flat_threads)
    muon_direction_kernel(T* out, const T* m, const T* g, const T* by, muon_rule<T> rule, std::int64_t n,
                          const device_env* env) {
  const T factor = by ? *by : T(1);
  const typename muon_rule<T>::step step(rule, *env, factor);
  const std::int64_t stride = std::int64_t{gridDim.x} * flat_threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * flat_threads + threadIdx.x; i < n; i += stride)
    out[i] = factor < T(0) ? m[i] : step.with.direction(m[i], step.given(g[i]));
}

// to += 1, unless the factor `by` says that the step is skipped.
template <class T>
__global__ void __launch_bounds__(flat_threads) advance_kernel(T* to, const T* by, std::int64_t n) {
  if (by && *by < T(0)) return;
  const std::int64_t stride = std::int64_t{gridDim.x} * flat_threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * flat_threads + threadIdx.x; i < n; i += stride) to[i] = to[i] + T(1);
}

template <class T>
__global__ void adjust_scale_kernel(const __grid_constant__ adjust_scale_attributes of, const device_env* env, T* factor,
                                    T* scale, T* counts, const T* squares) {
  operations::next_loss_scale<math<T>, T>(of, static_cast<T>(env->env.max_norm), factor, scale, counts, *squares);
}

}  // namespace detail

template <>
struct kernel<op_code::adam_term> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const std::int64_t n = c.l[0].numel();
    if (n == 0) return;
    const auto of = attributes_of<adam_term_attributes>(c.a);
    const bool last = of.which == 2;
    const adam_rule<T> rule{c.f, of.decoupled != 0, nullptr, nullptr};
    launch(op_code::adam_term, &detail::adam_term_kernel<T>, detail::flat_blocks(n), detail::flat_threads, ctx.stream,
           as<T>(c.p[result]), as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[2]), last ? as<T>(c.p[3]) : nullptr,
           of.clipped != 0 ? as<T>(c.p[c.inputs - 1]) : nullptr, static_cast<int>(of.which), rule, n, ctx.env);
  }
};

template <>
struct kernel<op_code::adam_term_with> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const std::int64_t n = c.l[0].numel();
    if (n == 0) return;
    const auto of = attributes_of<adam_term_attributes>(c.a);
    adam_with_rule<T> rule{};
    rule.decay = c.f;
    rule.decoupled = of.decoupled != 0;
    rule.options = update_options_of(c.a);
    launch(op_code::adam_term_with, &detail::adam_term_with_kernel<T>, detail::flat_blocks(n), detail::flat_threads,
           ctx.stream, as<T>(c.p[result]), as<T>(c.p[0]), as<T>(c.p[1]), of.which == 3 ? nullptr : as<T>(c.p[2]),
           of.clipped != 0 ? as<T>(c.p[c.inputs - 1]) : nullptr, static_cast<int>(of.which), rule, n, ctx.env);
  }
};

template <>
struct kernel<op_code::muon_direction> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const std::int64_t n = c.l[0].numel();
    if (n == 0) return;
    const auto of = attributes_of<adam_term_attributes>(c.a);
    const muon_rule<T> rule{1, update_options_of(c.a)};
    launch(op_code::muon_direction, &detail::muon_direction_kernel<T>, detail::flat_blocks(n), detail::flat_threads,
           ctx.stream, as<T>(c.p[result]), as<T>(c.p[0]), as<T>(c.p[1]),
           of.clipped != 0 ? as<T>(c.p[c.inputs - 1]) : nullptr, rule, n, ctx.env);
  }
};

template <>
struct kernel<op_code::assign> {
  template <class T>
  static void run(const call& c, context& ctx) {
    if (c.p[0] == c.p[1])
      return;  // computed there by plan_memory, which asks for equal specs; nothing else lies at a leaf's place
    const std::int64_t zeros[max_rank]{};
    copy_block<T>(op_code::assign, as<T>(c.p[1]), c.l[1], zeros, as<T>(c.p[0]), c.l[0], zeros, c.l[0].ext, ctx);
  }
};

template <>
struct kernel<op_code::advance> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const std::int64_t n = c.l[0].numel();
    if (n > 0)
      launch(op_code::advance, &detail::advance_kernel<T>, detail::flat_blocks(n), detail::flat_threads, ctx.stream,
             as<T>(c.p[0]), c.inputs > 1 ? as<T>(c.p[1]) : nullptr, n);
  }
};

template <>
struct kernel<op_code::adjust_scale> {
  template <class T>
  static void run(const call& c, context& ctx) {
    launch(op_code::adjust_scale, &detail::adjust_scale_kernel<T>, 1, 1, ctx.stream,
           attributes_of<adjust_scale_attributes>(c.a), ctx.env, as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[2]), as<T>(c.p[3]));
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
