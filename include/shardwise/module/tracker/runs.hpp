// SPDX-License-Identifier: Apache-2.0
// What moves a tracker at run time: a compiled step, a model's gradients computed at once, modules called on eager tensors.
#pragma once

#include <shardwise/module/eager_gradient.hpp>
#include <shardwise/module/tracker/watched.hpp>
#include <shardwise/runtime/executor/executor.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// Each event before the node it comes before. A run that ends by an exception leaves the tracker with nothing under way.
template <class Events>
class event_replay final : public runtime::call_observer {
 public:
  event_replay(module_tracker& tracker, const Events& events, int first)
      : tracker_(&tracker), events_(&events), first_(first) {}
  ~event_replay() {
    if (next_ < events_->count) tracker_->abandon();
  }
  event_replay(const event_replay&) = delete;
  event_replay& operator=(const event_replay&) = delete;
  void before(int node) override {
    while (next_ < events_->count && events_->item[next_].at <= node) {
      const int now = next_;
      tracker_->happen(events_->item[now], first_);
      ++next_;
    }
  }

 private:
  module_tracker* tracker_;
  const Events* events_;
  int first_, next_ = 0;
};

// Whether the first nodes of two graphs are the same operations of the same operands.
template <class A, class B>
constexpr bool begins_alike(const A& a, const B& b, int count) {
  if (a.node_count < count || b.node_count < count) return false;
  for (int i = 0; i < count; ++i) {
    const node &x = a.nodes[i], &y = b.nodes[i];
    bool same = x.op == y.op && x.scope == y.scope && x.inputs == y.inputs;
    for (int k = 0; same && k < x.inputs; ++k) same = x.in[k] == y.in[k];
    if (!same) return false;
  }
  return true;
}

template <int Nodes>
struct all_live {
  unsigned char live[Nodes > 0 ? Nodes : 1];
  constexpr all_live() {
    for (unsigned char& l : live) l = 1;
  }
};

// --- compiled steps -----------------------------------------------------------------------------------------------------

// The events of a step in its final program.
template <class Step>
struct step_events;
template <template <class> class Model, class Task, class Plan, class Mesh, class Optimizer, class Pipeline, class T,
          class Backend>
struct step_events<train_step<Model, Task, Plan, Mesh, Optimizer, Pipeline, T, Backend>> {
  static constexpr bool in_pieces = accumulation_of<Plan>::type::shardwise_micro_batches > 1;
  static constexpr bool as_traced =
      std::is_same_v<passes_of_step<Plan, Mesh, Pipeline>, pipeline<>> && !in_pieces && !keeping_of<Plan>::any;
  static_assert(raise<(as_traced ? problem::none : problem::tracker_pipeline), Pipeline, Plan>::ok);
  using graphs = step_graph<Model, Task, Plan, Mesh, Optimizer, pipeline<>, T>;
  using watched_type = module_events_of<Model, Task, Plan, Mesh, T>;
  using root = typename watched_type::trace_type::unbound_model;
  static constexpr const auto& joint = watched_type::joint::value.g;
  static constexpr bool sunk = writes_leaves<typename graphs::trace_type>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(raise<(in_pieces || begins_alike(joint, graphs::joint::value.g, joint.node_count) ? problem::none
                                                                                                  : problem::tracker_views),
                      Task>::ok);
#endif
  // among the nodes that the optimizer goes on from, then beside what is computed again, then among those that live
  static constexpr auto value = [] {
    constexpr all_live<std::remove_cvref_t<decltype(joint)>::node_capacity> every;
    const auto moved = placed_in(watched_type::events, joint, every.live, sunk);
    const auto& all = planned<Plan, typename graphs::applied>::type::value;
    const auto marked = passes::detail::marked(all);
    return placed_in(placed_beside_replays(moved, all), all, marked.live, false);
  }();
};

// --- gradients of an eager model --------------------------------------------------------------------------------------------

template <class Bound, class Task, class Wrt, class... X>
using watched_loss = watched<traced_loss<Bound, Task, X...>, Wrt>;

template <class Bound, class Task, class Wrt, class... X>
struct watched_gradient
    : gradient_program<Bound, typename watched_loss<Bound, Task, Wrt, X...>::trace_type,
                       typename watched_loss<Bound, Task, Wrt, X...>::joint, Wrt, static_cast<int>(sizeof...(X))> {
  using watched_type = watched_loss<Bound, Task, Wrt, X...>;
  static constexpr auto events = [] {
    constexpr const auto& joint = watched_type::joint::value.g;
    constexpr all_live<std::remove_cvref_t<decltype(joint)>::node_capacity> every;
    return placed_beside_replays(
        placed_in(watched_type::events, joint, every.live, writes_leaves<typename watched_type::trace_type>),
        watched_gradient::program);
  }();
};

template <class... X>
struct given_tensors {
  template <int K>
  using at = std::tuple_element_t<static_cast<std::size_t>(K), std::tuple<X...>>;
};

// The gradient of an input of type X.
template <class X>
struct input_gradient {
  static constexpr spec placed = contiguous(dual(X::sp));
  using type = typename X::template like<placed>;
};

