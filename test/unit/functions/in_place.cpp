// SPDX-License-Identifier: Apache-2.0
// Functions that write their result over their first operand: values against plain loops on 1 to 4 ranks, at once and as programs, and
// seen through a view that was taken before. What writes do among each other: test/dist/functions/mutation.cpp.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <custom_operations.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace {

using namespace test;

template <int N>
struct line : sw::axis<N> {};
constexpr std::int64_t rows = 7, columns = 5;
template <int N, class... P>
using matrix = sw::dtensor_of<double, sw::shape<rows, columns>, sw::mesh<line<N>>, sw::on<line<N>, P>...>;
template <int N, class... P>
using row_of = sw::dtensor_of<double, sw::shape<columns>, sw::mesh<line<N>>, sw::on<line<N>, P>...>;

constexpr sw::op_attr from_the_end{{1, 0, 0, 0, 0, 0}};

// The functions, each with what it makes of a whole x and the row y. Zeros are neither written to nor divided by: y has none.
using numbers = std::vector<double>;
constexpr std::size_t in_row(std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * columns + j); }
template <class F>
numbers elementwise(const numbers& x, const numbers& y, F f) {
  numbers r;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      r.push_back(f(x[in_row(i, j)], y[static_cast<std::size_t>(j)], static_cast<int>(j - i)));
  return r;
}
numbers running(const numbers& x, bool end) {
  numbers r(x.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < columns; ++k) {
      const std::size_t at = in_row(i, end ? columns - 1 - k : k);
      r[at] = sum += x[at];
    }
  }
  return r;
}

#define SHARDWISE_TEST_WRITES(name, call, want)                                                                             \
  struct name {                                                                                                             \
    constexpr auto operator()(const auto& h, [[maybe_unused]] const auto& y) const { return call; }                         \
    static numbers values(const numbers& given, const numbers& row) {                                                       \
      return elementwise(given, row, []([[maybe_unused]] double x, [[maybe_unused]] double b, [[maybe_unused]] int right) { \
        return want;                                                                                                        \
      });                                                                                                                   \
    }                                                                                                                       \
  };
SHARDWISE_TEST_WRITES(minus, sw::sub_(h, y), x - b)
SHARDWISE_TEST_WRITES(minus_number, sw::sub_(h, 0.75), x - 0.75)
SHARDWISE_TEST_WRITES(over, sw::div_(h, y), x / b)
SHARDWISE_TEST_WRITES(over_number, sw::div_(h, 3), x / 3)
SHARDWISE_TEST_WRITES(clamped, sw::clamp_(h, -0.5, 0.25), x < -0.5 ? -0.5 : x > 0.25 ? 0.25 : x)
SHARDWISE_TEST_WRITES(gelu, sw::gelu_(h), 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))))
SHARDWISE_TEST_WRITES(gelu_by_tanh, sw::gelu_<sw::gelu_form::tanh>(h),
                      0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x))))
SHARDWISE_TEST_WRITES(filled, sw::masked_fill_(h, sw::gt(h, 0.25), -2), x > 0.25 ? -2 : x)
SHARDWISE_TEST_WRITES(lower, sw::tril_(h), right > 0 ? 0 : x)
SHARDWISE_TEST_WRITES(lower_and_one, sw::tril_<1>(h), right > 1 ? 0 : x)
SHARDWISE_TEST_WRITES(upper, sw::triu_(h), right < 0 ? 0 : x)
SHARDWISE_TEST_WRITES(upper_and_two, sw::triu_<-2>(h), right < -2 ? 0 : x)
SHARDWISE_TEST_WRITES(scaled, sw::call_<sums::times>(2.5, h), x * 2.5)
SHARDWISE_TEST_WRITES(scaled_and_none, (sw::call_<sums::times, sw::op_attr{}>(2.5, h)), x * 2.5)
#undef SHARDWISE_TEST_WRITES
struct sums_from_begin {
  constexpr auto operator()(const auto& h, const auto&) const { return sw::call_<sums::running>(h); }
  static numbers values(const numbers& x, const numbers&) { return running(x, false); }
};
struct sums_by_number {
  constexpr auto operator()(const auto& h, const auto&) const { return sw::call_<sums::running, 1>(h); }
  static numbers values(const numbers& x, const numbers&) { return running(x, true); }
};
struct sums_by_attributes {
  constexpr auto operator()(const auto& h, const auto&) const { return sw::call_<sums::running, from_the_end>(h); }
  static numbers values(const numbers& x, const numbers&) { return running(x, true); }
};

