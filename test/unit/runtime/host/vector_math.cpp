// SPDX-License-Identifier: Apache-2.0
// exp, log, tanh and erf of the host kernels: within two units everywhere, and the same bits wherever an element stands.
#include <last_place.hpp>

#include <shardwise/runtime/host/kernel_table.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace {

namespace sw = shardwise;
namespace host = sw::host;
namespace vm = host::vector_math;
using sw::op_code;

#define SHARDWISE_TEST_FUNCTIONS(X) X(exp) X(log) X(tanh) X(erf)
#define SHARDWISE_X(NAME)                                            \
  struct the_##NAME {                                                \
    template <class T>                                               \
    constexpr T operator()(T x) const {                              \
      return vm::NAME(x);                                            \
    }                                                                \
    static long double truth(long double x) { return std::NAME(x); } \
    static constexpr const char* name = #NAME;                       \
  };
SHARDWISE_TEST_FUNCTIONS(SHARDWISE_X)
#undef SHARDWISE_X

// Numbers of all sizes and both signs, and close ones where each function is not flat.
template <class T>
std::vector<T> sample() {
  using limits = std::numeric_limits<T>;
  std::vector<T> x{T(0),
                   -T(0),
                   limits::infinity(),
                   -limits::infinity(),
                   limits::quiet_NaN(),
                   limits::denorm_min(),
                   limits::min(),
                   limits::max(),
                   -limits::max(),
                   T(1),
                   T(-1),
                   T(0.625),
                   T(-0.625)};
  const auto spread = [&](double from, double to, int count) {
    for (int i = 0; i <= count; ++i) x.push_back(static_cast<T>(from + (to - from) * i / count));
  };
  spread(-750, 712, 60000);
  spread(-106, 90, 60000);
  spread(-2, 2, 120000);
  spread(0.4, 2.6, 60000);
  spread(-7, 7, 60000);
  for (long double v = limits::denorm_min(); v < limits::max() / 2; v *= 1.013L) {
    x.push_back(static_cast<T>(v));
    x.push_back(static_cast<T>(-v));
  }
  return x;
}

template <class T, class F>
std::vector<T> mapped(const std::vector<T>& x, F f) {
  std::vector<T> y(x.size());
  host::independent_loop<T>(static_cast<std::int64_t>(x.size()),
                            [from = x.data(), to = y.data(), f](std::int64_t i) { to[i] = f(from[i]); });
  return y;
}

template <class F, class T>
void within_two_units(const std::vector<T>& x) {
  const std::vector<T> y = mapped(x, F{});
  double most = 0;
  T where = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = test::units_off(y[i], F::truth(static_cast<long double>(x[i])));
    if (off > most) most = off, where = x[i];
  }
  INFO(F::name << " of " << static_cast<double>(where) << ": " << most << " units");
  CHECK(most <= 1.6);
}

TEST_CASE_TEMPLATE("exp, log, tanh and erf are within two units", T, float, double) {
  const std::vector<T> x = sample<T>();
#define SHARDWISE_X(NAME) within_two_units<the_##NAME>(x);
  SHARDWISE_TEST_FUNCTIONS(SHARDWISE_X)
#undef SHARDWISE_X
}

// One in 6007 of all floats; all of them: heavy/every_float.cpp.
TEST_CASE("floats of every exponent are within two units") {
  std::vector<float> x;
  for (std::uint64_t b = 0; b < std::uint64_t{1} << 32; b += 6007)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(b)));
#define SHARDWISE_X(NAME) within_two_units<the_##NAME>(x);
  SHARDWISE_TEST_FUNCTIONS(SHARDWISE_X)
#undef SHARDWISE_X
}

