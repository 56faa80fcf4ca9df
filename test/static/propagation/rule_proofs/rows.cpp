// SPDX-License-Identifier: Apache-2.0
// Rules of operations along rows.
#include <laws/rule_proofs.hpp>

namespace shardwise::laws {
static_assert(proved<family::rows> > 2 * cases_of<family::rows>);
}  // namespace shardwise::laws
