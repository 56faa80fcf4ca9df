// SPDX-License-Identifier: Apache-2.0
// Trains a byte-level GPT on real text over a mesh of dp=2 x tp=2 ranks, and compares it with n-gram counts. As CUDA source
// (main.cu) the ranks may also be GPUs: the same model, plan, data and steps.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <shardwise/io/trace_export.hpp>
#include <shardwise/runtime/program/describe.hpp>

#include "corpus.hpp"
#include "model.hpp"
#include "ngram.hpp"
#include "options.hpp"
#include "report.hpp"

namespace tt = train_text;
namespace sw = shardwise;

#ifndef TRAIN_TEXT_DP
#define TRAIN_TEXT_DP 2
#endif
#ifndef TRAIN_TEXT_TP
#define TRAIN_TEXT_TP 2
#endif
struct dp : sw::axis<TRAIN_TEXT_DP> {};
struct tp : sw::axis<TRAIN_TEXT_TP> {};
using mesh = sw::mesh<dp, tp>;

using size = tt::config</*batch*/ 16, /*time*/ 128, /*width*/ 128, /*heads*/ 4, /*layers*/ 4>;
using plan = tt::megatron_plan<size, dp, tp>;
template <class Backend>
using step_on = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp>, plan, mesh, sw::clip_norm<sw::adamw<true>>,
                               sw::pipeline<>, float, Backend>;
template <class Backend>
using score_on =
    sw::forward_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp>, plan, mesh, sw::pipeline<>, float, Backend>;
using step = step_on<sw::host_backend>;

static_assert(mesh::size != 4 || step::comm_bytes<tp> < 9'000'000);  // a plan that communicates more does not compile
static_assert(mesh::size != 4 || step::peak_bytes < 40'000'000);     // nor one that needs more memory

// Sampling runs on one rank.
struct one : sw::axis<1> {};
using single = tt::config<1, size::time, size::width, size::heads, size::layers>;
using sampler =
    sw::forward_step<tt::gpt_of<single>::gpt, tt::predict<single, one>, sw::plan<sw::data_parallel<one>>, sw::mesh<one>>;

namespace {

constexpr std::size_t tokens_per_step = size::batch * size::time;
constexpr double peak_rate = 3e-3;
constexpr std::size_t first_traced = 4, traced_steps = 3;  // what comes before warms caches and clocks

// Linear warm-up, then a cosine down to a tenth.
double learning_rate(std::size_t step_index, std::size_t steps) {
  const double warm = std::min<double>(100, 0.1 * static_cast<double>(steps) + 1);
  const double t = static_cast<double>(step_index);
  if (t < warm) return peak_rate * t / warm;
  const double done = (t - warm) / std::max(1.0, static_cast<double>(steps) - warm);
  return peak_rate * (0.1 + 0.9 * 0.5 * (1 + std::cos(3.141592653589793 * done)));
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
std::vector<std::size_t> held_out_starts(std::size_t bytes) {
  const std::size_t spans = std::min<std::size_t>(64 * size::batch, bytes / (size::time + 1)) / size::batch * size::batch;
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < spans; ++i) starts.push_back(i * (bytes - size::time - 1) / spans);
  return starts;
}

std::string printable(const std::string& text) {
  std::string s;
  for (const char c : text) s += (c >= 32 && c < 127) || c == '\n' || c == '\t' ? c : '?';
  return s;
}

// Continues `text` by `count` bytes at temperature 0.8, on one rank.
std::string sample(const std::vector<std::vector<float>>& parameters, std::string text, std::size_t count,
                   std::uint64_t seed) {
  sw::launch<sw::mesh<one>>([&](auto& rank) {
    sw::executor<sampler> run(rank);
    for (int i = 0; i < run.parameter_count(); ++i) run.set_parameter(i, parameters[static_cast<std::size_t>(i)]);
    sw::step_env env;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t used = std::min<std::size_t>(text.size(), size::time);
      std::vector<std::int32_t> in(size::time, 0);
      for (std::size_t t = 0; t < used; ++t) in[t] = static_cast<unsigned char>(text[text.size() - used + t]);
      run.set_input(0, in);
      run.run(env);
      const float* const logits = run.output().data() + (used - 1) * size::bytes;
      double weight[size::bytes], total = 0;
      float top = logits[0];
      for (int b = 1; b < size::bytes; ++b) top = std::max(top, logits[b]);
      for (int b = 0; b < size::bytes; ++b) total += weight[b] = std::exp((logits[b] - top) / 0.8);
      double u = sw::philox_uniform(seed, 1, static_cast<std::uint32_t>(k), 0) * total;
      int pick = 0;
      while (pick + 1 < size::bytes && (u -= weight[pick]) > 0) ++pick;
      text.push_back(static_cast<char>(pick));
    }
  });
  return text;
}

// Where the ranks of a run are: what launches them and plans their memory.
struct on_threads {
  using backend = sw::host_backend;
  template <class F>
  static void launch(F&& f) {
    sw::launch<mesh>(f);
  }
};
#if defined(TRAIN_TEXT_CUDA)
struct on_gpus {
  using backend = sw::cuda_backend;
  template <class F>
  static void launch(F&& f) {
    sw::launch_cuda<mesh>(f);
  }
};
#endif

