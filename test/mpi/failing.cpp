// SPDX-License-Identifier: Apache-2.0
// Runs that fail, each in a way that SHARDWISE_MPI_FAILS names; run.py starts them and reads what they say. They end the process. Those
// whose names begin with "threads" have several ranks in each process; of those that begin with "device" a rank waits for a device, which here
// is a thread.
#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <placed_steps.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/mpi/hybrid.hpp>
#include <shardwise/runtime/mpi/rank_link.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <time.h>
#include <unistd.h>

#include "world.hpp"

namespace {

using namespace test;
using namespace test::placed;

template <int N>
struct worker : sw::axis<N> {};
using steps =
    sw::mesh_choice<rows2::mesh_type, split_step<1, 3, rows<tp<3>, 0>, rows<tp<3>, 1>>::mesh_type, both4::mesh_type>;
template <class Mesh>
struct step_of;
template <>
struct step_of<rows2::mesh_type> {
  using type = rows2;
};
template <>
struct step_of<sw::mesh<dp<1>, tp<3>>> {
  using type = split_step<1, 3, rows<tp<3>, 0>, rows<tp<3>, 1>>;
};
template <>
struct step_of<both4::mesh_type> {
  using type = both4;
};

void sleep_for(int seconds) {
  const timespec t{seconds, 0};
  nanosleep(&t, nullptr);
}

// Three ranks with collectives that are under way beside kernels.
using beside = step<1, 3, sw::adam<>, sw::pipeline<sw::schedule_comm_wait>, sw::at<"first", rows<tp<3>, 0>>,
                    sw::at<"second", rows<tp<3>, 1>>>;

static_assert(sw::has_waits(beside::program));

// Parameters in shards along both axes, which are gathered along both.
template <int D, int N, class Pipeline = sw::pipeline<>>
using both = step<D, N, sw::adam<>, Pipeline, sw::at<"first", rows<dp<D>, 0>>, sw::at<"second", rows<tp<N>, 1>>>;
using beside_threads = both<2, 3, sw::pipeline<sw::schedule_comm_wait>>;

// Trains two steps; then the last rank, or all, go wrong as `how` says.
template <class Step, class Rank>
void misbehave(Rank& rank, const std::string& how) {
  sw::executor<Step, Rank> ex(rank);
  ex.initialise(3);
  const bool last = rank.index() == rank.size() - 1;
  train(ex, 1, 2);
  if (how.empty() || how.starts_with("ranks ")) {
    if (rank.index() == 0) std::printf("%s %d: %.17g\n", Rank::backend_name, rank.size(), ex.loss());
    return;
  }
  if (how == "all throw") throw std::runtime_error("no rank goes on");
  if (last && how == "throw") throw std::runtime_error("no more rows");
  if (rank.index() == 1 && how == "second throws") throw std::runtime_error("no more rows");
  if (rank.index() == 1 && how == "second returns") return;
  if (last && how == "return") return;
  if (last && how == "kill") raise(SIGKILL);
  if (last && how == "stop") raise(SIGSTOP);
  if (last && how == "stall") sleep_for(60);
  if (last && how == "exit") std::_Exit(7);
  if (how == "order") {
    if (last) rank.barrier();
    else rank.agree(5, "the seed");
  }
  if (how == "disagree") rank.agree(last ? 8 : 7, "the seed");
  if (how == "on") {  // until somebody ends it from outside: bench/mpi/hosts.py
    if (rank.index() == 0) {
      std::printf("trains on\n");
      std::fflush(stdout);
    }
    for (int s = 3;; ++s) train(ex, s, s);
  }
  train(ex, 3, 4);
  if (how == "end" && last) sleep_for(60);
}

// A device that runs one function, in a thread of its own: a kernel of the device's library, which waits for other ranks until it is aborted,
// or a host function. It is deaf where nothing aborts it.
struct thread_device {
  sw::processes::host_link& link;
  int index;
  std::atomic<bool> aborted{false}, busy{false};
  bool deaf = false;
  std::thread worker;

