// SPDX-License-Identifier: Apache-2.0
// Collectives called as a program calls them, on one rank: what goes in, what comes out, and the bytes that are sent for it.
#pragma once

#include <collective_cases.hpp>
#include <cstring>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/runtime/rank.hpp>
#include <type_traits>
#include <vector>

namespace test {

// Numbers whose sums depend on the order.
template <class T>
T rough_value(sw::reduction op, int rank, std::int64_t i) {
  const T exact = value_of<T>(op, 0, rank, i);
  if constexpr (sw::is_floating_element<T>)
    return static_cast<T>(static_cast<float>(exact) * (1 + 0.1F * static_cast<float>(i % 13 + rank)));
  return exact;
}

// One redistribution on one rank: the call, and the memory that it is about.
template <class T>
struct prepared {
  sw::runtime::call c;
  std::vector<T> from, to;
  std::vector<std::byte> scratch;

  template <class Mesh>
  prepared(Mesh, const change& x, const std::array<int, sw::max_axes>& at, int rank, bool exact) {
    const sw::spec in = spec_for<Mesh>(x, sw::dtype_v<T>);
    sw::spec out = in;
    out.place[x.axis] = x.to;
    c.l[0] = sw::runtime::local_layout(in, at.data());
    c.l[sw::runtime::result] = sw::runtime::local_layout(out, at.data());
    sw::runtime::lower_redistribute(c, x.axis, in, out, at.data());
    sw::op_attr a{};
    a.v[0] = x.axis;
    a.v[1] = sw::pack(x.to);
    scratch.resize(static_cast<std::size_t>(sw::host_backend::collective_workspace(a, in, out)) + 8);
    from = std::vector<T>(static_cast<std::size_t>(c.l[0].numel()));
    to = std::vector<T>(static_cast<std::size_t>(c.l[sw::runtime::result].numel()), T(77));
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto k = static_cast<std::int64_t>(i);
      from[i] = exact ? value_of<T>(c.from.op, 0, rank, k) : rough_value<T>(c.from.op, rank, k);
    }
    c.p[0] = from.data();
    c.p[sw::runtime::result] = to.data();
    c.workspace = scratch.data();
  }
};

// The result of each case on one rank, and the bytes sent for it; `together` cases of one kind and axis go as a batch.
template <class T>
struct results {
  std::vector<std::vector<T>> values;
  std::vector<std::int64_t> bytes;
};
template <class T, class Rank>
results<T> run_cases(Rank& rank, const std::vector<change>& cases, std::size_t together, bool exact) {
  using mesh = typename Rank::mesh_type;
  results<T> all;
  for (std::size_t i = 0; i < cases.size();) {
    std::vector<prepared<T>> batch;
    do batch.emplace_back(mesh{}, cases[i++], rank.coordinate(), rank.index(), exact);
    while (i < cases.size() && batch.size() < together &&
           prepared<T>(mesh{}, cases[i], rank.coordinate(), rank.index(), exact).c.kind == batch[0].c.kind &&
           cases[i].axis == batch[0].c.axis);
    std::vector<sw::runtime::call> calls;
    for (auto& p : batch) calls.push_back(p.c);
    for (sw::runtime::call& c : calls) {
      c.batch = calls.data();
      c.members = static_cast<std::int32_t>(calls.size());
    }
    rank.reset_counts();
    sw::runtime::communicate<T>(calls[0], rank);
    for (int a = 0; a < mesh::axes; ++a) all.bytes.push_back(rank.bytes_written(a));
    for (auto& p : batch) all.values.push_back(std::move(p.to));
  }
  return all;
}

// Equal bits, or NaN both.
template <class T>
bool same_bits(const std::vector<std::vector<T>>& a, const std::vector<std::vector<T>>& b) {
  bool all = a.size() == b.size();
  for (std::size_t i = 0; all && i < a.size(); ++i) {
    all = a[i].size() == b[i].size();
    for (std::size_t k = 0; all && k < a[i].size(); ++k) {
      const T x = a[i][k], y = b[i][k];
      all = (x != x && y != y) || std::memcmp(&x, &y, sizeof(T)) == 0;
    }
  }
  return all;
}

// Of the cases those that communicate, for elements of T.
template <class Mesh, class T>
std::vector<change> communicating(const std::vector<change>& all) {
  std::vector<change> cases;
  for (const change& x : all) {
    const sw::spec in = spec_for<Mesh>(x, sw::dtype_v<T>);
    if (in.place[x.axis].is_norm() && !std::is_floating_point_v<T>) continue;  // of two-byte elements refused
    if (sw::communicates(sw::transition_of(in.place[x.axis], x.to, in.axis_size[x.axis]))) cases.push_back(x);
  }
  return cases;
}

}  // namespace test
