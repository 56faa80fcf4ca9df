// SPDX-License-Identifier: Apache-2.0
// Host kernels in blocks of all sizes: special values in every lane and tail, and the exactness of long sums.
#include <special_values.hpp>

#include <shardwise/runtime/host/kernel_table.hpp>

#include <cmath>
#include <numeric>

namespace {

namespace sw = shardwise;
namespace special = test::special;
using sw::op_code;
using sw::runtime::call;
using sw::runtime::layout;
using sw::runtime::result;

layout dense(std::initializer_list<std::int64_t> extents) {
  layout l;
  for (const std::int64_t e : extents) l.ext[l.rank] = l.global[l.rank] = e, ++l.rank;
  l.make_dense();
  return l;
}

template <op_code Op, class T>
void run(const call& c, T* x, T* o) {
  call with = c;
  with.p[0] = x;
  with.p[result] = o;
  sw::runtime::compute<Op, T>(with, {});
}

// The table's rows of one operation, from every starting point of a block.
template <op_code Op, class T>
void in_blocks(const char* name, double f = 0) {
  const special::answer* a = nullptr;
  for (const special::answer& row : special::answers)
    if (row.of == special::kind::unary && std::string(row.name) == name) a = &row;
  REQUIRE(a != nullptr);
  for (const std::int64_t n : {1, 7, 8, 15, 16, 17, 31, 32, 64, 71})
    for (const std::int64_t step : {1, 3})
      for (std::size_t first = 0; first < special::elements.size(); ++first) {
        std::vector<T> x(static_cast<std::size_t>(n * step)), o(static_cast<std::size_t>(n), T(7));
        const auto at = [&](std::int64_t i) { return (first + static_cast<std::size_t>(i)) % special::elements.size(); };
        for (std::int64_t i = 0; i < n; ++i)
          x[static_cast<std::size_t>(i * step)] = static_cast<T>(special::elements[at(i)]);
        call c;
        c.f = f;
        c.inputs = 1;
        c.l[0] = c.l[result] = dense({n});
        c.l[0].str[0] = step;
        run<Op>(c, x.data(), o.data());
        for (std::int64_t i = 0; i < n; ++i)
          special::compare<T>("kernel", *a, "value", special::value_of<T>(*a), at(i), special::elements[at(i)], 0,
                              static_cast<double>(o[static_cast<std::size_t>(i)]));
      }
}
template <op_code Op>
void in_blocks(const char* name, double f = 0) {
  in_blocks<Op, float>(name, f);
  in_blocks<Op, double>(name, f);
}

TEST_CASE("special values in blocks of all sizes") {
  using enum op_code;
  in_blocks<op_code::abs>("abs");
  in_blocks<sign>("sign");
  in_blocks<op_code::exp>("exp");
  in_blocks<op_code::log>("log");
  in_blocks<op_code::sqrt>("sqrt");
  in_blocks<rsqrt>("rsqrt");
  in_blocks<reciprocal>("reciprocal");
  in_blocks<sigmoid>("sigmoid");
  in_blocks<relu>("relu");
  in_blocks<op_code::tanh>("tanh");
  in_blocks<gelu_erf>("gelu");
  in_blocks<gelu_tanh>("gelu_tanh");
  in_blocks<op_code::pow>("pow 0.5", 0.5);
  in_blocks<op_code::pow>("pow 2", 2);
  in_blocks<op_code::pow>("pow -1.5", -1.5);
  in_blocks<clamp_min>("clamp_min", 0.5);
  in_blocks<clamp_min>("clamp_min nan", special::nan);
  in_blocks<clamp_max>("clamp_max nan", special::nan);
}

// Float's exponential and tanh over the whole range, against double's.
TEST_CASE("float's exponential and tanh are within two units") {
  const auto unit = [](double x) { return std::fmax(std::ldexp(1.0, std::ilogb(x) - 23), std::ldexp(1.0, -149)); };
  std::vector<float> x;
  for (double v = -104.5; v < 88.72; v += 0.0007) x.push_back(static_cast<float>(v));
  for (double v = 1e-30; v < 1; v *= 1.001) x.push_back(static_cast<float>(v));
  std::vector<float> e(x.size()), t(x.size());
  call c;
  c.inputs = 1;
  c.l[0] = c.l[result] = dense({static_cast<std::int64_t>(x.size())});
  run<op_code::exp>(c, x.data(), e.data());
  run<op_code::tanh>(c, x.data(), t.data());
  double most_e = 0, most_t = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = static_cast<double>(x[i]);
    most_e = std::fmax(most_e, std::fabs(static_cast<double>(e[i]) - std::exp(v)) / unit(std::exp(v)));
    most_t = std::fmax(most_t, std::fabs(static_cast<double>(t[i]) - std::tanh(v)) / unit(std::tanh(v)));
  }
  MESSAGE("exp " << most_e << ", tanh " << most_t << " units");
  CHECK(most_e <= 2);
  CHECK(most_t <= 2);
}

// Numbers of both signs and many sizes; the sum of their sizes is what errors count against.
template <class T>
struct terms {
  std::vector<T> x;
  explicit terms(std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      x.push_back(
          static_cast<T>(1 + static_cast<double>((i * 2654435761LL) % 1000003) / 1000003.0 - (i % 3 == 0 ? 0.7 : 0.0)));
  }
};

