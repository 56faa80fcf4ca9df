// SPDX-License-Identifier: Apache-2.0
// Saving and resuming: save(executor, folder, position) and load(executor, folder).
#pragma once

#include <shardwise/io/checkpoint/load.hpp>
#include <shardwise/io/checkpoint/save.hpp>
