// SPDX-License-Identifier: Apache-2.0
// Scratch of users' own operations: proofs, eager ranks and steps give kernels what the records ask for, and the arena holds it.
#include <doctest/doctest.h>

#include <custom_scratch.hpp>
#include <figures.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/shardwise.hpp>

namespace {

namespace sw = shardwise;
using figures::some;
using figures::whole;

static_assert(sw::laws::holds<sw::laws::customs<balances::balance>, sw::shape<5, 3>> > 0);

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;

template <int N>
struct twice {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::call<balances::balance>(x);
    return sw::redistribute<dp<N>, sw::replicate>(sw::sum(sw::call<balances::balance>(y * y)));
  }
};

// Rows of 37, so that scratch is 296 bytes, whatever a rank's part is.
template <int N>
using rows = sw::input_tensor<double, sw::shape<5, 37>, sw::on<dp<N>, sw::shard<0>>>;
template <int N>
using step = sw::function_step<twice<N>, mesh<N>, sw::inputs<rows<N>>>;
static_assert(step<1>::memory_use::value.kind[static_cast<int>(sw::memory_kind::workspace)] >= 37 * 8);
static_assert(sw::passes::kernel_scratch<sw::passes::kernel_place::host>(step<3>::program) == 37 * 8);
static_assert(sw::passes::kernel_scratch<sw::passes::kernel_place::device>(step<3>::program) == 37 * 8);

// The most of all kernels, wherever it stands.
struct wide_first {
  constexpr auto operator()(const auto& x) const {
    return sw::call<balances::balance>(sw::slice<1, 0, 11>(sw::call<balances::balance>(x)));
  }
};
struct narrow_first {
  constexpr auto operator()(const auto& x) const {
    const auto few = sw::call<balances::balance>(sw::slice<1, 0, 11>(x));
    return sw::call<balances::balance>(x) * sw::sum<1>(few, sw::keepdim);
  }
};
template <class F>
constexpr std::int64_t scratch_of =
    sw::passes::kernel_scratch<sw::passes::kernel_place::host>(sw::function_step<F, mesh<1>, sw::inputs<rows<1>>>::program);
static_assert(scratch_of<wide_first> == 37 * 8 && scratch_of<narrow_first> == 37 * 8);

// By hand, in double.
double by_hand(const std::vector<double>& x) {
  const auto balance = [](std::vector<double> v) {
    for (std::size_t r = 0; r < 5; ++r) {
      double total = 0, sum = 0;
      for (std::size_t i = 0; i < 37; ++i) total += v[r * 37 + i];
      for (std::size_t i = 0; i < 37; ++i) {
        sum += v[r * 37 + i];
        v[r * 37 + i] = 2 * sum - total;
      }
    }
    return v;
  };
  std::vector<double> y = balance({x.begin(), x.end()});
  for (double& v : y) v *= v;
  double sum = 0;
  for (const double v : balance(y)) sum += v;
  return sum;
}

struct wrong {
  constexpr auto operator()(const auto& x) const { return sw::call<balances::unasked>(x); }
};

template <int N>
void check() {
  const std::vector<double> x = some(5 * 37, 3);
  const double expected = by_hand(x);
  sw::launch<mesh<N>>([&](auto& rank) {
    sw::executor<step<N>, std::remove_reference_t<decltype(rank)>> run(rank, sw::executor_checks::poison);
    run.set_input(0, x);
    run.run({});
    CHECK(run.output()[0] == doctest::Approx(expected).epsilon(1e-12));
    sw::eager e(rank);
    using tensor = sw::dtensor_of<double, sw::shape<5, 37>, mesh<N>, sw::on<dp<N>, sw::shard<0>>>;
    CHECK(whole(twice<N>{}(tensor::distribute(e, x)))[0] == doctest::Approx(expected).epsilon(1e-12));
  });
}

}  // namespace

TEST_CASE("scratch of one's own operation") {
  check<1>();
  check<2>();
  check<3>();
  check<8>();
}

TEST_CASE("scratch that no record asks for is refused where the kernel reads it") {
  CHECK_THROWS_WITH(
      sw::launch<mesh<1>>([](auto& rank) {
        sw::executor<sw::function_step<wrong, mesh<1>, sw::inputs<rows<1>>>, std::remove_reference_t<decltype(rank)>> run(
            rank);
        run.set_input(0, some(5 * 37, 3));
        run.run({});
      }),
      doctest::Contains("its operation's record asks for none"));
}