// Each over a copy of its own: what it returns, and what a view of the copy shows.
template <class... F>
struct written {
  template <class G>
  static constexpr auto one(G g, const auto& x, const auto& y) {
    const auto copy = sw::scale(x, 1);
    const auto seen = sw::narrow<1, 1, 3>(copy);
    const auto result = g(copy, y);
    return std::tuple{result, sw::scale(seen, 1)};
  }
  constexpr auto operator()(const auto& x, const auto& y) const { return std::tuple_cat(one(F{}, x, y)...); }

  // Of rows begin .. end.
  static std::vector<numbers> values(const numbers& x, const numbers& y, std::int64_t begin, std::int64_t end) {
    std::vector<numbers> all;
    for (const numbers& whole : {F::values(x, y)...}) {
      numbers own, part;
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          own.push_back(whole[in_row(i, j)]);
          if (j >= 1 && j < 4) part.push_back(whole[in_row(i, j)]);
        }
      all.push_back(own);
      all.push_back(part);
    }
    return all;
  }
};
using with_operands = written<minus, minus_number, over, over_number, clamped, gelu, gelu_by_tanh, filled>;
using by_place_and_own = written<lower, lower_and_one, upper, upper_and_two, scaled, scaled_and_none, sums_from_begin,
                                 sums_by_number, sums_by_attributes>;

template <class All, int N, class Px, class Py>
void check() {
  INFO(N, " ranks");
  numbers x, y{0.5, -2, 1.25, 3, -0.125};
  for (int i = 0; i < rows * columns; ++i) x.push_back(((i * 37 + 5) % 23 - 11) / 8.0);
  sw::launch<sw::mesh<line<N>>>([&](auto& rank) {
    sw::eager on(rank);
    const auto a = matrix<N, Px>::distribute(on, x);
    const auto b = row_of<N, Py>::distribute(on, y);
    const auto block = a.to_local().layout;
    const std::int64_t begin = block.ext[0] == 0 ? 0 : block.origin[0];
    const std::vector<numbers> want = All::values(x, y, begin, begin + block.ext[0]);
    const auto have = both_ways<All>(rank, a, b);
    std::size_t k = 0;
    const auto compare = [&](const auto& tensor) {
      const numbers got = values_of(tensor.to_local());
      INFO("result ", k);
      REQUIRE(got.size() == want[k].size());
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(std::abs(got[i] - want[k][i]) <= 1e-15 * (1 + std::abs(want[k][i])));
      ++k;
    };
    std::apply([&](const auto&... tensor) { (compare(tensor), ...); }, have);
    CHECK(k == want.size());
    CHECK(values_of(a.to_local()) == numbers(x.begin() + begin * columns, x.begin() + (begin + block.ext[0]) * columns));
  });
}

}  // namespace

TEST_CASE("functions in place: with numbers and tensors that broadcast") {
  check<with_operands, 1, sw::replicate, sw::replicate>();
  check<with_operands, 3, sw::shard<0>, sw::reduced>();
  check<with_operands, 4, sw::shard<0>, sw::reduced>();
}

TEST_CASE("functions in place: by an element's place in the whole, and operations of one's own") {
  check<by_place_and_own, 1, sw::replicate, sw::replicate>();
  check<by_place_and_own, 3, sw::shard<0>, sw::reduced>();
  check<by_place_and_own, 4, sw::shard<0>, sw::reduced>();
}

TEST_CASE("functions in place: what is returned is the operand") {
  sw::launch<sw::mesh<line<1>>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = matrix<1>::distribute(on, numbers(rows * columns, 1.0));
    CHECK(sw::sub_(x, 1).shares_storage_with(x));
    CHECK(sw::tril_(x).shares_storage_with(x));
    CHECK(sw::call_<sums::times>(2, x).shares_storage_with(x));
    CHECK(values_of(x.to_local()) == numbers(rows * columns, 0.0));
  });
}