// Largest error of a reduction, in units of T's rounding of the sum of sizes.
template <op_code Op, class T>
double error_of(std::initializer_list<std::int64_t> extents, std::int64_t mask, std::int64_t v2 = 0) {
  const layout x = dense(extents);
  terms<T> v(x.numel());
  call c;
  c.a = {{mask, 0, v2, 0, 0, 0}};
  c.inputs = 1;
  c.l[0] = x;
  layout out;
  for (int d = 0; d < x.rank; ++d)
    if (!((mask >> d) & 1)) out.ext[out.rank] = out.global[out.rank] = x.ext[d], ++out.rank;
  out.make_dense();
  c.l[result] = out;
  std::vector<T> o(static_cast<std::size_t>(out.numel()));
  run<Op>(c, v.x.data(), o.data());
  std::vector<long double> want(o.size()), size(o.size());
  std::int64_t count = x.numel() / out.numel();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::int64_t rest = i, at = 0, below = 1;
    for (int d = x.rank - 1; d >= 0; --d) {
      const std::int64_t p = rest % x.ext[d];
      rest /= x.ext[d];
      if ((mask >> d) & 1) continue;
      at += p * below;
      below *= x.ext[d];
    }
    long double term = static_cast<long double>(v.x[static_cast<std::size_t>(i)]);
    if (Op == op_code::vector_norm || Op == op_code::sumsq) term *= term;
    want[static_cast<std::size_t>(at)] += term;
    size[static_cast<std::size_t>(at)] += std::fabs(term);
  }
  double most = 0;
  for (std::size_t k = 0; k < o.size(); ++k) {
    long double w = want[k], s = size[k];
    if (Op == op_code::vector_norm) w = s = std::sqrt(w);
    if (Op == op_code::sum && v2 != 0) w /= static_cast<long double>(count), s /= static_cast<long double>(count);
    most = std::fmax(
        most, static_cast<double>(std::fabs(static_cast<long double>(o[k]) - w) / s) / (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53));
  }
  return most;
}

TEST_CASE("long sums are as exact as a few roundings") {
  for (const auto& e : {std::initializer_list<std::int64_t>{16384, 3}, {16384, 40}, {3, 16384}, {300, 7, 200}, {100003}}) {
    std::int64_t all = 1;
    CAPTURE(*e.begin());
    for (std::size_t d = 0; d < e.size(); ++d) all *= 2;
    for (std::int64_t mask = 1; mask < all; ++mask) {
      CAPTURE(mask);
      // float: one rounding of a sum of doubles; double: the logarithm of the number of terms
      CHECK(error_of<op_code::sum, float>(e, mask) <= 1.01);
      CHECK(error_of<op_code::sum, float>(e, mask, 1) <= 1.01);
      CHECK(error_of<op_code::sumsq, float>(e, mask) <= 1.01);
      CHECK(error_of<op_code::vector_norm, float>(e, mask, 2) <= 1.01);
      CHECK(error_of<op_code::sum, double>(e, mask) <= 16);
      CHECK(error_of<op_code::vector_norm, double>(e, mask, 2) <= 16);
    }
  }
}

// Rows whose elements lie apart, and rows of every length around where loops change, against sums in long double.
template <op_code Op, class T>
void rows_of_all_lengths(bool per_row) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1025})
    for (const std::int64_t step : {1, 3}) {
      CAPTURE(n);
      CAPTURE(step);
      const std::int64_t rows = 3;
      std::vector<T> x(static_cast<std::size_t>(rows * n * step)), o(static_cast<std::size_t>(rows * (per_row ? 1 : n)));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<double>(i * 37 % 101) / 10 - 5);
      call c;
      c.inputs = 1;
      c.l[0] = dense({rows, n});
      c.l[0].str[0] = n * step;
      c.l[0].str[1] = step;
      c.l[result] = per_row ? dense({rows}) : dense({rows, n});
      run<Op>(c, x.data(), o.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto at = [&](std::int64_t i) {
          return static_cast<long double>(x[static_cast<std::size_t>((r * n + i) * step)]);
        };
        long double total = 0;
        for (std::int64_t i = 0; i < n; ++i) total += std::exp(at(i));
        for (std::int64_t i = 0; i < (per_row ? 1 : n); ++i) {
          const long double want = Op == op_code::softmax ? std::exp(at(i)) / total
                                   : Op == op_code::lse   ? std::log(total)
                                                          : at(i) - std::log(total);
          const long double have = static_cast<long double>(o[static_cast<std::size_t>(per_row ? r : r * n + i)]);
          const long double unit = sizeof(T) == 4 ? 1.2e-7L : 2.3e-16L;
          CHECK(std::fabs(have - want) <= 16 * unit * (Op == op_code::softmax ? want : 1 + std::fabs(want)));
        }
      }
    }
}

TEST_CASE("softmax, its logarithm and its denominator in rows of all lengths, together and apart") {
  rows_of_all_lengths<op_code::softmax, float>(false);
  rows_of_all_lengths<op_code::softmax, double>(false);
  rows_of_all_lengths<op_code::log_softmax, float>(false);
  rows_of_all_lengths<op_code::log_softmax, double>(false);
  rows_of_all_lengths<op_code::lse, float>(true);
  rows_of_all_lengths<op_code::lse, double>(true);
}

}  // namespace
