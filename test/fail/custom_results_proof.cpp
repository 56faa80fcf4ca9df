// SPDX-License-Identifier: Apache-2.0
// A row that is right of one result and wrong of another.
// expect: a sharding rule admits a placement under which ranks do not compute what one device does
// expect: described::wrong_row

#include <custom_results.hpp>
#include <shardwise/laws/cases.hpp>

#ifdef SHARDWISE_FAIL
using proved = shardwise::laws::customs<described::wrong_row>;
#else
using proved = shardwise::laws::customs<described::lines>;
#endif
static_assert(shardwise::laws::holds<proved, shardwise::shape<5, 3>> > 0);
