// SPDX-License-Identifier: Apache-2.0
// program_traits: a program's mesh and element type without completing the program, whose members are its constants.
#pragma once

namespace shardwise {

template <class Step>
struct program_traits {
  using mesh_type = typename Step::mesh_type;
  using element = typename Step::element;
};

}  // namespace shardwise
