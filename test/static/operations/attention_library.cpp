// SPDX-License-Identifier: Apache-2.0
// The scratch that programs are planned with for a library's attention holds what cuDNN asks for, grows with every extent, and is
// enough for each slice of a large adjoint.
#include <shardwise/operations/attention/library_bytes.hpp>

#include <cstdint>

namespace {

namespace sw = shardwise;
using sw::attention_extents;
using namespace sw::operations;

// What cuDNN's plans asked for, in bytes: unordered and ordered, the most of 9.14.0 and 9.19.1 on devices of the given version.
struct asked {
  int device;
  attention_extents e;
  std::int64_t unordered, ordered;
};
constexpr asked measured[] = {
    {90, {16, 12, 12, 1024, 1024, 64, 64}, 51118336, 403439872},
    {90, {1, 12, 12, 1024, 1024, 64, 64}, 3195136, 25215232},
    {90, {2, 8, 2, 512, 512, 64, 64}, 4227328, 10518784},
    {90, {2, 8, 1, 500, 500, 128, 128}, 8224272, 12516880},
    {90, {3, 5, 5, 77, 77, 64, 64}, 300580, 496420},
    {90, {3, 5, 5, 77, 130, 64, 64}, 300580, 987940},
    {90, {2, 4, 4, 130, 77, 64, 64}, 270672, 397648},
    {90, {2, 4, 4, 256, 1024, 64, 64}, 532736, 4202752},
    {90, {2, 4, 4, 100, 357, 64, 64}, 208272, 789904},
    {90, {2, 4, 4, 1000, 1000, 64, 64}, 2080272, 16809488},
    {90, {2, 4, 4, 256, 256, 256, 256}, 2105600, 1057024},
    {90, {2, 4, 4, 256, 256, 64, 128}, 532736, 1057024},
    {90, {2, 4, 4, 256, 256, 8, 8}, 73984, 1057024},
    {90, {2, 4, 4, 256, 256, 40, 40}, 336128, 1057024},
    {90, {1, 1, 1, 8192, 8192, 128, 128}, 4227328, 134250752},
    {90, {1, 1, 1, 1, 100, 64, 64}, 524, 16652},
    {90, {1, 2, 2, 2, 2, 64, 64}, 1304, 33048},
    {90, {2, 8, 2, 300, 700, 128, 64}, 6777872, 12184592},
    {90, {4, 4, 4, 64, 64, 64, 64}, 266528, 266528},
    {80, {1, 12, 12, 1024, 1024, 64, 64}, 6340736, 25215104},
    {80, {2, 8, 1, 500, 500, 128, 128}, 12352896, 12516736},
    {80, {3, 5, 5, 77, 77, 64, 64}, 607628, 496268},
    {100, {2, 8, 1, 500, 500, 128, 128}, 8224128, 8224128},
    {100, {2, 4, 4, 130, 77, 64, 64}, 549056, 4160},
    {120, {2, 4, 4, 1000, 1000, 64, 64}, 4128128, 16809344},
};
constexpr bool holds_what_is_asked() {
  for (const asked& a : measured)
    if (attention_library_call_bytes(a.e, false) < a.unordered || attention_library_call_bytes(a.e, true) < a.ordered)
      return false;
  return true;
}
static_assert(holds_what_is_asked());
// And not much more: on the devices that sum dq once, of the size that GPT-2 has, ordered to a percent and else twice.
static_assert(attention_library_call_bytes(measured[0].e, true) < measured[0].ordered * 101 / 100);
static_assert(attention_library_call_bytes(measured[0].e, false) < 2 * measured[0].unordered);

// Every slice, the last ones too, is within what the record asks for.
constexpr bool slices_fit(const attention_extents& e, bool ordered) {
  const attention_slice s = attention_slice_of(e, ordered);
  if (s.rows < 1 || s.key_heads < 1 || s.rows > e.batch || s.key_heads > e.key_heads) return false;
  if (s.rows > 1 && s.key_heads != e.key_heads) return false;  // whole rows, or parts of one
  const std::int64_t most = attention_library_adjoint_bytes(e, ordered);
  return attention_library_call_bytes(e.part(s.rows, s.key_heads), ordered) <= most &&
         most <= attention_library_adjoint_bytes(e) && most % 256 == 0;
}
constexpr attention_extents shapes[] = {
    {16, 12, 12, 1024, 1024, 64, 64},
    {64, 12, 12, 1024, 1024, 64, 64},
    {1, 12, 12, 1024, 1024, 64, 64},
    {7, 12, 12, 1024, 1024, 64, 64},
    {3, 32, 8, 4096, 4096, 128, 128},
    {1, 32, 8, 32768, 32768, 128, 128},
    {1, 1, 1, 1, 1, 8, 8},
    {5, 6, 2, 700, 3000, 64, 128},
    {1, 5, 5, 8192, 8192, 64, 64},
};
constexpr bool all_slices_fit() {
  for (const attention_extents& e : shapes)
    if (!slices_fit(e, true) || !slices_fit(e, false)) return false;
  return true;
}
static_assert(all_slices_fit());
// 402 MB in two slices of 8 rows; 32768 keys of one head of keys and four of queries take more than a slice should, alone.
static_assert(attention_slice_of(shapes[0], true).rows == 8 && attention_slice_of(shapes[0], false).rows == 16);
static_assert(attention_slice_of(shapes[5], true).rows == 1 && attention_slice_of(shapes[5], true).key_heads == 1);
static_assert(attention_library_adjoint_bytes(shapes[5], true) > attention_slice_bytes);
static_assert(attention_library_adjoint_bytes(shapes[1], true) == attention_slice_bytes);

// A larger extent asks for no less, so what the largest block is given suffices for every rank's.
constexpr bool grows() {
  for (const attention_extents& e : shapes)
    for (int d = 0; d < 6; ++d) {
      attention_extents more = e;
      more.batch += d == 0;
      more.heads += d == 1 ? e.group() : 0;
      more.key_heads += d == 1;
      more.queries += d == 2;
      more.keys += d == 3;
      more.size += d == 4 ? 8 : 0;
      more.value_size += d == 5 ? 8 : 0;
      if (attention_library_adjoint_bytes(more) < attention_library_adjoint_bytes(e) ||
          attention_projection_bytes(more) < attention_projection_bytes(e))
        return false;
    }
  return true;
}
static_assert(grows());

}  // namespace
