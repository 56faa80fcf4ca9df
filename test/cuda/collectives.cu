// SPDX-License-Identifier: Apache-2.0
// Collectives over NCCL give what the threads backend gives for the same calls, also replayed from a CUDA graph; ranks
// that fail release the others; meshes and launchers that do not fit are refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <collective_cases.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/runtime/threads/collectives.hpp>
#include <shardwise/runtime/cuda/collectives.cuh>
#include <shardwise/runtime/cuda/launch.hpp>
#include <shardwise/runtime/host/provided_kernels.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace {

namespace sw = shardwise;
using namespace test;
using sw::runtime::call;
using sw::runtime::result;

template <int N>
struct line_axis : sw::axis<N> {};
struct rows : sw::axis<2> {};
struct cols : sw::axis<2> {};
struct many : sw::axis<4096> {};
template <int N>
using line = sw::mesh<sw::on_cuda, line_axis<N>>;
using grid = sw::mesh<sw::on_cuda, rows, cols>;
using flat = sw::mesh<sw::on_cuda, line_axis<1>, line_axis<2>>;

bool has_gpus(int wanted) {
  const int there = sw::cuda::device_count();
  if (there < wanted) std::printf("skipped: %d GPU%s found, %d needed\n", there, there == 1 ? "" : "s", wanted);
  return there >= wanted;
}

// --- cases
// ------------------------------------------------------------------------------------------------------------

struct prepared {
  call c;
  std::int64_t taken = 0, made = 0, host_scratch = 0, device_scratch = 0;
};

template <class Mesh, class T>
prepared prepare(const change& x, const std::array<int, sw::max_axes>& at) {
  const sw::spec in = spec_for<Mesh>(x, sw::dtype_v<T>);
  sw::spec out = in;
  out.place[x.axis] = x.to;
  std::int64_t largest[sw::max_rank]{};
  for (int d = 0; d < in.rank; ++d) largest[d] = sw::largest_extent(in, d);
  sw::node n{};
  n.op = sw::op_code::redistribute;
  n.a.v[0] = x.axis;
  n.a.v[1] = sw::pack(x.to);
  prepared p;
  p.c.l[0] = sw::runtime::local_layout(in, at.data());
  p.c.l[result] = sw::runtime::local_layout(out, at.data());
  sw::runtime::lower_redistribute(p.c, x.axis, in, out, at.data());
  p.c.l[1] = sw::runtime::group_block(in, x.axis, at.data());
  p.taken = p.c.l[0].numel();
  p.made = p.c.l[result].numel();
  p.host_scratch = sw::host_backend::collective_workspace(n.a, in, out);
  p.device_scratch = sw::device_collective_workspace_bytes(n, in, out, largest);
  return p;
}

template <class T>
std::vector<T> operand_of(const prepared& p, int turn, int rank) {
  std::vector<T> v(static_cast<std::size_t>(p.taken));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = value_of<T>(p.c.from.op, turn, rank, static_cast<std::int64_t>(i));
  return v;
}

constexpr int turns = 3;  // on the stream, and twice from the graph

// The threads backend's results: [case][rank][turn].
template <class Mesh, class T>
using results = std::vector<std::vector<std::vector<std::vector<T>>>>;

template <class Mesh, class T>
results<Mesh, T> on_host(const std::vector<change>& cases, std::vector<std::vector<std::int64_t>>& bytes) {
  results<Mesh, T> all(cases.size(), {static_cast<std::size_t>(Mesh::size), std::vector<std::vector<T>>(turns)});
  bytes.assign(cases.size(), std::vector<std::int64_t>(static_cast<std::size_t>(Mesh::size)));
  sw::launch<Mesh>([&](auto& rank) {
    const auto me = static_cast<std::size_t>(rank.index());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      prepared p = prepare<Mesh, T>(cases[i], rank.coordinate());
      std::vector<char> scratch(static_cast<std::size_t>(p.host_scratch) + 8);
      for (int turn = 0; turn < turns; ++turn) {
        const std::vector<T> x = operand_of<T>(p, turn, rank.index());
        std::vector<T> o(static_cast<std::size_t>(p.made));
        p.c.p[0] = const_cast<T*>(x.data());
        p.c.p[result] = o.data();
        p.c.workspace = scratch.data();
        rank.reset_counts();
        sw::runtime::communicate<T>(p.c, rank);
        bytes[i][me] = rank.bytes_written(p.c.axis);
        all[i][me][static_cast<std::size_t>(turn)] = std::move(o);
      }
    }
  });
  return all;
}

