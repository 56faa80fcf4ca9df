// SPDX-License-Identifier: Apache-2.0
// Failed once: distribute_from_first left the other ranks of an axis that splits nothing with what they had
// check: fuzz::make<std::int32_t, sw::shape<2, 3>, fuzz::world<2>, sw::replicate>("from_first", from_first_data[0], {{7, 1}, {6, 2}});
// on 2
inline const double from_first_data_0[] = {1.0, -2.0, 3.0, 4.0, 5.0, 6.0};
inline const fuzz::numbers from_first_data[] = {{6, from_first_data_0}};
