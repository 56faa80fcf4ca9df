// SPDX-License-Identifier: Apache-2.0
// Rules of contractions.
#include <laws/rule_proofs.hpp>

namespace shardwise::laws {
static_assert(proved<family::contractions> > 2 * cases_of<family::contractions>);
}  // namespace shardwise::laws
