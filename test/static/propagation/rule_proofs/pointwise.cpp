// SPDX-License-Identifier: Apache-2.0
// Rules of pointwise operations.
#include <laws/rule_proofs.hpp>

namespace shardwise::laws {
static_assert(proved<family::pointwise> > 2 * cases_of<family::pointwise>);
}  // namespace shardwise::laws
