// SPDX-License-Identifier: Apache-2.0
// What program_traits say of a program is known without completing it: none of these programs can be completed. nvcc's device pass completes
// none whose kernels do not depend on it; of a step of 48 layers it takes half of the time so.
#include <type_traits>

#include <shardwise/core.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/runtime/program/shared_parameters.hpp>

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct model;  // neither is defined
struct task;
using plan = sw::plan<sw::data_parallel<dp>>;

template <class Step, class T>
constexpr bool known_as =
    std::is_same_v<typename sw::program_traits<Step>::mesh_type, mesh> &&
    std::is_same_v<typename sw::program_traits<Step>::element, T> && !sw::program_traits<Step>::has_expressions;

using train = sw::train_step<model, task, plan, mesh, sw::adam<>, sw::pipeline<>, double>;
using forward = sw::forward_step<model, task, plan, mesh>;
static_assert(known_as<train, double>);
static_assert(known_as<forward, float>);
static_assert(known_as<sw::with_parameters_of<forward, train>, float>);
static_assert(known_as<sw::step_phase<sw::iteration_phase::main, train>, double>);

}  // namespace
