// SPDX-License-Identifier: Apache-2.0
// Rules of views, joins and frames.
#include <laws/rule_proofs.hpp>

namespace shardwise::laws {
static_assert(proved<family::moves> > 2 * cases_of<family::moves>);
}  // namespace shardwise::laws
