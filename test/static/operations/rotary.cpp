// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings: the proof of rows, kernel and adjoint under every placement; the adjoint is the transpose.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/rotary/host.hpp>

namespace {

namespace laws = sw::laws;

constexpr sw::op_attr with(int time, int interleaved, int back = 0) {
  return sw::pack_attributes(sw::rotary_attributes{time, interleaved, 10000.0, back});
}
template <sw::op_attr A, class X>
inline constexpr int proved = laws::holds_case<laws::custom_case<laws::customs<sw::custom::rotary_embedding>, A, X>>;
static_assert(proved<with(2, 0), sw::shape<2, 3, 3, 4>> > 12);
static_assert(proved<with(1, 1), sw::shape<2, 5, 2, 2>> > 12);
static_assert(proved<with(1, 0, 1), sw::shape<1, 3, 3, 4>> > 12);

}  // namespace
