// SPDX-License-Identifier: Apache-2.0
// The adjoint of a sum on the host: every element has its cotangent's bits, divided by the count of a mean, in whatever order the result
// is stored, and nothing beside the result is written.
#include <shardwise/runtime/host/kernels.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;
using sw::runtime::call;
using sw::runtime::layout;
using sw::runtime::result;
using extents = std::array<std::int64_t, 4>;

// Of the dims that a sum over `dims` leaves, those of `kept` with extent 1.
layout summed(const extents& e, unsigned dims, unsigned kept) {
  layout l;
  for (unsigned d = 0; d < 4; ++d) {
    const bool goes = (dims >> d & 1U) != 0;
    if (goes && (kept >> d & 1U) == 0) continue;
    l.ext[l.rank] = l.global[l.rank] = goes ? 1 : e[d];
    ++l.rank;
  }
  std::int64_t at = 1;
  for (int d = l.rank - 1; d >= 0; --d) {
    l.str[d] = at;
    at *= l.ext[d];
  }
  return l;
}
layout stored(const extents& e, bool channels_last) {
  layout l;
  l.rank = 4;
  std::int64_t at = 1;
  for (int d = 3; d >= 0; --d) {
    l.ext[d] = l.global[d] = e[static_cast<std::size_t>(d)];
    l.str[d] = at;
    at *= l.ext[d];
  }
  if (channels_last) l.make_channels_last();
  return l;
}

// Places of a result that are not what its cotangent says, and places beside it that are not what they were.
int wrong(const extents& e, unsigned dims, unsigned kept, bool mean, bool channels_last) {
  constexpr std::size_t margin = 32;
  call c;
  c.inputs = c.all_inputs = 1;
  c.a = sw::attributes<sw::sum_attributes>(static_cast<std::int64_t>(dims), static_cast<std::int64_t>(kept), mean ? 1 : 0);
  c.l[0] = summed(e, dims, kept);
  c.l[result] = stored(e, channels_last);
  const std::size_t size = static_cast<std::size_t>(c.l[result].numel());
  std::vector<float> x(static_cast<std::size_t>(c.l[0].numel())), y(size + 2 * margin, -7);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7919 + 3) % 101) / 7.0F - 5.0F;
  const float odd[] = {-0.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e-45F};
  for (std::size_t i = 0; i < 4 && i + 1 < x.size(); ++i) x[i + 1] = odd[i];
  sw::host::operands<float> q;
  q.p[0] = x.data();
  q.p[result] = y.data() + margin;
  sw::host::kernel<op_code::expand>::run<float>(c, q, sw::step_env{});
  float count = 1;
  for (unsigned d = 0; d < 4 && mean; ++d)
    if ((dims >> d & 1U) != 0) count *= static_cast<float>(e[d]);
  int n = 0;
  std::vector<float> want(y.size(), -7);
  extents i{};
  for (i[0] = 0; i[0] < e[0]; ++i[0])
    for (i[1] = 0; i[1] < e[1]; ++i[1])
      for (i[2] = 0; i[2] < e[2]; ++i[2])
        for (i[3] = 0; i[3] < e[3]; ++i[3]) {
          std::int64_t from = 0, to = static_cast<std::int64_t>(margin);
          int own = 0;
          for (unsigned d = 0; d < 4; ++d) {
            to += i[d] * c.l[result].str[d];
            const bool goes = (dims >> d & 1U) != 0;
            if (!goes) from += i[d] * c.l[0].str[own];
            if (!goes || (kept >> d & 1U) != 0) ++own;
          }
          want[static_cast<std::size_t>(to)] = x[static_cast<std::size_t>(from)] / count;
        }
  for (std::size_t k = 0; k < y.size(); ++k) {
    const bool both_nan = std::isnan(y[k]) && std::isnan(want[k]);
    n += both_nan || std::bit_cast<std::uint32_t>(y[k]) == std::bit_cast<std::uint32_t>(want[k]) ? 0 : 1;
  }
  return n;
}

TEST_CASE("host: a sum's cotangent is spread in every order of storage, over every set of dims") {
  const extents all[] = {{2, 3, 4, 5}, {1, 7, 1, 3}, {3, 1, 5, 1}, {2, 16, 3, 3}, {1, 1, 1, 1}, {2, 0, 3, 3}, {5, 33, 2, 1}};
  for (const extents& e : all)
    for (unsigned dims = 0; dims < 16; ++dims)
      for (const unsigned kept : {0U, dims, dims & 5U})
        for (const bool mean : {false, true})
          for (const bool channels_last : {false, true}) {
            CAPTURE(dims);
            CAPTURE(kept);
            CAPTURE(mean);
            CAPTURE(channels_last);
            CHECK(wrong(e, dims, kept, mean, channels_last) == 0);
          }
}

}  // namespace
