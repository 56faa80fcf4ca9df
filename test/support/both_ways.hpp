// SPDX-License-Identifier: Apache-2.0
// Runs a function of tensors at once and as a program: the results must be the same bits. And a program's collectives.
#pragma once

#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace test {

namespace sw = shardwise;

// What PyTorch runs on its fake process group, here on rank threads, and on each rank of the mesh alone.
template <class Mesh, class F>
void with_and_without_peers(F&& body) {
  sw::launch<Mesh>(body);
  for (int r = 0; r < Mesh::size; ++r) sw::launch_fake<Mesh>(r, body);
}
// How often each of its ranks runs the body.
inline constexpr int ways = 2;

// Whose block this rank finds when it asks for that of rank r: alone, its own.
template <class Mesh>
int found_at(const sw::thread_rank<Mesh>&, int r) {
  return r;
}
template <class Mesh>
int found_at(const sw::fake_rank<Mesh>& rank, int) {
  return rank.index();
}

// A program's collectives in order.
struct collective_list {
  int count = 0;
  sw::transition kind[16]{};

  constexpr bool operator==(const collective_list&) const = default;
};
template <class Program>
constexpr collective_list collectives_of() {
  collective_list r;
  const auto g = Program::program;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    if (n.op != sw::op_code::redistribute) continue;
    const int a = static_cast<int>(n.a.v[0]);
    const sw::spec& from = g.spec_of(n.in[0]);
    const sw::transition t = sw::transition_of(from.place[a], g.spec_of(i).place[a], from.axis_size[a]);
    if (sw::communicates(t)) r.kind[r.count++] = t;
  }
  return r;
}
template <class... T>
constexpr collective_list in_order(T... kinds) {
  return {static_cast<int>(sizeof...(T)), {kinds...}};
}

template <class Program>
constexpr int count_of(sw::op_code op) {
  int n = 0;
  const auto g = Program::program;
  for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == op ? 1 : 0;
  return n;
}

// What a rank holds of a tensor, row-major.
template <class T>
std::vector<T> values_of(const sw::local_block<T>& b) {
  std::vector<T> v;
  std::int64_t at[sw::max_rank]{};
  for (std::int64_t i = 0; i < b.layout.numel(); ++i) {
    std::int64_t offset = 0;
    for (int d = 0; d < b.layout.rank; ++d) offset += at[d] * b.layout.str[d];
    v.push_back(b.data[static_cast<std::size_t>(offset)]);
    for (int d = b.layout.rank - 1; d >= 0 && ++at[d] == b.layout.ext[d]; --d) at[d] = 0;
  }
  return v;
}

template <class T>
bool same_bits(const sw::local_block<T>& a, const sw::local_block<T>& b) {
  bool same = a.data.size() == b.data.size() && a.layout.rank == b.layout.rank;
  for (int d = 0; same && d < a.layout.rank; ++d)
    same =
        a.layout.ext[d] == b.layout.ext[d] && a.layout.str[d] == b.layout.str[d] && a.layout.origin[d] == b.layout.origin[d];
  return same && std::memcmp(a.data.data(), b.data.data(), a.data.size_bytes()) == 0;
}

// The program's outputs on the operands' blocks must be `results`, on this rank; and it must send `bytes` of them.
template <class Program, class Rank, class Results, class... X>
void check_program(Rank& rank, const Results& results, const X&... x) {
  static_assert(!sw::verify(Program::program), "every node is what its rule gives");
  static_assert(Program::program.output_count == static_cast<int>(std::tuple_size_v<Results>));
  sw::executor<Program, Rank> program(rank, sw::executor_checks::poison);
  for (int round = 0; round < 2; ++round) {  // a second run starts from poisoned storage
    int k = 0;
    (
        [&](const auto& operand) {
          using element = typename std::remove_cvref_t<decltype(operand)>::element;
          const auto block = operand.to_local();
          const auto to = program.template input<element>(k++);
          REQUIRE(to.size() == block.data.size());
          std::memcpy(to.data(), block.data.data(), block.data.size_bytes());
        }(x),
        ...);
    rank.reset_counts();
    program.run({});
    for (int a = 0; a < Rank::mesh_type::axes; ++a) {
      const auto c = rank.coordinate();
      CHECK(rank.bytes_written(a) == sw::passes::sent_bytes(Program::program, Program::traffic, a, c.data()));
    }
    std::apply(
        [&](const auto&... r) {
          int output = 0;
          (
              [&] {
                using type = std::remove_cvref_t<decltype(r)>;
                const int id = Program::program.outputs[output];
                CHECK(Program::program.spec_of(id) == type::sp);
                CHECK(same_bits(program.template output<typename type::element>(output++), r.to_local()));
              }(),
              ...);
        },
        results);
  }
}

template <class F, class... X>
using function_of =
    sw::function_step<F, typename std::tuple_element_t<0, std::tuple<X...>>::mesh_type, sw::inputs<sw::input_like<X>...>>;
template <class F, class Wrt, class... X>
using gradient_of = sw::gradient_step<F, typename std::tuple_element_t<0, std::tuple<X...>>::mesh_type,
                                      sw::inputs<sw::input_like<X>...>, Wrt>;

// F of eager tensors, checked against the program of F. The results as a tuple.
template <class F, class Rank, class... X>
auto both_ways(Rank& rank, const X&... x) {
  const auto results = sw::detail::result_tensors(F{}(x...));
  check_program<function_of<F, X...>>(rank, results, x...);
  return results;
}

// The same with the gradients of the sum of the first result: results, then gradients.
template <class F, int... Wrt, class Rank, class... X>
auto gradients_both_ways(Rank& rank, const X&... x) {
  const auto results = sw::value_and_grad<F, Wrt...>(x...);
  check_program<gradient_of<F, sw::wrt<Wrt...>, X...>>(rank, results, x...);
  // and what F gives at once is what the differentiated program gives
  std::apply(
      [&](const auto&... r) {
        std::apply(
            [&](const auto&... all) {
              const auto firsts = std::tie(all...);
              [&]<std::size_t... I>(std::index_sequence<I...>, const auto& own) {
                (
                    [&] {
                      const bool same = same_bits(std::get<I>(firsts).to_local(), std::get<I>(own).to_local());
                      CHECK(same);
                    }(),
                    ...);
              }(std::make_index_sequence<sizeof...(r)>{}, std::tie(r...));
            },
            results);
      },
      sw::detail::result_tensors(F{}(x...)));
  return results;
}

}  // namespace test
