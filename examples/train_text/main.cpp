// SPDX-License-Identifier: Apache-2.0
// Trains a byte-level GPT on real text over four ranks, under the plan that --parallel names, and compares it with n-gram counts. As
// CUDA source (main.cu) the ranks may also be GPUs: the same model, plan, data and steps, in bf16 where nothing else is asked for. With
// --generate it goes on from a text by what was saved.

#include <iostream>
#include <string>

#include "generate.hpp"
#include "options.hpp"
#include "plans.hpp"

namespace train_text {

template <template <int> class Plan>
int train(const options&);

}  // namespace train_text

namespace tt = train_text;

namespace {

// The plans that are built in, by name.
int train(const tt::options& o) {
  std::string built;
#define TRAIN_TEXT_BUILT(plan)                                                      \
  if (o.parallel == tt::plans::plan<1>::name) return tt::train<tt::plans::plan>(o); \
  built += (built.empty() ? "" : ", ") + std::string(tt::plans::plan<1>::name);
#if defined(TRAIN_TEXT_WITH_ddp_tp)
  TRAIN_TEXT_BUILT(ddp_tp)
#endif
#if defined(TRAIN_TEXT_WITH_ddp)
  TRAIN_TEXT_BUILT(ddp)
#endif
#if defined(TRAIN_TEXT_WITH_fsdp)
  TRAIN_TEXT_BUILT(fsdp)
#endif
#if defined(TRAIN_TEXT_WITH_hsdp)
  TRAIN_TEXT_BUILT(hsdp)
#endif
#if defined(TRAIN_TEXT_WITH_tp_only)
  TRAIN_TEXT_BUILT(tp_only)
#endif
#if defined(TRAIN_TEXT_WITH_fsdp_tp)
  TRAIN_TEXT_BUILT(fsdp_tp)
#endif
#undef TRAIN_TEXT_BUILT
  throw tt::usage_error("this build has no program for --parallel " + o.parallel + ", only for " + built +
                        "; ./quickstart train --parallel " + o.parallel + " builds it, or cmake -DTRAIN_TEXT_PARALLEL=all.");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    tt::options defaults;
    defaults.steps = 1500;
    defaults.program = argv[0];
    const tt::options o = tt::parse_options(argc, argv, defaults);
    if (o.help) {
      std::cout << tt::usage(defaults);
      return 0;
    }
    return o.generate.empty() ? train(o) : tt::generate(o);
  } catch (const tt::usage_error& e) {
    std::cerr << "train_text: " << e.what() << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
