// SPDX-License-Identifier: Apache-2.0
// blocks: one rank's block of a tensor whatever computes on it: out of the whole and back, redistributions.
#pragma once

#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/program/local_view.hpp>
#include <shardwise/support/philox.hpp>

namespace shardwise::inline v0_1 {

// This rank's part of a tensor: its elements from the first to the last one, and the layout that finds them.
template <class T>
struct local_block {
  std::span<const T> data;
  runtime::layout layout;

  template <class... I>
  const T& operator()(I... at) const {
    std::int64_t offset = 0;
    int d = 0;
    ((offset += static_cast<std::int64_t>(at) * layout.str[d++]), ...);
    return data[static_cast<std::size_t>(offset)];
  }

  // The elements as they are stored: what a device's copy of a block has, too.
  std::size_t size() const { return data.size(); }
  const T& operator[](std::size_t i) const { return data[i]; }
  auto begin() const { return data.begin(); }
  auto end() const { return data.end(); }

  // The value of a block of one element.
  T item() const {
    if (layout.numel() != 1)
      throw std::logic_error("shardwise: item: this rank's block has " + std::to_string(layout.numel()) +
                             " elements; read them one by one, or make the output a scalar with sum or mean");
    return data[0];
  }

  // The block as std::mdspan (see local_view) of Rank dims, which must be as many as the tensor has.
  template <std::size_t Rank>
  local_view<const T, Rank> local_mdspan() const {
    return detail::view_of<Rank>(data.data(), layout);
  }
};

}  // namespace shardwise::inline v0_1

namespace shardwise::inline v0_1::runtime {

// The placement by an axis at a run's sizes, its block a number: of none, 1 cuts as well.
constexpr placement placed_at(const spec& s, int axis, const run_sizes& n) {
  placement p = s.place[axis];
  if (p.block_sizes == 0) return p;
  const std::int64_t block = block_at(s, axis, n);
  p.block = block > 0 ? static_cast<std::int32_t>(block) : 1;
  p.block_sizes = 0;
  return p;
}

// What a redistribution of `in` to `out` is for the rank at mesh coordinate `c`, at a run's sizes.
constexpr void lower_redistribute(call& k, int axis, const spec& in, const spec& out, const int* c,
                                  const run_sizes& n = {}) {
  k.axis = axis;
  k.ranks = in.axis_size[axis];
  k.coordinate = c[axis];
  k.from = placed_at(in, axis, n);
  k.to = placed_at(out, axis, n);
  k.kind = transition_of(k.from, k.to, k.ranks);
  if (k.kind == transition::all_to_all && k.from.dim == k.to.dim) {
    const int d = k.from.dim;
    k.cut = {0, extent_at(in, d, n)};
    for (int a = 0; a < axis; ++a)
      if (in.place[a].is_shard(d)) k.cut = split(k.cut, block_at(in, a, n), in.axis_size[a], c[a]);
  }
}

// f(position in the block as it is stored, row-major index in the whole tensor) for every element.
template <class F>
constexpr void each_element(const layout& l, F&& f) {
  std::int64_t at[max_rank]{};
  const std::int64_t n = l.numel();
  std::int64_t place = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    f(place, global_index(l, at));
    for (int d = l.rank - 1; d >= 0; --d) {
      place += l.str[d];
      if (++at[d] < l.ext[d]) break;
      place -= l.ext[d] * l.str[d];
      at[d] = 0;
    }
  }
}

// A block into the whole tensor; see load_share for the way back.
template <class From, class To>
constexpr void store_block(const From* local, To* global, const layout& l) {
  each_element(l, [&](std::int64_t i, std::int64_t g) { global[g] = static_cast<To>(local[i]); });
}

// What the rank at mesh coordinate `c` stores of a whole tensor: its values, or `neutral` everywhere.
struct share {
  bool of_values = true;
  double neutral = 0;
};

// Law: the reduction of the ranks' shares, along the axes in any order, is the whole. Coordinate 0 of an axis that sums or
// multiplies keeps the values; where one axis sums and another one multiplies, the sum's 0 is stored, which a product keeps.
constexpr share share_of(const spec& s, const int* c) {
  share r;
  for (int a = 0; a < s.axes; ++a) {
    const placement& p = s.place[a];
    if (!p.is_partial() || c[a] == 0) continue;
    if (p.op == reduction::sum) r = {false, -0.0};  // 0 would turn a -0 into 0
    else if (p.is_norm() && (r.of_values || r.neutral == 1)) r = {false, 0};
    else if (p.op == reduction::product && r.of_values) r = {false, 1};
  }
  return r;
}

// A number given from outside as an element: ids that come as int64 must be int32's; floating-point numbers are rounded to T.
template <class T, class From>
T as_element(const char* caller, From x, std::int64_t at) {
  if constexpr (std::is_same_v<T, std::int32_t> && std::is_integral_v<From> && sizeof(From) > sizeof(T)) {
    if (!std::in_range<T>(x))
      throw std::out_of_range(
          std::string("shardwise: ") + caller + ": element " + std::to_string(at) + " is " + std::to_string(x) +
          ", which is no int32; ids, labels and positions are from -2147483648 to 2147483647: map them there, "
          "or declare the tensor of std::int64_t");
  }
  return static_cast<T>(x);
}
// The nearest T that is below 1 of a number in [0, 1): rounding alone would make some of them 1.
template <class T>
T below_one(double x) {
  const T rounded = static_cast<T>(x);
  if (static_cast<double>(rounded) < 1) return rounded;
  if constexpr (sizeof(T) == 2) return T::of_bits(static_cast<std::uint16_t>(T(1).bits - 1));
  else return T(1) - std::numeric_limits<T>::epsilon() / T(2);
}

// f(position in the block as it is stored, row-major index in the whole tensor) -> the value there, stored where this rank's
// share holds values. `caller` is named where a value cannot be what the placement says.
template <class T, class F>
void load_share_by(const char* caller, T* local, const layout& l, const spec& s, const int* c, F&& f) {
  if (const share own = share_of(s, c); !own.of_values) {
    const std::int64_t n = l.numel();
    for (std::int64_t i = 0; i < n; ++i) local[i] = static_cast<T>(own.neutral);
    return;
  }
  each_element(l, [&](std::int64_t i, std::int64_t g) { local[i] = as_element<T>(caller, f(i, g), g); });
  for (int a = 0; a < s.axes; ++a) {
    if (!s.place[a].is_norm()) continue;
    each_element(l, [&](std::int64_t i, std::int64_t g) {
      if (local[i] < T(0))
        throw std::invalid_argument(std::string("shardwise: ") + caller + ": element " + std::to_string(g) + " is " +
                                    std::to_string(local[i]) +
                                    "; a tensor that is partial_norm holds norms, which are not "
                                    "negative: give their absolute values, or place the tensor partial or replicate");
    });
    return;
  }
}

// This rank's share of a whole tensor.
template <class From, class To>
void load_share(const char* caller, const From* global, To* local, const layout& l, const spec& s, const int* c) {
  load_share_by(caller, local, l, s, c, [&](std::int64_t, std::int64_t g) { return global[g]; });
}

// Uniform in [0, 1), of 53 bits.
inline double uniform_value(std::uint64_t seed, std::int64_t index) {
  const philox_words w =
      philox(seed, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0xFFFFFFFEU);
  return (static_cast<double>(w.w[0] >> 5) * 67108864.0 + static_cast<double>(w.w[1] >> 6)) * (1.0 / 9007199254740992.0);
}

}  // namespace shardwise::inline v0_1::runtime
