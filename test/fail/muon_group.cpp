// SPDX-License-Identifier: Apache-2.0
// Muon told to leave a group to AdamW that the plan does not have.
// expect: muon: it names a group of parameters to be updated by AdamW that the plan does not have
// expect(g++): output
// expect(clang): output
// expect(text): for AdamW: "head"; groups: "output"

#include <shardwise/module/muon.hpp>

#include "small_step.hpp"

using grouped = sw::plan<sw::data_parallel<dp>, sw::param_group<"output", "bias">>;
#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, grouped, mesh, sw::muon<sw::muon_rate::original, "head">>;
#else
using step = sw::train_step<one_linear, mean_task, grouped, mesh, sw::muon<sw::muon_rate::original, "output">>;
#endif
constexpr auto bytes = step::peak_bytes;
