// SPDX-License-Identifier: Apache-2.0
// What a rank's further threads gain and cost: the example's training step on one rank with one and with more threads and on as many
// ranks, turn by turn in one process; kernels by the size of their work; waking a thread.
//   bench_threads_threads [--rounds N] [--threads N] [--steps | --kernels]
#include <shardwise/shardwise.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <train_text/model.hpp>

namespace {

namespace sw = shardwise;
namespace tt = train_text;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
double microseconds() { return static_cast<double>(sw::runtime::now()) / 1000; }

// --- steps -----------------------------------------------------------------------------------------------------------------

template <int N>
struct dp : sw::axis<N> {};
template <int Batch>
using size = tt::config<Batch, 128, 128, 4, 4>;
template <int Batch, int N>
using step = sw::train_step<tt::gpt_of<size<Batch>>::template gpt, tt::next_byte<size<Batch>, dp<N>>,
                            sw::plan<sw::data_parallel<dp<N>>>, sw::mesh<dp<N>>, sw::clip_norm<sw::adamw<true>>>;

// Microseconds of each step behind the first three, and the last loss.
template <int Batch, int N>
double run_steps(int threads, int steps, double& loss) {
  std::vector<double> took;
  sw::launch<sw::mesh<dp<N>>>([&](auto& rank) {
    rank.compute_threads(threads);
    sw::executor<step<Batch, N>> ex(rank);
    ex.initialise(1);
    std::vector<std::int32_t> in(Batch * 128), next(Batch * 128);
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<std::int32_t>(i * 7919U % 251U);
      next[i] = static_cast<std::int32_t>((i + 1) * 7919U % 251U);
    }
    ex.set_input(0, in);
    ex.set_input(1, next);
    sw::step_env env;
    env.seed = 1;
    env.max_norm = 1;
    env.lr = 1e-3;
    for (int s = 1; s <= steps + 3; ++s) {
      env.step = s;
      rank.barrier();
      const double begin = microseconds();
      ex.run(env);
      rank.barrier();
      if (s > 3 && rank.index() == 0) took.push_back(microseconds() - begin);
    }
    if (rank.index() == 0) loss = static_cast<double>(ex.loss());
  });
  return median(took);
}

template <int Batch>
void compare_steps(int threads, int rounds) {
  std::vector<double> one, several, ranks, by_threads, by_ranks;
  for (int r = 0; r < rounds; ++r) {
    double a = 0, b = 0, c = 0;
    one.push_back(run_steps<Batch, 1>(1, 4, a));
    several.push_back(run_steps<Batch, 1>(threads, 4, b));
    ranks.push_back(run_steps<Batch, 2>(1, 4, c));
    if (a != b || !(std::abs(a - c) < 1e-4)) throw std::runtime_error("the losses differ");
    by_threads.push_back(one.back() / several.back());
    by_ranks.push_back(one.back() / ranks.back());
  }
  std::printf("| batch %d | %.2f | %.2f | %.2f | %.2f | %.2f |\n", Batch, median(one) / 1000, median(several) / 1000,
              median(ranks) / 1000, median(by_threads), median(by_ranks));
}

// --- kernels ----------------------------------------------------------------------------------------------------------------

struct kernel {
  const char* name;
  void (*run)(const sw::runtime::call&, const sw::step_env&);
  sw::host::cut_kind kind;
  int operands;
  bool product;
};
struct job {
  const kernel* of;
  const sw::runtime::call* c;
  const sw::runtime::parts* how;
  sw::threads::team* team;
};
void run_part(const void* p, int part, int thread) {
  const job& j = *static_cast<const job*>(p);
  static const sw::step_env env = [] {
    sw::step_env e;
    e.step = 1;
    e.lr = 1e-3;
    return e;
  }();
  j.of->run(sw::host::part_of(*j.c, *j.how, part, thread == 0 ? j.c->workspace : j.team->scratch(thread)), env);
}

