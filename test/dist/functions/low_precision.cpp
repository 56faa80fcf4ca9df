// SPDX-License-Identifier: Apache-2.0
// Elements of two bytes: an operation computes in float what it reads and rounds its results once, eagerly and traced, whole and
// in shards; casts and their gradients; integers; what is refused.
#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <cmath>
#include <limits>
#include <random>

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

#include <thrown.hpp>

namespace {

using namespace test;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using line = sw::mesh<dp<N>>;
template <int N>
using rows = sw::on<dp<N>, sw::shard<0>>;

template <class T>
std::vector<T> some(std::int64_t n, unsigned salt) {
  std::mt19937 draw(salt);
  std::vector<T> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(T(static_cast<float>(draw() % 4096) / 1024.0F - 2.0F));
  return v;
}
std::vector<std::int32_t> ids(std::int64_t n, int below) {
  std::vector<std::int32_t> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<std::int32_t>((i * 7 + 3) % below));
  return v;
}

// The same numbers as floats.
template <class T>
auto wide(const T& x) {
  if constexpr (sw::is_low_precision(T::sp.type)) return sw::cast<float>(x);
  else return x;
}

// Law: f of Low elements is f of the same numbers as floats, rounded once; what is wide already is equal to the last bit.
template <class Low, class F, class... X>
void check_rounded_once(const char* name, F f, const X&... x) {
  INFO(name);
  const auto low = f(x...);
  const auto exact = f(wide(x)...);
  const auto a = values_of(low.to_local());
  const auto b = values_of(exact.to_local());
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    using element = std::remove_cvref_t<decltype(a[i])>;
    CHECK(static_cast<float>(a[i]) == static_cast<float>(element(static_cast<float>(b[i]))));
  }
}

template <class Low, int N>
void check_operations() {
  sw::launch<line<N>>([&](auto& rank) {
    using mesh = line<N>;
    sw::eager on(rank);
    const auto x = sw::dtensor_of<Low, sw::shape<5, 6>, mesh, rows<N>>::distribute(on, some<Low>(30, 1));
    const auto y = sw::dtensor_of<Low, sw::shape<5, 6>, mesh, rows<N>>::distribute(on, some<Low>(30, 2));
    const auto w = sw::dtensor_of<Low, sw::shape<6, 4>, mesh, sw::on<dp<N>, sw::reduced>>::distribute(on, some<Low>(24, 3));
    const auto g = sw::dtensor_of<Low, sw::shape<6>, mesh, sw::on<dp<N>, sw::reduced>>::distribute(on, some<Low>(6, 4));
    const auto table =
        sw::dtensor_of<Low, sw::shape<9, 6>, mesh, sw::on<dp<N>, sw::reduced>>::distribute(on, some<Low>(54, 5));
    const auto target = sw::dtensor_of<std::int32_t, sw::shape<5>, mesh, rows<N>>::distribute(on, ids(5, 6));
    const auto check = [&](const char* name, auto f, const auto&... operand) {
      check_rounded_once<Low>(name, f, operand...);
    };
    check("add", [](const auto& a, const auto& b) { return a + b; }, x, y);
    check("mul, broadcast", [](const auto& a, const auto& b) { return a * b; }, x, g);
    check("div", [](const auto& a, const auto& b) { return a / b; }, x, y);
    check("scale", [](const auto& a) { return sw::scale(a, 0.3); }, x);
    check("add a number", [](const auto& a) { return a + 0.25; }, x);
    check("relu", [](const auto& a) { return sw::relu(a); }, x);
    check("gelu", [](const auto& a) { return sw::gelu<sw::gelu_form::tanh>(a); }, x);
    check("exp", [](const auto& a) { return sw::exp(a); }, x);
    check("of a transposed", [](const auto& a) { return sw::tanh(sw::permute<1, 0>(a)); }, x);
    check("maximum", [](const auto& a, const auto& b) { return sw::maximum(a, b); }, x, y);
    check("where", [](const auto& a, const auto& b) { return sw::where(sw::lt(a, b), a, b); }, x, y);
    check("softmax", [](const auto& a) { return sw::softmax<-1>(a); }, x);
    check("sum of rows", [](const auto& a) { return sw::sum<1>(a); }, x);
    check("mean of rows", [](const auto& a) { return sw::mean<1>(a); }, x);
    check("amax", [](const auto& a) { return sw::amax<-1>(a); }, x);
    check("matmul", [](const auto& a, const auto& b) { return sw::matmul(a, b); }, x, w);
    check("rows of a table", [](const auto& t, const auto& i) { return sw::embedding(t, i); }, table, target);
    check("cat", [](const auto& a, const auto& b) { return sw::cat<1>(a, b); }, x, y);
    check("reshape", [](const auto& a) { return sw::reshape<5, 2, 3>(a); }, x);
    check("slice", [](const auto& a) { return sw::contiguous(sw::slice<1, 1, 4>(a)); }, x);
    check("logsumexp", [](const auto& a) { return sw::logsumexp(a); }, x);
    check("largest", [](const auto& a) { return sw::topk<2>(a).values; }, x);
    check("losses", [](const auto& a, const auto& t) { return sw::cross_entropy_rows(a, t); }, x, target);
    // two operations, of which the first one's result is wide
    check("layer norm", [](const auto& a, const auto& b) { return sw::layer_norm(a, b, b); }, x, g);
    check("whole", [](const auto& a) { return sw::redistribute<dp<N>, sw::replicate>(a); }, x);
    static_assert(decltype(sw::cross_entropy_rows(x, target))::sp.type == sw::dtype::f32, "losses are floats");
    static_assert(decltype(sw::layer_norm(x, g, g))::sp.type == sw::dtype_v<Low>);
  });
}

