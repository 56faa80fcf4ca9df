// SPDX-License-Identifier: Apache-2.0
// world: one process among the ranks of a run: its communicators, how it waits, and how all learn that one failed, has returned or
// does not come.
#pragma once

#include <sched.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <shardwise/runtime/failures.hpp>
#include <shardwise/runtime/mpi/calls.hpp>
#include <shardwise/runtime/program/clock.hpp>
#include <shardwise/runtime/threads/barrier.hpp>
#include <shardwise/runtime/threads/standing.hpp>
#include <shardwise/runtime/threads/stream.hpp>
#include <shardwise/runtime/threads/team.hpp>

namespace shardwise::inline v0_1 {

// What launch_mpi may be told.
struct mpi_options {
  // So long a rank waits for others, in a collective or at the end, before it takes them for lost; more than 0. Longer than anything that
  // one rank does by itself while others wait for it. Threads' setting where none is given here; its 0, for ever, is a hundred years.
  double timeout_seconds = rank_timeout() > 0 ? rank_timeout() : 3e9;
  // Sums, means and products of float, double and whole numbers by MPI's own reduction, in whatever order it adds. Otherwise, and
  // always for elements that MPI cannot add and for extremes and norms, ranks exchange their parts and add them in rank order: the
  // bits of the threads backend. MPI does not promise that its own reduction gives all ranks the same bits.
  bool fast_reduce = false;
};

namespace mpi {

// A channel is who meets: all ranks' own threads, or the group along an axis, its threads or its streams. Between processes it has a
// communicator. Where a process is several ranks, all ranks meet in two channels: the ranks of one process, and beside it one rank of
// each process.
inline constexpr int channels = 3 + threads::lanes * max_axes;
inline constexpr int all_ranks = 0, process_ranks = 1, end_of_run = 2;
constexpr int channel_of(int lane, int axis) { return 3 + lane * max_axes + axis; }

// What ranks tell each other beside collectives.
struct notice {
  enum kind_type : std::int32_t { failed, returned, ask, answer, ended, reported };
  kind_type kind = failed;
  std::int32_t rank = -1;
  std::int64_t begun[channels]{};  // collectives of each channel that the rank has begun
  char text[1000]{};
};

// What the ranks of one process share: its turn to call MPI, and where notices arrive.
struct line {
  std::mutex gate;
  MPI_Comm control = MPI_COMM_NULL;
};

// A rank of a mesh: whom it meets, and where all ranks run.
struct seat {
  int rank = 0, size = 1;
  std::vector<int> process, thread;      // of every rank: of which process it is which thread
  std::vector<std::vector<int>> groups;  // along each axis the ranks in their order, this one among them
  std::vector<int> numbers;              // which of the groups along the axis that is
  bool is_between(const std::vector<int>& group) const {
    return group.size() > 1 && process[static_cast<std::size_t>(group[0])] != process[static_cast<std::size_t>(group[1])];
  }
};

// Law: MPI is called by one thread of a process at a time, and no call waits; what waits are the loops in `wait` and `meet`, which also
// listen. So a rank leaves a wait when it is over, when another rank has failed or returned, or when its time is up.
// Law: all memory that MPI reads or writes is the world's, and a world that failed is never freed: of a collective that will never end
// MPI goes on to move what has come, while the rank's memory is gone. Price: what is sent and what is received is copied once more.
class world {
 public:
  // host_ranks: ranks that share this process's cores. Collective: of a process that is several ranks one after the other.
  world(std::shared_ptr<line> shared, const seat& s, int host_ranks, const mpi_options& options)
      : options_(options),
        seat_(s),
        rank_(s.rank),
        size_(s.size),
        crowded_(host_ranks > threads::cores_of_process()),
        line_(std::move(shared)),
        gate_(line_->gate),
        left_(static_cast<std::size_t>(s.size), false),
        begun_by_(static_cast<std::size_t>(s.size)),
        answered_(static_cast<std::size_t>(s.size), false),
        ended_(static_cast<std::size_t>(s.size), false) {
    const auto me = static_cast<std::size_t>(rank_);
    for (int r = 0; r < size_; ++r) {
      const auto at = static_cast<std::size_t>(r);
      members_[end_of_run].push_back(r);
      if (s.thread[at] == s.thread[me]) members_[all_ranks].push_back(r);
      if (s.process[at] == s.process[me]) members_[process_ranks].push_back(r);
    }
    if (line_->control == MPI_COMM_NULL) made(MPI_Comm_dup(MPI_COMM_WORLD, &line_->control), line_->control, "MPI_Comm_dup");
    made(MPI_Comm_dup(MPI_COMM_WORLD, &comm_[all_ranks]), comm_[all_ranks], "MPI_Comm_dup");
    for (int lane = 0; lane < threads::lanes; ++lane)
      for (int a = 0; a < static_cast<int>(s.groups.size()); ++a) {
        const auto& group = s.groups[static_cast<std::size_t>(a)];
        const auto c = static_cast<std::size_t>(channel_of(lane, a));
        members_[c] = group;
        if (!s.is_between(group)) continue;
        int place = 0;
        while (group[static_cast<std::size_t>(place)] != rank_) ++place;
        made(MPI_Comm_split(MPI_COMM_WORLD, s.numbers[static_cast<std::size_t>(a)], place, &comm_[c]), comm_[c],
             "MPI_Comm_split");
      }
  }
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  const mpi_options& options() const { return options_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // --- collectives ------------------------------------------------------------------------------------------------------

  // Begins a collective by begin(communicator, request) and returns when it is done. `what` and `axis` name it in errors.
  template <class F>
  void collective(int channel, const char* what, int axis, const F& begin) {
    waiting w{channel, axis, what, 0};
    MPI_Request r = MPI_REQUEST_NULL;
    {
      const std::lock_guard lock(gate_);
      w.number = ++begun_[channel];
      begin(comm_[static_cast<std::size_t>(channel)], &r);
    }
    try {
      wait(r, w);
    } catch (...) {
      const std::lock_guard lock(gate_);
      now_[channel] = nullptr;  // the text is the caller's
      throw;
    }
  }

  // Returns when all ranks of a channel whose ranks are threads of this process have come to the gate. Law: who leaves by an exception
  // has opened the gate before, so that nobody meets there who could still reach its memory.
  void meet(threads::barrier& gate, int channel, const char* what, int axis) {
    const waiting w{channel, axis, what, ++begun_[channel]};
    const unsigned round = gate.come();
    const std::int64_t begin = runtime::now();
    bool is_said = false;
    const auto over = [&] {
      if (!is_said) return;
      const std::lock_guard lock(gate_);
      now_[channel] = nullptr;  // the text is the caller's
    };
    try {
      for (int turn = 0; round == gate.no_round || !gate.is_over(round); ++turn) {
        if (turn % 64 == 63) {
          {
            const std::lock_guard lock(gate_);
            now_[channel] = what;
            is_said = true;
            listen();
            look_for_losses(w);
          }
          if (seconds_since(begin) > options_.timeout_seconds) give_up(w);
        }
        pause(turn);
      }
    } catch (...) {
      over();
      if (round == gate.no_round || gate.leave_round(round)) throw;
      return;
    }
    over();
  }

  // --- ranks that wait for a device, too: see watch.hpp ---------------------------------------------------------------------

  // A thread beside the rank's answers for it from now on; `place` says where the rank's own waits. nullptr: no longer.
  void watch_over(const threads::standing* place) {
    const std::lock_guard lock(gate_);
    place_ = place;
  }
  // This rank has queued n further collectives that its device's library runs along an axis: they count with the ranks' own threads.
  void queue(int axis, std::int64_t n) { begun_[channel_of(0, axis)] += n; }
  // Throws if some rank has failed, this one too.
  void look() {
    const std::lock_guard lock(gate_);
    if (failed_by_ >= 0) throw rank_failed(failed_by_, failed_text_);
  }
  // Who has failed, by what this rank has heard so far; -1: nobody.
  int hears_failure() {
    const std::lock_guard lock(gate_);
    listen();
    return failed_by_;
  }
  std::string failure() {
    const std::lock_guard lock(gate_);
    return failed_text_;
  }
  bool is_in_collective() {
    const std::lock_guard lock(gate_);
    for (const char* const what : now_)
      if (what) return true;
    return false;
  }
  // Throws where a rank has returned that has queued fewer collectives on one of `axes` than this one, bit a being axis a.
  void look_for_returns(unsigned axes) {
    const std::lock_guard lock(gate_);
    for (int a = 0; a < static_cast<int>(seat_.groups.size()); ++a)
      for (const int p : seat_.groups[static_cast<std::size_t>(a)])
        if ((axes >> a & 1U) != 0 && left_[static_cast<std::size_t>(p)] && is_late(p, a))
          throw rank_returned(p, rank_, ("a collective on axis " + std::to_string(a) + " of the mesh").c_str());
  }
  // This rank has waited too long for its device: asks all others where they are, and says it. Empty: meanwhile the run has failed.
  std::string device_wait(unsigned axes) {
    std::vector<int> others;
    for (int p = 0; p < size_; ++p)
      if (p != rank_) others.push_back(p);
    ask(others);
    const std::lock_guard lock(gate_);
    if (failed_by_ >= 0) return {};
    std::string found;
    for (const int p : others) {
      const auto at = static_cast<std::size_t>(p);
      if (left_[at]) continue;
      if (!answered_[at]) {
        found += "; rank " + std::to_string(p) + silent();
        continue;
      }
      bool late = false;
      for (int a = 0; a < static_cast<int>(seat_.groups.size()); ++a) {
        if ((axes >> a & 1U) == 0 || !is_late(p, a)) continue;
        const auto c = static_cast<std::size_t>(channel_of(0, a));
        bool is_met = false;
        for (const int q : seat_.groups[static_cast<std::size_t>(a)]) is_met = is_met || q == p;
        if (!is_met) continue;
        late = true;
        found += "; rank " + std::to_string(p) + " has queued " + std::to_string(begun_by_[at][c]) + " of " +
                 std::to_string(begun_[c]) + " collectives on axis " + std::to_string(a) + " of the mesh: it " + said_[at];
      }
      if (!late && said_[at] != device_waits) found += "; rank " + std::to_string(p) + " " + said_[at];
    }
    return "shardwise: rank " + std::to_string(rank_) + " has waited " + time_out() + " for its device" +
           (found.empty() ? "; all ranks have queued as many collectives" : found) + remedy();
  }

  // What collectives of a lane send and receive, and how much of it goes where, in elements.
  struct buffers {
    std::vector<std::byte> out, in;
    std::vector<int> send, send_at, receive, receive_at;
  };
  buffers& of_lane(int lane) { return buffers_[lane]; }

  // --- how a run ends ---------------------------------------------------------------------------------------------------

  // This rank fails by what `text` says, before the others hear it from anyone else or after; they are released.
  void fail(const std::string& text) {
    const std::lock_guard lock(gate_);
    listen();
    if (failed_by_ >= 0) return;
    adopt(rank_, text);
    tell_all(notice::failed, text);
  }

  // The rank's function has returned: returns when those of all have. Afterwards the communicators may be freed. A second time: at once.
  void finish() {
    {
      const std::lock_guard lock(gate_);
      if (left_[static_cast<std::size_t>(rank_)]) return;
      tell_all(notice::returned, "");
      left_[static_cast<std::size_t>(rank_)] = true;
    }
    const std::int64_t begin = runtime::now();
    const waiting w{end_of_run, -1, "the meeting of all ranks at the end of the run", 1};
    for (int turn = 0;; ++turn) {
      {
        const std::lock_guard lock(gate_);
        listen();
        if (failed_by_ >= 0) throw rank_failed(failed_by_, failed_text_);
        bool all = sent();
        for (const bool l : left_) all = all && l;
        if (all) break;
      }
      if (turn % 64 == 63 && seconds_since(begin) > options_.timeout_seconds) give_up(w);
      pause(turn);
    }
  }
  // Collective, as the constructor; the process's last one frees what its ranks share.
  void free() {
    for (MPI_Comm& c : comm_)
      if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
    if (line_.use_count() == 1) MPI_Comm_free(&line_->control);
    line_ = {};
  }

  // What all ranks make of a failed run, each when its function has been left: the rank that failed first, of several at once the
  // lowest, reports, when the others have said that they have come so far or time is up.
  struct verdict {
    int rank = -1;             // who failed
    std::string text;          // and what it said, with the ranks that do not answer
    bool is_reporter = false;  // whether it was this one
    bool silent = false;       // some rank does not answer: MPI_Abort alone can end it
  };
  // So long the rank that reports waits for the others' words, and these, a little longer, for its own.
  double report_time() const { return options_.timeout_seconds < 5 ? options_.timeout_seconds : 5; }
  verdict end_failed() {
    broken() = true;
    listen_for(0.2, [] { return false; });
    const double patience = report_time();
    verdict v{failed_by_, failed_text_, failed_by_ == rank_, false};
    if (!v.is_reporter) {
      {
        const std::lock_guard lock(gate_);
        tell(failed_by_, notice::ended, "");
      }
      listen_for(patience + 2, [&] { return reported_; });
      return v;
    }
    listen_for(patience, [&] {
      bool all = true;
      for (int r = 0; r < size_; ++r) all = all && (r == rank_ || ended_[static_cast<std::size_t>(r)]);
      return all;
    });
    std::string names;
    for (int r = 0; r < size_; ++r)
      if (r != rank_ && !ended_[static_cast<std::size_t>(r)]) names += (names.empty() ? "" : ", ") + std::to_string(r);
    v.silent = !names.empty();
    if (v.silent) v.text += "; MPI_Abort ends what did not leave by itself: rank " + names;
    return v;
  }
  // Ends all processes, those that do not answer, too.
  void abort_all() {
    const std::lock_guard lock(gate_);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  // The reporter has said it.
  void report_done() {
    {
      const std::lock_guard lock(gate_);
      tell_all(notice::reported, "");
    }
    listen_for(1, [&] { return sent(); });
  }

 private:
  struct waiting {
    int channel, axis;
    const char* what;
    std::int64_t number;
    std::string text() const {
      return what + (axis < 0 ? std::string() : " on axis " + std::to_string(axis) + " of the mesh");
    }
  };
  struct letter {
    notice n;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  static double seconds_since(std::int64_t begin) { return static_cast<double>(runtime::now() - begin) * 1e-9; }
  // A wait spins a little, lets others run, and then sleeps; where ranks outnumber cores it lets them run at once.
  void pause(int turn) const {
    if (turn < (crowded_ ? 0 : 50)) return;
    if (turn < 1000) {
      sched_yield();
      return;
    }
    const timespec t{0, turn < 10000 ? 20'000 : 200'000};
    nanosleep(&t, nullptr);
  }
  static void made(int code, const MPI_Comm& c, const char* call) {
    check(code, call);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  }

  void wait(MPI_Request& r, const waiting& w) {
    const std::int64_t begin = runtime::now();
    for (int turn = 0;; ++turn) {
      {
        const std::lock_guard lock(gate_);
        int done = 0;
        if (const int code = MPI_Test(&r, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS) refuse(code, w);
        now_[w.channel] = done ? nullptr : w.what;
        if (done) return;
        if (turn % 8 == 7) listen();
        look_for_losses(w);
      }
      if (turn % 64 == 63 && seconds_since(begin) > options_.timeout_seconds) give_up(w);
      pause(turn);
    }
  }

  // Throws where somebody has failed, or has returned without coming. The lock is held.
  void look_for_losses(const waiting& w) const {
    if (failed_by_ >= 0) throw rank_failed(failed_by_, failed_text_);
    for (const int p : members_[w.channel])
      if (left_[static_cast<std::size_t>(p)] &&
          begun_by_[static_cast<std::size_t>(p)][static_cast<std::size_t>(w.channel)] < w.number)
        throw rank_returned(p, rank_, w.text().c_str());
  }

  // Ranks that make different calls send each other what the other one does not expect.
  [[noreturn]] void refuse(int code, const waiting& w) const {
    throw std::runtime_error("shardwise: rank " + std::to_string(rank_) + " waits in " + w.text() + ", and MPI says: " +
                             error_text(code) + "; every rank must make the same calls in the same order");
  }

  // Time is up: asks those it waits for where they are, and throws what they say.
  [[noreturn]] void give_up(const waiting& w) {
    std::vector<int> lost;
    {
      const std::lock_guard lock(gate_);
      for (const int p : members_[w.channel])
        if (p != rank_ && !left_[static_cast<std::size_t>(p)]) lost.push_back(p);
    }
    ask(lost);
    const std::lock_guard lock(gate_);
    if (failed_by_ >= 0) throw rank_failed(failed_by_, failed_text_);
    std::string found;
    for (const int p : lost) {
      const auto at = static_cast<std::size_t>(p);
      if (answered_[at] && begun_by_[at][static_cast<std::size_t>(w.channel)] >= w.number) continue;  // it has come, too
      found += "; rank " + std::to_string(p) + (answered_[at] ? " has not come: it " + said_[at] : silent());
    }
    throw std::runtime_error("shardwise: rank " + std::to_string(rank_) + " has waited " + time_out() + " in " + w.text() +
                             found + remedy());
  }
  std::string time_out() const {
    char time[32];
    std::snprintf(time, sizeof time, "%g s", options_.timeout_seconds);
    return time;
  }
  static std::string silent() {
    return " does not answer: it is gone, stopped, or in code that calls nothing of the library";
  }
  static constexpr const char* device_waits = "waits for its device";
  static const char* remedy() {
    return "; let every rank make the same calls in the same order, or give more time by mpi_options::timeout_seconds";
  }
  // Asks ranks where they are, and listens for a second, or until all have answered or the run has failed.
  void ask(const std::vector<int>& ranks) {
    {
      const std::lock_guard lock(gate_);
      for (const int p : ranks) {
        answered_[static_cast<std::size_t>(p)] = false;
        if (!left_[static_cast<std::size_t>(p)]) tell(p, notice::ask, "");
      }
    }
    listen_for(1, [&] {
      bool all = true;
      for (const int p : ranks) all = all && (answered_[static_cast<std::size_t>(p)] || left_[static_cast<std::size_t>(p)]);
      return all || failed_by_ >= 0;
    });
  }
  // Whether rank p, by its last word, has queued fewer of a device's collectives along an axis. The lock is held.
  bool is_late(int p, int axis) const {
    const auto c = static_cast<std::size_t>(channel_of(0, axis));
    return begun_by_[static_cast<std::size_t>(p)][c] < begun_[c];
  }

  // --- notices: the lock is held ------------------------------------------------------------------------------------------

  void tell(int to, notice::kind_type kind, const std::string& text) {
    letter& l = letters_.emplace_back();
    l.n.kind = kind;
    l.n.rank = rank_;
    for (int c = 0; c < channels; ++c) l.n.begun[c] = begun_[c];
    std::snprintf(l.n.text, sizeof l.n.text, "%s", text.c_str());
    MPI_Isend(&l.n, static_cast<int>(sizeof l.n), MPI_BYTE, seat_.process[static_cast<std::size_t>(to)],
              seat_.thread[static_cast<std::size_t>(to)], line_->control, &l.request);
  }
  void tell_all(notice::kind_type kind, const std::string& text) {
    for (int r = 0; r < size_; ++r)
      if (r != rank_) tell(r, kind, text);
  }
  // Whether all that was told is on its way.
  bool sent() {
    bool all = true;
    for (letter& l : letters_) {
      int done = 1;
      if (l.request != MPI_REQUEST_NULL) MPI_Test(&l.request, &done, MPI_STATUS_IGNORE);
      all = all && done;
    }
    return all;
  }
  void adopt(int rank, const std::string& text) {
    failed_by_ = rank;
    failed_text_ = text;
  }
  void listen() {
    const int mine = seat_.thread[static_cast<std::size_t>(rank_)];
    for (;;) {
      int there = 0;
      MPI_Status s;
      if (MPI_Iprobe(MPI_ANY_SOURCE, mine, line_->control, &there, &s) != MPI_SUCCESS || !there) return;
      notice n;
      MPI_Recv(&n, static_cast<int>(sizeof n), MPI_BYTE, s.MPI_SOURCE, mine, line_->control, MPI_STATUS_IGNORE);
      const auto from = static_cast<std::size_t>(n.rank);
      std::memcpy(begun_by_[from].data(), n.begun, sizeof n.begun);
      switch (n.kind) {
        case notice::failed:
          if (failed_by_ < 0 || n.rank < failed_by_) adopt(n.rank, n.text);
          break;
        case notice::returned: left_[from] = true; break;
        case notice::ask: tell(n.rank, notice::answer, where()); break;
        case notice::answer:
          said_[from] = n.text;
          answered_[from] = true;
          break;
        case notice::ended: ended_[from] = true; break;
        case notice::reported: reported_ = true; break;
      }
    }
  }
  std::string where() const {
    for (int c = 0; c < channels; ++c)
      if (now_[c])
        return "waits in " + waiting{c, c < channel_of(0, 0) ? -1 : (c - channel_of(0, 0)) % max_axes, now_[c], 0}.text();
    if (!place_) return "waits";
    return place_->look().how == threads::standing::kind::awaits_device ? device_waits
                                                                        : "is in code that calls nothing of the library";
  }
  // Until done() or so many seconds are over.
  template <class F>
  void listen_for(double seconds, const F& done) {
    const std::int64_t begin = runtime::now();
    for (int turn = 0; seconds_since(begin) < seconds; ++turn) {
      {
        const std::lock_guard lock(gate_);
        listen();
        if (done()) return;
      }
      pause(turn);
    }
  }

  mpi_options options_;
  seat seat_;
  int rank_, size_;
  bool crowded_;
  const threads::standing* place_ = nullptr;  // of a rank that is watched over
  std::shared_ptr<line> line_;
  std::mutex& gate_;
  std::array<MPI_Comm, channels> comm_ = [] {
    std::array<MPI_Comm, channels> c;
    c.fill(MPI_COMM_NULL);
    return c;
  }();
  std::vector<int> members_[channels];
  std::atomic<std::int64_t> begun_[channels]{};
  const char* now_[channels]{};
  buffers buffers_[threads::lanes];
  std::deque<letter> letters_;  // which stay where they are
  // of each rank
  std::vector<bool> left_;
  std::vector<std::array<std::int64_t, channels>> begun_by_;
  std::vector<bool> answered_, ended_;
  std::vector<std::string> said_ = std::vector<std::string>(static_cast<std::size_t>(size_));
  int failed_by_ = -1;
  std::string failed_text_;
  bool reported_ = false;
};

// The world's rank fails by e.
inline void fail(world& w, const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    w.fail(x.what());
  } catch (...) {
    w.fail("shardwise: rank " + std::to_string(w.rank()) + " has thrown what is no std::exception");
  }
}

}  // namespace mpi

}  // namespace shardwise::inline v0_1
