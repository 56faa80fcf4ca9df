// SPDX-License-Identifier: Apache-2.0
// dyn: extents that a run decides, up to a declared bound, and products of them.
#pragma once

#include <cstdint>

#include <shardwise/support/diagnose.hpp>

namespace shardwise::inline v0_1 {

// Run-time sizes that one program may have, numbered from 0: a batch, a length, another length.
inline constexpr int max_dyn_sizes = 4;
// The largest bound of an extent that a run decides.
inline constexpr std::int64_t max_dyn_extent = (std::int64_t{1} << 48) - 1;

// An extent as it is spelled in shape<...> and reshape<...>: a static one is itself; one that a run decides is negative and holds
// its bound and the set of sizes that it is a product of, a bit for each. Law: sizes_in(spelled_extent(b, s)) == s and
// bound_of(spelled_extent(b, s)) == b. That of size 0 alone is minus its bound, so that k * dyn<b> is dyn<k * b>'s spelling.
constexpr std::int64_t spelled_extent(std::int64_t bound, unsigned sizes) {
  return sizes == 0 ? bound : -(bound | static_cast<std::int64_t>(sizes ^ 1U) << 48);
}
constexpr std::int64_t bound_of(std::int64_t extent) { return extent >= 0 ? extent : -extent & max_dyn_extent; }
constexpr unsigned sizes_in(std::int64_t extent) { return extent >= 0 ? 0U : static_cast<unsigned>(-extent >> 48) ^ 1U; }

// In messages: the number that dyn<Bound, Size> was given.
template <int Size>
struct dyn_size;
template <int Size>
struct fact<dyn_size<Size>> {
  template <class Said>
  static constexpr std::string_view name() {
    return "size";
  }
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, std::int64_t{Size});
  }
};

namespace detail {
// A dim of extent 1 broadcasts and one of 0 or 1 elements by turns cannot, so the least bound is 2.
template <std::int64_t Bound, int Size>
struct dyn_extent {
  static constexpr bool declared = Bound >= 2 && Bound <= max_dyn_extent && Size >= 0 && Size < max_dyn_sizes;
  static_assert(
      raise<(declared ? problem::none : problem::dyn_declared), have<Bound>, want<max_dyn_extent>, dyn_size<Size>>::ok);
  static constexpr std::int64_t value = declared ? spelled_extent(Bound, 1U << Size) : 2;
};
}  // namespace detail

// An extent of at most Bound that a run decides, written inside shape<...>: the program's run-time size number Size. One program
// serves every value from 0 to Bound; executor::resize gives them, size 0 first.
template <std::int64_t Bound, int Size = 0>
inline constexpr std::int64_t dyn = detail::dyn_extent<Bound, Size>::value;

// The product of extents as they are spelled: reshape<extent_product(dyn<8>, dyn<64, 1>), 16>. A size that is met twice makes
// -1, which no tensor has: a square of a run-time size is refused.
template <class... Extents>
constexpr std::int64_t extent_product(Extents... extents) {
  std::int64_t bound = 1;
  unsigned sizes = 0;
  bool twice = false;
  ((twice = twice || (sizes & sizes_in(extents)) != 0, sizes |= sizes_in(extents), bound *= bound_of(extents)), ...);
  return twice ? -1 : spelled_extent(bound, sizes);
}

// The bounds of a tensor's or a program's sizes, 0 of those that it has not.
struct dyn_bounds {
  std::int64_t bound[max_dyn_sizes]{};

  constexpr bool operator==(const dyn_bounds&) const = default;
  constexpr std::int64_t operator[](int size) const { return bound[size]; }
  constexpr std::int64_t& operator[](int size) { return bound[size]; }
  constexpr unsigned sizes() const {
    unsigned all = 0;
    for (int i = 0; i < max_dyn_sizes; ++i) all |= bound[i] != 0 ? 1U << i : 0U;
    return all;
  }
  // One more than the largest number of a size.
  constexpr int count() const {
    int n = max_dyn_sizes;
    while (n > 0 && bound[n - 1] == 0) --n;
    return n;
  }
};
// What a product of bounds is of: 1 for none.
constexpr std::int64_t product_of(const dyn_bounds& bounds, unsigned sizes) {
  std::int64_t n = 1;
  for (int i = 0; i < max_dyn_sizes; ++i)
    if ((sizes >> i) & 1U) n *= bounds[i];
  return n;
}

// What a run's sizes are; one that is not given, -1, is its bound.
struct run_sizes {
  std::int64_t n[max_dyn_sizes] = {-1, -1, -1, -1};

  constexpr run_sizes() = default;
  constexpr explicit run_sizes(std::int64_t first) : n{first, -1, -1, -1} {}
  constexpr run_sizes(std::int64_t first, std::int64_t second, std::int64_t third = -1, std::int64_t fourth = -1)
      : n{first, second, third, fourth} {}
  constexpr bool operator==(const run_sizes&) const = default;
};

// A number that scales with some sizes, given at their bounds, at the sizes of a run. Law: a multiple of the product of their bounds
// becomes the same multiple of the product of the sizes.
constexpr std::int64_t number_at(std::int64_t at_bounds, unsigned sizes, const dyn_bounds& bounds, const run_sizes& run) {
  for (int i = 0; i < max_dyn_sizes && sizes != 0; ++i)
    if (((sizes >> i) & 1U) && run.n[i] >= 0) at_bounds = at_bounds / bounds[i] * run.n[i];
  return at_bounds;
}

namespace detail {
template <class Sink>
constexpr void put_extent(Sink& out, std::int64_t e) {
  if (e >= 0) return text::put(out, e);
  text::put(out, "dyn<");
  text::put(out, bound_of(e));
  const unsigned sizes = sizes_in(e);
  bool first = true;
  for (int i = 0; i < max_dyn_sizes && sizes != 1; ++i)
    if ((sizes >> i) & 1U) {  // of several it is the product
      text::put(out, first ? ", " : " * ");
      text::put(out, std::int64_t{i});
      first = false;
    }
  out.push_back('>');
}
}  // namespace detail

}  // namespace shardwise::inline v0_1
