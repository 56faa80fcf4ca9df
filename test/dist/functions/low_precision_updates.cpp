// SPDX-License-Identifier: Apache-2.0
// Elements of two bytes that are written in place, drawn and made of nothing; sums of their squares; eagerly and traced.
#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <shardwise/pass/fuse/fuse.hpp>

namespace {

using namespace test;
using sw::bf16;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using rows = sw::on<dp, sw::shard<0>>;
template <class T, class Shape>
using matrix = sw::dtensor_of<T, Shape, mesh, rows>;

std::vector<float> some(std::int64_t n) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<float>(i % 23) / 8 - 1.25F);
  return v;
}

// A copy that is written in place, partly: x[:, 1:3] += y, then all of it is scaled.
struct written {
  constexpr auto operator()(const auto& x, const auto& y) const {
    const auto z = sw::scale(x, 1);
    const auto part = sw::slice<1, 1, 2>(z);
    sw::add_(part, y);
    return sw::scale(z, 0.5);
  }
};

struct squares {
  static constexpr auto of(const auto& x) {
    return sw::detail::apply<sw::op_code::sumsq, sw::attributes<sw::sum_attributes>(3)>(0, x);
  }
  constexpr auto operator()(const auto& x, const auto& y) const { return of(x) + of(y); }
};

}  // namespace

TEST_CASE("low precision: views are written in place, at once and traced") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::cast<bf16>(matrix<float, sw::shape<3, 4>>::distribute(on, some(12)));
    const auto y = sw::cast<bf16>(matrix<float, sw::shape<3, 2>>::distribute(on, some(6)));
    const auto z = std::get<0>(both_ways<written>(rank, x, y));
    const auto got = values_of(z.to_local());
    const auto a = values_of(x.to_local());
    const auto b = values_of(y.to_local());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t c = i % 4;
      const bf16 sum = c == 1 || c == 2 ? a[i] + b[i / 4 * 2 + c - 1] : a[i];
      CHECK(got[i].bits == bf16(0.5F * static_cast<float>(sum)).bits);
    }
  });
}

TEST_CASE("low precision: an optimizer's kernel writes what it updates") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::cast<bf16>(matrix<float, sw::shape<3, 4>>::distribute(on, some(12)));
    const auto y = sw::cast<bf16>(matrix<float, sw::shape<3, 4>>::distribute(on, std::vector<float>(12, 0.5F)));
    sw::copy_(x, y);
    for (const bf16 v : values_of(x.to_local())) CHECK(static_cast<float>(v) == 0.5F);
    sw::mul_(x, y);
    for (const bf16 v : values_of(x.to_local())) CHECK(static_cast<float>(v) == 0.25F);
  });
}

TEST_CASE("low precision: sums of squares are floats, fused with what follows or not") {
  sw::launch<mesh>([](auto& rank) {
    using run_type = std::remove_cvref_t<decltype(rank)>;
    sw::eager on(rank);
    const auto x = sw::cast<bf16>(sw::dtensor_of<float, sw::shape<3, 6>, mesh>::distribute(on, some(18)));
    const auto y = sw::scale(x, 0.75);
    using type = std::remove_cvref_t<decltype(x)>;
    const auto at_once = std::get<0>(both_ways<squares>(rank, x, y));
    static_assert(std::remove_cvref_t<decltype(at_once)>::sp.type == sw::dtype::f32);
    using fused = sw::function_step<squares, mesh, sw::inputs<sw::input_like<type>, sw::input_like<type>>,
                                    sw::pipeline<sw::fuse_kernels>>;
    sw::executor<fused, run_type> run(rank);
    int k = 0;
    for (const auto& block : {x.to_local(), y.to_local()})
      std::memcpy(run.template input<bf16>(k++).data(), block.data.data(), block.data.size_bytes());
    run.run({});
    CHECK(values_of(run.output(0)) == values_of(at_once.to_local()));
  });
}

TEST_CASE("low precision: draws stay below 1; numbers and positions are rounded") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    using wide = sw::dtensor_of<bf16, sw::shape<64, 64>, mesh, rows>;
    const auto all = sw::rand_like(wide::zeros(on));
    float largest = 0;
    for (const bf16 v : values_of(all.to_local())) largest = std::max(largest, static_cast<float>(v));
    CHECK(largest < 1);
    CHECK(largest > 0.9F);
    for (const bf16 v : values_of(wide::rand(on, 7).to_local())) CHECK(static_cast<float>(v) < 1);
    for (const bf16 v : values_of(wide::full(on, 1.0 / 3).to_local())) CHECK(v.bits == bf16(1.0F / 3).bits);
  });
}
