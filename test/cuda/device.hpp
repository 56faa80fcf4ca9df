// SPDX-License-Identifier: Apache-2.0
// Helpers of the device tests: guarded device memory, a context of its own, and one call run on device and host.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <shardwise/runtime/cuda/device/env.cuh>
#include <shardwise/runtime/cuda/kernels.cuh>
#include <shardwise/runtime/cuda/resources.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/runtime/host/kernels.hpp>

namespace device_test {

namespace sw = shardwise;
namespace rt = shardwise::runtime;
namespace cu = shardwise::cuda;
using rt::call;
using rt::layout;
using sw::op_code;

inline bool has_gpu() {
  static const bool found = [] {
    int n = 0;
    if (cudaGetDeviceCount(&n) == cudaSuccess && n > 0) return true;
    cudaGetLastError();
    std::puts("no GPU found, skipped: 0 GPUs, 1 needed");
    return false;
  }();
  return found;
}
#define NEEDS_GPU() \
  if (!device_test::has_gpu()) return

// Device bytes between two guards; `shift` moves them off their 256-byte alignment.
class device_bytes {
 public:
  explicit device_bytes(std::size_t bytes, std::size_t shift = 0) : bytes_(bytes), shift_(shift) {
    cu::check(cudaMalloc(&memory_, guard + shift + bytes + guard), "cudaMalloc");
    cu::check(cudaMemset(memory_, canary, guard + shift + bytes + guard), "cudaMemset");
  }
  device_bytes(const device_bytes&) = delete;
  ~device_bytes() { cudaFree(memory_); }

  void* data() const { return static_cast<char*>(memory_) + guard + shift_; }
  void upload(const void* from) const { copy(data(), from, bytes_, cudaMemcpyHostToDevice); }
  void download(void* to) const { copy(to, data(), bytes_, cudaMemcpyDeviceToHost); }
  bool intact() const {
    std::vector<unsigned char> g(guard + shift_ + guard);
    copy(g.data(), memory_, guard + shift_, cudaMemcpyDeviceToHost);
    copy(g.data() + guard + shift_, static_cast<char*>(data()) + bytes_, guard, cudaMemcpyDeviceToHost);
    for (unsigned char b : g)
      if (b != canary) return false;
    return true;
  }

 private:
  static constexpr std::size_t guard = 1024;
  static constexpr int canary = 0xA5;
  static void copy(void* to, const void* from, std::size_t n, cudaMemcpyKind kind) {
    if (n > 0) cu::check(cudaMemcpy(to, from, n, kind), "cudaMemcpy");
  }
  std::size_t bytes_, shift_;
  void* memory_ = nullptr;
};

// Stream, environment, fault and cuBLASLt of the tests, made once.
class device {
 public:
  static device& get() {
    static device d;
    return d;
  }
  cu::context ctx;
  cu::device_env* env = nullptr;

