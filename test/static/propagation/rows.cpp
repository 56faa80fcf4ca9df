// SPDX-License-Identifier: Apache-2.0
// Law: a placement in a row is the placement, whatever it is.
#include <shardwise/propagation/rule.hpp>

namespace {

namespace sw = shardwise;

constexpr bool comes_back(const sw::placement& p) {
  const sw::row_entry e = p;
  return sw::placement(e) == p && e == p && e.kind() == p.kind && e.is_shard() == p.is_shard() &&
         e.is_partial() == p.is_partial() && e.is_whole() == p.is_whole() && (!p.is_shard() || e.dim() == p.dim);
}
static_assert([] {
  for (const sw::placement& p : {sw::replicate_value(), sw::reduced_value()})
    if (!comes_back(p)) return false;
  for (const auto op :
       {sw::reduction::sum, sw::reduction::avg, sw::reduction::product, sw::reduction::max, sw::reduction::min})
    if (!comes_back(sw::partial_value(op))) return false;
  for (const int order : {1, 2, 3, 40000})
    if (!comes_back(sw::partial_norm_value(order))) return false;
  for (const int d : {0, 1, 7, -1, -8})
    for (const std::int32_t block : {1, 2, 3, 1 << 20, 2147483647})
      for (const int factor : {1, 2, 255}) {
        sw::placement p = sw::shard_value(d);
        p.block = block;
        p.factor = static_cast<std::uint8_t>(factor);
        if (!comes_back(p)) return false;
      }
  return true;
}());

}  // namespace
