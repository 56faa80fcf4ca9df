// SPDX-License-Identifier: Apache-2.0
// Everything that runs on the host: types, rules, modules, steps, and the threads backend.
#pragma once

#include <shardwise/graph/fills.hpp>
#include <shardwise/graph/indexing.hpp>
#include <shardwise/graph/joins.hpp>
#include <shardwise/graph/loss_functions.hpp>
#include <shardwise/graph/mutating_functions.hpp>
#include <shardwise/graph/ranking_functions.hpp>
#include <shardwise/graph/views.hpp>
#include <shardwise/module/eager.hpp>
#include <shardwise/module/eager_gradient.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/runtime/create.hpp>
#include <shardwise/runtime/dtensor.hpp>
#include <shardwise/runtime/executor.hpp>
#include <shardwise/runtime/fake.hpp>
#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/submesh.hpp>
