// SPDX-License-Identifier: Apache-2.0
// The element types that a plan's entries and a task bring into a program, known without its constants.
#include <type_traits>

#include <shardwise/core.hpp>
#include <shardwise/vocabulary/float16.hpp>

namespace {

namespace sw = shardwise;
namespace detail = sw::detail;

struct halves {
  using low_element = sw::bf16;
};
template <class T>
struct as {
  using low_element = T;
};
struct nothing {};
template <class... Entries>
struct entries {};
template <sw::fixed_string Path, class... Entries>
struct below {
  using shardwise_entry = entries<Entries...>;
};
template <class... T>
using list = detail::type_list<T...>;

template <class Plan, class Task, class... T>
constexpr bool brings = std::is_same_v<detail::elements_of<Plan, Task>, list<T...>>;

static_assert(brings<entries<>, nothing>);
static_assert(brings<entries<nothing, below<"a", nothing>>, nothing>);
static_assert(brings<entries<nothing, halves>, nothing, sw::bf16>);
static_assert(brings<entries<below<"head", nothing, as<sw::f16>>, nothing, as<sw::bf16>>, nothing, sw::f16, sw::bf16>);
static_assert(brings<entries<>, halves, sw::bf16>);
static_assert(brings<sw::plan<sw::at<"head", sw::mixed<sw::f16>>, sw::mixed<sw::bf16>>, nothing, sw::f16, sw::bf16>);
static_assert(brings<sw::plan<sw::at<"head", sw::mixed<sw::f16>>>, nothing, sw::f16>);
static_assert(brings<entries<as<sw::f16>>, halves, sw::f16, sw::bf16>);

// A program of the user's own says them itself.
struct program {
  using mesh_type = sw::mesh<sw::axis<1>>;
  using element = float;
};
struct low_program : program {
  using low_element = sw::bf16;
};
static_assert(std::is_same_v<sw::program_traits<program>::low_elements, list<>>);
static_assert(std::is_same_v<sw::program_traits<low_program>::low_elements, list<sw::bf16>>);

}  // namespace
