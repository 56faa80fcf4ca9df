// SPDX-License-Identifier: Apache-2.0
// Runs a program against a reference file: losses of every reference rank, first gradients, final parameters.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <place.hpp>
#include <safetensors.hpp>
#include <shardwise/shardwise.hpp>
#include <string>
#include <test_data.hpp>
#include <type_traits>
#include <vector>

namespace test {

namespace sw = shardwise;

inline std::string data_file(const std::string& name) {
  return std::string(SHARDWISE_TEST_DATA "/") + name + ".safetensors";
}

// One iteration's slices of in.rank<r>.<k>, rank after rank: the whole batch.
template <class T>
std::vector<T> whole_batch(const safetensors& file, int world, int k, std::size_t iteration, std::size_t iterations) {
  std::vector<T> batch;
  for (int r = 0; r < world; ++r) {
    const std::string name = "in.rank" + std::to_string(r) + "." + std::to_string(k);
    const auto add = [&](const auto& all) {
      const std::size_t n = all.size() / iterations;
      for (std::size_t i = 0; i < n; ++i) batch.push_back(static_cast<T>(all[iteration * n + i]));
    };
    if constexpr (std::is_integral_v<T>) add(file.integers(name));
    else add(file.values(name));
  }
  return batch;
}

// Writes the block that a rank holds into the whole tensor.
template <class T>
void scatter_block(const T* local, const sw::runtime::layout& l, std::vector<double>& global) {
  std::int64_t at[sw::max_rank]{};
  for (std::int64_t i = 0; i < l.numel(); ++i) {
    global[static_cast<std::size_t>(sw::runtime::global_index(l, at))] = static_cast<double>(local[i]);
    for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
  }
}

struct golden_run {
  std::vector<double> program_loss;         // as the step reports it
  std::vector<std::vector<double>> losses;  // [iteration][reference rank]
  std::map<std::string, std::vector<double>> gradient, final;
  bool replicas_equal = true;  // every copy of a gradient is bitwise the same
};

// Step updates (with states: the first one's value after a step with beta1 = momentum = 0 is the gradient itself, to
// the last bit); Rows has the per-row losses of the same model as its output, rows along dim 0. `golden_name` renames
// the library's parameters; `feed(executor, iteration)` sets inputs; `batch_mean` says that a rank's loss is the mean
// of its rows, not their sum.
template <class Step, class Rows, class Place = place>
golden_run run_golden(const safetensors& file, int world, int iterations, double lr, bool batch_mean,
                      const std::function<std::string(const std::string&)>& golden_name, const auto& feed) {
  using mesh = typename Step::mesh_type;
  golden_run result;
  std::mutex gate;
  result.losses.resize(static_cast<std::size_t>(iterations));
  std::vector<std::vector<double>> rows(static_cast<std::size_t>(iterations));
  Place::template launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<Step, rank_type> ex(rank);
    sw::executor<Rows, rank_type> forward(rank);
    for (int i = 0; i < ex.parameter_count(); ++i)
      ex.set_parameter(i, file.values("init." + golden_name(ex.parameter_name(i))));
    ex.reset_states();

    sw::step_env probe;
    probe.step = 1;
    probe.lr = 0;
    probe.beta1 = 0;
    probe.momentum = 0;
    feed(ex, 0);
    ex.run(probe);
    constexpr bool flat = sw::runtime::flat_parts_of<Step>.any();  // a state is that of several parameters
    for (int i = 0; flat && i < ex.parameter_count(); ++i) {
      const std::vector<double> value = ex.full_state(ex.parameter_name(i), sw::moment::first);
      const std::lock_guard lock(gate);
      auto& whole = result.gradient[golden_name(ex.parameter_name(i))];
      if (!whole.empty() && whole != value) result.replicas_equal = false;
      whole = value;
    }
    for (int id = 0; !flat && id < Step::program.node_count; ++id) {
      const sw::node& n = Step::program.nodes[id];
      if (n.op != sw::op_code::state || n.a.v[2] != 0) continue;
      const std::vector<double> value = ex.value(id);
      const std::lock_guard lock(gate);
      auto& whole = result.gradient[golden_name(ex.parameter_name(static_cast<int>(n.a.v[1])))];
      const std::vector<double> before = whole;
      whole.resize(static_cast<std::size_t>(numel(Step::program.spec_of(id))), std::nan(""));
      scatter_block(value.data(), ex.layout_of(id), whole);
      for (std::size_t i = 0; i < before.size(); ++i)
        if (!std::isnan(before[i]) && before[i] != whole[i]) result.replicas_equal = false;
    }
    ex.reset_states();

    sw::step_env env;
    env.lr = lr;
    env.momentum = 0;
    for (int k = 0; k < iterations; ++k) {
      forward.copy_parameters(ex);
      feed(forward, k);
      forward.run(env);
      {
        const auto local = forward.output();
        const std::lock_guard lock(gate);
        auto& whole = rows[static_cast<std::size_t>(k)];
        whole.resize(static_cast<std::size_t>(numel(Rows::program.spec_of(Rows::program.outputs[0]))), std::nan(""));
        scatter_block(local.data(), forward.output_layout(), whole);
      }
      feed(ex, k);
      env.step = k + 1;
      ex.run(env);
      if (rank.index() == 0) result.program_loss.push_back(ex.loss());
    }
    for (int i = 0; i < ex.parameter_count(); ++i) {
      {
        const std::lock_guard lock(gate);
        result.final[golden_name(ex.parameter_name(i))].resize(static_cast<std::size_t>(numel(ex.parameter_spec(i))));
      }
      rank.barrier();
      ex.gather_parameter(i, result.final[golden_name(ex.parameter_name(i))]);
    }
  });
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const std::size_t each = rows[k].size() / static_cast<std::size_t>(world);
    for (int r = 0; r < world; ++r) {
      double sum = 0;
      for (std::size_t i = 0; i < each; ++i) sum += rows[k][static_cast<std::size_t>(r) * each + i];
      result.losses[k].push_back(batch_mean ? sum / static_cast<double>(each) : sum);
    }
  }
  return result;
}

