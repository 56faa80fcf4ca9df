// SPDX-License-Identifier: Apache-2.0
// wanted: a trace of three steps
// mistake: the folder of the file does not exist
// names: no_such_folder/trace\.json
// names: cannot be written|open|write
// names: folder|make|exist
// run
#include <shardwise/io/trace_export.hpp>
#include "mlp.hpp"

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(1);
    run.set_input(0, std::vector<float>(320, 1.F));
    run.set_input(1, std::vector<float>(320, 1.F));
    sw::timeline line(4);
    run.record(&line);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 3; ++env.step) run.run(env);
    run.record(nullptr);
#ifdef SHARDWISE_FAIL
    if (rank.index() == 0) sw::write_chrome_trace("no_such_folder/trace.json", line);
#else
    if (rank.index() == 0) sw::write_chrome_trace("trace.json", line);
#endif
  });
}