// Summed over ranks in the tensor's own type, in rank order.
template <class Low, int N>
void check_reductions() {
  sw::launch<line<N>>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<Low, sw::shape<7, 3>, line<N>, rows<N>>::distribute(on, some<Low>(21, 9));
    const auto partial = sw::sum<0>(x);
    const auto whole = values_of(sw::redistribute<dp<N>, sw::replicate>(partial).to_local());
    const auto parts = values_of(sw::redistribute<dp<N>, sw::shard<0>>(partial).full_tensor().to_local());
    const auto all = some<Low>(21, 9);
    for (std::size_t c = 0; c < 3; ++c) {
      Low want{};
      for (int r = 0; r < N; ++r) {
        const auto own = sw::split({0, 7}, 1, N, r);
        float s = 0;
        for (auto i = own.begin; i < own.begin + own.size; ++i)
          s += static_cast<float>(all[static_cast<std::size_t>(i * 3) + c]);
        want = r == 0 ? Low(s) : want + Low(s);
      }
      CHECK(whole[c].bits == want.bits);
      CHECK(parts[c].bits == want.bits);
    }
  });
}

template <class T>
struct loss_of {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::sum(sw::square(sw::cast<float>(sw::matmul(sw::cast<T>(x), sw::cast<T>(w)))));
  }
};

}  // namespace

TEST_CASE("low precision: each operation computes in float and rounds once") {
  check_operations<sw::bf16, 1>();
  check_operations<sw::bf16, 2>();
  check_operations<sw::bf16, 3>();
  check_operations<sw::f16, 4>();
  check_operations<sw::f16, 8>();  // three ranks have no row
}

TEST_CASE("low precision: sums over ranks are in the tensor's type, in rank order") {
  check_reductions<sw::bf16, 2>();
  check_reductions<sw::bf16, 3>();
  check_reductions<sw::f16, 4>();
}

TEST_CASE("low precision: a cast's gradient is cast back; at once and traced") {
  sw::launch<line<2>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<float, sw::shape<4, 6>, line<2>, rows<2>>::distribute(on, some<float>(24, 1));
    const auto w =
        sw::dtensor_of<float, sw::shape<6, 3>, line<2>, sw::on<dp<2>, sw::reduced>>::distribute(on, some<float>(18, 2));
    const auto all = gradients_both_ways<loss_of<sw::bf16>, 0, 1>(rank, x, w);
    static_assert(std::tuple_element_t<1, std::remove_const_t<decltype(all)>>::sp.type == sw::dtype::f32);
    // by hand: y = x w, rounded; dy = 2 y, rounded; dx = dy w^T, rounded
    const auto low = sw::cast<sw::bf16>(x);
    const auto weight = sw::cast<sw::bf16>(w);
    const auto y = sw::cast<float>(sw::matmul(low, weight));
    const auto dx = sw::cast<float>(sw::matmul(sw::cast<sw::bf16>(y + y), sw::permute<1, 0>(weight)));
    CHECK(values_of(std::get<1>(all).to_local()) == values_of(dx.to_local()));
  });
}

