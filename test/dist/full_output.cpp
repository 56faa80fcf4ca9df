// SPDX-License-Identifier: Apache-2.0
// full_output: the whole of what a program gives, gathered from uneven, empty and strided blocks, at the size of the run.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <full_output.hpp>
#include <thrown.hpp>

#include <vector>

namespace {

namespace sw = shardwise;
using full_output::mesh, full_output::on_mesh, full_output::program;
using test::mentions, test::on_threads, test::thrown;

TEST_CASE("a whole output is what one rank has, of any mesh, at any size of a run") {
  on_mesh<on_threads, 1, 1>();
  on_mesh<on_threads, 2, 1>();
  on_mesh<on_threads, 3, 1>();
  on_mesh<on_threads, 2, 2>();
  on_mesh<on_threads, 1, 4>();
}

TEST_CASE("a whole output that is none says so") {
  sw::launch<mesh<2, 1>>([](auto& rank) {
    sw::executor<program<on_threads, sw::shape<7, 5>, 2, 1>> run(rank);
    CHECK(mentions(thrown([&] { run.full_output(); }), "has not run yet"));
    run.set_input(0, std::vector<double>(35));
    run.set_input(1, std::vector<double>(3));
    run.run({});
    CHECK(mentions(thrown([&] { run.full_output(9); }), "output"));
    CHECK(mentions(thrown([&] { run.full_output(4); }), "full_output: output 4 is partial on mesh axis 0"));
    CHECK(mentions(thrown([&] { run.full_output(0, 2); }), "full_output: rank 2 is asked for; the mesh has ranks 0..1"));
    CHECK(mentions(thrown([&] { run.full_output(2); }), "full_output: elements of type"));
  });
}

}  // namespace