  // late: it waits for others already, and takes long before anybody can abort it
  thread_device(sw::processes::host_link& l, int r, int) : link(l), index(r) {
    if (!late() || r == 2) return;
    run([this] {
      while (!aborted) sleep_for_a_moment();
    });
    sleep_for(3);
  }
  static bool late() { return std::getenv("SHARDWISE_MPI_FAILS") == std::string("device throw late inside"); }
  ~thread_device() {
    if (worker.joinable()) worker.join();
  }
  thread_device& rank() { return *this; }
  void abort() { aborted = true; }
  // Returns when the device is done; hears of other ranks meanwhile where it looks.
  void wait(bool looks) {
    link.place().awaits_device();
    while (busy && (deaf || !aborted)) {
      if (looks) link.check();
      const timespec t{0, 1'000'000};
      nanosleep(&t, nullptr);
    }
    link.place().goes_on();
  }
  void drain() { wait(true); }
  void run(const std::function<void()>& f) {
    busy = true;
    worker = std::thread([this, f] {
      f();
      busy = false;
    });
  }
  // A collective of the device's library: done when all ranks have queued it, which here is never.
  void connected(int axis) {
    link.queue(axis, 1);
    run([this] {
      while (deaf || !aborted) sleep_for_a_moment();
    });
  }
  static void sleep_for_a_moment() {
    const timespec t{0, 5'000'000};
    nanosleep(&t, nullptr);
  }
  // One between hosts.
  void carried(int axis, sw::transition kind) {
    run([this, axis, kind] {
      double x[] = {1, 2, 3}, y[3];
      sw::runtime::call c;
      c.kind = kind;
      c.axis = axis;
      c.ranks = 3;
      c.coordinate = index;
      c.from = sw::partial_value();
      c.to = sw::replicate_value();
      for (const int of : {0, sw::runtime::result}) {
        c.type[of] = sw::dtype::f64;
        c.l[of] = sw::runtime::flat_layout(3);
      }
      c.p[0] = x;
      c.p[sw::runtime::result] = y;
      link.collective(&c, 1, [](int, int rank) { return "in a step, rank " + std::to_string(rank); });
    });
  }
};

// Three ranks along axis 1 of the mesh, of which the last one goes wrong while the others wait for their devices.
void wait_for_device(thread_device& d, const std::string& how) {
  const bool last = d.index == 2;
  d.deaf = how == "throw deaf" && !last;
  if (how.starts_with("carried")) {
    if (last && how == "carried stall") sleep_for(60);
    if (last && how == "carried return") return;
    if (last && how == "carried throw") throw std::runtime_error("no more rows");
    d.carried(1, last && how.starts_with("carried wrong") ? sw::transition::none : sw::transition::all_reduce);
    if (last && how == "carried wrong asleep") sleep_for(60);
    if (last && how == "carried wrong busy") sleep_for(4);  // longer than own_grace, and back in time
    if (last && how == "carried wrong queue") {
      while (d.busy) thread_device::sleep_for_a_moment();
      d.link.queue(1, 1);
      std::fprintf(stderr, "shardwise: collectives are queued after one has failed\n");
    }
    return d.wait(true);
  }
  if (last && how == "return") return;
  if (last && how.starts_with("throw")) throw std::runtime_error("no more rows");
  if (last && how == "stall") sleep_for(60);
  if (last && how == "kill") raise(SIGKILL);
  if (last && how == "ask") d.link.agree(8, "the seed");
  if (how == "throw late inside") return d.wait(false);
  d.connected(1);
  d.wait(how != "throw inside" && how != "throw deaf");
}

}  // namespace

TEST_CASE("fails" * doctest::skip()) {
  std::signal(SIGTERM, SIG_DFL);  // mpirun's, not a failure of this test
  const char* const given = std::getenv("SHARDWISE_MPI_FAILS");
  const std::string how = given ? given : "";
  std::string program = "program", option = "--ranks", number = how.starts_with("ranks ") ? how.substr(6) : "";
  char* arguments[] = {program.data(), option.data(), number.data(), nullptr};
  bool waits = false;  // until its time is up
  for (const char* const w : {"stop", "stall", "stall beside", "order", "kill", "end", "on", "deaf", "ask"})
    waits = waits || how.ends_with(w);
  const sw::mpi_options patience{waits ? 2.0 : 60.0, false};
  if (how.starts_with("device ")) {
    using line = sw::mesh<dp<1>, tp<3>>;
    const auto body = [&](thread_device& d) { wait_for_device(d, how.substr(7)); };
    const auto run = [&]<class Mesh>(const auto& says) {
      const auto on = [&]<class By>() {
        sw::mpi::run_process<Mesh>(
            [&](sw::mpi::world& w, const sw::mpi::host_place& host) {
              sw::mpi::run_on_device<Mesh, By, thread_device>(body, w, host);
            },
            patience, says);
      };
      if (how.starts_with("device carried")) on.template operator()<sw::by_nccl<dp<1>>>();
      else on.template operator()<sw::processes::by_nccl_alone>();
    };
    std::exit(sw::mpi::launch_main<line>(1, arguments, [] { return 2; }, run));
  }
  if (how.starts_with("threads")) {
    using meshes = sw::mesh_choice<both<2, 3>::mesh_type, both<3, 3>::mesh_type>;
    const std::string what = how.size() > 7 ? how.substr(8) : "";
    std::exit(sw::launch_mpi<meshes, sw::within_process<tp<3>>>(
        1, arguments,
        [&](auto& rank) {
          using mesh = typename std::remove_reference_t<decltype(rank)>::mesh_type;
          if constexpr (mesh::sizes[0] == 3) misbehave<both<3, 3>>(rank, what);
          else if (what.ends_with(" beside")) misbehave<beside_threads>(rank, what.substr(0, what.size() - 7));
          else misbehave<both<2, 3>>(rank, what);
        },
        patience));
  }
  const int code = sw::launch_mpi<steps>(
      number.empty() ? 1 : 3, arguments,
      [&](auto& rank) {
        using mesh = typename std::remove_reference_t<decltype(rank)>::mesh_type;
        if constexpr (mesh::size == 3)
          if (how.ends_with(" beside")) return misbehave<beside>(rank, how.substr(0, how.size() - 7));
        misbehave<typename step_of<mesh>::type>(rank, how);
      },
      patience);
  std::exit(code);
}