TEST_CASE("casts: between all element types") {
  sw::launch<line<1>>([](auto& rank) {
    sw::eager on(rank);
    const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<double> given{0, -0.0, 1.5, -2.75, 3e9, -3e9, inf, -inf, nan, 1e-3};
    const auto x = sw::dtensor_of<double, sw::shape<10>, line<1>>::distribute(on, given);
    const auto as_int = values_of(sw::cast<std::int32_t>(x).to_local());
    CHECK(as_int == std::vector<std::int32_t>{0, 0, 1, -2, 2147483647, -2147483647 - 1, 2147483647, -2147483647 - 1, 0, 0});
    const auto as_long = values_of(sw::cast<std::int64_t>(x).to_local());
    CHECK(as_long[4] == 3000000000LL);
    const auto truth = sw::cast<bool>(x);
    CHECK(values_of(sw::cast<std::int32_t>(truth).to_local()) == std::vector<std::int32_t>{0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
    const auto half = values_of(sw::cast<double>(sw::cast<sw::f16>(x)).to_local());
    CHECK(half[2] == 1.5);
    CHECK(std::isinf(half[4]));
    CHECK(std::isnan(half[8]));
    static_assert(std::is_same_v<decltype(sw::cast<double>(x)), std::remove_const_t<decltype(x)>>, "already");
    const auto large = sw::cast<std::int64_t>(x);
    CHECK(thrown([&] { (void)sw::cast<std::int32_t>(large); }).find("the int64 3000000000 is no int32") !=
          std::string::npos);
  });
}

TEST_CASE("integers: added, multiplied and summed as such") {
  sw::launch<line<3>>([](auto& rank) {
    sw::eager on(rank);
    std::vector<std::int64_t> v{1LL << 40, -3, 5, 7, 11, -(1LL << 41), 2, 4};
    const auto x = sw::dtensor_of<std::int64_t, sw::shape<4, 2>, line<3>, rows<3>>::distribute(on, v);
    const auto y = x * x - x + x;
    const auto got = values_of(sw::redistribute<dp<3>, sw::replicate>(y).to_local());
    for (std::size_t i = 0; i < v.size(); ++i) {
      const auto u = static_cast<std::uint64_t>(v[i]);
      CHECK(static_cast<std::uint64_t>(got[i]) == u * u);
    }
    const auto total = sw::redistribute<dp<3>, sw::replicate>(sw::sum<0>(x));
    CHECK(values_of(total.to_local()) == std::vector<std::int64_t>{(1LL << 40) + 5 + 11 + 2, -3 + 7 - (1LL << 41) + 4});
  });
}

namespace {

// A block of a language model in two bytes: norms, a product, an activation, a residual; its loss.
struct low_block {
  constexpr auto operator()(const auto& x, const auto& w, const auto& g) const {
    const auto h = sw::gelu<sw::gelu_form::tanh>(sw::matmul(sw::layer_norm(x, g, g), w) + g);
    return sw::sum(sw::square(sw::cast<float>(sw::layer_norm(h + sw::scale(x, 0.3), g, g))));
  }
};

template <class Pipeline, class Rank, class... X>
auto run_with(Rank& rank, const X&... x) {
  using program =
      sw::gradient_step<low_block, typename Rank::mesh_type, sw::inputs<sw::input_like<X>...>, sw::wrt<0, 1, 2>, Pipeline>;
  sw::executor<program, Rank> run(rank, sw::executor_checks::poison);
  int k = 0;
  (
      [&](const auto& operand) {
        using element = typename std::remove_cvref_t<decltype(operand)>::element;
        const auto block = operand.to_local();
        std::memcpy(run.template input<element>(k++).data(), block.data.data(), block.data.size_bytes());
      }(x),
      ...);
  run.run({});
  std::vector<float> all;
  for (const float v : values_of(run.template output<float>(0))) all.push_back(v);
  for (int g = 1; g < 4; ++g)
    for (const sw::bf16 v : values_of(run.template output<sw::bf16>(g))) all.push_back(v);
  return all;
}

template <int N>
void check_passes() {
  sw::launch<line<N>>([](auto& rank) {
    sw::eager on(rank);
    using sw::bf16;
    const auto x = sw::dtensor_of<bf16, sw::shape<5, 24>, line<N>, rows<N>>::distribute(on, some<bf16>(120, 1));
    const auto w =
        sw::dtensor_of<bf16, sw::shape<24, 24>, line<N>, sw::on<dp<N>, sw::reduced>>::distribute(on, some<bf16>(576, 2));
    const auto g =
        sw::dtensor_of<bf16, sw::shape<24>, line<N>, sw::on<dp<N>, sw::reduced>>::distribute(on, some<bf16>(24, 3));
    const auto plain = run_with<sw::pipeline<>>(rank, x, w, g);
    CHECK(run_with<sw::pipeline<sw::fuse_kernels>>(rank, x, w, g) == plain);
    CHECK(run_with<sw::pipeline<sw::merge_common, sw::fuse_kernels>>(rank, x, w, g) == plain);
    const auto all = gradients_both_ways<low_block, 0, 1, 2>(rank, x, w, g);
    CHECK(values_of(std::get<0>(all).to_local())[0] == plain[0]);
  });
}

}  // namespace

TEST_CASE("low precision: at once, traced and fused give the same bits") {
  check_passes<1>();
  check_passes<2>();
  check_passes<3>();
}