template <class Task, int... W>
struct watched_task_gradient {
  module_tracker& tracker;
  template <class Model, tensor X, tensor... More>
  auto operator()(const Model& model, const X& x, const More&... more) const {
    using program = watched_gradient<typename Model::bound, Task, wrt<W...>, X, More...>;
    constexpr int at = program::parameter_total + program::program.output_count;
    typename X::untyped out[program::result_count];
    {
      const int first = tracker.enter_program<typename program::trace_type::unbound_model>(
          program::trace_type::value.scopes, program::trace_type::value.scope_count, &model);
      event_replay replay(tracker, program::events, first);
      compute_gradients<program>(out, &replay, model, x, more...);
    }
    auto r = named_gradients<program, Model, X>(out);
    struct with_inputs : decltype(r) {
      std::tuple<typename input_gradient<typename given_tensors<X, More...>::template at<W>>::type...> inputs;
    };
    int k = at;
    return with_inputs{
        std::move(r),
        {input_gradient<typename given_tensors<X, More...>::template at<W>>::type::of(std::move(out[k++]))...}};
  }
};

// --- modules called on eager tensors --------------------------------------------------------------------------------------

// Names objects as a program's scopes are named.
struct object_walk {
  dynamic_array<scope> scopes;
  dynamic_array<const void*> objects;  // null: a list
  int now = -1;

  int enter(const char* name, int index) {
    const int outer = now;
    scopes.push_back({name, index, now});
    objects.push_back(nullptr);
    now = static_cast<int>(scopes.size()) - 1;
    return outer;
  }
  int current() const { return now; }
  void exit(int outer) { now = outer; }
  template <class M>
  void object(const M& m) {
    objects.back() = static_cast<const module<M, typename M::bound>*>(&m);
  }
  template <class Decl, class Tensor>
  void leaf(Tensor&, const char*) {}
};

}  // namespace detail

// One run of a train_step's program, as executor::run(env), in which what happens to modules moves the tracker: each event before the
// call that it comes before; of collectives beside kernels, before they are issued. The step's pipeline is empty. Throws what the run
// and the hooks throw; then the tracker has nothing under way. Collective.
template <class Step, class Rank>
void run_tracked(module_tracker& tracker, executor<Step, Rank>& run, const step_env& env) {
  using events = detail::step_events<Step>;
  const auto& g = Step::program;
  detail::event_replay replay(tracker, events::value, tracker.enter_program<typename events::root>(g.scopes, g.scope_count));
  struct unseen {
    executor<Step, Rank>& run;
    ~unseen() { run.observe(nullptr); }
  } at_end{run};
  run.observe(&replay);
  run.run(env);
}

// value_and_grad(task), watched: auto [...] as there, and the gradients of the inputs W as the tuple `inputs`, placed as gradients
// are. A hook may end the model when its forward has ended: what is still to be read of it the run holds.
template <int... W, class Task>
auto tracked_value_and_grad(module_tracker& tracker, Task) {
  return detail::watched_task_gradient<Task, W...>{tracker};
}

// While it exists, calls of this model's modules on tensors of `on` move the tracker. The model stays where it is. A call ends for
// the tracker whatever ends it, an exception too. A module that no such model has: std::logic_error.
template <class Rank>
class tracked_calls final : public module_watcher {
 public:
  template <class Model>
  tracked_calls(module_tracker& tracker, const eager<Rank>& on, const Model& model) : tracker_(tracker), core_(on.core()) {
    if (core_.watcher)
      throw std::logic_error("shardwise: tracked_calls: another one watches the calls on this run's tensors; end it first");
    using unbound_model = typename Model::bound::unbound_module;
    detail::visit_module<unbound_model>(model, "", -1, walk_);
    first_ = tracker.enter_program<unbound_model>(walk_.scopes.data(), static_cast<int>(walk_.scopes.size()), &model);
    core_.watcher = this;
  }
  ~tracked_calls() {
    core_.watcher = nullptr;
    tracker_.leave_program(first_, static_cast<int>(walk_.scopes.size()));
  }
  tracked_calls(const tracked_calls&) = delete;
  tracked_calls& operator=(const tracked_calls&) = delete;

  void enter(const void* module) override { happen(module_event_kind::pre_forward, module); }
  void leave(const void* module) override { happen(module_event_kind::post_forward, module); }
  void note(const char* label) override { tracker_.happen({module_event_kind::note, -1, 0, label}, first_); }

 private:
  void happen(module_event_kind kind, const void* module) {
    for (std::size_t k = 0; k < walk_.objects.size(); ++k)
      if (walk_.objects[k] == module) return tracker_.happen({kind, static_cast<int>(k), 0, nullptr}, first_);
    throw std::logic_error(
        "shardwise: tracked_calls: a module is called that is none of the model's; watch the model that it belongs to");
  }

  module_tracker& tracker_;
  runtime::eager_core<Rank>& core_;
  detail::object_walk walk_;
  int first_ = 0;
};

}  // namespace shardwise::inline v0_1
