// SPDX-License-Identifier: Apache-2.0
// iterated_executor: runs setup, main and cleanup of an iterated step, in turn, on one arena.
#pragma once

#include <shardwise/pass/iteration/iteration.hpp>
#include <shardwise/runtime/executor/executor.hpp>

namespace shardwise::inline v0_1 {

// Iterated: see module/iterated.hpp. Parameters, states and inputs are those of `main()`, whichever phase runs: they lie in one place.
template <class Iterated, class Rank = thread_rank<typename Iterated::mesh_type>>
class iterated_executor {
 public:
  using setup_executor = executor<typename Iterated::setup, Rank>;
  using main_executor = executor<typename Iterated::main, Rank>;
  using cleanup_executor = executor<typename Iterated::cleanup, Rank>;

  using numbers = typename main_executor::numbers;

  explicit iterated_executor(Rank& rank, executor_checks checks = executor_checks::none)
      : arena_(Iterated::peak_bytes),
        given_(main_executor::nothing_given(runtime::tables_of<typename Iterated::main>::get())),
        setup_(rank, bytes(), given_, checks),
        main_(rank, bytes(), given_, checks),
        cleanup_(rank, bytes(), given_, checks) {}

  // One iteration. `last` says that no further one follows (the parameters are then what they would be without moves);
  // the next call begins anew. At least two calls from setup to cleanup. What an update reads of `env` (lr, ...) stays as it is
  // from the first of them to the last: a moved update runs in the next call.
  void run(const step_env& env, bool last = false) { run_numbers(env, last); }
  template <class Names>
  void run(const grouped_env<Names>& env, bool last = false) {
    run_numbers(env, last);
  }
  // Of the last call's iteration.
  typename Iterated::element loss() const { return loss_; }
  // The same iteration's output of this name: see executor::output.
  template <fixed_string Name>
  auto output() const {
    return ran_ == iteration_phase::setup  ? setup_.template output<Name>()
           : ran_ == iteration_phase::main ? main_.template output<Name>()
                                           : cleanup_.template output<Name>();
  }
  template <class E = typename Iterated::element>
  local_block<E> output(std::string_view name) const {
    return ran_ == iteration_phase::setup  ? setup_.template output<E>(name)
           : ran_ == iteration_phase::main ? main_.template output<E>(name)
                                           : cleanup_.template output<E>(name);
  }
  // The same as a whole tensor: see executor::full_output. Collective.
  template <class E = typename Iterated::element>
  std::vector<E> full_output(int index = 0, int root = -1) {
    return ran_ == iteration_phase::setup  ? setup_.template full_output<E>(index, root)
           : ran_ == iteration_phase::main ? main_.template full_output<E>(index, root)
                                           : cleanup_.template full_output<E>(index, root);
  }
  template <fixed_string Name>
  auto full_output(int root = -1) {
    return ran_ == iteration_phase::setup  ? setup_.template full_output<Name>(root)
           : ran_ == iteration_phase::main ? main_.template full_output<Name>(root)
                                           : cleanup_.template full_output<Name>(root);
  }
  // Of the last update, which may be that of the iteration before: see executor::gradient_norm.
  double gradient_norm() { return main_.gradient_norm(); }
  std::int64_t iteration() const { return iteration_; }

  // As executor::record; the three programs are one timeline's phases.
  void record(timeline* t) {
    setup_.record(t, "setup");
    main_.record(t, "main");
    cleanup_.record(t, "cleanup");
  }

  main_executor& main() { return main_; }
  setup_executor& setup() { return setup_; }
  cleanup_executor& cleanup() { return cleanup_; }

 private:
  void run_numbers(const numbers& env, bool last) {
    if (iteration_ > 0 && Iterated::kept_values > 0) {
      static constexpr runtime::env_needs needs =
          runtime::env_needs_of(runtime::program_source<typename Iterated::main>::program);
      runtime::check_unchanged(needs, env, before_);
    }
    if (last && iteration_ == 0 && Iterated::kept_values > 0)
      throw std::logic_error(
          "shardwise: iterated_executor: the last iteration is also the first, and nothing is kept for it to "
          "finish; run at least two iterations, or the step without moves");
    if (last) {
      ran_ = iteration_phase::cleanup;
      cleanup_.run_numbers(env);
      loss_ = cleanup_.loss();
      iteration_ = 0;
      return;
    }
    ran_ = iteration_ == 0 ? iteration_phase::setup : iteration_phase::main;
    if (iteration_ == 0) {
      setup_.run_numbers(env);
      loss_ = setup_.loss();
    } else {
      main_.run_numbers(env);
      loss_ = main_.loss();
    }
    before_ = env;  // a call that has thrown is none
    ++iteration_;
  }
  std::span<std::byte> bytes() { return {arena_.data(), static_cast<std::size_t>(arena_.size())}; }

  runtime::arena arena_;
  runtime::given_values given_;
  setup_executor setup_;
  main_executor main_;
  cleanup_executor cleanup_;
  std::int64_t iteration_ = 0;
  numbers before_{};
  iteration_phase ran_ = iteration_phase::setup;
  typename Iterated::element loss_{};
};

}  // namespace shardwise::inline v0_1
