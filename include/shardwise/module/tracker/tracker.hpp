// SPDX-License-Identifier: Apache-2.0
// module_tracker: which modules are in their forward or backward, by name, at any moment of a program; and users' hooks there.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <shardwise/module/tracker/events.hpp>
#include <shardwise/module/training_state.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/support/dynamic_array.hpp>
#include <shardwise/support/spelling.hpp>

namespace shardwise::inline v0_1 {

class module_tracker;

// A module as hooks see it; false: the module is gone, and only its name was known.
class tracked_module {
 public:
  constexpr explicit operator bool() const { return module_ >= 0; }
  // "gpt.blocks.3.fc": the root's class, then the path that errors, explain and timelines give; "" of a module that is gone.
  constexpr std::string_view name() const;
  // Where it is in its training step: modules of one name are one. idle of a module that is gone.
  constexpr training_state state() const;

 private:
  friend class module_tracker;
  constexpr tracked_module(const module_tracker& of, int module) : tracker_(&of), module_(module) {}

  const module_tracker* tracker_;
  int module_;
};

// While it exists, so do the modules of the model that it was given for. Declare it behind the model, or as a member behind it; the
// tracker lives longer.
class module_lifetime {
 public:
  constexpr module_lifetime(module_tracker& tracker, const void* model) : tracker_(&tracker), model_(model) {}
  constexpr ~module_lifetime();
  module_lifetime(const module_lifetime&) = delete;
  module_lifetime& operator=(const module_lifetime&) = delete;

 private:
  module_tracker* tracker_;
  const void* model_;
};

namespace detail {

template <class... X>
struct user_hook {
  constexpr virtual void call(X... x) = 0;
  constexpr virtual ~user_hook() = default;
};
template <class F, class... X>
struct user_hook_of final : user_hook<X...> {
  F f;
  constexpr explicit user_hook_of(const F& given) : f(given) {}
  constexpr void call(X... x) override { f(x...); }
  constexpr ~user_hook_of() override {}
};

// The class of a module without its namespaces and arguments: "mlp".
template <class Model>
constexpr std::string_view class_name() {
  const std::string_view s = text::template_name(spelling<Model>());
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < s.size(); ++i)
    if (s[i] == ':' && s[i + 1] == ':') at = i + 2;
  return s.substr(at);
}

}  // namespace detail

// PyTorch's ModTracker. A program's events move it (run_tracked, tracked_value_and_grad, replay): all that happens is what the
// program does, in its order. Laws:
//   names     a root has its class's name, a member its parent's, a dot and its own; lists, and structs that are never called, give
//             their names and have no events. Modules of one name, as those of two roots of one class, count together.
//   parents   the names of modules that are in their forward or backward, "Global" always. A name is taken out when as many calls
//             have ended as have begun.
//   backward  is_bw() from its begin to its end, where parents become "Global" alone: modules whose operands take no gradient have
//             no end of their own. What is computed again in it counts as forward, under is_bw().
//   hooks     pre_fw and pre_bw run when the name is in parents already, post_fw and post_bw while it still is.
// A tracker can be used in constants, too; there a hook is a constexpr function object.
class module_tracker {
 public:
  constexpr module_tracker() { names_[name_id("Global", "", -1)].parent = true; }
  constexpr ~module_tracker() {
    clear_user_hooks();
    delete on_note_;
    delete on_gradient_;
  }
  module_tracker(const module_tracker&) = delete;
  module_tracker& operator=(const module_tracker&) = delete;

  constexpr bool is_bw() const { return backward_; }
  constexpr bool is_parent(std::string_view name) const {
    for (const known_name& n : names_)
      if (n.parent && n.view() == name) return true;
    return false;
  }
  // In the order in which their names were first met. Valid as long as the tracker.
  constexpr dynamic_array<std::string_view> parents() const {
    dynamic_array<std::string_view> r;
    for (const known_name& n : names_)
      if (n.parent) r.push_back(n.view());
    return r;
  }
  // Where the modules of this name are in their training step; idle of a name that is not known.
  constexpr training_state state_of(std::string_view name) const {
    for (const known_name& n : names_)
      if (n.view() == name) return n.state;
    return training_state::idle;
  }
  // Calls of a module whose name was in parents already, outside a backward: it calls itself, or two roots have one name.
  constexpr int warnings() const { return warnings_; }
  static constexpr std::string_view warning =
      "The module hierarchy tracking maybe be messed up. Please file a bug to PyTorch, if it is the case.";

