// SPDX-License-Identifier: Apache-2.0
// Rules of elementwise functions.
#include <laws/rule_proofs.hpp>

namespace shardwise::laws {
static_assert(proved<family::elementwise> > 2 * cases_of<family::elementwise>);
}  // namespace shardwise::laws
