// SPDX-License-Identifier: Apache-2.0
// Trains under one plan, on host threads or GPUs, and compares the result with n-gram counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <shardwise/shardwise.hpp>

#include <shardwise/io/trace_export.hpp>
#include <shardwise/module/schedules.hpp>
#include <shardwise/pass/analysis/run_time.hpp>
#include <shardwise/runtime/program/describe.hpp>
#include <shardwise/runtime/program/shared_parameters.hpp>

#include "corpus.hpp"
#include "generate.hpp"
#include "ngram.hpp"
#include "options.hpp"
#include "places.hpp"
#include "plans.hpp"
#include "report.hpp"
#include "saving.hpp"

namespace train_text {

template <class Plan, class Place>
using step_on = sw::train_step<gpt_of<size>::gpt, typename Plan::task, typename Place::template plan<typename Plan::plan>,
                               typename Plan::mesh, sw::clip_norm<sw::adamw<true>>, typename Plan::pipeline, float,
                               typename Place::backend>;
template <class Plan, class Place>
using score_on = sw::with_parameters_of<
    sw::forward_step<gpt_of<size>::gpt, typename Plan::task, typename Place::template plan<typename Plan::plan>,
                     typename Plan::mesh, sw::pipeline<>, float, typename Place::backend>,
    step_on<Plan, Place>>;

static_assert(most_threads == sw::most_compute_threads);
inline constexpr std::size_t tokens_per_step = size::batch * size::time;
inline constexpr double peak_rate = 3e-3;
inline constexpr std::size_t first_traced = 4, traced_steps = 3;  // what comes before warms caches and clocks

// Linear warm-up, then a cosine down to a tenth. Within fewer than 25 steps Adam's first updates overshoot: the loss jumps, and with it
// every difference in rounding between plans.
inline auto learning_rates(std::size_t steps) {
  const std::int64_t all = static_cast<std::int64_t>(steps), warm = std::clamp<std::int64_t>(all / 10, 25, 100);
  return sw::warm_up(
      warm, sw::cosine_schedule{.from = peak_rate, .to = 0.1 * peak_rate, .steps = std::max<std::int64_t>(1, all - warm)});
}

struct batch {
  std::vector<std::int32_t> in = std::vector<std::int32_t>(tokens_per_step);
  std::vector<std::int32_t> next = std::vector<std::int32_t>(tokens_per_step);

  void take(const std::vector<std::uint8_t>& text, std::size_t row, std::size_t start) {
    for (std::size_t t = 0; t < size::time; ++t) {
      in[row * size::time + t] = text[start + t];
      next[row * size::time + t] = text[start + t + 1];
    }
  }
  // Row r of step s is a function of (seed, s, r): the same for every mesh.
  void draw(const std::vector<std::uint8_t>& text, std::uint64_t seed, std::size_t step_index) {
    for (std::size_t r = 0; r < size::batch; ++r) {
      const double u = sw::philox_uniform(seed, 0, static_cast<std::uint32_t>(step_index), r);
      take(text, r, static_cast<std::size_t>(u * static_cast<double>(text.size() - size::time)));
    }
  }
};

// Starts of the held-out spans that are scored, spread evenly over the held-out text, a whole number of batches.
inline std::vector<std::size_t> held_out_starts(std::size_t bytes) {
  const std::size_t spans = std::min<std::size_t>(64 * size::batch, bytes / (size::time + 1)) / size::batch * size::batch;
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < spans; ++i) starts.push_back(i * (bytes - size::time - 1) / spans);
  return starts;
}

// Batches that an evaluation during training takes of those, spread over them as evenly.
inline constexpr std::size_t evaluated_batches = 8;

// Bits per byte of `batches` batches of the spans. Judge: a program by the training's weights where they lie, so that looking changes nothing.
template <class Judge>
double held_out_bits(Judge& judge, const std::vector<std::uint8_t>& text, const std::vector<std::size_t>& starts,
                     std::size_t batches) {
  const std::size_t all = starts.size() / size::batch, count = std::min(batches, all);
  batch b;
  double total = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t first = k * all / count * size::batch;
    for (std::size_t r = 0; r < size::batch; ++r) b.take(text, r, starts[first + r]);
    judge.set_input(0, b.in);
    judge.set_input(1, b.next);
    judge.run({});
    total += judge.loss();
  }
  return total / static_cast<double>(count) / std::log(2.0);
}

// What every plan costs, side by side, with a mark at `mine`.
inline std::string compared_plans(std::string_view mine) {
  std::string out = "  plan     bytes sent a step  bytes of memory a rank\n";
  for (const plan_costs& c : all_plans) {
    std::string line = (c.name == mine ? "> " : "  ") + std::string(c.name);
    line.resize(11, ' ');
    const std::string sent = std::to_string(c.sent), peak = std::to_string(c.peak);
    line += std::string(17 - sent.size(), ' ') + sent + std::string(24 - peak.size(), ' ') + peak;
    out += line + "  " + std::string(c.meaning) + "\n";
  }
  return out + "\n";
}

