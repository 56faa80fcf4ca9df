// SPDX-License-Identifier: Apache-2.0
// What wrong maps of weights share: two layers and the names of three of their parameters; the fourth is the test's.
#pragma once

#include <shardwise/io/checkpoint/weights.hpp>

#include "grouped_step.hpp"

template <class... Entries>
using names = sw::weight_names<sw::named_as<"net1.weight", "fc.weight", sw::transposed>,
                               sw::named_as<"net1.bias", "fc.bias">, sw::named_as<"net2.weight", "proj.weight">, Entries...>;
template <class Names>
void read(sw::executor<step<>>& ex) {
  sw::load_weights<Names>(ex, "model.safetensors");
}