// Device memory with a guard behind it that nobody may touch.
class guarded {
 public:
  static constexpr std::size_t guard = 256;
  explicit guarded(std::size_t bytes) : bytes_(bytes), memory_(bytes + guard) { fill(); }
  std::byte* data() const { return memory_.data(); }
  void fill() { sw::cuda::check(cudaMemset(memory_.data(), 0xAB, bytes_ + guard), "cudaMemset"); }
  bool intact() const {
    unsigned char end[guard];
    sw::cuda::check(cudaMemcpy(end, memory_.data() + bytes_, guard, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (unsigned char b : end)
      if (b != 0xAB) return false;
    return true;
  }

 private:
  std::size_t bytes_;
  sw::cuda::device_memory memory_;
};

std::string name_of_case(const change& x, const prepared& p) {
  std::string s = "kind " + std::to_string(static_cast<int>(p.c.kind)) + " of";
  for (std::int64_t e : x.extent) s += " " + std::to_string(e);
  s += ", op " + std::to_string(static_cast<int>(p.c.from.op)) + " of " + std::to_string(p.c.from.order()) + ", dim " +
       std::to_string(p.c.from.dim) + " / " + std::to_string(p.c.from.block) + " to " + std::to_string(p.c.to.dim) + " / " +
       std::to_string(p.c.to.block);
  return s;
}

// Equal, or NaN both.
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](T x, T y) { return x == y || (x != x && y != y); });
}

