# SPDX-License-Identifier: Apache-2.0
"""Mutants of module trackers, training states, hooks around forward, and storage that inputs get (set_)."""

CALLS = "graph/calls.hpp"
PROBES = "pass/functionalise/probes.hpp"
EVENTS = "module/tracker/events.hpp"
TRACKER = "module/tracker/tracker.hpp"
WATCHED = "module/tracker/watched.hpp"
RUNS = "module/tracker/runs.hpp"
FUNCTIONAL = "pass/functionalise/functional.hpp"
LOWERED = "runtime/program/lowered_program.hpp"
SEEDS = "dist/module/tracker.cpp"
RUN = "dist/module/tracked_runs.cpp"
STATES = "dist/module/hooks_and_states.cpp"
SET = "dist/functions/set_storage.cpp"

MUTANTS = [
    ("tracker: hooks of one tensor fire the last one first", EVENTS, "    if (first[n] == 0) first[n] = k + 1;\n    else next[last[n] - 1] = k + 1;\n    last[n] = k + 1;",
     "    next[k] = first[n];\n    first[n] = k + 1;", (SEEDS,)),
    ("tracker: a hook on several tensors fires with the first", EVENTS, "if (--waiting[m] > 0) continue;", "if (waiting[m]-- < 0) continue;", (SEEDS,)),
    ("tracker: operands that take no gradient are waited for", EVENTS, "if (n < 0 || !sweep.needs[n] || sweep.cotangent[n] < 0) return;",
     "if (n < 0) return;", (SEEDS,)),
    ("tracker: a leaf's gradient is complete with its first contribution", EVENTS, "if (--readers[leaf] == 0) complete(out, leaf, pulled_by(i));",
     "complete(out, leaf, pulled_by(i));", (SEEDS, RUN)),
    ("tracker: a leaf's gradient is complete where it stands", EVENTS, "if (!is_leaf(g.nodes[i].op)) complete(out, i, sweep.began[i]);",
     "complete(out, i, sweep.began[i]);", (SEEDS,)),
    ("tracker: a checkpointed module is computed again before its gradient is known", EVENTS,
     "      if (!is_leaf(g.nodes[i].op)) complete(out, i, sweep.began[i]);\n      if (any_checkpointed && reads_forward(i)) compute_again(out, i);",
     "      if (any_checkpointed && reads_forward(i)) compute_again(out, i);\n      if (!is_leaf(g.nodes[i].op)) complete(out, i, sweep.began[i]);", (SEEDS,)),
    ("tracker: a checkpointed module is computed again for every node", EVENTS, "|| again[m] ||", "|| false ||", (SEEDS,)),
    ("tracker: what a checkpoint computes again comes behind its events", WATCHED, "if (first >= 0) at = ", "if (false) at = ", (RUN,)),
    ("tracker: nodes that are computed again count as places", WATCHED, "if (replay_of(g, i) < 0) behind[++k] = i + 1;", "behind[++k] = i + 1;", (RUN,)),
    ("tracker: a tensor is what it is behind all writes", PROBES, "Log::value.mark[s.marked].at <= s.cursor", "s.cursor == Source::value.node_count", (SEEDS,)),
    ("tracker: pre_bw before the name is a parent", TRACKER, "        append(m);\n        name_of(m).state = training_state::pre_backward;\n        return tell(2, m);",
     "        tell(2, m);\n        name_of(m).state = training_state::pre_backward;\n        return append(m);", (SEEDS,)),
    ("tracker: post_bw when the name is no parent any more", TRACKER, "        tell(3, m);\n        return pop(m);", "        pop(m);\n        return tell(3, m);", (SEEDS,)),
    ("tracker: post_fw when the name is no parent any more", TRACKER, "        tell(1, m);\n        pop(m);", "        pop(m);\n        tell(1, m);", (SEEDS,)),
    ("tracker: what is begun is a parent after a backward", TRACKER, "if (reset_at_end_) only_global();", "", (SEEDS,)),
    ("tracker: counters do not count", TRACKER, "n.active = n.parent ? n.active + 1 : 1;", "n.active = 1;", (RUN, SEEDS)),
    ("tracker: counters go on where a name is no parent", TRACKER, "n.active = n.parent ? n.active + 1 : 1;", "++n.active;", (SEEDS, RUN)),
    ("tracker: a module that is gone is given to hooks", TRACKER, "modules_[static_cast<std::size_t>(m)].gone ? -1 : m", "m", (SEEDS,)),
    ("tracker: a second hook takes the place of the first", TRACKER, "      if (hooks_[which])\n        throw", "      if (false)\n        throw", (SEEDS, RUN)),
    ("tracker: hooks are checked from the last one", TRACKER, "    set_hook(0, pre_fw);\n    set_hook(1, post_fw);\n    set_hook(2, pre_bw);\n    set_hook(3, post_bw);",
     "    set_hook(3, post_bw);\n    set_hook(2, pre_bw);\n    set_hook(1, post_fw);\n    set_hook(0, pre_fw);", (RUN,)),
    ("tracker: a list is no part of a name", TRACKER, "s.name ? -1 : s.index", "-1", (SEEDS, RUN)),
    ("tracker: recomputation counts as the forward's state", TRACKER, "if (!backward_) name_of(m).state = training_state::forward;",
     "name_of(m).state = training_state::forward;", (STATES,)),
    ("tracker: an exception leaves modules under way", RUNS, "if (next_ < events_->count) tracker_->abandon();", "", (RUN,)),
    ("tracker: events come behind the node", RUNS, "events_->item[next_].at <= node", "node > events_->item[next_].at", (RUN,)),
    ("tracker: dead nodes count as places", RUNS, "const auto marked = passes::detail::marked(all);",
     "const all_live<65536> marked;", (RUN,)),
    ("tracker: a call that throws has no end", CALLS, "if (watcher) watcher->leave(called);", "", (RUN,)),
    ("states: the scope leaves its state behind", "module/training_state.hpp", "constexpr ~use_training_state() { *state_ = before_; }",
     "constexpr ~use_training_state() { *state_ = training_state::idle; }", (STATES,)),
    ("hooks: an opaque hook's body is traced", "module/forward_hooks.hpp", "} else if constexpr (Bodies == hook_bodies::opaque) {",
     "} else if constexpr (false) {", (STATES,)),
    ("set_: the input keeps its storage", LOWERED, "      e.done = !e.done;", "      if (!e.done) continue;", (SET,)),
    ("set_: the next run computes where the input is", LOWERED, "else if (at >= b && at < b + e.bytes) p = a + (at - b);", "", (SET,)),
    ("set_: what was computed is looked for in the free storage", LOWERED, "if (tables_.plan.owner[id] == e.spare && id != e.spare)", "if (false)", (SET,)),
    ("set_: it becomes a copy", FUNCTIONAL, "for (int s = i; s < g.node_count; ++s)\n      if (sets_storage(g.nodes[s])", "for (int s = i; s < g.node_count; ++s)\n      if (false && sets_storage(g.nodes[s])", (SET,)),
    ("set_: an output lies where the next run writes", FUNCTIONAL, "if (stored_in(b, o) == value) o = dense(", "if (false) o = dense(", (SET,)),
    ("steps: dead casts of gradients are counted as nodes that run", "module/tracker/runs.hpp", "typename graphs::applied>::type", "typename graphs::written>::type",
     ("dist/module/tracked_runs.cpp",)),
]
