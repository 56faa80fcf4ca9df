// SPDX-License-Identifier: Apache-2.0
// Eager tensors made on their ranks: values that do not depend on placement, checks across ranks, data of rank 0 alone.
#include <shardwise/io/print.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <thrown.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using test::mentions, test::thrown;

template <int N>
struct rows : sw::axis<N> {};
template <int N>
struct cols : sw::axis<N> {};
template <int M, int N>
using grid = sw::mesh<rows<M>, cols<N>>;
using R = sw::replicate;
using U = sw::reduced;
template <int D>
using S = sw::shard<D>;
template <sw::reduction Op = sw::reduction::sum>
using P = sw::partial<Op>;

template <class T>
std::vector<T> whole(const auto& x) {
  const auto full = x.full_tensor();
  const auto d = full.to_local().data;
  return {d.begin(), d.end()};
}

using shape = sw::shape<7, 5>;
using numbers = std::vector<double>;

// The placed tensors are what the plain ones are.
template <int M, int N, class PR, class PC>
void check_values(const numbers& uniform, const numbers& normal, numbers* keep_uniform = nullptr,
                  numbers* keep_normal = nullptr) {
  using sw::on;
  sw::launch<grid<M, N>>([&](auto& rank) {
    sw::eager run(rank);
    const auto u = sw::rand<double, shape, on<rows<M>, PR>, on<cols<N>, PC>>(run, 11);
    const auto n = sw::randn<double, shape, on<rows<M>, PR>, on<cols<N>, PC>>(run, 11);
    const numbers wu = whole<double>(u), wn = whole<double>(n);
    if (keep_uniform && rank.index() == 0) {
      *keep_uniform = wu;
      *keep_normal = wn;
    } else {
      CHECK(wu == uniform);
      CHECK(wn == normal);
    }
    CHECK(whole<double>(sw::zeros<double, shape, on<rows<M>, PR>, on<cols<N>, PC>>(run)) == numbers(35, 0.0));
    CHECK(whole<double>(sw::ones<double, shape, on<rows<M>, PR>, on<cols<N>, PC>>(run)) == numbers(35, 1.0));
    CHECK(whole<double>(sw::full<double, shape, on<rows<M>, PR>, on<cols<N>, PC>>(run, 2.5)) == numbers(35, 2.5));
    const auto e = sw::empty<double, shape, on<rows<M>, PR>, on<cols<N>, PC>>(run);
    static_assert(std::is_same_v<decltype(e), const std::remove_const_t<decltype(u)>>);
    CHECK(e.to_local().layout.numel() == u.to_local().layout.numel());
    // from rank 0's data; the others give nothing
    numbers data(35);
    for (std::size_t i = 0; i < 35; ++i) data[i] = static_cast<double>(i % 9) - 4;
    data[3] = -0.0;
    data[8] = std::numeric_limits<double>::quiet_NaN();
    data[30] = 1e-310;  // a subnormal
    using type = std::remove_const_t<decltype(u)>;
    const auto d = type::distribute_from_first(run, rank.index() == 0 ? data : numbers{});
    const auto same = type::distribute(run, data);
    CHECK(d.to_local().data.size() == same.to_local().data.size());
    if constexpr (PR::is_partial() || PC::is_partial()) {
      for (std::size_t i = 0; i < same.to_local().data.size(); ++i)
        CHECK((d.to_local().data[i] == same.to_local().data[i] || std::isnan(same.to_local().data[i])));
    } else {
      CHECK(std::memcmp(d.to_local().data.data(), same.to_local().data.data(), same.to_local().data.size_bytes()) == 0);
    }
    // what is placed so already is itself
    CHECK(type::distribute(run, d).shares_storage_with(d));
  });
}

}  // namespace

TEST_CASE("create: values are functions of the element, on any mesh and placement") {
  numbers u, n;
  check_values<1, 1, R, R>({}, {}, &u, &n);
  double least = 1, most = 0, mean = 0, square = 0;
  for (std::size_t i = 0; i < 35; ++i) {
    least = std::fmin(least, u[i]);
    most = std::fmax(most, u[i]);
    mean += n[i] / 35;
    square += n[i] * n[i] / 35;
  }
  CHECK(least >= 0);
  CHECK(least < 0.2);
  CHECK(most < 1);
  CHECK(most > 0.8);
  CHECK(std::fabs(mean) < 0.6);
  CHECK(std::fabs(square - 1) < 0.8);
  check_values<2, 1, S<0>, R>(u, n);
  check_values<1, 3, R, S<1>>(u, n);
  check_values<2, 2, S<0>, S<0>>(u, n);
  check_values<2, 2, S<1>, U>(u, n);
  check_values<4, 2, S<0>, P<>>(u, n);
  check_values<2, 2, P<>, P<sw::reduction::avg>>(u, n);
  check_values<8, 1, S<0>, R>(u, n);  // the last rank's block is empty
  check_values<3, 1, P<sw::reduction::product>, R>(u, n);
  check_values<2, 2, R, R>(u, n);  // axes that split nothing get the whole from rank 0, too
  check_values<2, 3, S<0>, R>(u, n);
}