// What a rank's kernels do in a step, as the operations' records count it: operations, and bytes that are read and written.
struct work {
  double flops = 0, bytes = 0;
};
template <class Step>
work work_of_step() {
  const auto& g = Step::program;
  work w;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    const bool views = n.inputs > 0 && sw::may_view(n.op) && sw::is_view(n, g.spec_of(n.in[0]), g.spec_of(i));
    if (!sw::runs_kernel(n.op) || views || sw::is_collective(g, i)) continue;
    w.flops += sw::flops_of(g, i);
    w.bytes += sw::bytes_of(g, i);
  }
  return w;
}
// -1: nothing was recorded.
inline double communication_share(const sw::timeline& t) {
  std::int64_t all = 0, waited = 0;
  for (const sw::timeline_run& r : t.runs()) {
    all += r.time.end - r.time.begin;
    const auto& calls = t.program_of(r).calls;
    for (const sw::timeline_event& e : t.events(r)) {
      const bool communicates = e.kind == sw::event_kind::call
                                    ? calls[static_cast<std::size_t>(e.call)].kind == sw::call_kind::communication
                                    : e.kind != sw::event_kind::launch;
      if (e.stream == 0 && communicates && e.time.end >= 0) waited += e.time.end - e.time.begin;
    }
  }
  return all > 0 ? static_cast<double>(waited) / static_cast<double>(all) : -1;
}

