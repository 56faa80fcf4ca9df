// SPDX-License-Identifier: Apache-2.0
// A row too many in a custom operation's table: the proof finds it.
// expect: a sharding rule admits a placement under which ranks do not compute what one device does
// expect: sums::wrong_row

#include <custom_operations.hpp>
#include <shardwise/laws/cases.hpp>

#ifdef SHARDWISE_FAIL
using proved = shardwise::laws::customs<sums::wrong_row>;
#else
using proved = shardwise::laws::customs<sums::running>;
#endif
static_assert(shardwise::laws::holds<proved, shardwise::shape<5, 3>> > 0);
