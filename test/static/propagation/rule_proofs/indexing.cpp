// SPDX-License-Identifier: Apache-2.0
// Rules of operations by index.
#include <laws/rule_proofs.hpp>

namespace shardwise::laws {
static_assert(proved<family::indexing> > 2 * cases_of<family::indexing>);
}  // namespace shardwise::laws
