// SPDX-License-Identifier: Apache-2.0
// Ranks on devices that hosts join along some axes (rank_link.hpp), with this process's memory in a device's place, the mpi backend in that of
// NCCL, and plain copies to and from the staged blocks: collectives and training steps give the bits of threads, and send as many bytes. How
// ranks that wait for a device end: failing.cpp.
#include <doctest/doctest.h>

#include <cstring>
#include <placed_steps.hpp>
#include <prepared_call.hpp>
#include <shardwise/runtime/cuda/staged_blocks.hpp>
#include <shardwise/runtime/mpi/mpi.hpp>
#include <shardwise/runtime/mpi/rank_link.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "world.hpp"

namespace {

using namespace test;
using namespace test::placed;

template <class... Axes>
using by = sw::by_nccl<Axes...>;
constexpr sw::mpi_options in_time{60, false};

// Where a call of these stands.
std::string place(int, int rank) { return "somewhere, rank " + std::to_string(rank); }

struct staged_collectives {
  template <class T, class Rank>
  static void batch(const sw::runtime::call* c, int n, Rank& rank) {
    if (!rank.link.carries(c->axis)) return sw::mpi::collectives::batch<T>(c, n, rank.in_place_of_nccl);
    std::vector<sw::runtime::call> calls(c, c + n);
    std::int64_t room = 0;
    for (auto& k : calls) {
      k.type[0] = k.type[sw::runtime::result] = sw::dtype_v<T>;
      for (const int of : {0, sw::runtime::result})
        room += sw::passes::align_up(k.l[of].numel() * static_cast<std::int64_t>(sizeof(T)));
    }
    std::vector<std::byte> pinned(static_cast<std::size_t>(room) + 16, std::byte{0xA5});
    const sw::cuda::staged_blocks blocks(calls.data(), n, pinned.data(), room);
    for (const auto& k : blocks.to_host()) std::memcpy(k.host, k.device, k.bytes);
    blocks.run(rank.link, &place);
    for (const auto& k : blocks.to_device()) std::memcpy(k.device, k.host, k.bytes);
    for (std::size_t i = static_cast<std::size_t>(room); i < pinned.size(); ++i) CHECK(pinned[i] == std::byte{0xA5});
    rank.link.check();
  }
#define SHARDWISE_COLLECTIVE(function)                           \
  template <class T, class Rank>                                 \
  static void function(const sw::runtime::call& c, Rank& rank) { \
    batch<T>(&c, 1, rank);                                       \
  }
  SHARDWISE_COLLECTIVE(all_reduce)
  SHARDWISE_COLLECTIVE(reduce_scatter)
  SHARDWISE_COLLECTIVE(all_gather)
  SHARDWISE_COLLECTIVE(all_to_all)
  SHARDWISE_COLLECTIVE(resplit)
  SHARDWISE_COLLECTIVE(exchange_halo)
#undef SHARDWISE_COLLECTIVE
};

template <class Mesh, class By>
struct stand_in {
  using mesh_type = Mesh;
  using collectives = staged_collectives;

  sw::mpi_rank<Mesh> in_place_of_nccl;
  sw::mpi::rank_link<Mesh, By>& link;

  int index() const { return in_place_of_nccl.index(); }
  static constexpr int size() { return Mesh::size; }
  const std::array<int, sw::max_axes>& coordinate() const { return in_place_of_nccl.coordinate(); }
  int coordinate(int axis) const { return in_place_of_nccl.coordinate(axis); }
  static constexpr bool shares_memory() { return Mesh::size == 1; }
  void barrier() { link.barrier(); }
  void agree(std::uint64_t value, const char* what) { link.agree(value, what); }
  template <class F>
  void exchange(const void* mine, const F& f) {
    f([=](int) { return mine; });
  }
  template <class E>
  void combine_disjoint(std::vector<E>& whole) {
    link.combine_disjoint(whole.data(), whole.size() * sizeof(E));
  }
  std::int64_t bytes_written(int axis) const { return in_place_of_nccl.bytes_written(axis) + link.bytes_written(axis); }
  void count_written(int axis, std::int64_t bytes) { in_place_of_nccl.count_written(axis, bytes); }
  void reset_counts() {
    in_place_of_nccl.reset_counts();
    link.reset_counts();
  }
};

// body(rank) on the rank of this process.
template <class Mesh, class By, class Body>
void on_stand_ins(const Body& body, const sw::mpi_options& options = in_time) {
  sw::mpi::run_process<Mesh>(
      [&](sw::mpi::world& w, const sw::mpi::host_place& host) {
        sw::mpi::rank_link<Mesh, By> link(w, host.processes);
        stand_in<Mesh, By> rank{{w, host.processes}, link};
        body(rank);
      },
      options, [](const std::string& text, bool) { FAIL_CHECK(text); });
}
template <class Mesh, class By, class Body, class Same>
void check_equal(const Body& body, const Same& same, const sw::mpi_options& options = in_time) {
  if (world_size() != Mesh::size) return;
  using result = std::invoke_result_t<const Body&, sw::thread_rank<Mesh>&>;
  result want, got;
  sw::launch<Mesh>([&](auto& rank) {
    result mine = body(rank);
    if (rank.index() == world_rank()) want = std::move(mine);
  });
  on_stand_ins<Mesh, By>([&](auto& rank) { got = body(rank); }, options);
  CHECK(same(got, want));
}

// --- collectives ----------------------------------------------------------------------------------------------------------

template <int N>
struct line_axis : sw::axis<N> {};
struct rows_of_grid : sw::axis<2> {};
struct cols_of_grid : sw::axis<2> {};
using grid = sw::mesh<rows_of_grid, cols_of_grid>;
template <int N>
using line = sw::mesh<line_axis<N>>;

template <class Mesh, class By, class T>
void check_collectives(const std::vector<change>& all, bool fast = false) {
  const std::vector<change> cases = communicating<Mesh, T>(all);
  CHECK(cases.size() > 50);
  for (const std::size_t together : {1U, 3U})
    check_equal<Mesh, By>(
        [&](auto& rank) { return run_cases<T>(rank, cases, together, fast); },
        [](const results<T>& a, const results<T>& b) { return same_bits(a.values, b.values) && a.bytes == b.bytes; },
        {60, fast});
}
template <int N>
void check_line() {
  const auto all = changes_of_line(N);
  check_collectives<line<N>, by<>, float>(all);
  check_collectives<line<N>, by<>, double>(all);
  check_collectives<line<N>, by<>, sw::bf16>(all);
  check_collectives<line<N>, by<>, sw::f16>(all);
  check_collectives<line<N>, by<>, std::int32_t>(all);
  check_collectives<line<N>, by<>, std::int64_t>(all);
  check_collectives<line<N>, by<>, double>(all, true);
}

// --- steps ----------------------------------------------------------------------------------------------------------------

using values = std::vector<double>;
void append(values& all, const auto& more) { all.insert(all.end(), std::begin(more), std::end(more)); }

template <class Step, class By>
void check_step() {
  check_equal<typename Step::mesh_type, By>(
      [](auto& rank) {
        sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, sw::executor_checks::poison);
        ex.initialise(3);
        rank.reset_counts();
        train(ex, 1, 3);
        values all{ex.loss()};
        for (int a = 0; a < Step::mesh_type::axes; ++a) all.push_back(static_cast<double>(rank.bytes_written(a)));
        for (const auto& whole : everything(ex)) append(all, whole);
        return all;
      },
      [](const values& a, const values& b) {
        return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
      });
}

}  // namespace

