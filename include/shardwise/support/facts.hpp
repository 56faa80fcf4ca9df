// SPDX-License-Identifier: Apache-2.0
// Facts that an error says beside its sentence. A fact is a type, so that every compiler prints it; support/message.hpp
// writes it in words.
#pragma once

#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1 {

// The two numbers of a finding: what is there, and what there should or may be.
template <long long N>
struct have;
template <long long N>
struct want;
// The dim that a finding speaks of.
template <int Dim>
struct at_dim;
// Which of the operands it speaks of, 0 the first.
template <int Index>
struct at_operand;

// Where it happened, last among the facts and in this order: the module ("" is the model itself, or a function), the node
// by its fx-style name, the nodes that it reads.
template <fixed_string Path>
struct in_module;
template <fixed_string Name>
struct at_node;
template <fixed_string... Names>
struct reading;

}  // namespace shardwise::inline v0_1