// How far a run is from its reference.
struct golden_errors {
  double loss = 0;          // largest relative error of a reference rank's loss
  double program_loss = 0;  // largest relative error of the step's own loss
  double gradient = 0;      // largest |g - ref| / max|ref| of a tensor
  double final = 0;         // largest |p - ref| / max(1, |ref|)
  double final_excess = 0;  // the same where it exceeds `final_tolerance`, over what the gradient error explains
  int beyond = 0;           // elements past final_tolerance
  std::size_t tensors = 0;
};

// `program_loss` combines the reference ranks' losses as the task does. `amplification` bounds the change of a
// parameter over the run per unit of gradient error (Adam: iterations * lr / eps; 0 where nothing amplifies).
inline golden_errors compare(const golden_run& run, const safetensors& file, int world, double loss_factor,
                             double final_tolerance, double amplification) {
  golden_errors e;
  const std::vector<double> losses = file.values("ref.losses");
  for (std::size_t k = 0; k < run.losses.size(); ++k) {
    double total = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(world); ++r) {
      const double ref = losses[k * static_cast<std::size_t>(world) + r];
      total += ref * loss_factor;
      e.loss = std::max(e.loss, std::abs(run.losses[k][r] - ref) / std::abs(ref));
    }
    e.program_loss = std::max(e.program_loss, std::abs(run.program_loss[k] - total) / std::abs(total));
  }
  for (const auto& [name, g] : run.gradient) {
    const std::vector<double> ref = file.values("ref.grad0." + name), end = file.values("ref.final." + name);
    const std::vector<double>& p = run.final.at(name);
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < ref.size(); ++i) {
      largest = std::max(largest, std::abs(ref[i]));
      const double d = std::abs(g[i] - ref[i]);
      worst = std::isnan(d) ? d : std::max(worst, d);
    }
    const double relative = largest > 0 ? worst / largest : worst;
    e.gradient = relative <= e.gradient ? e.gradient : relative;  // NaN stays
    for (std::size_t i = 0; i < end.size(); ++i) {
      const double d = std::abs(p[i] - end[i]), scale = std::max(1.0, std::abs(end[i]));
      e.final = d / scale <= e.final ? e.final : d / scale;
      if (d > final_tolerance * scale) {
        ++e.beyond;
        e.final_excess = std::max(e.final_excess, d / (final_tolerance * scale + amplification * worst));
      }
    }
    ++e.tensors;
  }
  return e;
}

}  // namespace test
