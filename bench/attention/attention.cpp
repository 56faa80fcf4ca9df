// SPDX-License-Identifier: Apache-2.0
// Times attention as one operation against the same as products and a softmax, forward and backward on one host rank, turn by turn,
// after both have given the same.
// Usage: attention [turns] [part of a name]; a line for each shape and layout: milliseconds of either, medians, their quotient, and bytes of memory.
#include <shardwise/shardwise.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

template <bool Causal, sw::head_layout Layout>
struct whole {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    return sw::scaled_dot_product_attention<Causal, Layout>(q, k, v);
  }
};
// Labels: 1 batch, 2 heads, 3 time of queries, 4 time of keys, 5 size.
template <bool Causal, sw::head_layout Layout>
struct composed {
  template <class Q>
  constexpr auto operator()(const Q& q, const auto& k, const auto& v) const {
    using sw::op_code, sw::attributes, sw::einsum_attributes;
    constexpr bool heads_first = Layout == sw::head_layout::bhtd;
    constexpr std::int64_t lq = heads_first ? 0x5321 : 0x5231, lk = heads_first ? 0x5421 : 0x5241, ls = 0x4321;
    const auto scores = sw::detail::apply<op_code::einsum, attributes<einsum_attributes>(lq, lk, ls)>(
        sw::detail::attention_scale(__builtin_nan(""), Q::sp.extent[3]), q, k);
    const auto weights = sw::detail::apply<op_code::softmax, attributes<sw::softmax_attributes>(Causal ? 1 : 0)>(0, scores);
    return sw::detail::apply<op_code::einsum, attributes<einsum_attributes>(ls, lk, lq)>(1, weights, v);
  }
};

template <class F, class T, class Shape>
using program =
    sw::gradient_step<F, mesh,
                      sw::inputs<sw::input_tensor<T, Shape>, sw::input_tensor<T, Shape>, sw::input_tensor<T, Shape>>,
                      sw::wrt<0, 1, 2>>;

template <class T>
std::vector<T> numbers(std::size_t n, double salt) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>(std::sin(1.3 * static_cast<double>(i) + salt));
  return v;
}

const char* only = "";

template <class T, class Shape, bool Causal, sw::head_layout Layout>
void compare(const char* name, int turns) {
  if (std::string_view(name).find(only) == std::string_view::npos) return;
  using first = program<composed<Causal, Layout>, T, Shape>;
  using second = program<whole<Causal, Layout>, T, Shape>;
  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<first, rank_type> a(rank);
    sw::executor<second, rank_type> b(rank);
    std::size_t n = 1;
    for (const std::int64_t e : Shape::extent) n *= static_cast<std::size_t>(e);
    for (int k = 0; k < 3; ++k) {
      a.set_input(k, numbers<T>(n, k));
      b.set_input(k, numbers<T>(n, k));
    }
    const auto timed = [](auto& ex) {
      const auto start = std::chrono::steady_clock::now();
      ex.run(sw::step_env{});
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    };
    timed(a), timed(b);
    double apart = 0;
    for (int k = 0; k < 4; ++k) {
      const auto x = a.template output<T>(k), y = b.template output<T>(k);
      for (std::size_t i = 0; i < n; ++i)
        apart = std::max(apart, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    }
    std::vector<double> of_a, of_b;
    for (int i = 0; i < turns; ++i) {
      of_a.push_back(timed(a));
      of_b.push_back(timed(b));
    }
    const auto median = [](std::vector<double>& v) {
      std::sort(v.begin(), v.end());
      return v[v.size() / 2];
    };
    const double ma = median(of_a), mb = median(of_b);
    std::printf("%-44s %8.3f %8.3f %6.2f %12lld %12lld   apart %.1e\n", name, ma, mb, mb / ma,
                static_cast<long long>(first::peak_bytes), static_cast<long long>(second::peak_bytes), apart);
    std::fflush(stdout);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 31;
  if (argc > 2) only = argv[2];
  using sw::head_layout;
  std::printf("%-44s %8s %8s %6s %12s %12s\n", "forward and backward", "composed", "one", "ratio", "bytes", "bytes");
  compare<float, sw::shape<8, 4, 128, 32>, true, head_layout::bhtd>("float (8, 4, 128, 32) causal", turns);
  compare<float, sw::shape<8, 128, 4, 32>, true, head_layout::bthd>("float (8, 128, 4, 32) causal, by time", turns);
  compare<float, sw::shape<8, 4, 128, 32>, false, head_layout::bhtd>("float (8, 4, 128, 32)", turns);
  compare<float, sw::shape<1, 12, 1024, 64>, true, head_layout::bhtd>("float (1, 12, 1024, 64) causal", turns);
  compare<float, sw::shape<1, 1024, 12, 64>, true, head_layout::bthd>("float (1, 1024, 12, 64) causal, by time", turns);
  compare<float, sw::shape<1, 12, 1024, 64>, false, head_layout::bhtd>("float (1, 12, 1024, 64)", turns);
  compare<double, sw::shape<2, 4, 256, 64>, true, head_layout::bhtd>("double (2, 4, 256, 64) causal", turns);
}
