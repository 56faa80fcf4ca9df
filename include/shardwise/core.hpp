// SPDX-License-Identifier: Apache-2.0
// What a program is written and checked with: types, rules, modules, plans, steps and the passes that steps name. It runs nothing:
// shardwise.hpp adds host threads and eager tensors, cuda.cuh GPUs.
#pragma once

#include <shardwise/graph/functions/attention.hpp>
#include <shardwise/graph/functions/convolution.hpp>
#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/graph/functions/extremes.hpp>
#include <shardwise/graph/functions/fills.hpp>
#include <shardwise/graph/functions/indexing.hpp>
#include <shardwise/graph/functions/joins.hpp>
#include <shardwise/graph/functions/local_map.hpp>
#include <shardwise/graph/functions/loss_functions.hpp>
#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/graph/functions/pooling.hpp>
#include <shardwise/graph/functions/ranking_functions.hpp>
#include <shardwise/graph/functions/rotary.hpp>
#include <shardwise/graph/functions/views.hpp>
#include <shardwise/module/convolution_layers.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/submesh.hpp>
