// SPDX-License-Identifier: Apache-2.0
// What a group's batch of collectives moves is what vocabulary/flat_group.hpp says of one buffer, but for the padding: on every
// rank, even or not, beside tensor parallelism and over two axes.
#include <doctest/doctest.h>

#include <uneven_net.hpp>

namespace {

using namespace test;
using namespace test::fsdp;
using sw::transition;

// Calls f(first, end) for every batch of one kind.
template <class Graph, class F>
void each_batch(const Graph& g, transition kind, F&& f) {
  for (int i = 0; i < g.node_count; i = sw::batch_end(g, i))
    if (sw::detail::transition_at(g, i) == kind) f(i, sw::batch_end(g, i));
}

// Law: for a group of p ranks with flat part P, whose rank r has q padding, a gather's members take P - q elements of rank r and
// send them to p - 1 others; a scatter's take all rows, p P less all padding, and leave P - q.
template <class Step>
int check_flat(int least) {
  constexpr const auto& g = Step::program;
  int batches = 0;
  for (int rank = 0; rank < Step::mesh_type::size; ++rank) {
    const auto at = Step::mesh_type::coordinate(rank);
    const int* const c = at.data();
    const auto check = [&](transition kind) {
      each_batch(g, kind, [&](int begin, int end) {
        const auto axis = static_cast<std::size_t>(sw::attributes_of<sw::redistribute_attributes>(g.nodes[begin].a).axis);
        const bool gathers = kind == transition::all_gather;
        sw::flat_group<64> flat(Step::mesh_type::sizes[axis]);
        std::int64_t taken = 0, left = 0, sent = 0;
        for (int i = begin; i < end; ++i) {
          const sw::spec &from = g.spec_of(g.nodes[i].in[0]), &to = g.spec_of(i);
          flat.add(gathers ? to : from, c);
          taken += local_numel(from, c);
          left += local_numel(to, c);
          sent += bytes_sent(from, to, static_cast<int>(axis), c);
        }
        std::int64_t padding = 0;
        for (int r = 0; r < flat.ranks; ++r) padding += flat.padding(r);
        const std::int64_t own = flat.part - flat.padding(c[axis]), all = flat.gather_output() - padding;
        CHECK((gathers ? taken : left) == own);
        CHECK((gathers ? left : taken) == all);
        CHECK(sent == 8 * (gathers ? (flat.ranks - 1) * own : all - own));
        if (c[axis] == 0) CHECK(own == flat.gather_input());  // the first rank has no padding: what a program counts
        batches += end - begin >= least ? 1 : 0;
      });
    };
    check(transition::all_gather);
    check(transition::reduce_scatter);
  }
  return batches / Step::mesh_type::size;
}

template <class Mesh, class Axes, class... Entries>
using step = sw::train_step<uneven::net, uneven::fit<Axes>, sw::plan<Entries...>, Mesh, sw::sgd<>, sw::pipeline<>, double>;
template <int N>
using one_axis = step<sw::mesh<dp<N>>, batch_axes<dp<N>>, sw::fully_shard<dp<N>>, sw::at<"up", sw::fully_shard<dp<N>>>>;
template <int O, int I>
using inner = sw::fully_shard<node<O>, sw::shard_over<local<I>>, sw::reshard_after_forward<I>>;
template <int O, int I>
using two_axes = step<sw::mesh<node<O>, local<I>>, batch_axes<node<O>, local<I>>, inner<O, I>, sw::at<"up", inner<O, I>>>;

TEST_CASE("a group's batches move what its flat buffers would, without padding") {
  // two groups each way; the layer's weight, which is read again, is gathered by itself
  CHECK(check_flat<one_axis<2>>(2) == 4);
  CHECK(check_flat<one_axis<3>>(2) == 4);
  CHECK(check_flat<one_axis<4>>(2) == 4);
  CHECK(check_flat<one_axis<8>>(2) == 4);
}
TEST_CASE("a group's batches over two axes, and beside tensor parallelism") {
  CHECK(check_flat<two_axes<2, 2>>(2) == 9);
  CHECK(check_flat<two_axes<2, 3>>(2) == 9);
  using mesh = sw::mesh<dp<3>, tp<2>>;
  using beside = step<mesh, batch_axes<dp<3>>, sw::fully_shard<dp<3>>, sw::at<"up", sw::colwise<tp<2>>>,
                      sw::at<"down", sw::rowwise<tp<2>>>>;
  CHECK(check_flat<beside>(2) == 2);
}

}  // namespace
