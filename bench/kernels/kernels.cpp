// SPDX-License-Identifier: Apache-2.0
// Times host kernels one by one on blocks of chosen shapes, those included that loops find hard: short rows, few columns,
// dims of one element.
// Usage: kernels [part of a name | ""] [turns]; prints one line per kernel and shape: nanoseconds per element, the least of
// the turns and their median. With 0 turns each kernel runs once inside measured(), for counting instructions:
//   valgrind --tool=callgrind --toggle-collect=measured --callgrind-out-file=/dev/null kernels NAME 0
#include <shardwise/runtime/host/kernels.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace sw = shardwise;
namespace host = sw::host;
using sw::op_code;
using sw::runtime::call;
using sw::runtime::layout;
using sw::runtime::result;

// A function of its own, so that a profiler finds it.
extern "C" void measured(const std::function<void()>* f);
[[gnu::noinline]] void measured(const std::function<void()>* f) { (*f)(); }

namespace {

using extents = std::vector<std::int64_t>;

layout dense(const extents& e) {
  layout l;
  for (const std::int64_t n : e) l.ext[l.rank] = l.global[l.rank] = n, ++l.rank;
  l.make_dense();
  return l;
}

layout transposed(const extents& e) {
  layout l = dense(e);
  l.str[1] = e[0];
  l.str[0] = 1;
  return l;
}

std::string filter;
int turns = 21;

double nanoseconds(const std::function<void()>& f, long times) {
  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < times; ++i) measured(&f);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(times);
}

void measure(const std::string& name, std::int64_t elements, const std::function<void()>& f) {
  if (name.find(filter) == std::string::npos) return;
  if (turns == 0) {
    measured(&f);
    std::printf("%s %lld\n", name.c_str(), static_cast<long long>(elements));
    return;
  }
  f();
  long times = 1;
  while (nanoseconds(f, times) * static_cast<double>(times) < 1e6 && times < (1L << 22)) times *= 2;
  std::vector<double> all;
  for (int i = 0; i < turns; ++i) all.push_back(nanoseconds(f, times) / static_cast<double>(elements));
  std::sort(all.begin(), all.end());
  std::printf("%-36s %9.3f %9.3f\n", name.c_str(), all.front(), all[all.size() / 2]);
  std::fflush(stdout);
}

