// SPDX-License-Identifier: Apache-2.0
// call_log: what a trace tells of its modules' calls while it records: who was called with which tensors, before which node.
#pragma once

#include <tuple>

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

// enter, leave: a module's call begins with its operands, and ends with its results. note: the program has come to a place that
// the user named. hook: the user asks to be told when the gradient of a tensor is known.
enum class call_mark : std::uint8_t { enter, leave, note, hook };

// One of them: `at` nodes were recorded before it; its tensors are tensors[first .. first + count) of the log.
struct module_mark {
  call_mark kind = call_mark::note;
  std::int32_t scope = -1;
  std::int32_t at = 0;
  std::int32_t first = 0, count = 0;
  const char* label = nullptr;
};

// Marks in the making, without owning them; past the capacity it counts without storing, as a builder does. A builder without a
// log records the same nodes.
struct call_log {
  module_mark* marks = nullptr;
  std::int32_t* tensors = nullptr;
  int mark_capacity = 0, tensor_capacity = 0;
  int mark_count = 0, tensor_count = 0;
  int frame_count = 0;  // bodies of forward_hooks that the trace went into

  constexpr void begin(call_mark kind, int scope, int at, const char* label = nullptr) {
    if (mark_count < mark_capacity) marks[mark_count] = {kind, scope, at, tensor_count, 0, label};
    ++mark_count;
  }
  // A tensor of the mark begun last: the node that it is.
  constexpr void add(int id) {
    if (tensor_count < tensor_capacity) tensors[tensor_count] = id;
    if (mark_count <= mark_capacity) ++marks[mark_count - 1].count;
    ++tensor_count;
  }
};

// The same of modules that are called on eager tensors, while they are: told of the objects.
struct module_watcher {
  virtual void enter(const void* module) = 0;
  virtual void leave(const void* module) = 0;
  virtual void note(const char* label) = 0;

 protected:
  ~module_watcher() = default;
};

// The marks of one trace, owned.
template <int Marks, int Tensors>
struct call_marks {
  module_mark mark[Marks > 0 ? Marks : 1];
  std::int32_t tensor[Tensors > 0 ? Tensors : 1]{};
  int mark_count = 0, tensor_count = 0;

  constexpr call_log log() {
    call_log l;
    l.marks = mark;
    l.tensors = tensor;
    l.mark_capacity = Marks;
    l.tensor_capacity = Tensors;
    return l;
  }
  constexpr void finish(const call_log& l) {
    mark_count = l.mark_count;
    tensor_count = l.tensor_count;
  }
};

namespace detail {

// Tells the log of x's trace of a tensor, or of each one in a tuple.
template <class X>
constexpr void tell_tensor(call_log& log, const X& x) {
  if constexpr (requires { x.strict; }) tell_tensor(log, x.strict);
  else if constexpr (requires { x.b->calls; }) {
    if (x.b && x.id >= 0) log.add(x.id);
  } else if constexpr (requires { X::names::count; }) tell_tensor(log, x.all);
  else if constexpr (requires { x.value.b->calls; }) tell_tensor(log, x.value);
}
template <class... X>
constexpr void tell_tensor(call_log& log, const std::tuple<X...>& x) {
  std::apply([&](const auto&... each) { (tell_tensor(log, each), ...); }, x);
}

// While alive, a module is being called, and the builder's scope is the call's: its trace's log, if it has one, is told with which operands, and by `leave` with
// which result. Eager tensors' watcher is told of the object, and that its call ends whatever ends it.
struct call_watch {
  builder* b = nullptr;
  int scope = -1;
  module_watcher* watcher = nullptr;
  const void* called = nullptr;

  template <class X, class... More>
  constexpr call_watch(const void* object, const X& x, const More&... more) {
    if constexpr (requires { x.strict.b; }) begin(x.strict.b, x, more...);
    else if constexpr (requires { x.b->calls; }) begin(x.b, x, more...);
    else if constexpr (requires { x.strict.watcher(); }) begin(object, x.strict.watcher());
    else if constexpr (requires { x.watcher(); }) begin(object, x.watcher());
  }
  constexpr ~call_watch() {
    if (watcher) watcher->leave(called);
  }
  call_watch(const call_watch&) = delete;
  call_watch& operator=(const call_watch&) = delete;

  template <class Y>
  constexpr void leave(const Y& y) const {
    if (!b) return;
    b->calls->begin(call_mark::leave, scope, b->node_count);
    tell_tensor(*b->calls, y);
  }

 private:
  constexpr void begin(const void* object, module_watcher* w) {
    if (!w) return;
    w->enter(object);
    watcher = w;
    called = object;
  }
  template <class... X>
  constexpr void begin(builder* at, const X&... x) {
    if (!at || !at->calls) return;
    b = at;
    scope = b->current_scope;
    b->calls->begin(call_mark::enter, scope, b->node_count);
    (tell_tensor(*b->calls, x), ...);
  }
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