  cu::index_fault fault() const {
    cu::index_fault f{};
    cu::check(cudaMemcpy(&f, ctx.fault, sizeof f, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return f;
  }
  void set_fault(const cu::index_fault& f) {
    cu::check(cudaMemcpy(ctx.fault, &f, sizeof f, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  void clear_fault() { set_fault({-1, 0, 0, 0}); }
  // Every kernel leaves the counters of its blocks as it found them.
  bool tickets_are_zero() const {
    std::vector<std::uint32_t> t(cu::ticket_count);
    cu::check(cudaMemcpy(t.data(), ctx.tickets, t.size() * sizeof(std::uint32_t), cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (std::uint32_t n : t)
      if (n != 0) return false;
    return true;
  }
  void sync() { cu::check(cudaStreamSynchronize(ctx.stream), "cudaStreamSynchronize"); }

 private:
  device() {
    cu::check(cudaStreamCreate(&ctx.stream), "cudaStreamCreate");
    cu::check(cudaMalloc(reinterpret_cast<void**>(&env), sizeof(cu::device_env)), "cudaMalloc");
    cu::check(cudaMalloc(reinterpret_cast<void**>(&ctx.fault), sizeof(cu::index_fault)), "cudaMalloc");
    cu::check(cublasLtCreate(&ctx.lt), "cublasLtCreate");
    int n = 1;
    cu::check(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
    ctx.multiprocessors = n;
    ctx.env = env;
    ctx.plans = new cu::matmul_plans;
    cu::check(cudaMalloc(reinterpret_cast<void**>(&ctx.tickets), cu::ticket_count * sizeof(std::uint32_t)), "cudaMalloc");
    cu::check(cudaMemset(ctx.tickets, 0, cu::ticket_count * sizeof(std::uint32_t)), "cudaMemset");
    clear_fault();
  }
};

// --- layouts --------------------------------------------------------------------------------------------------------

using extents = std::vector<std::int64_t>;

inline layout dense(const extents& e) {
  layout l;
  l.rank = static_cast<int>(e.size());
  for (int d = 0; d < l.rank; ++d) l.ext[d] = l.global[d] = e[static_cast<unsigned>(d)];
  l.make_dense();
  return l;
}
// Stored in the order of dims `order`, outermost first.
inline layout stored(const extents& e, const extents& order) {
  layout l = dense(e);
  std::int64_t s = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    l.str[order[i]] = s;
    s *= l.ext[order[i]];
  }
  return l;
}
// A slice of a tensor whose dim d has `more` further elements.
inline layout sliced(const extents& e, int d, std::int64_t more) {
  extents whole = e;
  whole[static_cast<unsigned>(d)] += more;
  layout l = dense(whole);
  l.ext[d] = l.global[d] = e[static_cast<unsigned>(d)];
  return l;
}
inline layout shard(layout l, int d, std::int64_t origin, std::int64_t global) {
  l.origin[d] = origin;
  l.global[d] = global;
  return l;
}
inline std::size_t storage(const layout& l) {
  if (l.numel() == 0) return 0;
  std::int64_t n = 1;
  for (int d = 0; d < l.rank; ++d) n += (l.ext[d] - 1) * l.str[d];
  return static_cast<std::size_t>(n);
}

// --- one call -------------------------------------------------------------------------------------------------------

inline unsigned next_random() {
  static unsigned s = 12345;
  s = s * 1664525U + 1013904223U;
  return s >> 8;
}
inline double uniform(double low, double high) {  // a float, so that all element types see the same value
  return static_cast<float>(low + (high - low) * next_random() / 16777216.0);
}

struct operand {
  layout l;
  std::vector<double> v;
  std::vector<std::int32_t> index;  // of an integer operand
  bool integer = false;
  std::size_t shift = 0;  // elements off the alignment
};

inline operand values(const layout& l, double low = -2, double high = 2) {
  operand o{l, std::vector<double>(storage(l)), {}, false, 0};
  for (double& v : o.v) v = uniform(low, high);
  return o;
}
inline operand indices(const layout& l, std::int64_t limit) {
  operand o{l, {}, std::vector<std::int32_t>(storage(l)), true, 0};
  for (auto& i : o.index) i = static_cast<std::int32_t>(next_random() % static_cast<unsigned>(limit));
  return o;
}

// `in`: the kernel's operands, then those of an expression that follows it.
struct problem {
  op_code op;
  std::vector<operand> in;
  layout out;
  sw::op_attr a{};
  double f = 0;
  rt::step_env env{};
  sw::transition kind{};
  sw::placement from{}, to{};
  int coordinate = 0;
  std::size_t shift = 0;        // of the result
  std::vector<layout> whole{};  // first and last operand and result before sharding, where that differs
  double unit = 0;              // errors count relative to this where the result is smaller
  std::size_t followed = 0;     // operands of the expression
  unsigned more_wide = 0;       // operands that are float where the elements have two bytes, beside those of the record

  std::size_t own() const { return in.size() - followed; }
  bool updates() const { return op == op_code::sgd || op == op_code::adam; }
  call make_call() const {
    call c;
    c.a = a;
    c.f = f;
    c.inputs = static_cast<int>(own());
    c.all_inputs = static_cast<int>(in.size());
    c.node = 7;
    c.coordinate = coordinate;
    c.kind = kind;
    c.from = from;
    c.to = to;
    for (std::size_t k = 0; k < in.size(); ++k) c.l[k] = in[k].l;
    c.l[rt::result] = out;
    return c;
  }
};

// A spec that describes a layout, for the functions that reserve scratch.
inline sw::spec spec_like(const layout& l, sw::dtype t) {
  sw::spec s{};
  s.rank = static_cast<std::uint8_t>(l.rank);
  s.type = t;
  for (int d = 0; d < l.rank; ++d) {
    s.extent[d] = l.ext[d];
    s.stride[d] = l.str[d];
  }
  return s;
}

// What a record asks for of a problem; `whole`, where given, holds the layouts of its first two operands' and its result's tensors.
inline std::int64_t scratch_of(const sw::scratch_rule& bytes, const problem& p, sw::dtype t) {
  std::vector<sw::spec> specs;
  for (std::size_t k = 0; k < p.own(); ++k)
    specs.push_back(spec_like(k < 2 && !p.whole.empty() ? p.whole[k] : p.in[k].l, t));
  std::vector<const sw::spec*> in;
  for (const sw::spec& s : specs) in.push_back(&s);
  return bytes(p.a, in.data(), static_cast<int>(in.size()), spec_like(p.whole.empty() ? p.out : p.whole[2], t));
}

// Result and operands after the call, all as double.
struct outcome {
  std::vector<double> out;
  std::vector<std::vector<double>> in;
};

// With `start` instead of the operation's own launcher.
template <class T>
outcome on_device(const problem& p, cu::launcher start = nullptr) {
  device& d = device::get();
  call c = p.make_call();
  std::vector<std::unique_ptr<device_bytes>> mem;
  std::vector<std::vector<T>> typed(p.in.size());
  // of elements of two bytes, what is float all the same
  const sw::wide_values wide = sw::operation_of(p.op).wide.value;
  const auto is_wide = [&](std::size_t k) { return sizeof(T) == 2 && ((wide.operands | p.more_wide) >> k & 1U) != 0; };
  const bool wide_result = sizeof(T) == 2 && wide.results != 0;
  std::vector<std::vector<float>> floats(p.in.size());
  for (std::size_t k = 0; k < p.in.size(); ++k) {
    const operand& o = p.in[k];
    for (const double v : o.v) typed[k].push_back(static_cast<T>(v));
    floats[k].assign(o.v.begin(), o.v.end());
    const bool integer = o.integer;
    const std::size_t size = integer ? sizeof(std::int32_t) : is_wide(k) ? sizeof(float) : sizeof(T);
    mem.push_back(std::make_unique<device_bytes>((integer ? o.index.size() : o.v.size()) * size, o.shift * size));
    mem.back()->upload(integer      ? static_cast<const void*>(o.index.data())
                       : is_wide(k) ? static_cast<const void*>(floats[k].data())
                                    : typed[k].data());
    c.type[k] = integer ? sw::dtype::i32 : is_wide(k) ? sw::dtype::f32 : sw::dtype_v<T>;
    c.p[k] = mem.back()->data();
  }
  const std::size_t n = p.updates() ? 0 : storage(p.out);
  const bool positions = sw::makes_indices(p.op);
  std::vector<std::int32_t> found(n, -77);
  std::vector<T> out(n, sw::is_floating_element<T> ? static_cast<T>(std::nan("")) : T(-77));
  std::vector<float> wide_out(n, std::nanf(""));
  const std::size_t element = positions || wide_result ? 4 : sizeof(T);
  device_bytes result(n * element, p.shift * element);
  result.upload(positions     ? static_cast<const void*>(found.data())
                : wide_result ? static_cast<const void*>(wide_out.data())
                              : out.data());
  c.p[rt::result] = p.updates() ? c.p[0] : result.data();

  const std::int64_t scratch = scratch_of(sw::operation_of(p.op).device_scratch.value, p, sw::dtype_v<T>);
  device_bytes workspace(static_cast<std::size_t>(scratch));
  c.workspace = scratch > 0 ? workspace.data() : nullptr;

  cu::set_env(p.env, d.env, d.ctx.stream);
  (start ? start : cu::launcher_of<T>(p.op))(c, d.ctx);
  d.sync();
  outcome r;
  if (positions) {
    result.download(found.data());
    r.out.assign(found.begin(), found.end());
  } else if (wide_result) {
    result.download(wide_out.data());
    r.out.assign(wide_out.begin(), wide_out.end());
  } else {
    result.download(out.data());
    for (const T v : out) r.out.push_back(static_cast<double>(v));
  }
  for (std::size_t k = 0; k < p.in.size(); ++k) {
    r.in.emplace_back();
    if (is_wide(k) && !p.in[k].integer) {
      mem[k]->download(floats[k].data());
      r.in.back().assign(floats[k].begin(), floats[k].end());
    } else {
      if (!p.in[k].integer) mem[k]->download(typed[k].data());
      for (const T v : typed[k]) r.in.back().push_back(static_cast<double>(v));
    }
    CHECK(mem[k]->intact());
  }
  CHECK(result.intact());
  CHECK(workspace.intact());
  return r;
}

// The host kernel in double precision on the same values: what every element type is measured against.
template <op_code Op, sw::expression E = sw::no_expression>
outcome on_host(const problem& p) {
  call c = p.make_call();
  sw::host::operands<double> q;
  std::vector<std::vector<double>> in;
  std::vector<std::vector<std::int32_t>> index;
  for (const operand& o : p.in) {
    in.push_back(o.v);
    index.push_back(o.index);
  }
  for (std::size_t k = 0; k < in.size(); ++k) {
    q.p[k] = in[k].data();
    if (p.in[k].integer) q.index = index[k].data();
  }
  outcome r;
  r.out.assign(p.updates() ? 0 : storage(p.out), std::numeric_limits<double>::quiet_NaN());
  q.p[rt::result] = r.out.data();
  std::vector<std::int32_t> found(r.out.size());
  q.index_out = found.data();
  std::vector<std::vector<double>> space;
  const std::int64_t bytes = scratch_of(sw::operation_of(Op).host_scratch.value, p, sw::dtype::f64);
  if (bytes > 0) {
    space.emplace_back(static_cast<std::size_t>(bytes) / 8 + 16);
    c.workspace = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(space[0].data()) + 63) / 64 * 64);
  }
  sw::host::kernel<Op>::template run<double>(c, q, p.env);
  if constexpr (E.head != 0) sw::host::evaluate<double, E>(c, q);
  if (sw::makes_indices(Op)) r.out.assign(found.begin(), found.end());
  r.in = in;
  return r;
}

// Largest |a - b| / (|b| + rms(b) + unit); infinite if one is not finite where the other is.
inline double difference(const std::vector<double>& a, const std::vector<double>& b, double unit = 0) {
  if (a.size() != b.size()) return HUGE_VAL;
  double square = 0, most = 0;
  std::size_t finite = 0;
  for (double v : b)
    if (std::isfinite(v)) {
      square += v * v;
      ++finite;
    }
  const double rms = finite ? std::sqrt(square / static_cast<double>(finite)) : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    const double e = std::fabs(a[i] - b[i]) / (std::fabs(b[i]) + rms + unit);
    if (!(e <= most)) most = std::isnan(e) ? HUGE_VAL : e;
  }
  return most;
}

template <class T>
inline constexpr double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;  // of sums of hundreds of terms that cancel, too

// Largest error of a test case, printed when it ends.
struct report {
  const char* name;
  double most[2] = {0, 0};
  int calls = 0;
  explicit report(const char* n) : name(n) {}
  ~report() { std::printf("%-28s %5d calls, max error float %.1e, double %.1e\n", name, calls, most[0], most[1]); }
};

template <op_code Op, class T>
void compare_as(const problem& p, const outcome& h, report& r, cu::launcher start = nullptr) {
  const outcome d = on_device<T>(p, start);
  double e = difference(d.out, h.out, p.unit);
  for (std::size_t k = 0; k < d.in.size(); ++k) {
    const double ek = difference(d.in[k], h.in[k], p.unit);
    if (ek > e) e = ek;
  }
  double& most = r.most[sizeof(T) == 4 ? 0 : 1];
  if (e > most) most = e;
  ++r.calls;
  INFO(std::string(sw::name_of(Op)) << " call " << r.calls << ", result of rank " << p.out.rank << " with " << p.out.numel()
                                    << " elements");
  CHECK(e <= tolerance<T>);
}

// Device against host, in float and in double.
template <op_code Op>
void compare(problem p, report& r) {
  p.op = Op;
  const outcome h = on_host<Op>(p);
  compare_as<Op, float>(p, h, r);
  compare_as<Op, double>(p, h, r);
}

// The same of an operation and the expression that follows it.
template <op_code Op, sw::expression E>
void compare_followed(problem p, report& r) {
  p.op = Op;
  p.followed = static_cast<std::size_t>(E.operands());
  const outcome h = on_host<Op, E>(p);
  compare_as<Op, float>(p, h, r, &cu::run_with<Op, float, E>);
  compare_as<Op, double>(p, h, r, &cu::run_with<Op, double, E>);
}

// Kernels that a call launches.
inline int kernels_of(cu::launcher start, const call& c) {
  device& d = device::get();
  cudaGraph_t graph = nullptr;
  cu::check(cudaStreamBeginCapture(d.ctx.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  start(c, d.ctx);
  cu::check(cudaStreamEndCapture(d.ctx.stream, &graph), "cudaStreamEndCapture");
  const int n = cu::graph_nodes::of(graph).kernels;
  cudaGraphDestroy(graph);
  return n;
}

}  // namespace device_test
