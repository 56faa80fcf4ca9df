// SPDX-License-Identifier: Apache-2.0
// forward_hooks: a plan's element that runs functions of the user's around a module's forward, traced or not looked into.
#pragma once

#include <shardwise/graph/calls.hpp>
#include <shardwise/graph/functions/opaque.hpp>
#include <shardwise/module/style.hpp>

namespace shardwise::inline v0_1 {

// traced: the trace goes into a hook's body and records its operations, through which gradients pass. opaque: it records one call,
// which runs on the ranks' blocks; a gradient through it asks for its adjoint (graph/functions/opaque.hpp).
enum class hook_bodies : std::uint8_t { traced, opaque };

// The place of a hook that does nothing.
struct no_hook {};

namespace detail {

template <class Hook, hook_bodies Bodies, class X>
constexpr auto run_user_hook(const X& x) {
  if constexpr (std::is_same_v<Hook, no_hook>) {
    return x;
  } else if constexpr (Bodies == hook_bodies::opaque) {
    return opaque<Hook>(x);
  } else {
    constexpr bool fits = std::is_invocable_v<Hook, const X&>;
    if constexpr (!fits) {
      return refused<problem::hook_body, no_node, Hook, operand_t<X::sp>>(x);
    } else {
      if constexpr (requires { x.b->calls; })
        if (x.b && x.b->calls) ++x.b->calls->frame_count;
      return Hook{}(x);
    }
  }
}

}  // namespace detail

// at<"blocks.*", forward_hooks<dp, Pre, Post>>: Pre{}(operand) before the module's forward, Post{}(result) behind it, each as a style
// redistributes there; Pre or Post may be no_hook. A traced body is a function of a tensor, an opaque one of the blocks,
// (std::span<T> result, std::span<const T> operand); one that has both can be either, which changes no value if both compute the same.
template <class Axis, class Pre, class Post, hook_bodies Bodies = hook_bodies::traced>
struct forward_hooks : detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(module_kind) { return true; }
  template <class X>
  static constexpr auto enter(const X& x) {
    return detail::run_user_hook<Pre, Bodies>(x);
  }
  template <class X>
  static constexpr auto leave(const X& x) {
    return detail::run_user_hook<Post, Bodies>(x);
  }
};

}  // namespace shardwise::inline v0_1
