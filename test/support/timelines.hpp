// SPDX-License-Identifier: Apache-2.0
// Reads an exported trace back, and the laws that one of real runs keeps.
#pragma once

#include <shardwise/graph/text/render.hpp>
#include <shardwise/graph/waits.hpp>
#include <shardwise/io/trace_export.hpp>

#if SHARDWISE_TEST_JSON
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace test {

namespace sw = shardwise;

struct slice {
  std::string name, cat, op, module, fused, phase;
  int pid, tid, node, call, calls;
  std::int64_t step, begin, end, sent, bytes;  // nanoseconds
};
struct flow {
  std::string ph;
  int pid, tid;
  std::int64_t at;
};

struct trace {
  nlohmann::json json;
  std::vector<slice> slices;
  std::map<std::int64_t, std::vector<flow>> flows;
  std::map<std::pair<int, std::string>, std::vector<std::pair<std::int64_t, std::int64_t>>> counters;  // time, value
  std::map<int, std::string> process_names;
  std::map<std::pair<int, int>, std::string> thread_names;
  std::vector<std::string> instants;

  static std::int64_t nanoseconds(const nlohmann::json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
  }

  explicit trace(const std::string& text) : json(nlohmann::json::parse(text)) {
    for (const auto& e : json.at("traceEvents")) {
      const std::string ph = e.at("ph");
      const int pid = e.at("pid"), tid = e.at("tid");
      if (ph == "M") {
        if (e.at("name") == "process_name") process_names[pid] = e.at("args").at("name");
        if (e.at("name") == "thread_name") thread_names[{pid, tid}] = e.at("args").at("name");
        continue;
      }
      const std::int64_t at = nanoseconds(e.at("ts"));
      if (ph == "i") instants.push_back(e.at("name"));
      if (ph == "C") counters[{pid, e.at("name")}].emplace_back(at, e.at("args").at("bytes"));
      if (ph == "s" || ph == "t" || ph == "f") flows[e.at("id")].push_back({ph, pid, tid, at});
      if (ph != "X") continue;
      const auto& a = e.at("args");
      slices.push_back({e.at("name"), e.at("cat"), a.value("op", ""), a.value("module", ""), a.value("fused", ""),
                        a.value("phase", ""), pid, tid, a.value("node", -1), a.value("call", -1), a.value("calls", 1),
                        a.value("step", std::int64_t{-1}), at, at + nanoseconds(e.at("dur")),
                        a.value("sent", std::int64_t{0}), a.value("bytes", std::int64_t{0})});
    }
  }

  static bool is_call(const slice& s) { return s.cat == "compute" || s.cat == "communication" || s.cat == "copy"; }
  int count(const std::string& cat) const {
    int n = 0;
    for (const slice& s : slices) n += s.cat == cat ? 1 : 0;
    return n;
  }
  // Payload of all collectives of a rank.
  std::int64_t sent(int pid) const {
    std::int64_t n = 0;
    for (const slice& s : slices) n += s.pid == pid ? s.sent : 0;
    return n;
  }

  // Slices of one track do not overlap.
  int overlaps() const {
    std::map<std::pair<int, int>, std::set<std::pair<std::int64_t, std::int64_t>>> tracks;
    int wrong = 0;
    for (const slice& s : slices) {
      wrong += s.end < s.begin ? 1 : 0;
      tracks[{s.pid, s.tid}].insert({s.begin, s.end});
    }
    for (const auto& [track, spans] : tracks) {
      std::int64_t end = 0;
      for (const auto& [b, e] : spans) {
        wrong += b < end ? 1 : 0;
        end = e;
      }
    }
    return wrong;
  }
  // A wait ends after what it waits for, a launch begins before what it launches; both exist.
  int out_of_order() const {
    std::map<std::tuple<int, std::int64_t, int>, const slice*> calls;
    for (const slice& s : slices)
      if (is_call(s))
        for (int k = 0; k < s.calls; ++k) calls[{s.pid, s.step, s.call + k}] = &s;
    int wrong = 0;
    for (const slice& s : slices) {
      if (s.cat != "wait" && s.cat != "launch") continue;
      if (s.call < 0) continue;  // for an input
      const auto found = calls.find({s.pid, s.step, s.call});
      if (found == calls.end()) {
        ++wrong;
        continue;
      }
      const slice& c = *found->second;
      wrong += s.cat == "wait" ? s.end < c.end || s.tid == c.tid : s.begin > c.begin || c.tid != 1;
    }
    return wrong;
  }
  // Every collective on a track of its own is the one middle (or, without launches, the beginning) of one flow, and flows
  // go forward in time.
  int broken_flows() const {
    std::map<std::pair<int, std::int64_t>, int> through;
    int wrong = 0;
    for (const auto& [id, f] : flows) {
      wrong += f.size() < 2 || f.front().ph != "s" || f.back().ph != "f" || f.back().tid != 0;
      for (std::size_t i = 0; i < f.size(); ++i) {
        wrong += (i > 0 && f[i].at < f[i - 1].at) || f[i].pid != f[0].pid;
        if (f[i].tid == 1) ++through[{f[i].pid, f[i].at}];
      }
    }
    std::size_t collectives = 0;
    for (const slice& s : slices)
      if (is_call(s) && s.tid == 1) {
        ++collectives;
        const auto t = through.find({s.pid, s.begin});
        wrong += t == through.end() || t->second != 1;
      }
    return wrong + (collectives != flows.size() ? 1 : 0);
  }
  // Of a rank: never negative, 0 at the end. Returns the most, -1 if that does not hold.
  std::int64_t most_in_flight(int pid) const {
    const auto c = counters.find({pid, "bytes in flight"});
    if (c == counters.end()) return 0;
    std::int64_t most = 0;
    for (const auto& [at, n] : c->second) {
      if (n < 0) return -1;
      most = std::max(most, n);
    }
    return c->second.back().second == 0 ? most : -1;
  }
  std::int64_t most_in_use(int pid) const {
    std::int64_t most = 0;
    for (const auto& [at, n] : counters.at({pid, "arena bytes in use"})) most = std::max(most, n);
    return most;
  }

  // How often the slices of one step of a rank miss or repeat a call of the program, or say anything else of it than the
  // graph: name, operation, module. `calls`: node ids.
  template <class Graph>
  int strangers(const Graph& g, const std::vector<int>& calls, int pid, std::int64_t step) const {
    const std::vector<std::string> names = sw::node_names(g);
    std::vector<int> seen(calls.size());
    int wrong = 0;
    for (const slice& s : slices) {
      if (!is_call(s) || s.pid != pid || s.step != step) continue;
      for (int k = 0; k < s.calls; ++k) {
        if (s.call < 0 || s.call + k >= static_cast<int>(calls.size())) return -1;
        ++seen[static_cast<std::size_t>(s.call + k)];
      }
      const int id = calls[static_cast<std::size_t>(s.call)];
      const sw::node& n = g.nodes[id];
      wrong += s.node != id || s.name != names[static_cast<std::size_t>(id)] || s.op != sw::name_of(n.op) ||
               s.module != sw::module_path(g, n.scope) || (s.cat == "communication") != sw::is_collective(g, id) ||
               s.fused.empty() != (n.expression < 0);
    }
    for (const int n : seen) wrong += n != 1 ? 1 : 0;
    return wrong;
  }
};

}  // namespace test
#endif
