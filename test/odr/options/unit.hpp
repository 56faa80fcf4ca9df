// SPDX-License-Identifier: Apache-2.0
// What each translation unit of the program offers, by the options that it is compiled with.
#pragma once

// A pending tensor that nobody waits for is dropped: returns, or ends the process where the unit is checked.
void drop_in_checked();
void drop_in_unchecked();

// Matrix products that a CBLAS library computed while the unit computed one of known elements; negative: they are wrong.
int products_with_blas();
int products_built_in();

// Throws sw::rank_failed.
void fail_in_shared();