TEST_CASE("staged collectives of 2 hosts equal those of threads") { check_line<2>(); }
TEST_CASE("staged collectives of 3 hosts equal those of threads") { check_line<3>(); }
TEST_CASE("staged collectives along one axis of 2 x 2, or along both") {
  check_collectives<grid, by<cols_of_grid>, float>(changes_of_grid());
  check_collectives<grid, by<rows_of_grid>, double>(changes_of_grid());
  check_collectives<grid, by<>, sw::bf16>(changes_of_grid());
}

TEST_CASE("steps on 1 to 4 ranks whose hosts exchange along some axes, or along none") {
  check_step<adam_step<1, 1>, by<>>();
  check_step<rows2, by<dp<1>>>();
  check_step<rows2, sw::processes::by_nccl_alone>();
  check_step<columns2, by<tp<1>>>();
  check_step<split_step<1, 3, rows<tp<3>, 0>, rows<tp<3>, 1>>, by<>>();
  check_step<both4, by<tp<2>>>();
  check_step<both4, by<dp<2>>>();
  check_step<strided4, by<tp<2>>>();
}

TEST_CASE("elements of all types are moved as they are") {
  if (world_size() != 2) return;
  on_stand_ins<line<2>, by<>>([](auto& rank) {
    const auto gather = [&]<class T>(T own, T other) {
      change x{{3}, {sw::shard_value(0)}, 0, sw::replicate_value()};
      prepared<T> p(line<2>{}, x, rank.coordinate(), rank.index(), true);
      for (auto& v : p.from) v = own;
      staged_collectives::batch<T>(&p.c, 1, rank);
      const T first = rank.index() == 0 ? own : other, second = rank.index() == 0 ? other : own;
      CHECK(p.to == std::vector<T>{first, first, second});
    };
    const int me = rank.index();
    gather(std::int64_t{1} << (40 + me), std::int64_t{1} << (41 - me));
    gather(0.5 + me, 1.5 - me);
  });
}

TEST_CASE("the first rank of each group gives the others its id") {
  const auto check = [](auto groups_by) {
    using By = decltype(groups_by);
    if (world_size() != grid::size) return;
    on_stand_ins<grid, By>([](auto& rank) {
      using groups = sw::processes::nccl_groups<grid, By>;
      const int me = rank.index(), first = groups::rank_of(groups::group_of(me), 0);
      unsigned char id[128]{};
      bool made = false;
      rank.link.of_first_in_group(id, sizeof id, [&](void* to) {
        made = true;
        std::memset(to, 100 + me, sizeof id);
      });
      CHECK(made == (me == first));
      for (const unsigned char b : id) CHECK(b == 100 + first);
    });
  };
  check(by<cols_of_grid>{});
  check(by<rows_of_grid>{});
  check(by<>{});
  check(sw::processes::by_nccl_alone{});
}

TEST_CASE("ranks on devices agree, meet and combine bytes") {
  if (world_size() != 3) return;
  on_stand_ins<line<3>, by<>>([](auto& rank) {
    std::vector<std::uint16_t> v(3, 0);
    v[static_cast<std::size_t>(rank.index())] = static_cast<std::uint16_t>(500 + rank.index());
    rank.barrier();
    rank.agree(7, "the seed");
    rank.combine_disjoint(v);
    CHECK(v == std::vector<std::uint16_t>{500, 501, 502});
  });
}
