// SPDX-License-Identifier: Apache-2.0
// Everything that runs on the host: types, rules, modules, steps, and the threads backend.
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
#include <shardwise/module/add_gradients.hpp>
#include <shardwise/module/convolution_layers.hpp>
#include <shardwise/module/eager.hpp>
#include <shardwise/module/eager_gradient.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/operations/attention/host.hpp>
#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/operations/extreme/host.hpp>
#include <shardwise/operations/pooling/host.hpp>
#include <shardwise/operations/rotary/host.hpp>
#include <shardwise/runtime/eager/create.hpp>
#include <shardwise/runtime/eager/dtensor.hpp>
#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/runtime/fake/fake.hpp>
#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/submesh.hpp>
