// SPDX-License-Identifier: Apache-2.0
// A program through the library as an executor takes it: made functional, differentiated, given an optimizer, through passes
// in any order, planned, lowered for every rank, and run in an arena that holds garbage; inputs are loaded as executors load.
#pragma once

#include <program.hpp>

#include <map>
#include <memory>

namespace fuzz {

// The numbers of a run that programs read.
struct run_numbers {
  std::uint64_t seed = 7;
  std::int64_t step = 1;
  double lr = 0.01, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum = 0.9, weight_decay = 0.1, max_norm = 0.7,
         clip_value = 0.3, dampening = 0.4;
};

struct shown_gradient {
  int input;   // of the program
  int output;  // of the graph, -1: the input has none
};
struct made {
  std::string refused;          // why the library does not take the program
  std::string broken;           // what it promised and did not keep
  std::unique_ptr<graph> g[3];  // one program, or setup, main and cleanup
  bool iterated = false;
  std::vector<shown_gradient> gradients;
  std::vector<int> applied;  // passes
  std::vector<int> updated;  // parameters
};

int pass_count();
std::string short_name(int pass);
made make(const program& p, assembly& a);

// Whole leaves, by operation and number.
struct leaf_name {
  op_code op;
  std::int64_t number;
  bool operator<(const leaf_name& o) const { return op != o.op ? op < o.op : number < o.number; }
};
using leaf_values = std::map<leaf_name, std::vector<double>>;

struct output_block {
  std::vector<double> x;  // of a rank, dense
};
struct parameter_blocks {
  int number;
  spec s;
  std::vector<output_block> by_rank;
};
struct run_result {
  std::string broken, thrown;
  std::vector<spec> outputs;
  std::vector<std::vector<std::vector<output_block>>> blocks;  // by iteration, output, rank
  std::vector<parameter_blocks> parameters;                    // after the last
};
// The same leaves for all ranks, one set for each iteration.
run_result execute(const program& p, const made& m, const std::vector<leaf_values>& leaves, run_numbers numbers);

}  // namespace fuzz
