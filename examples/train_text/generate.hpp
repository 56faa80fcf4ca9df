// SPDX-License-Identifier: Apache-2.0
// Text from a trained model: --generate, and the sample at the end of a training.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../common/sampling.hpp"
#include "options.hpp"

namespace train_text {

/// What --generate asks for, with the newest checkpoint of --resume, or of the folder `checkpoints` in --out; the exit code.
int generate(const options&);

/// `text` and `count` bytes more, by these whole parameters in the program's order, on one rank of the host.
std::string continued(const std::vector<std::vector<float>>& parameters, const std::string& text, std::size_t count,
                      const example::sampling& how, int threads);

/// Bytes that are no plain text as question marks.
std::string printable(const std::string& text);

}  // namespace train_text
