// SPDX-License-Identifier: Apache-2.0
// Blocks of collectives between the hosts of GPUs: each has bytes of its own in the memory that is taken for a program, which is as large as
// its largest collective or batch on any rank, and not larger; what goes in and out, in which order, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <models.hpp>
#include <placed_steps.hpp>
#include <settled.hpp>
#include <shardwise/runtime/cuda/staged_blocks.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test::placed;
using sw::cuda::staged_blocks;

// A link that writes down what it is asked for, and moves every operand's first byte to the result.
struct written_link final : sw::processes::host_link {
  std::vector<std::string> seen;
  sw::threads::standing where;

  written_link() : host_link(0b10) {}
  void barrier() override {}
  void agree(std::uint64_t, const char*) override {}
  void combine_disjoint(void*, std::size_t) override {}
  void collective(const sw::runtime::call* c, int n, place_text text) noexcept override {
    std::string all;
    for (int k = 0; k < n; ++k) {
      all += std::to_string(c[k].node) + (c[k].workspace ? " with scratch, " : ", ");
      *static_cast<std::byte*>(c[k].p[sw::runtime::result]) = *static_cast<const std::byte*>(c[k].p[0]);
    }
    seen.push_back(all + text(c->node, 3));
  }
  void check() override {}
  void fail(std::exception_ptr) override {}
  void queue(int, std::int64_t) override {}
  sw::threads::standing& place() override { return where; }
  std::int64_t bytes_written(int) const override { return 0; }
  void reset_counts() override {}
};

template <class Step>
void check_room() {
  std::vector<std::byte> memory;
  for (unsigned axes = 0; axes < 1U << Step::mesh_type::axes; ++axes) {
    const std::int64_t room = staged_blocks::bytes_of(Step::program, axes);
    CAPTURE(axes);
    memory.resize(static_cast<std::size_t>(room) + 1);
    std::int64_t most = 0;
    int batches = 0, overlapping = 0;
    for (int rank = 0; rank < Step::mesh_type::size; ++rank) {
      for (const sw::runtime::call& c : test::calls_of<Step>(rank)) {
        if (!sw::communicates(c.kind) || c.members == 0 || (axes >> c.axis & 1U) == 0) continue;
        batches += c.members > 1;
        const staged_blocks blocks(&c, c.members, memory.data(), room);
        std::vector<staged_blocks::copied> all = blocks.to_host();
        all.insert(all.end(), blocks.to_device().begin(), blocks.to_device().end());
        for (std::size_t i = 0; i < all.size(); ++i) {
          most = std::max<std::int64_t>(most, sw::passes::align_up(all[i].host + all[i].bytes - memory.data()));
          for (std::size_t k = 0; k < i; ++k)
            overlapping += all[i].host < all[k].host + all[k].bytes && all[k].host < all[i].host + all[i].bytes;
        }
      }
    }
    CHECK(overlapping == 0);
    CHECK(most == room);
    if (axes == 0) CHECK(room == 0);
    if (Step::mesh_type::axes == 1 && axes == 1) CHECK(batches > 0);  // of the program that has them
  }
}

struct dp_task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<8, 12>, sw::on<dp<3>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x) - x;
    return sw::sum(y * y);
  }
};
// Weight and bias of a layer are gathered in one batch, and their gradients are summed in one.
using batched = sw::train_step<test::relu_stack<4, 12>::template model, dp_task,
                               sw::plan<sw::fully_shard<dp<3>>, sw::at<"mod.*", sw::fully_shard<dp<3>>>>, sw::mesh<dp<3>>,
                               sw::sgd<>, sw::pipeline<>>;

sw::runtime::call call_of(int node, int rows, std::byte* from, std::byte* to) {
  sw::runtime::call c;
  c.kind = sw::transition::all_reduce;
  c.node = node;
  c.axis = 1;
  c.workspace = from;
  c.type[0] = c.type[sw::runtime::result] = sw::dtype::f32;
  for (const int of : {0, sw::runtime::result}) {
    c.l[of].rank = 2;
    c.l[of].ext[0] = rows;
    c.l[of].ext[1] = 5;
    c.l[of].make_dense();
  }
  c.p[0] = from;
  c.p[sw::runtime::result] = to;
  return c;
}

}  // namespace

TEST_CASE("staged blocks: room for the largest collective of a program, on 1 to 8 ranks") {
  check_room<adam_step<1, 1>>();
  check_room<rows2>();
  check_room<columns2>();
  check_room<split_step<1, 3, rows<tp<3>, 0>, rows<tp<3>, 1>>>();
  check_room<both4>();
  check_room<strided4>();
  check_room<strided8>();
}
TEST_CASE("staged blocks: room for the largest batch of a program") { check_room<batched>(); }

TEST_CASE("staged blocks: operands go in, the link has them all at once, results come out") {
  std::vector<std::byte> device(4, std::byte{7}), memory(1024);
  device[2] = std::byte{9};
  const sw::runtime::call both[] = {call_of(4, 3, &device[0], &device[1]), call_of(6, 2, &device[2], &device[3])};
  const staged_blocks b(both, 2, memory.data(), 1024);
  REQUIRE(b.to_host().size() == 2);
  REQUIRE(b.to_device().size() == 2);
  for (const std::size_t k : {0U, 1U}) {
    CHECK(b.to_host()[k].device == &device[2 * k]);
    CHECK(b.to_device()[k].device == &device[2 * k + 1]);
    CHECK(b.to_host()[k].bytes == (k == 0 ? 60 : 40));
    *b.to_host()[k].host = device[2 * k];
  }
  written_link link;
  CHECK((link.carries(1) && !link.carries(0)));
  b.run(link, [](int node, int rank) { return "node " + std::to_string(node) + " of rank " + std::to_string(rank); });
  CHECK(link.seen == std::vector<std::string>{"4, 6, node 4 of rank 3"});
  CHECK(*b.to_device()[0].host == std::byte{7});
  CHECK(*b.to_device()[1].host == std::byte{9});
  CHECK(staged_blocks().empty());
}

TEST_CASE("staged blocks: an empty block is copied nowhere; a block in place has room twice") {
  std::vector<std::byte> device(1), memory(256);
  const sw::runtime::call none = call_of(1, 0, device.data(), device.data()),
                          own = call_of(2, 3, device.data(), device.data());
  const staged_blocks nothing(&none, 1, memory.data(), 256), in_place(&own, 1, memory.data(), 256);
  CHECK((nothing.to_host().empty() && nothing.to_device().empty() && !nothing.empty()));
  CHECK(in_place.to_host()[0].host != in_place.to_device()[0].host);
}

TEST_CASE("staged blocks: more than was planned, and strided ones, are refused") {
  std::vector<std::byte> memory(256);
  sw::runtime::call c = call_of(1, 3, memory.data(), memory.data());
  const auto said = [&](std::int64_t room) -> std::string {
    try {
      const staged_blocks b(&c, 1, memory.data(), room);
      return "taken";
    } catch (const std::exception& e) {
      return e.what();
    }
  };
  const std::int64_t need = 2 * sw::passes::align_up(60);
  CHECK(said(need) == "taken");
  CHECK(said(need - 1) == "shardwise: a collective between hosts takes " + std::to_string(need) +
                              " bytes of pinned memory, more than the " + std::to_string(need - 1) +
                              " of the largest that was planned");
  c.l[0].str[0] = 6;
  CHECK(said(need) == "shardwise: a collective got a strided block; make it contiguous before it is redistributed");
}