  // Each is nullptr or a function of a tracked_module. Checked one after the other, in this order: a hook given where one is
  // registered throws std::logic_error, and those before it are set; nullptr takes a registered one away.
  template <class PreFw, class PostFw, class PreBw, class PostBw>
  constexpr void register_user_hooks(PreFw pre_fw, PostFw post_fw, PreBw pre_bw, PostBw post_bw) {
    set_hook(0, pre_fw);
    set_hook(1, post_fw);
    set_hook(2, pre_bw);
    set_hook(3, post_bw);
  }
  constexpr void clear_user_hooks() {
    for (hook*& h : hooks_) {
      delete h;
      h = nullptr;
    }
  }
  // f(label) where the program passes sw::note, and where the gradient of a tensor with a hook (sw::register_hook) is complete.
  template <class F>
  constexpr void on_note(F f) {
    delete on_note_;
    on_note_ = new detail::user_hook_of<F, const char*>(f);
  }
  template <class F>
  constexpr void on_gradient(F f) {
    delete on_gradient_;
    on_gradient_ = new detail::user_hook_of<F, const char*>(f);
  }

  // From now on the tracker knows when the model ends: hooks that run later get no module.
  template <class Model>
  [[nodiscard]] constexpr module_lifetime watch(const Model& model) {
    return module_lifetime(*this, &model);
  }

  // --- what moves it ----------------------------------------------------------------------------------------------------

  // The modules of a program: scope k of it is module r + k, r the result. A program that was here before, of the same model, has
  // them already. `model`: whose modules they are, null: of no object.
  template <class Root>
  constexpr int enter_program(const scope* scopes, int count, const void* model = nullptr) {
    for (std::size_t m = 0; m < modules_.size(); ++m)
      if (modules_[m].scopes == scopes && modules_[m].model == model && !modules_[m].gone) return static_cast<int>(m);
    const int first = static_cast<int>(modules_.size());
    for (int k = 0; k < count; ++k) {
      const scope& s = scopes[k];
      known_module m;
      m.scopes = scopes;
      m.model = model;
      m.name = s.parent < 0 ? name_id(detail::class_name<Root>(), "", -1)
                            : name_id(names_[modules_[static_cast<std::size_t>(first + s.parent)].name].view(),
                                      s.name ? std::string_view(s.name) : std::string_view(), s.name ? -1 : s.index);
      modules_.push_back(m);
    }
    return first;
  }
  // Throws std::logic_error where a call ends that never began.
  constexpr void happen(const module_event& e, int first_module) {
    const int m = first_module + e.scope;
    switch (e.kind) {
      case module_event_kind::pre_forward:
        append(m);
        if (!backward_) name_of(m).state = training_state::forward;
        return tell(0, m);
      case module_event_kind::post_forward:
        tell(1, m);
        pop(m);
        if (!backward_ && !name_of(m).parent) name_of(m).state = training_state::idle;
        return;
      case module_event_kind::pre_backward:
        reset_at_end_ = true;
        append(m);
        name_of(m).state = training_state::pre_backward;
        return tell(2, m);
      case module_event_kind::post_backward:
        name_of(m).state = training_state::post_backward;
        tell(3, m);
        return pop(m);
      case module_event_kind::note:
        if (on_note_) on_note_->call(e.label);
        return;
      case module_event_kind::gradient:
        if (on_gradient_) on_gradient_->call(e.label);
        return;
      case module_event_kind::begin_backward: backward_ = true; return;
      case module_event_kind::end_backward:
        backward_ = false;
        if (reset_at_end_) only_global();
        reset_at_end_ = false;
        return;
    }
  }
  // The scopes of these modules end: another program may have its own there.
  constexpr void leave_program(int first, int count) {
    for (int m = first; m < first + count; ++m) modules_[static_cast<std::size_t>(m)].scopes = nullptr;
  }
  // A run has ended by an exception: nothing is under way any more.
  constexpr void abandon() {
    backward_ = reset_at_end_ = false;
    only_global();
  }

 private:
  friend class tracked_module;
  friend class module_lifetime;
  using hook = detail::user_hook<tracked_module>;