template <class Place>
int train(const tt::options& o) {
  using step = step_on<typename Place::backend>;
  using score = score_on<typename Place::backend>;
  std::cout << sw::describe_plan<step>({"dp", "tp"}) << std::flush;
  if (o.plan_only) return 0;

  const tt::corpus text = tt::load_corpus(o.text, o.seed);
  tt::require_at_least(text.train, tokens_per_step + size::batch, "the training text");
  tt::require_at_least(text.held_out, size::batch * (size::time + 1), "the held-out text");
  tt::output_folder out(o.out);
  if (!o.trace.empty() && !std::ofstream(o.trace, std::ios::app))  // before the training, not after it
    throw tt::usage_error("--trace needs a file that can be written, not '" + o.trace.string() + "'.");
  std::cout << "text: " << text.source << ", " << text.train.size() << " bytes in " << text.train_files.size()
            << " files to train on, " << text.held_out.size() << " bytes in " << text.held_out_files.size()
            << " files held out\n"
            << std::flush;

  std::vector<tt::loss_point> curve;
  tt::progress bar(o.steps, tokens_per_step);
  const std::vector<std::size_t> starts = held_out_starts(text.held_out.size());
  std::vector<std::vector<float>> parameters;
  double held_out = 0, speed = 0;
  std::vector<sw::timeline> timelines(o.trace.empty() ? 0 : mesh::size, sw::timeline(traced_steps));

  Place::launch([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    const bool speaks = rank.index() == 0;
    sw::executor<step, rank_type> run(rank);
    run.initialise(o.seed);
    batch b;
    sw::step_env env;
    env.seed = o.seed;
    env.beta2 = 0.99;
    env.weight_decay = 0.05;
    env.max_norm = 1;
    for (std::size_t s = 1; s <= o.steps; ++s) {
      b.draw(text.train, o.seed, s);
      run.set_input(0, b.in);
      run.set_input(1, b.next);
      env.step = static_cast<std::int64_t>(s);
      env.lr = learning_rate(s, o.steps);
      if (!o.trace.empty() && s == std::min(first_traced, o.steps))
        run.record(&timelines[static_cast<std::size_t>(rank.index())]);
      if (s == first_traced + traced_steps) run.record(nullptr);
      run.run(env);
      if (!speaks) continue;
      const double bits = run.loss() / std::log(2.0);
      if (!std::isfinite(bits)) throw std::runtime_error("train_text: the loss is not finite at step " + std::to_string(s));
      curve.push_back({s, bits});
      bar.update(s, bits);
    }
    if (speaks) speed = bar.tokens_per_second();

    sw::executor<score, rank_type> judge(rank);
    judge.copy_parameters(run);
    double total = 0;
    for (std::size_t first = 0; first < starts.size(); first += size::batch) {
      for (std::size_t r = 0; r < size::batch; ++r) b.take(text.held_out, r, starts[first + r]);
      judge.set_input(0, b.in);
      judge.set_input(1, b.next);
      judge.run(env);
      total += judge.loss();
    }
    if (speaks) {
      held_out = total / static_cast<double>(starts.size() / size::batch) / std::log(2.0);
      for (int i = 0; i < run.parameter_count(); ++i)
        parameters.emplace_back(static_cast<std::size_t>(sw::numel(run.parameter_spec(i))));
    }
    rank.barrier();
    for (int i = 0; i < run.parameter_count(); ++i) run.gather_parameter(i, parameters[static_cast<std::size_t>(i)]);
  });

  if (!o.trace.empty()) {
    sw::write_chrome_trace(o.trace.string(), timelines);
    std::cout << "\ntimeline of " << timelines[0].runs().size() << " steps: " << o.trace.string()
              << " (open it in ui.perfetto.dev)\n";
  }
  const double unigram = tt::bits_per_byte(tt::ngram(text.train, 1), text.held_out, starts, size::time);
  const double bigram = tt::bits_per_byte(tt::ngram(text.train, 2), text.held_out, starts, size::time);
  const double trigram = tt::bits_per_byte(tt::ngram(text.train, 3), text.held_out, starts, size::time);
  std::cout << "\nheld out, bits per byte on " << starts.size() * size::time << " bytes: model " << tt::fixed(held_out, 4)
            << ", unigram " << tt::fixed(unigram, 4) << ", bigram " << tt::fixed(bigram, 4) << ", trigram "
            << tt::fixed(trigram, 4) << "\n\nsample:\n"
            << printable(sample(parameters, "namespace std\n{\n", 400, o.seed)) << "\n\n";
  out.write(curve, tt::summary{.steps = o.steps,
                               .held_out_bits_per_byte = held_out,
                               .unigram_bits_per_byte = unigram,
                               .bigram_bits_per_byte = bigram,
                               .trigram_bits_per_byte = trigram,
                               .tokens_per_second = speed,
                               .comm_bytes_per_step = static_cast<std::uint64_t>(step::total_comm_bytes()),
                               .peak_bytes = static_cast<std::uint64_t>(step::peak_bytes)});
  std::cout << "loss.csv, loss.svg and summary.json are in " << o.out.string() << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    tt::options defaults;
    defaults.steps = 1500;
    const tt::options o = tt::parse_options(argc, argv, defaults);
    if (o.help) {
      std::cout << tt::usage(defaults);
      return 0;
    }
    if (o.backend == "threads") return train<on_threads>(o);
#if defined(TRAIN_TEXT_CUDA)
    return train<on_gpus>(o);
#else
    throw tt::usage_error(
        "this build runs on host threads only; for --backend cuda build the preset cuda and run "
        "build/cuda/examples/train_text_cuda, or ./quickstart train --backend cuda.");
#endif
  } catch (const tt::usage_error& e) {
    std::cerr << "train_text: " << e.what() << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