template <class T>
bool same_bits(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

TEST_CASE_TEMPLATE("constants have the bits of runs, minus zero its sign", T, float, double) {
  constexpr T at[] = {T(-90), T(-3.25), T(-0.0), T(0.3), T(1), T(2.5), T(80)};
#define SHARDWISE_X(NAME)                                                                  \
  {                                                                                        \
    constexpr T c[] = {vm::NAME(at[0]), vm::NAME(at[1]), vm::NAME(at[2]), vm::NAME(at[3]), \
                       vm::NAME(at[4]), vm::NAME(at[5]), vm::NAME(at[6])};                 \
    const std::vector<T> y = mapped(std::vector<T>(at, at + 7), the_##NAME{});             \
    for (std::size_t i = 0; i < 7; ++i) CHECK(same_bits(c[i], y[i]));                      \
  }
  SHARDWISE_TEST_FUNCTIONS(SHARDWISE_X)
#undef SHARDWISE_X
  CHECK(std::signbit(vm::tanh(T(-0.0))));
  CHECK(std::signbit(vm::erf(T(-0.0))));
}

// The law of vector_math.hpp, on each instruction set that this machine has.
template <class T, class F>
void alike_on_all_sets(F f) {
  const std::vector<T> x = sample<T>();
  const std::int64_t n = static_cast<std::int64_t>(x.size());
  std::vector<T> plain(x.size()), wide(x.size());
  const auto into = [&x, f](std::vector<T>& y) {
    return [from = x.data(), to = y.data(), f](std::int64_t i) { to[i] = f(from[i]); };
  };
  host::plain_loop(n, into(plain));
  const auto compare = [&](const char* set) {
    std::int64_t apart = 0;
    for (std::size_t i = 0; i < x.size(); ++i) apart += same_bits(plain[i], wide[i]) ? 0 : 1;
    INFO(set);
    CHECK(apart == 0);
  };
#if defined(__x86_64__) && !defined(__CUDACC__)  // as in isa.hpp
  if (host::supports(host::isa::avx2)) {
    host::isa_detail::loop_avx2(n, into(wide));
    compare("AVX2");
  }
  if (host::supports(host::isa::avx512)) {
    host::isa_detail::loop_avx512(n, into(wide));
    compare("AVX-512");
  }
#endif
}

TEST_CASE_TEMPLATE("every instruction set has the same bits", T, float, double) {
  alike_on_all_sets<T>(the_exp{});
  alike_on_all_sets<T>(the_log{});
  alike_on_all_sets<T>(the_tanh{});
  alike_on_all_sets<T>(the_erf{});
  alike_on_all_sets<T>([](T x) { return host::element<op_code::gelu_tanh>(T(0), x); });
  alike_on_all_sets<T>([](T x) { return host::element<op_code::gelu_erf>(T(0), x); });
  alike_on_all_sets<T>([](T x) { return host::element<op_code::gelu_tanh_dx>(T(0), T(0.7), x); });
  alike_on_all_sets<T>([](T x) { return host::element<op_code::gelu_erf_dx>(T(0), T(0.7), x); });
  alike_on_all_sets<T>([](T x) { return host::element<op_code::tanh_dx>(T(0), T(0.7), x); });
  alike_on_all_sets<T>([](T x) { return host::element<op_code::sigmoid>(T(0), x); });
}

// An element's bits are its operand's, in a row of any length and stride: what each rank of a mesh has of a tensor.
template <op_code Op, class T>
void alike_in_all_blocks() {
  constexpr std::int64_t whole = 203;
  std::vector<T> x(3 * whole), all(whole), some(whole);
  for (std::int64_t i = 0; i < 3 * whole; ++i)
    x[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<double>((i * 2654435761LL) % 1000003) / 1000003.0 * 9 - 4);
  const auto run = [&](const T* from, std::int64_t n, std::int64_t step, T* to) {
    sw::runtime::call c;
    c.inputs = 1;
    c.l[0].rank = 1;
    c.l[0].ext[0] = c.l[0].global[0] = n;
    c.l[0].make_dense();
    c.l[sw::runtime::result] = c.l[0];
    c.l[0].str[0] = step;
    c.p[0] = const_cast<T*>(from);
    c.p[sw::runtime::result] = to;
    sw::runtime::compute<Op, T>(c, {});
  };
  for (const std::int64_t step : {1, 3}) {
    run(x.data(), whole, step, all.data());
    for (const std::int64_t n : {1, 2, 5, 8, 9, 15, 16, 17, 33, 100})
      for (std::int64_t first = 0; first + n <= whole; first += 7) {
        run(x.data() + first * step, n, step, some.data());
        CHECK(std::memcmp(some.data(), all.data() + first, static_cast<std::size_t>(n) * sizeof(T)) == 0);
      }
    std::vector<T> apart(whole), dense(whole);
    for (std::int64_t i = 0; i < whole; ++i) dense[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(i * step)];
    run(dense.data(), whole, 1, apart.data());
    CHECK(std::memcmp(apart.data(), all.data(), static_cast<std::size_t>(whole) * sizeof(T)) == 0);
  }
}

TEST_CASE_TEMPLATE("blocks of any length and stride have the same bits", T, float, double) {
  using enum op_code;
  alike_in_all_blocks<op_code::exp, T>();
  alike_in_all_blocks<op_code::tanh, T>();
  alike_in_all_blocks<gelu_tanh, T>();
  alike_in_all_blocks<gelu_erf, T>();
  alike_in_all_blocks<sigmoid, T>();
}

}  // namespace