  struct known_name {
    dynamic_array<char> text;
    int active = 0;  // calls that have begun and not ended
    bool parent = false;
    training_state state = training_state::idle;
    constexpr std::string_view view() const { return {text.data(), text.size()}; }
  };
  struct known_module {
    const scope* scopes = nullptr;
    const void* model = nullptr;
    std::size_t name = 0;
    bool gone = false;
  };

  // The name "parent.own", "parent.index" or "parent".
  constexpr std::size_t name_id(std::string_view parent, std::string_view own, int index) {
    dynamic_array<char> text;
    for (const char c : parent) text.push_back(c);
    if (!own.empty() || index >= 0) text.push_back('.');
    for (const char c : own) text.push_back(c);
    if (index >= 0) {
      const std::size_t at = text.size();
      for (int rest = index; rest > 0 || text.size() == at; rest /= 10) text.push_back(static_cast<char>('0' + rest % 10));
      for (std::size_t a = at, z = text.size() - 1; a < z; ++a, --z) {
        const char c = text[a];
        text[a] = text[z];
        text[z] = c;
      }
    }
    const std::string_view wanted(text.data(), text.size());
    for (std::size_t n = 0; n < names_.size(); ++n)
      if (names_[n].view() == wanted) return n;
    known_name n;
    n.text = text;
    names_.push_back(n);
    return names_.size() - 1;
  }

  constexpr known_name& name_of(int m) { return names_[modules_[static_cast<std::size_t>(m)].name]; }
  constexpr void append(int m) {
    known_name& n = name_of(m);
    if (n.parent && !backward_) ++warnings_;
    n.active = n.parent ? n.active + 1 : 1;
    n.parent = true;
  }
  constexpr void pop(int m) {
    known_name& n = name_of(m);
    if (n.parent) {
      if (--n.active == 0) n.parent = false;
    } else if (!backward_) {
      throw std::logic_error("shardwise: module_tracker: The Module hierarchy tracking is wrong: a call of " +
                             std::string(n.view()) + " ends that has not begun");
    }
  }
  constexpr void only_global() {
    for (known_name& n : names_) {
      n.parent = false;
      n.state = training_state::idle;
    }
    names_[0].parent = true;
  }
  constexpr void tell(int which, int m) {
    if (hooks_[which]) hooks_[which]->call(tracked_module(*this, modules_[static_cast<std::size_t>(m)].gone ? -1 : m));
  }
  template <class F>
  constexpr void set_hook(int which, const F& f) {
    constexpr const char* names[] = {"pre_fw_hook", "post_fw_hook", "pre_bw_hook", "post_bw_hook"};
    if constexpr (std::is_same_v<F, std::nullptr_t>) {
      delete hooks_[which];
      hooks_[which] = nullptr;
    } else {
      constexpr bool fits = std::is_invocable_v<const F&, tracked_module> || std::is_invocable_v<F&, tracked_module>;
      static_assert(raise<(fits ? problem::none : problem::tracker_hook), F>::ok);
      if (hooks_[which])
        throw std::logic_error(std::string("shardwise: module_tracker: Only one ") + names[which] +
                               " can be registered at a time. Clear the existing hook by calling clear_user_hooks before "
                               "registering a new one");
      if constexpr (fits) hooks_[which] = new detail::user_hook_of<F, tracked_module>(f);
    }
  }
  constexpr void forget(const void* model) {
    for (known_module& m : modules_)
      if (m.model == model) m.gone = true;
  }

  dynamic_array<known_name> names_;  // the first: "Global"
  dynamic_array<known_module> modules_;
  hook* hooks_[4]{};  // pre_fw, post_fw, pre_bw, post_bw
  detail::user_hook<const char*>* on_note_ = nullptr;
  detail::user_hook<const char*>* on_gradient_ = nullptr;
  bool backward_ = false, reset_at_end_ = false;
  int warnings_ = 0;
};

constexpr std::string_view tracked_module::name() const {
  if (module_ < 0) return {};
  return tracker_->names_[tracker_->modules_[static_cast<std::size_t>(module_)].name].view();
}
constexpr training_state tracked_module::state() const {
  if (module_ < 0) return training_state::idle;
  return tracker_->names_[tracker_->modules_[static_cast<std::size_t>(module_)].name].state;
}
constexpr module_lifetime::~module_lifetime() { tracker_->forget(model_); }

}  // namespace shardwise::inline v0_1