template <class T>
std::vector<T> numbers(std::int64_t n) {
  std::vector<T> x(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    x[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<double>((i * 2654435761LL) % 1000003) / 1000003.0 * 8 - 4);
  return x;
}

std::string shape_text(const extents& e) {
  std::string s;
  for (const std::int64_t n : e) s += (s.empty() ? "" : "x") + std::to_string(n);
  return s;
}

template <class T>
const char* type_text() {
  return sizeof(T) == 4 ? "" : " double";
}

template <op_code Op, class T>
void compute(const call& c, const host::operands<T>& q) {
  host::kernel<Op>::template run<T>(c, q, {});
}

// The sum over dims of `mask`.
template <op_code Op, class T>
void reduction(const char* name, const extents& e, std::int64_t mask, std::int64_t v2 = 0) {
  call c;
  c.a = {{mask, 0, v2, 0, 0, 0}};
  c.inputs = 1;
  c.l[0] = dense(e);
  extents kept;
  for (std::size_t d = 0; d < e.size(); ++d)
    if (!((mask >> d) & 1)) kept.push_back(e[d]);
  c.l[result] = dense(kept);
  auto x = numbers<T>(c.l[0].numel());
  std::vector<T> o(static_cast<std::size_t>(c.l[result].numel()));
  host::operands<T> q;
  q.p[0] = x.data();
  q.p[result] = o.data();
  measure(std::string(name) + type_text<T>() + " " + shape_text(e) + " over " + std::to_string(mask), c.l[0].numel(),
          [&] { compute<Op, T>(c, q); });
}

// Kernels of one operand and a result of its shape, or of one number per row.
template <op_code Op, class T>
void mapped(const char* name, const extents& e, double f = 0, bool per_row = false, bool turned = false) {
  call c;
  c.f = f;
  c.inputs = 1;
  c.l[0] = turned ? transposed(e) : dense(e);
  c.l[result] = dense(e);
  if (per_row) --c.l[result].rank, c.l[result].make_dense();
  auto x = numbers<T>(c.l[0].numel());
  std::vector<T> o(x.size());
  host::operands<T> q;
  q.p[0] = x.data();
  q.p[result] = o.data();
  measure(std::string(name) + type_text<T>() + " " + shape_text(e) + (turned ? " transposed" : ""), c.l[0].numel(),
          [&] { compute<Op, T>(c, q); });
}

template <op_code Op, class T>
void of_two(const char* name, const extents& e) {
  call c;
  c.inputs = 2;
  c.l[0] = c.l[1] = c.l[result] = dense(e);
  auto x = numbers<T>(c.l[0].numel()), y = x;
  std::reverse(y.begin(), y.end());
  std::vector<T> o(x.size());
  host::operands<T> q;
  q.p[0] = x.data();
  q.p[1] = y.data();
  q.p[result] = o.data();
  measure(std::string(name) + type_text<T>() + " " + shape_text(e), c.l[0].numel(), [&] { compute<Op, T>(c, q); });
}

// The adjoints of a layer norm of rows.
template <class T>
void norms(std::int64_t rows, std::int64_t n) {
  const extents e{rows, n};
  auto x = numbers<T>(rows * n), dy = x, w = numbers<T>(n);
  std::reverse(dy.begin(), dy.end());
  std::vector<T> pair(static_cast<std::size_t>(2 * rows)), o(x.size()), dw(static_cast<std::size_t>(2 * n));
  const std::string tail = std::string(type_text<T>()) + " " + shape_text(e);
  {
    call c;
    c.f = 1e-5;
    c.inputs = 2;
    c.l[0] = c.l[result] = dense(e);
    c.l[1] = dense({n});
    host::operands<T> q;
    q.p[0] = x.data(), q.p[1] = w.data(), q.p[result] = o.data();
    measure("norm" + tail, rows * n, [&] { compute<op_code::norm, T>(c, q); });
  }
  {
    call c;
    c.f = 1e-5;
    c.inputs = 1;
    c.l[0] = dense(e);
    c.l[result] = dense({rows, 2});
    host::operands<T> q;
    q.p[0] = x.data(), q.p[result] = pair.data();
    compute<op_code::norm_stats, T>(c, q);
    measure("norm_stats" + tail, rows * n, [&] { compute<op_code::norm_stats, T>(c, q); });
  }
  call c;
  c.f = 1e-5;
  c.l[0] = c.l[1] = dense(e);
  c.l[2] = dense({rows, 2});
  c.l[3] = dense({n});
  host::operands<T> q;
  q.p[0] = dy.data(), q.p[1] = x.data(), q.p[2] = pair.data(), q.p[3] = w.data(), q.p[result] = o.data();
  c.inputs = 4;
  c.l[result] = dense(e);
  measure("norm_dx" + tail, rows * n, [&] { compute<op_code::norm_dx, T>(c, q); });
  q.p[result] = dw.data();
  c.inputs = 3;
  c.l[result] = dense({n});
  measure("norm_dw" + tail, rows * n, [&] { compute<op_code::norm_dw, T>(c, q); });
  std::vector<T> db(static_cast<std::size_t>(n));
  q.p[3] = db.data();
  c.inputs = 4;
  measure("norm_dw_db" + tail, rows * n, [&] { compute<op_code::norm_dw_db, T>(c, q); });
  c.a.v[1] = 1;
  c.l[2] = dense({n});
  c.l[3] = dense({2, n});
  c.l[result] = dense(e);
  q.p[2] = w.data(), q.p[3] = dw.data(), q.p[result] = o.data();
  measure("norm_dx_dw" + tail, rows * n, [&] { compute<op_code::norm_dx_dw, T>(c, q); });
}

// The adjoint of a cross entropy: every row's cotangent, logits, log-sum-exp and target.
template <class T>
void losses(std::int64_t rows, std::int64_t n) {
  call c;
  c.inputs = 4;
  c.l[0] = c.l[2] = c.l[3] = dense({rows});
  c.l[1] = c.l[result] = dense({rows, n});
  auto x = numbers<T>(rows * n), dy = numbers<T>(rows), lse = numbers<T>(rows);
  std::vector<T> o(x.size());
  const std::vector<std::int32_t> target(static_cast<std::size_t>(rows), 1);
  host::operands<T> q;
  q.p[0] = dy.data(), q.p[1] = x.data(), q.p[2] = lse.data(), q.p[result] = o.data();
  q.index = target.data();
  measure(std::string("nll_dx") + type_text<T>() + " " + shape_text({rows, n}), rows * n,
          [&] { compute<op_code::nll_dx, T>(c, q); });
}

template <class T>
void sums() {
  using enum op_code;
  for (const auto& [e, mask] : std::vector<std::pair<extents, int>>{{{100000, 1}, 2},
                                                                    {{1, 100000}, 1},
                                                                    {{100000, 2}, 2},
                                                                    {{100000, 8}, 2},
                                                                    {{16384, 32}, 2},
                                                                    {{2000, 100}, 2},
                                                                    {{1000, 1000}, 2},
                                                                    {{16384, 3}, 1},
                                                                    {{4, 100000}, 1},
                                                                    {{64, 8}, 1},
                                                                    {{100000, 8}, 1},
                                                                    {{16384, 32}, 1},
                                                                    {{1000, 1000}, 1},
                                                                    {{100, 64, 100}, 2},
                                                                    {{100, 64, 100}, 5},
                                                                    {{1000000}, 1},
                                                                    {{1000}, 1},
                                                                    {{16}, 1},
                                                                    {{1}, 1}})
    reduction<sum, T>("sum", e, mask);
  reduction<sum, T>("mean", {1000, 1000}, 1, 1);
  reduction<sum, T>("mean", {16384, 3}, 1, 1);
  reduction<sumsq, T>("sumsq", {1000000}, 1);
  reduction<vector_norm, T>("vector_norm 2", {1000, 1000}, 2, 2);
}

template <class T>
void rows() {
  using enum op_code;
  for (const std::int64_t n : {1, 2, 8, 15, 16, 32, 64, 128, 1000}) {
    const extents e{131072 / n, n};
    mapped<softmax, T>("softmax", e);
    mapped<log_softmax, T>("log_softmax", e);
    mapped<lse, T>("lse", e, 0, true);
    of_two<softmax_dx, T>("softmax_dx", e);
  }
  mapped<softmax, T>("softmax", {128, 128}, 0, false, true);
  mapped<log_softmax, T>("log_softmax", {128, 128}, 0, false, true);
  for (const std::int64_t n : {8, 32, 128, 1024, 2048}) norms<T>(131072 / n, n);
  for (const std::int64_t n : {8, 65, 1000}) losses<T>(131072 / n, n);
}

template <class T>
void maps() {
  using enum op_code;
  const extents e{1000000};
  mapped<op_code::exp, T>("exp", e);
  mapped<op_code::exp, T>("exp", {100000, 8}, 0, false, false);
  mapped<op_code::tanh, T>("tanh", e);
  mapped<gelu_tanh, T>("gelu_tanh", e);
  mapped<gelu_erf, T>("gelu_erf", {100000});
  mapped<op_code::log, T>("log", {100000});
  of_two<gelu_tanh_dx, T>("gelu_tanh_dx", {100000});
  of_two<gelu_erf_dx, T>("gelu_erf_dx", {100000});
  mapped<relu, T>("relu", e);
  mapped<sigmoid, T>("sigmoid", e);
  mapped<sign, T>("sign", e);
  mapped<clamp_min, T>("clamp_min", e, 0.5);
  mapped<op_code::pow, T>("pow 2", e, 2);
  mapped<op_code::pow, T>("pow 2.5", {100000}, 2.5);
  mapped<op_code::dropout, T>("dropout", {100000}, 0.1);
  of_two<relu_dx, T>("relu_dx", e);
  of_two<tanh_dx, T>("tanh_dx", e);
  of_two<maximum, T>("maximum", e);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) filter = argv[1];
  if (argc > 2) turns = std::atoi(argv[2]);
  sums<float>();
  rows<float>();
  maps<float>();
  sums<double>();
  rows<double>();
  maps<double>();
  return 0;
}
