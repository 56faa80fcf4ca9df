// SPDX-License-Identifier: Apache-2.0
// The program of one plan, TRAIN_TEXT_PLAN of plans.hpp: compiled once for each that is built.
#include "train.hpp"

namespace train_text {

namespace {

template <class Plan>
constexpr bool costs_as_said() {
  using step = step_on<Plan, on_threads>;
  for (const plan_costs& c : all_plans)
    if (c.name == Plan::name) return c.sent == step::total_comm_bytes() && c.peak == step::peak_bytes;
  return false;
}
static_assert(
    costs_as_said<plans::TRAIN_TEXT_PLAN<host_ranks>>());  // a plan that sends more or needs more memory does not compile

}  // namespace

template int train<plans::TRAIN_TEXT_PLAN>(const options&);

}  // namespace train_text
