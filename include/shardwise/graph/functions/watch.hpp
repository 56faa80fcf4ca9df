// SPDX-License-Identifier: Apache-2.0
// note, register_hook: what a module's forward tells a tracker of its program (module/tracker/tracker.hpp). Where nobody watches
// they do nothing, and they record no node.
#pragma once

#include <shardwise/graph/calls.hpp>
#include <shardwise/graph/tensor.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class X>
constexpr void tell_mark(call_mark kind, const X& x, const char* label) {
  if constexpr (requires { x.strict; }) {
    tell_mark(kind, x.strict, label);
  } else if constexpr (requires { x.b->calls; }) {
    if (!x.b || !x.b->calls) return;
    x.b->calls->begin(kind, x.b->current_scope, x.b->node_count, label);
    tell_tensor(*x.b->calls, x);
  } else if constexpr (requires { x.watcher(); }) {
    if (kind == call_mark::note && x.watcher()) x.watcher()->note(label);  // at once nothing is differentiated
  }
}

}  // namespace detail

// The program has come here: a tracker's `on_note` is told with this label, once each time the place is passed, in a backward
// phase that computes it again too. The label is a literal.
template <tensor X>
constexpr void note(const X& x, const char* label) {
  detail::tell_mark(call_mark::note, x, label);
}

// When the gradient of x, as it is here, is complete, a tracker's `on_gradient` is told with this label. A write in place that comes
// later makes another value of x, whose gradient is another one: this law and the order of several hooks on one tensor, that of
// their registration, are PyTorch's Tensor.register_hook.
template <tensor X>
constexpr void register_hook(const X& x, const char* label) {
  detail::tell_mark(call_mark::hook, x, label);
}

}  // namespace shardwise::inline v0_1