template <class Plan, class Place>
int train_at(const options& o) {
  using step = step_on<Plan, Place>;
  using score = score_on<Plan, Place>;
  using mesh = typename Plan::mesh;
  const bool silent = is_silent<Place>();
  if (silent) std::cout.setstate(std::ios::badbit);
  if (std::is_base_of_v<on_threads, Place>) std::cout << compared_plans(Plan::name);
  std::cout << sw::describe_plan<step>({Plan::axes.begin(), Plan::axes.end()}) << std::flush;
  if (o.plan_only) return 0;

  const corpus text = load_corpus(o.text, o.seed);
  require_at_least(text.train, tokens_per_step + size::batch, "the training text");
  require_at_least(text.held_out, size::batch * (size::time + 1), "the held-out text");
  std::optional<output_folder>
      out;  // of processes the one that speaks has it: whoever makes a folder and writes nothing removes it
  if (!silent) out.emplace(o.out, o.evaluate_every > 0);
  if (!o.trace.empty() && !std::ofstream(o.trace, std::ios::app))  // before the training, not after it
    throw usage_error("--trace needs a file that can be written, not '" + o.trace.string() + "'.");
  std::cout << "text: " << text.source << ", " << text.train.size() << " bytes in " << text.train_files.size()
            << " files to train on, " << text.held_out.size() << " bytes in " << text.held_out_files.size()
            << " files held out\n"
            << std::flush;

  std::vector<loss_point> curve, evaluations;
  example::progress bar(o.steps, tokens_per_step, "tokens");
  const stop_request stop(!o.save.empty());
  int ended_by = 0;  // a signal
  const std::vector<std::size_t> starts = held_out_starts(text.held_out.size());
  std::vector<std::vector<float>> parameters;
  double held_out = 0, speed = 0;
  std::vector<sw::timeline> timelines(o.trace.empty() ? 0 : mesh::size, sw::timeline(traced_steps));

  Place::template launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    const bool speaks = rank.index() == 0;
    if constexpr (requires { rank.compute_threads(o.threads); }) rank.compute_threads(o.threads);
    sw::executor<step, rank_type> run(rank);
    std::size_t first = 1;
    example::early_stopping patience{.patience = static_cast<std::int64_t>(o.patience)};
    if (o.resume.empty()) {
      run.initialise(o.seed);
    } else {
      const sw::loaded_checkpoint saved = sw::load(run, o.resume.string());
      const std::string note = check_resumed(o, saved, text.train);
      first = static_cast<std::size_t>(saved.step) + 1;
      patience = resumed(patience, saved);
      if (speaks) {
        std::cout << "going on behind step " << saved.step << " with " << saved.path << ", saved on " << saved.mesh << "\n"
                  << note;
        bar.start_at(first - 1);
      }
    }
    sw::executor<score, rank_type> judge(rank, run);  // by run's weights, where they lie
    batch b;
    sw::step_env env;
    env.seed = o.seed;
    env.beta2 = 0.99;
    env.weight_decay = 0.05;
    env.max_norm = 1;
    const auto rates = learning_rates(o.steps);
    loss_log losses(speaks);
    std::optional<sw::pending_save<rank_type>> pending;  // steps go on while it is written
    for (std::size_t s = first; s <= o.steps; ++s) {
      b.draw(text.train, o.seed, s);
      run.set_input(0, b.in);
      run.set_input(1, b.next);
      env.step = static_cast<std::int64_t>(s);
      env.lr = rates.at(env.step);  // counted from 1, so that the first update moves something
      if (!o.trace.empty() && s == std::min(first_traced, o.steps))
        run.record(&timelines[static_cast<std::size_t>(rank.index())]);
      if (s == first_traced + traced_steps) run.record(nullptr);
      run.run(env);
      const double bits = run.loss() / std::log(2.0);
      if (speaks && !std::isfinite(bits))
        throw std::runtime_error("train_text: the loss is not finite at step " + std::to_string(s));
      losses.add(s, bits);
      bool enough = false;
      const auto evaluate = [&] {
        const double held = held_out_bits(judge, text.held_out, starts, evaluated_batches);
        enough = sw::any_rank(rank, patience.after(held));
        if (speaks) evaluations.push_back({s, held});
      };
      if (o.evaluate_every > 0 && s % o.evaluate_every == 0) {
        if (speaks) bar.aside(evaluate);
        else evaluate();
      }
      if (speaks) {
        curve.push_back({s, bits});
        bar.update(
            s, loss_words(bits) + (evaluations.empty() ? "" : ", held out " + fixed(evaluations.back().bits_per_byte, 3)));
        if (enough && s < o.steps)
          std::cout << "\nended behind step " << s << ": the held-out loss has not fallen for " << o.patience
                    << " evaluations, from " << fixed(patience.best, 4) << " bits/byte\n";
      }
      const bool last = s == o.steps || enough;
      const bool ends = !o.save.empty() && !last && sw::any_rank(rank, stop.signal() != 0);
      if (!o.save.empty() && (ends || last || (o.save_every > 0 && s % o.save_every == 0))) {
        if (pending) pending->wait();
        pending.reset();
        pending.emplace(sw::async_save(run, o.save.string(), with(position_at(o, s, text.train), patience),
                                       {.keep_last = o.keep, .calls = save_calls()}));
        if (ends || last) {
          const std::string path = pending->wait();
          if (speaks && ends) std::cout << "\nstopped behind step " << s << ", saved as " << path << "\n";
        }
      }
      if (ends) {
        if (speaks) ended_by = stop.signal() != 0 ? stop.signal() : SIGTERM;
        return;
      }
      if (last) break;
    }
    if (speaks) speed = bar.rate();
    const double at_end = held_out_bits(judge, text.held_out, starts, starts.size());
    if (speaks) held_out = at_end;
    if (speaks || silent)  // one for all threads, or one for each process
      for (int i = 0; i < run.parameter_count(); ++i)
        parameters.emplace_back(static_cast<std::size_t>(sw::numel(run.parameter_spec(i))));
    rank.barrier();
    for (int i = 0; i < run.parameter_count(); ++i) run.gather_parameter(i, parameters[static_cast<std::size_t>(i)]);
  });
  if (silent) return 0;
  if (ended_by != 0) {
    std::cout << "to go on:\n  " << resuming_command(o) << "\n";
    return 128 + ended_by;
  }

  if (!o.trace.empty()) {
    if (!std::is_same_v<Place, on_threads> && timelines[mesh::size - 1].runs().empty())
      timelines.erase(timelines.begin() + 1, timelines.end());  // the other processes have theirs
    sw::write_chrome_trace(o.trace.string(), timelines);
    std::cout << "\ntimeline of " << timelines[0].runs().size() << " steps: " << o.trace.string()
              << " (open it in ui.perfetto.dev)\n";
  }
  const double unigram = bits_per_byte(ngram(text.train, 1), text.held_out, starts, size::time);
  const double bigram = bits_per_byte(ngram(text.train, 2), text.held_out, starts, size::time);
  const double trigram = bits_per_byte(ngram(text.train, 3), text.held_out, starts, size::time);
  std::cout << "\nheld out, bits per byte on " << starts.size() * size::time << " bytes: model " << fixed(held_out, 4)
            << ", unigram " << fixed(unigram, 4) << ", bigram " << fixed(bigram, 4) << ", trigram " << fixed(trigram, 4)
            << "\n\nsample:\n"
            << printable(continued(parameters, "namespace std\n{\n", 400, {.temperature = 0.8, .seed = o.seed}, o.threads))
            << "\n\n";
  const work least = work_of_step<step>();
  const summary figures{.steps = curve.empty() ? o.steps : curve.back().step,
                        .held_out_bits_per_byte = held_out,
                        .unigram_bits_per_byte = unigram,
                        .bigram_bits_per_byte = bigram,
                        .trigram_bits_per_byte = trigram,
                        .tokens_per_second = speed,
                        .comm_bytes_per_step = static_cast<std::uint64_t>(step::total_comm_bytes()),
                        .peak_bytes = static_cast<std::uint64_t>(step::peak_bytes),
                        .flops_per_step = least.flops,
                        .kernel_bytes_per_step = least.bytes,
                        .communication_share = o.trace.empty() ? -1 : communication_share(timelines[0])};
  std::cout << step_report(figures, static_cast<double>(tokens_per_step));
  out->write(curve, figures, evaluations);
  std::cout << (o.evaluate_every > 0 ? "held_out.csv, " : "") << "loss.csv, loss.svg and summary.json are in "
            << o.out.string() << "\n";
  return 0;
}

template <template <int> class Plan>
int train(const options& o) {
  return at_place(o, [&]<class Place>(Place) { return train_at<Plan<Place::ranks>, Place>(o); });
}

}  // namespace train_text