// Rows of 128 numbers: elements `rows` x 128, or a product with 128 x 128.
void compare_kernel(sw::threads::team& team, const kernel& k, long rows, int rounds) {
  std::vector<std::vector<float>> memory(5,
                                         std::vector<float>(static_cast<std::size_t>(rows > 128 ? rows : 128) * 128, 0.5F));
  std::vector<float> scratch(1 << 20);
  sw::runtime::call c;
  c.inputs = c.all_inputs = k.operands;
  c.f = 1;
  c.workspace = scratch.data();
  const auto place = [&](int at, int memory_at, long n) {
    c.l[at].rank = 2;
    c.l[at].ext[0] = c.l[at].global[0] = n;
    c.l[at].ext[1] = c.l[at].global[1] = 128;
    c.l[at].make_dense();
    c.type[at] = sw::dtype::f32;
    c.p[at] = memory[static_cast<std::size_t>(memory_at)].data();
  };
  for (int i = 0; i < k.operands; ++i) place(i, i, rows);
  place(sw::runtime::result, 4, rows);
  if (k.product) {
    place(1, 1, 128);
    c.a = sw::detail::matmul_labels(2, 2);
  }
  if (k.kind == sw::host::cut_kind::update) c.written = 0b1101, c.p[sw::runtime::result] = nullptr;
  const sw::runtime::parts whole, how = sw::host::parts_of(c, k.kind, team.threads(), 1);
  const job alone{&k, &c, &whole, &team}, together{&k, &c, &how, &team};
  std::vector<double> a, b, ratio;
  for (int r = 0; r < rounds; ++r) {
    const int times = static_cast<int>(400000 / (rows * 128)) + 5;
    double begin = microseconds();
    for (int i = 0; i < times; ++i) run_part(&alone, 0, 0);
    const double one = (microseconds() - begin) / times;
    begin = microseconds();
    for (int i = 0; i < times; ++i) team.run(&run_part, &together, how.count);
    const double several = (microseconds() - begin) / times;
    a.push_back(one);
    b.push_back(several);
    ratio.push_back(one / several);
  }
  std::printf("| %s | %ld | %.0f | %.1f | %.1f | %.2f |\n", k.name, rows * 128, sw::host::work_of(c, k.kind), median(a),
              median(b), median(ratio));
}

void compare_kernels(int threads, int rounds) {
  using sw::op_code, sw::host::cut_kind;
  sw::threads::team team(1);
  team.resize(threads);
  team.reserve(4 << 20);
  const auto nothing = [](const void*, int, int) {};
  std::vector<double> awake, asleep;
  for (int r = 0; r < 200; ++r) {
    double begin = microseconds();
    for (int i = 0; i < 20; ++i) team.run(nothing, nullptr, threads);
    awake.push_back((microseconds() - begin) / 20);
    sw::threads::pass_time(0.002);
    begin = microseconds();
    team.run(nothing, nullptr, threads);
    asleep.push_back(microseconds() - begin);
  }
  std::printf("a run of nothing: %.2f us where the threads are awake, %.2f us where they sleep\n\n", median(awake),
              median(asleep));
  std::printf("| kernel | elements | work | one thread, us | %d threads, us | ratio |\n|---|---|---|---|---|---|\n",
              threads);
  const kernel all[] = {
      {"add", &sw::runtime::compute<op_code::add, float>, cut_kind::places, 2, false},
      {"gelu_tanh", &sw::runtime::compute<op_code::gelu_tanh, float>, cut_kind::places, 1, false},
      {"softmax", &sw::runtime::compute<op_code::softmax, float>, cut_kind::rows, 1, false},
      {"adam", &sw::runtime::compute<op_code::adam, float>, cut_kind::update, 4, false},
      {"product", &sw::runtime::compute<op_code::einsum, float>, cut_kind::product, 2, true},
  };
  for (const kernel& k : all)
    for (const long rows :
         k.product ? std::vector<long>{4, 16, 64, 256, 1024} : std::vector<long>{16, 64, 128, 256, 512, 2048})
      compare_kernel(team, k, rows, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int rounds = 21, threads = 2;
    bool steps = true, kernels = true;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--rounds" && i + 1 < argc) rounds = std::atoi(argv[++i]);
      else if (word == "--threads" && i + 1 < argc) threads = std::atoi(argv[++i]);
      else if (word == "--steps") kernels = false;
      else if (word == "--kernels") steps = false;
      else throw std::runtime_error("bench_threads_threads [--rounds N] [--threads N] [--steps | --kernels]");
    }
    if (rounds < 1) throw std::runtime_error("--rounds takes a number from 1");
    if (kernels) compare_kernels(threads, rounds);
    if (steps) {
      std::printf(
          "\n| example's step | one thread, ms | %d threads, ms | 2 ranks, ms | ratio by threads | by ranks |\n"
          "|---|---|---|---|---|---|\n",
          threads);
      compare_steps<4>(threads, rounds);
      compare_steps<16>(threads, rounds);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
