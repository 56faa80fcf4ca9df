// SPDX-License-Identifier: Apache-2.0
// Saving and resuming: save(executor, folder, position), async_save, load(executor, folder); weights of other libraries: load_weights,
// save_weights.
#pragma once

#include <shardwise/io/checkpoint/async_save.hpp>
#include <shardwise/io/checkpoint/load.hpp>
#include <shardwise/io/checkpoint/save.hpp>
#include <shardwise/io/checkpoint/weights.hpp>