TEST_CASE("create: blocks that must be equal are compared when asked for") {
  using sw::on;
  using mesh = grid<2, 3>;
  using type = sw::dtensor_of<float, sw::shape<4, 3>, mesh, on<rows<2>, S<0>>, on<cols<3>, R>>;
  const auto block_of = [](int row, int odd, int rank) {
    std::vector<float> v(6, static_cast<float>(row + 1));
    if (rank == odd) v[5] = -v[5];
    return v;
  };
  sw::launch<mesh>([&](auto& rank) {
    sw::eager run(rank);
    const auto x = type::from_local(run, block_of(rank.coordinate(0), -1, rank.index()), sw::local_check::replicas);
    CHECK(x.to_local()(1, 2) == static_cast<float>(rank.coordinate(0) + 1));
    // equal as far as arithmetic goes, and not checked unless asked for
    type::from_local(run, block_of(rank.coordinate(0), 4, rank.index()));
  });
  const std::string one = thrown([&] {
    sw::launch<mesh>([&](auto& rank) {
      sw::eager run(rank);
      type::from_local(run, block_of(rank.coordinate(0), 4, rank.index()), sw::local_check::replicas);
    });
  });
  CHECK(mentions(one, "axis 1 of the mesh does not split the tensor, but the blocks of ranks 4 differ from that of rank 3"));
  const std::string first = thrown([&] {
    sw::launch<mesh>([&](auto& rank) {
      sw::eager run(rank);
      type::from_local(run, block_of(rank.coordinate(0), 0, rank.index()), sw::local_check::replicas);
    });
  });
  CHECK(mentions(first, "the blocks of ranks 1, 2 differ from that of rank 0"));
  // on a partial or sharded axis blocks may differ
  using summed = sw::dtensor_of<float, sw::shape<4, 3>, mesh, on<rows<2>, S<0>>, on<cols<3>, P<>>>;
  sw::launch<mesh>([&](auto& rank) {
    sw::eager run(rank);
    summed::from_local(run, block_of(rank.coordinate(0), 4, rank.index()), sw::local_check::replicas);
  });
}

TEST_CASE("create: data of another size on the first rank is refused") {
  using mesh = grid<2, 1>;
  CHECK(mentions(thrown([] {
                   sw::launch<mesh>([](auto& rank) {
                     sw::eager run(rank);
                     sw::dtensor_of<float, shape, mesh, sw::on<rows<2>, S<0>>>::distribute_from_first(run,
                                                                                                      std::vector<float>(4));
                   });
                 }),
                 "distribute_from_first: 4 elements are given; the whole tensor has 35"));
}

TEST_CASE("print: type, coordinate and block of a tensor") {
  using sw::on;
  using mesh = grid<2, 2>;
  sw::launch_fake<mesh>(2, [](auto& rank) {
    sw::eager run(rank);
    numbers v(15);
    std::iota(v.begin(), v.end(), 0.5);
    using type = sw::dtensor_of<double, sw::shape<5, 3>, mesh, on<rows<2>, S<0>>, on<cols<2>, U>>;
    const auto x = type::distribute(run, v);
    CHECK(sw::to_string(x) ==
          "dtensor<double, (5, 3), mesh<rows<2>=2, cols<2>=2>, [shard<0>, reduced]>\n"
          "rank 2 at (1, 0), block (2, 3) from (3, 0)\n"
          "[[9.5, 10.5, 11.5],\n [12.5, 13.5, 14.5]]");
    std::ostringstream out;
    out << sw::permute<1, 0>(x);
    CHECK(out.str() ==
          "dtensor<double, (3, 5), mesh<rows<2>=2, cols<2>=2>, [shard<1>, reduced]>\n"
          "rank 2 at (1, 0), block (3, 2) from (0, 3)\n"
          "[[9.5, 12.5],\n [10.5, 13.5],\n [11.5, 14.5]]");
    CHECK(sw::to_string(decltype(sw::permute<1, 0>(x)){}) ==
          "dtensor<double, (3, 5), mesh<rows<2>=2, cols<2>=2>, [shard<1>, reduced]> without a value");
    const auto ids = sw::full<std::int32_t, sw::shape<2000>, on<rows<2>, R>>(run, 7);
    CHECK(mentions(sw::to_string(ids), "[7, 7, 7, ..., 7, 7, 7]"));
    CHECK(mentions(sw::to_string(sw::sum(x)), "block () from ()\n72"));
    CHECK(sw::axis_names<mesh>() == std::vector<std::string>{"rows<2>", "cols<2>"});
    CHECK(sw::mesh_text<mesh>() == "mesh<rows<2>=2, cols<2>=2>");
    CHECK(sw::mesh_text<sw::mesh<rows<7>>>() == "mesh<rows<7>=7>");
    CHECK(sw::mesh_text<sw::mesh<sw::on_cuda, rows<2>, cols<3>>>() == "cuda mesh<rows<2>=2, cols<3>=3>");
  });
  sw::launch_fake<grid<8, 1>>(7, [](auto& rank) {
    sw::eager run(rank);
    CHECK(mentions(sw::to_string(sw::ones<float, sw::shape<5>, on<rows<8>, S<0>>>(run)), "block (0) from (5)\nempty"));
  });
}