// What is wrong on one rank: empty if nothing.
template <class T, class Rank>
std::string try_case(Rank& rank, const change& x, const std::vector<std::vector<T>>& want, std::int64_t bytes) {
  prepared p = prepare<typename Rank::mesh_type, T>(x, rank.coordinate());
  const std::size_t taken = static_cast<std::size_t>(p.taken) * sizeof(T),
                    made = static_cast<std::size_t>(p.made) * sizeof(T);
  guarded from(taken), to(made), scratch(static_cast<std::size_t>(p.device_scratch));
  const sw::cuda::stream queue;
  sw::cuda::context ctx;
  ctx.stream = queue.get();
  ctx.multiprocessors = rank.multiprocessors();
  p.c.p[0] = from.data();
  p.c.p[result] = to.data();
  p.c.workspace = scratch.data();
  sw::cuda::graph_instance graph;
  std::string wrong;
  for (int turn = 0; turn < turns; ++turn) {
    const std::vector<T> operand = operand_of<T>(p, turn, rank.index());
    to.fill();
    scratch.fill();
    sw::cuda::check(cudaMemcpy(from.data(), operand.data(), taken, cudaMemcpyHostToDevice), "cudaMemcpy");
    sw::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::int64_t sent = bytes;
    if (turn == 0) sent = sw::cuda::communicate<T>(p.c, ctx, rank.communicator(p.c.axis));
    if (turn == 1) {
      sw::cuda::check(cudaStreamBeginCapture(ctx.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
      sent = sw::cuda::communicate<T>(p.c, ctx, rank.communicator(p.c.axis));
      cudaGraph_t captured = nullptr;
      sw::cuda::check(cudaStreamEndCapture(ctx.stream, &captured), "cudaStreamEndCapture");
      graph = sw::cuda::graph_instance(captured);
    }
    if (turn > 0) sw::cuda::check(cudaGraphLaunch(graph.get(), ctx.stream), "cudaGraphLaunch");
    rank.synchronize(ctx.stream);
    std::vector<T> got(static_cast<std::size_t>(p.made));
    sw::cuda::check(cudaMemcpy(got.data(), to.data(), made, cudaMemcpyDeviceToHost), "cudaMemcpy");
    const std::string where = " in turn " + std::to_string(turn) + ", rank " + std::to_string(rank.index()) + "\n";
    if (!same(got, want[static_cast<std::size_t>(turn)])) wrong += name_of_case(x, p) + ": values differ" + where;
    if (sent != bytes)
      wrong += name_of_case(x, p) + ": " + std::to_string(sent) + " bytes sent, not " + std::to_string(bytes) + where;
    if (!from.intact() || !to.intact() || !scratch.intact())
      wrong += name_of_case(x, p) + ": writes past its memory" + where;
  }
  return wrong;
}

template <class Mesh, class T>
void check_cases(const std::vector<change>& all) {
  std::vector<change> cases;
  for (const change& x : all) {
    sw::spec in = spec_for<Mesh>(x, sw::dtype_v<T>), out = in;
    out.place[x.axis] = x.to;
    if (in.place[x.axis].is_norm() && !std::is_floating_point_v<T>) continue;  // of two-byte elements refused
    if (sw::communicates(sw::transition_of(in.place[x.axis], x.to, in.axis_size[x.axis]))) cases.push_back(x);
  }
  std::vector<std::vector<std::int64_t>> bytes;
  const results<Mesh, T> want = on_host<Mesh, T>(cases, bytes);
  std::vector<std::string> wrong(static_cast<std::size_t>(Mesh::size));
  sw::launch_cuda<Mesh>([&](auto& rank) {
    const auto me = static_cast<std::size_t>(rank.index());
    for (std::size_t i = 0; i < cases.size(); ++i) wrong[me] += try_case<T>(rank, cases[i], want[i][me], bytes[i][me]);
  });
  for (const std::string& w : wrong) CHECK_MESSAGE(w.empty(), w);
}

template <class Mesh>
void check_types(const std::vector<change>& cases) {
  if (!has_gpus(Mesh::size)) return;
  check_cases<Mesh, float>(cases);
  check_cases<Mesh, double>(cases);
  check_cases<Mesh, std::int32_t>(cases);
  check_cases<Mesh, sw::bf16>(cases);
  check_cases<Mesh, sw::f16>(cases);
  check_cases<Mesh, std::int64_t>(cases);
}

TEST_CASE("collectives on one axis of 2 gpus equal the threads backend's") { check_types<line<2>>(changes_of_line(2)); }
TEST_CASE("collectives on one axis of 3 gpus equal the threads backend's") { check_types<line<3>>(changes_of_line(3)); }
TEST_CASE("collectives on one axis of 4 gpus equal the threads backend's") { check_types<line<4>>(changes_of_line(4)); }
TEST_CASE("collectives on the axes of 2 x 2 gpus equal the threads backend's") { check_types<grid>(changes_of_grid()); }

// --- ranks
// ------------------------------------------------------------------------------------------------------------

// The message of the exception that launch_cuda rethrows. A hang would keep the whole run: it ends it instead.
template <class Mesh, class F>
std::string message_of(F body) {
  std::packaged_task<std::string()> task([&] {
    try {
      sw::launch_cuda<Mesh>(body);
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string("no exception");
  });
  std::future<std::string> said = task.get_future();
  std::thread runner(std::move(task));
  if (said.wait_for(std::chrono::seconds(90)) != std::future_status::ready) {
    std::fprintf(stderr, "a launch hangs: the ranks that did not fail were not released\n");
    std::_Exit(1);
  }
  runner.join();
  return said.get();
}

template <class Mesh>
void check_rank() {
  if (!has_gpus(Mesh::size)) return;
  std::atomic<int> wrong{0}, seen{0};
  const std::string what = message_of<Mesh>([&](auto& rank) {
    ++seen;
    int device = -1;
    cudaGetDevice(&device);
    if (device != rank.index() || rank.device() != device || rank.size() != Mesh::size) ++wrong;
    if (Mesh::rank_of(rank.coordinate()) != rank.index()) ++wrong;
    for (int a = 0; a < Mesh::axes; ++a) {
      const ncclComm_t c = rank.communicator(a);
      const int n = Mesh::sizes[static_cast<unsigned>(a)];
      if ((c == nullptr) != (n == 1)) ++wrong;
      if (!c) continue;
      int count = 0, place = -1;
      if (ncclCommCount(c, &count) != ncclSuccess || count != n) ++wrong;
      if (ncclCommUserRank(c, &place) != ncclSuccess || place != rank.coordinate(a)) ++wrong;
    }
    for (int i = 0; i < 100; ++i) rank.barrier();
    rank.agree(17, "the answer");
  });
  CHECK(what == "no exception");
  CHECK(wrong == 0);
  CHECK(seen == Mesh::size);
}

TEST_CASE("ranks know their device, coordinates and communicators: 1 gpu") { check_rank<line<1>>(); }
TEST_CASE("ranks know their device, coordinates and communicators: 2 gpus") { check_rank<line<2>>(); }
TEST_CASE("ranks know their device, coordinates and communicators: 1 x 2 gpus") { check_rank<flat>(); }
TEST_CASE("ranks know their device, coordinates and communicators: 2 x 2 gpus") { check_rank<grid>(); }

// All-reduces on every axis, from a graph or not, until another rank fails.
template <class Rank>
void reduce_for_ever(Rank& rank, bool captured) {
  const sw::cuda::stream queue;
  const sw::cuda::device_memory m(1 << 20);
  const auto step = [&] {
    for (int a = 0; a < Rank::mesh_type::axes; ++a)
      sw::cuda::check(ncclAllReduce(m.data(), m.data(), 1 << 18, ncclFloat, ncclSum, rank.communicator(a), queue.get()),
                      "ncclAllReduce");
  };
  sw::cuda::graph_instance graph;
  if (captured) {
    step();
    rank.synchronize(queue.get());
    sw::cuda::check(cudaStreamBeginCapture(queue.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    step();
    cudaGraph_t g = nullptr;
    sw::cuda::check(cudaStreamEndCapture(queue.get(), &g), "cudaStreamEndCapture");
    graph = sw::cuda::graph_instance(g);
  }
  for (;;) {
    for (int i = 0; i < 4; ++i) {
      if (captured) sw::cuda::check(cudaGraphLaunch(graph.get(), queue.get()), "cudaGraphLaunch");
      else step();
    }
    rank.synchronize(queue.get());
  }
}

template <class Mesh>
void check_release() {
  if (!has_gpus(Mesh::size)) return;
  for (int bad = 0; bad < Mesh::size; ++bad) {
    const std::string want = "gave up (rank " + std::to_string(bad) + ")";
    CHECK(message_of<Mesh>([&](auto& rank) {
            if (rank.index() == bad) throw std::runtime_error("gave up");
            for (;;) rank.barrier();
          }) == want);
    for (const bool captured : {false, true}) {
      // before the first collective, when the others wait for connections, and in the middle of many
      CHECK(message_of<Mesh>([&](auto& rank) {
              if (rank.index() == bad) throw std::runtime_error("gave up");
              reduce_for_ever(rank, captured);
            }) == want);
      CHECK(message_of<Mesh>([&](auto& rank) {
              if (rank.index() == bad) {
                const sw::cuda::stream queue;
                const sw::cuda::device_memory m(1 << 20);
                for (int i = 0; i < 3 * Mesh::axes; ++i)
                  sw::cuda::check(ncclAllReduce(m.data(), m.data(), 1 << 18, ncclFloat, ncclSum,
                                                rank.communicator(i % Mesh::axes), queue.get()),
                                  "ncclAllReduce");
                rank.synchronize(queue.get());
                throw std::runtime_error("gave up");
              }
              reduce_for_ever(rank, captured);
            }) == want);
    }
    CHECK(message_of<Mesh>([&](auto& rank) { rank.barrier(); }) == "no exception");
  }
  CHECK(message_of<Mesh>([](auto& rank) { rank.agree(rank.index() == 1 ? 8 : 7, "the seed"); }) ==
        "shardwise: rank 1 and rank 0 disagree on the seed (8 and 7); all ranks must run one program on equal arguments");
}

TEST_CASE("a rank that throws releases the others: 2 gpus") { check_release<line<2>>(); }
TEST_CASE("a rank that throws releases the others: 2 x 2 gpus") { check_release<grid>(); }

// --- refusals, which need no GPU
// --------------------------------------------------------------------------------------

TEST_CASE("a mesh with more ranks than there are GPUs is refused before anything else") {
  bool ran = false;
  const std::string what = message_of<sw::mesh<sw::on_cuda, rows, many>>([&](auto&) { ran = true; });
  CHECK(what.find("shardwise: the mesh 2 x 4096 needs 8192 GPUs; this process sees ") == 0);
  CHECK(what.ends_with("; run on more GPUs, set CUDA_VISIBLE_DEVICES, or choose a smaller mesh"));
  CHECK(!ran);
}

// The refusal of a launch as a process with these variables set and all others of launchers unset.
std::string refusal(std::vector<std::pair<const char*, const char*>> variables) {
  for (const sw::runtime::starter& l : sw::runtime::starters)
    for (const char* name : {l.rank, l.size, l.local}) unsetenv(name);
  unsetenv("NCCL_COMM_ID");
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  std::string what = "no exception";
  try {
    sw::launch_cuda_process<grid>([](auto&) {});
  } catch (const std::exception& e) {
    what = e.what();
  }
  for (const auto& [name, value] : variables) unsetenv(name);
  return what;
}

TEST_CASE("a process that a launcher did not start for the mesh is refused with the variable to set") {
  CHECK(refusal({}).find("shardwise: no launcher has started this process; start one process for each GPU with one of "
                         "torchrun (RANK, WORLD_SIZE, LOCAL_RANK), ") == 0);
  CHECK(refusal({{"RANK", "1"}}) ==
        "shardwise: the environment variable WORLD_SIZE is missing; start the program with torchrun, which sets RANK, "
        "WORLD_SIZE and LOCAL_RANK");
  CHECK(refusal({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}}) ==
        "shardwise: the mesh 2 x 2 has 4 ranks; srun has started 8 processes (SLURM_NTASKS); start as many as the mesh "
        "has "
        "ranks");
  CHECK(refusal({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}) ==
        "shardwise: PMI_RANK is 4; it must be below PMI_SIZE, which is 4");
  CHECK(refusal({{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) ==
        "shardwise: the environment variable OMPI_COMM_WORLD_RANK is 'x'; it must be a number from 0");
  CHECK(refusal({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}) ==
        "shardwise: the environment variable NCCL_COMM_ID is missing; set it to <host of rank 0>:<free port> for all "
        "processes, so that NCCL can connect them");
  if (sw::cuda::device_count() != 1)  // the only one is taken for the process's own
    CHECK(refusal({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "99"}, {"NCCL_COMM_ID", "127.0.0.1:29600"}})
              .find("shardwise: rank 1 needs GPU 99 (LOCAL_RANK); this process sees ") == 0);
}

}  // namespace
