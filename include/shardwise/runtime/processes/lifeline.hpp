// SPDX-License-Identifier: Apache-2.0
// lifeline: how a process that is one rank of a run learns that another one has failed, has ended or does not come: a connection from
// every process to that of rank 0, and a thread that listens. It carries no data of the program's.
#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/runtime/failures.hpp>
#include <shardwise/runtime/program/clock.hpp>
#include <shardwise/runtime/threads/standing.hpp>

namespace shardwise::inline v0_1::processes {

// A socket, or none.
class handle {
 public:
  explicit handle(int fd = -1) : fd_(fd) {}
  handle(handle&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  handle& operator=(handle&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~handle() { close(); }
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

[[noreturn]] inline void refuse(const std::string& what) {
  throw std::runtime_error("shardwise: the processes of this run cannot meet: " + what + ": " + std::strerror(errno));
}

// Law: when a process ends, its connection closes, however it ends; so no rank is waited for that is gone. What happens, with
// the first cause in one sentence that all ranks say:
//   a rank throws              fail(what): the others learn it at once
//   a process ends             before finish(): at once
//   a rank stalls              another one has waited for the time-out (rank_timeout), and names those that have queued fewer collectives
// The thread that the rank runs in learns it from cause(). If it has not called fail() itself within `patience` seconds, `release` is
// called, in the listening thread, to end what it may wait in; and after `grace` seconds the process is aborted with the message.
class lifeline {
 public:
  static constexpr double patience = 1, grace = 10;

  lifeline(int rank, int ranks) : rank_(rank), ranks_(ranks), limit_(rank_timeout()) {
    if (rank > 0) return;
    listener_ = handle(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int off = 0;
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_any;
    if (listener_.get() >= 0) {
      ::setsockopt(listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) refuse("bind");
    } else {  // a machine without IPv6
      listener_ = handle(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in any4{};
      any4.sin_family = AF_INET;
      if (listener_.get() < 0) refuse("socket");
      if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any4), sizeof any4) != 0) refuse("bind");
    }
    if (::listen(listener_.get(), ranks) != 0) refuse("listen");
  }
  lifeline(const lifeline&) = delete;
  lifeline& operator=(const lifeline&) = delete;
  ~lifeline() {
    if (!started_) return;
    over_ = true;
    pthread_join(thread_, nullptr);
  }

  // Where rank 0 listens; 0 on the others.
  std::uint16_t port() const {
    if (listener_.get() < 0) return 0;
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    if (::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) refuse("getsockname");
    return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(at).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(at).sin_port);
  }

  // All ranks, with the host of rank 0 and its port. Returns when this rank is connected, on rank 0 when all are.
  void meet(const std::string& host, std::uint16_t port) {
    if (rank_ > 0) {
      peers_.push_back({connect(host, port), 0});
      send(peers_[0], 'I', std::to_string(rank_));
    } else {
      for (int k = 1; k < ranks_; ++k) accept();
      listener_.close();
    }
    queued_.resize(static_cast<std::size_t>(ranks_));
    const auto entry = [](void* self) -> void* {
      static_cast<lifeline*>(self)->listen();
      return nullptr;
    };
    if (pthread_create(&thread_, nullptr, entry, this) != 0) refuse("pthread_create");
    started_ = true;
  }

  // release(given) when the run has failed elsewhere and this rank does not notice; before meet().
  void on_loss(void (*release)(void*), void* given) {
    release_ = release;
    given_ = given;
  }
  // Where this rank waits, which it says.
  threads::standing& place() { return place_; }
  // This rank has queued n further collectives, on whatever axis.
  void queue(std::int64_t n) { mine_ += n; }

  // Why the run has failed elsewhere, or empty.
  std::string cause() const {
    if (!lost_) return {};
    pthread_mutex_lock(&mutex_);
    std::string text = cause_;
    pthread_mutex_unlock(&mutex_);
    return text;
  }

  // This rank fails, or follows one that did. The first cause is everybody's.
  void fail(const std::string& what) {
    leaving_ = true;
    if (!started_ || lost_) return;
    lose(what);
    for (peer& p : peers_) send(p, 'F', what);
  }
  // This rank's function has returned, and all ranks have met since.
  void finish() {
    finished_ = true;
    for (peer& p : peers_) send(p, 'D', "");
  }

 private:
  struct peer {
    handle socket;
    int rank;
    bool done = false;
    std::string unread = {};
  };

  static handle connect(const std::string& host, std::uint16_t port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int e = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); e != 0)
      throw std::runtime_error("shardwise: the processes of this run cannot meet: the host of rank 0, '" + host +
                               "', is not known: " + ::gai_strerror(e));
    handle s;
    for (const addrinfo* a = found; a && s.get() < 0; a = a->ai_next) {
      s = handle(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
      if (s.get() >= 0 && ::connect(s.get(), a->ai_addr, a->ai_addrlen) != 0) s.close();
    }
    ::freeaddrinfo(found);
    if (s.get() < 0) refuse("connect to rank 0 at " + host + ":" + std::to_string(port));
    set_options(s);
    return s;
  }
  void accept() {
    pollfd p{listener_.get(), POLLIN, 0};
    const int wait = limit_ > 0 ? static_cast<int>(limit_ * 1e3 < 2e9 ? limit_ * 1e3 : 2e9) : -1;
    if (::poll(&p, 1, wait) == 0)
      throw rank_stalled("shardwise: rank 0 has waited for the processes of the other ranks to connect; " +
                         std::to_string(peers_.size()) + " of " + std::to_string(ranks_ - 1) + " have");
    handle s(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (s.get() < 0) refuse("accept");
    set_options(s);
    peer who{std::move(s), -1};
    while (who.rank < 0) {
      if (!read(who)) refuse("a process has connected and gone");
      take(who, [&](char kind, const std::string& text) {
        if (kind == 'I') who.rank = std::atoi(text.c_str());
      });
    }
    peers_.push_back(std::move(who));
  }
  static void set_options(const handle& s) {
    int on = 1;
    ::setsockopt(s.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(s.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }

  // --- frames: a letter, four bytes of length, a text ------------------------------------------------------------------

  void send(const peer& p, char kind, const std::string& text) {
    std::string frame(5, kind);
    const auto size = static_cast<std::uint32_t>(text.size());
    for (int k = 0; k < 4; ++k) frame[static_cast<std::size_t>(k + 1)] = static_cast<char>(size >> (8 * k));
    frame += text;
    pthread_mutex_lock(&sending_);
    for (std::size_t at = 0; at < frame.size();) {
      const ssize_t n = ::send(p.socket.get(), frame.data() + at, frame.size() - at, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;  // gone: its end is read where it is listened to
      at += static_cast<std::size_t>(n);
    }
    pthread_mutex_unlock(&sending_);
  }
  // False: the other end is closed.
  static bool read(peer& p) {
    const std::size_t had = p.unread.size(), some = 4096;
    p.unread.resize(had + some);
    ssize_t n = 0;
    do n = ::recv(p.socket.get(), p.unread.data() + had, some, 0);
    while (n < 0 && errno == EINTR);
    p.unread.resize(had + (n > 0 ? static_cast<std::size_t>(n) : 0));
    return n > 0;
  }
  template <class F>
  static void take(peer& p, const F& f) {
    while (p.unread.size() >= 5) {
      std::uint32_t size = 0;
      for (int k = 0; k < 4; ++k)
        size |= std::uint32_t{static_cast<unsigned char>(p.unread[static_cast<std::size_t>(k + 1)])} << (8 * k);
      if (p.unread.size() < 5 + std::size_t{size}) return;
      const char kind = p.unread[0];
      const std::string text = p.unread.substr(5, size);
      p.unread.erase(0, 5 + std::size_t{size});
      f(kind, text);
    }
  }

  // --- the thread ------------------------------------------------------------------------------------------------------

  void listen() {
    std::int64_t told = 0, lost_since = -1, waits_since = -1;
    unsigned turn = 0;
    while (!over_) {
      std::vector<pollfd> all;
      for (const peer& p : peers_) all.push_back({p.socket.get(), POLLIN, 0});
      ::poll(all.data(), all.size(), 100);
      for (std::size_t i = 0; i < peers_.size(); ++i)
        if (all[i].revents != 0) hear(peers_[i]);
      const std::int64_t now = runtime::now();
      if (now - told >= 500'000'000) {
        told = now;
        tell();
      }
      if (lost_ && !leaving_) {
        if (lost_since < 0) lost_since = now;
        if (release_ && static_cast<double>(now - lost_since) >= patience * 1e9) {
          release_(given_);
          release_ = nullptr;
        }
        if (static_cast<double>(now - lost_since) >= grace * 1e9) give_up();
      }
      const threads::standing::sight s = place_.look();
      if (s.how != threads::standing::kind::awaits_device || s.turn != turn || waits_since < 0) {
        turn = s.turn;
        waits_since = s.how == threads::standing::kind::awaits_device ? now : -1;
      } else if (limit_ > 0 && !lost_ && static_cast<double>(now - waits_since) >= limit_ * 1e9) {
        const std::string why = late();
        lose(why);
        for (peer& p : peers_) send(p, 'F', why);
      }
    }
  }
  void hear(peer& p) {
    if (!read(p)) {
      p.socket.close();  // which poll passes over
      if (!p.done && !finished_)
        spread("shardwise: the process of rank " + std::to_string(p.rank) +
                   " has ended before its function returned: it was killed, or has called exit; its own output, or the "
                   "system's log, says why",
               p.rank);
      return;
    }
    take(p, [&](char kind, const std::string& text) {
      if (kind == 'F') spread(text, p.rank);
      if (kind == 'D') p.done = true;
      if (kind == 'P') queued_[static_cast<std::size_t>(p.rank)] = std::atoll(text.c_str());
      if (kind == 'V') numbers_of(text);
    });
  }
  void spread(const std::string& why, int from) {
    if (lost_) return;
    lose(why);
    for (peer& p : peers_)
      if (rank_ == 0 && p.rank != from) send(p, 'F', why);
  }
  // The others tell rank 0 how many collectives they have queued, and rank 0 tells all.
  void tell() {
    queued_[static_cast<std::size_t>(rank_)] = mine_;
    std::string text;
    for (std::int64_t n : queued_) text += std::to_string(n) + " ";
    for (peer& p : peers_)
      if (p.socket.get() >= 0) send(p, rank_ == 0 ? 'V' : 'P', rank_ == 0 ? text : std::to_string(mine_.load()));
  }
  void numbers_of(const std::string& text) {
    const char* at = text.c_str();
    for (std::int64_t& n : queued_) {
      char* end = nullptr;
      n = std::strtoll(at, &end, 10);
      at = end;
    }
  }
  std::string late() const {
    std::string who;
    for (int r = 0; r < ranks_; ++r)
      if (queued_[static_cast<std::size_t>(r)] < mine_)
        who += (who.empty() ? ": rank " : ", rank ") + std::to_string(r) + " has queued " +
               std::to_string(queued_[static_cast<std::size_t>(r)]) + " of " + std::to_string(mine_) + " collectives";
    return "shardwise: rank " + std::to_string(rank_) + " has waited " + runtime::seconds_text(limit_) + " for its device" +
           (who.empty() ? ": all ranks have queued as many collectives" : who) +
           "; every rank must make the same calls in the same order; if it only needs longer, give more seconds by "
           "SHARDWISE_TIMEOUT or sw::set_rank_timeout";
  }
  void lose(const std::string& why) {
    pthread_mutex_lock(&mutex_);
    if (cause_.empty()) cause_ = why;
    pthread_mutex_unlock(&mutex_);
    lost_ = true;
  }
  [[noreturn]] void give_up() const {
    std::fprintf(stderr, "%s; rank %d waits where nothing wakes it, and is aborted\n", cause().c_str(), rank_);
    std::abort();
  }

  int rank_, ranks_;
  double limit_;
  handle listener_;
  std::vector<peer> peers_;  // of rank 0 all others, of the others rank 0
  threads::standing place_;
  void (*release_)(void*) = nullptr;
  void* given_ = nullptr;
  pthread_t thread_{};
  mutable pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t sending_ = PTHREAD_MUTEX_INITIALIZER;
  std::string cause_;
  std::vector<std::int64_t> queued_;
  std::atomic<std::int64_t> mine_{0};
  std::atomic<bool> over_{false}, lost_{false}, leaving_{false}, finished_{false};
  bool started_ = false;
};

}  // namespace shardwise::inline v0_1::processes
