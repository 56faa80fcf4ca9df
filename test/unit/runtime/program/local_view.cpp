// SPDX-License-Identifier: Apache-2.0
// local_mdspan: a block under its indices, strides as stored; what may be written through it and what may not.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct rows : sw::axis<N> {};
struct cols : sw::axis<2> {};
template <int N>
using mesh = sw::mesh<rows<N>, cols>;
template <int N, class Shape, class... P>
using tensor = sw::dtensor_of<double, Shape, mesh<N>, P...>;

// Extents, strides, every element by every spelling, of any view with mdspan's interface.
template <std::size_t Rank, class View, class Block>
void check_view(const View& v, const Block& block) {
  static_assert(View::rank() == Rank && View::rank_dynamic() == Rank);
  static_assert(std::is_same_v<typename View::index_type, std::int64_t>);
  REQUIRE(block.layout.rank == static_cast<int>(Rank));
  CHECK(v.data_handle() == block.data.data());
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < Rank; ++d) {
    CHECK(v.extent(d) == block.layout.ext[d]);
    CHECK(v.extents().extent(d) == block.layout.ext[d]);
    if (block.layout.numel() > 0) CHECK(v.stride(d) == block.layout.str[d]);
    count *= static_cast<std::uint64_t>(v.extent(d));
  }
  CHECK(v.size() == count);
  CHECK(v.empty() == (count == 0));
  CHECK(static_cast<std::size_t>(v.mapping().required_span_size()) == block.data.size());
  std::array<std::int64_t, Rank> at{};
  bool equal = true;
  for (std::int64_t i = 0; i < block.layout.numel(); ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < Rank; ++d) offset += at[d] * block.layout.str[d];
    equal = equal && &v[at] == &block.data[static_cast<std::size_t>(offset)];
    equal = equal && std::apply([&](auto... k) { return v.mapping()(k...); }, at) == offset;
#if !defined(__cpp_lib_mdspan)
    equal = equal && &std::apply([&](auto... k) -> const double& { return v(k...); }, at) == &v[at];
#endif
    for (int d = static_cast<int>(Rank) - 1; d >= 0; --d) {
      if (++at[static_cast<std::size_t>(d)] < v.extent(static_cast<std::size_t>(d))) break;
      at[static_cast<std::size_t>(d)] = 0;
    }
  }
  CHECK(equal);
}

template <int N>
void check_ranks() {
  sw::launch<mesh<N>>([](auto& rank) {
    sw::eager on(rank);
    std::vector<double> all(7 * 6 * 4);
    std::iota(all.begin(), all.end(), 0.0);
    // 7 rows: uneven for most N, empty at the end for 4 and 8
    const auto x =
        tensor<N, sw::shape<7, 6, 4>, sw::on<rows<N>, sw::shard<0>>, sw::on<cols, sw::shard<1>>>::distribute(on, all);
    check_view<3>(x.local_mdspan(), x.to_local());
    const auto turned = sw::permute<2, 0, 1>(x);
    check_view<3>(turned.local_mdspan(), turned.to_local());
    const auto cut = sw::slice<2, 1, 2>(x);
    check_view<3>(cut.local_mdspan(), cut.to_local());
    check_view<3>(cut.to_local().template local_mdspan<3>(), cut.to_local());
    const auto matrix = sw::slice<1, 1, 3>(tensor<N, sw::shape<7, 6>, sw::on<rows<N>, sw::shard<0>>>::ones(on));
    check_view<2>(matrix.local_mdspan(), matrix.to_local());
    const auto total = sw::sum(x);
    check_view<0>(total.local_mdspan(), total.to_local());
  });
}

}  // namespace

TEST_CASE("local_mdspan: extents, strides and elements of blocks and views, uneven and empty") {
  check_ranks<1>();
  check_ranks<2>();
  check_ranks<3>();
  check_ranks<4>();
  check_ranks<8>();
}

TEST_CASE("local_mdspan: a tensor that is not const is written through it, and views see it") {
  sw::launch_fake<mesh<2>>(2, [](auto& rank) {
    sw::eager on(rank);
    auto x = tensor<2, sw::shape<5, 4>, sw::on<rows<2>, sw::shard<0>>>::zeros(on);
    const auto& same = x;
    using writable = decltype(x.local_mdspan());
    using readable = decltype(same.local_mdspan());
    static_assert(std::is_same_v<typename writable::element_type, double>);
    static_assert(std::is_same_v<typename readable::element_type, const double>);
    static_assert(std::is_convertible_v<writable, readable> && !std::is_convertible_v<readable, writable>);
    static_assert(std::is_same_v<decltype(x.to_local().template local_mdspan<2>()), sw::local_view<const double, 2>>);
    const auto turned = sw::permute<1, 0>(x);
    const auto v = x.local_mdspan();
    CHECK(v.extent(0) == 2);  // rows 3 and 4 of 5
    v[std::array{1, 3}] = 2.5;
    CHECK(turned.to_local()(3, 1) == 2.5);
    const readable r = v;
    CHECK(r[std::array{1, 3}] == 2.5);
    CHECK(r.data_handle() == v.data_handle());
    CHECK(r.stride(0) == 4);
    CHECK(v.is_exhaustive());
    CHECK(!sw::slice<1, 0, 2>(same).to_local().template local_mdspan<2>().is_exhaustive());
  });
}

TEST_CASE("local_mdspan: another number of dims than the block has is refused") {
  sw::launch_fake<mesh<2>>(0, [](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<2, sw::shape<5, 4>>::zeros(on);
    CHECK_THROWS_WITH(x.to_local().template local_mdspan<3>(),
                      doctest::Contains("local_mdspan: 3 dims are asked for; the tensor has 2"));
  });
}
