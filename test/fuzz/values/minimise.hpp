// SPDX-License-Identifier: Apache-2.0
// Makes a failing program small: what can be left out or made smaller, while it fails alike, is.
#pragma once

#include <check.hpp>

namespace fuzz {

class minimiser {
 public:
  explicit minimiser(verdict::what kind) : kind_(kind) {}

  program of(program p) {
    best_ = std::move(p);
    while (tries_ < most_tries && once()) {
    }
    return best_;
  }

 private:
  static constexpr int most_tries = 6000;

  bool fails(program q) {
    if (++tries_ > most_tries || !tidy(q)) return false;
    statistics none;
    const verdict v = check(q, none);
    if (v.is != kind_) return false;
    best_ = q;
    return true;
  }
  template <class F>
  bool with(F&& change) {
    program q = best_;
    change(q);
    return fails(q);
  }

  bool once() {
    bool any = false;
    if (!best_.moves.empty())
      any = with([](program& q) {
              q.moves.clear();
              q.iterations = q.what == kind::training ? 2 : 1;
            }) ||
            any;
    if (best_.moves.size() > 1) any = with([](program& q) { q.moves.resize(1); }) || any;
    while (best_.iterations > (best_.moves.empty() ? 1 : 2) && with([](program& q) { --q.iterations; })) any = true;
    for (std::size_t k = best_.passes.size(); k-- > 0;)
      any = with([k](program& q) { q.passes.erase(q.passes.begin() + static_cast<std::ptrdiff_t>(k)); }) || any;
    if (best_.what != kind::forward)
      any = with([](program& q) {
              if (q.root >= 0) q.outputs.push_back(q.root);
              q.what = kind::forward;
            }) ||
            any;
    if (best_.what == kind::training && best_.optimizer != 0) any = with([](program& q) { q.optimizer = 0; }) || any;
    if (best_.special) any = with([](program& q) { q.special = false; }) || any;
    for (int k = 0; k < 64; ++k)
      if (best_.what == kind::gradient && ((best_.wanted >> k) & 1U) && best_.wanted != (std::uint64_t{1} << k))
        any = with([k](program& q) { q.wanted &= ~(std::uint64_t{1} << k); }) || any;
    for (std::size_t k = best_.outputs.size(); k-- > 0 && best_.outputs.size() > (best_.what == kind::forward ? 1U : 0U);)
      any = with([k](program& q) { q.outputs.erase(q.outputs.begin() + static_cast<std::ptrdiff_t>(k)); }) || any;
    for (std::size_t i = best_.body.size(); i-- > 0;) {
      if (i >= best_.body.size()) continue;
      if (with([i](program& q) { drop(q, static_cast<int>(i), -1); })) {
        any = true;
        continue;
      }
      for (int k = 0; i < best_.body.size() && k < best_.body[i].inputs; ++k)
        if (with([i, k](program& q) { drop(q, static_cast<int>(i), q.body[i].in[k]); })) {
          any = true;
          break;
        }
    }
    for (std::size_t i = 0; i < best_.body.size(); ++i) {  // an operand that comes earlier
      for (int k = 0; i < best_.body.size() && k < best_.body[i].inputs; ++k)
        for (int j = 0; j < best_.body[i].in[k] && j < 3; ++j)
          if (with([i, k, j](program& q) { q.body[i].in[k] = j; })) {
            any = true;
            break;
          }
    }
    for (int a = 0; a < best_.axes; ++a) {
      while (best_.sizes[a] > 1 && with([a](program& q) { resize(q, a, q.sizes[a] - 1); })) any = true;
      if (best_.axes > 1) any = with([a](program& q) { remove_axis(q, a); }) || any;
    }
    std::set<std::int64_t> extents;
    for (const statement& s : best_.body)
      for (int d = 0; d < s.given.rank; ++d) extents.insert(s.given.extent[d]);
    for (const std::int64_t e : extents)
      for (std::int64_t less = 1; less < e; ++less)
        if (with([e, less](program& q) { shrink(q, e, less); })) {
          any = true;
          break;
        }
    for (std::size_t i = 0; i < best_.body.size(); ++i) {
      if (best_.body[i].inputs > 0) continue;
      for (int d = best_.body[i].given.rank; d-- > 0;)
        if (best_.body[i].given.extent[d] > 1) any = with([i, d](program& q) { --q.body[i].given.extent[d]; }) || any;
      for (int a = 0; a < best_.axes; ++a)
        if (!(best_.body[i].given.place[a] == placement{}))
          any = with([i, a](program& q) { q.body[i].given.place[a] = placement{}; }) || any;
      if (best_.body[i].given.type == sw::dtype::f32)
        any = with([](program& q) {
                for (statement& s : q.body)
                  if (s.given.type == sw::dtype::f32) s.given.type = sw::dtype::f64;
              }) ||
              any;
    }
    return any;
  }

  // Statement i goes; its users read `instead`.
  static void drop(program& q, int i, int instead) {
    for (std::size_t j = static_cast<std::size_t>(i) + 1; j < q.body.size(); ++j)
      for (int k = 0; k < q.body[j].inputs; ++k)
        if (q.body[j].in[k] == i) q.body[j].in[k] = instead;
    for (int& o : q.outputs)
      if (o == i) o = instead;
    if (q.root == i) q.root = instead;
    const auto later = [i](int k) { return k > i ? k - 1 : k; };
    // who reads nothing any more cannot be admitted
    std::vector<statement> body;
    for (std::size_t j = 0; j < q.body.size(); ++j) {
      if (static_cast<int>(j) == i) continue;
      statement s = q.body[j];
      for (int k = 0; k < s.inputs; ++k) s.in[k] = later(s.in[k]);
      body.push_back(s);
    }
    q.body = body;
    std::vector<int> outputs;
    for (const int o : q.outputs)
      if (o >= 0) outputs.push_back(later(o));
    q.outputs = outputs;
    q.root = q.root < 0 ? q.root : later(q.root);
  }
  static void resize(program& q, int axis, int size) { q.sizes[axis] = size; }
  static void remove_axis(program& q, int axis) {
    for (int a = axis; a + 1 < q.axes; ++a) q.sizes[a] = q.sizes[a + 1];
    --q.axes;
    q.sizes[q.axes] = 1;
    for (std::size_t i = 0; i < q.body.size(); ++i) {
      statement& s = q.body[i];
      for (int a = axis; a + 1 < sw::max_axes; ++a) s.given.place[a] = s.given.place[a + 1];
      s.given.place[sw::max_axes - 1] = placement{};
      s.given.axes = static_cast<std::uint8_t>(q.axes);
      for (int a = 0; a < sw::max_axes; ++a) s.given.axis_size[a] = a < q.axes ? q.sizes[a] : 1;
      if (s.op != op_code::redistribute) continue;
      if (s.a.v[0] > axis) --s.a.v[0];
      else if (s.a.v[0] == axis) s.op = op_code::contiguous, s.a = {};
    }
  }
  static sw::op_attr shrunk(const sw::op_attr& a, std::int64_t e, std::int64_t less) {
    std::int64_t x[sw::max_rank]{};
    for (int d = 0; d < sw::packed_rank(a); ++d) x[d] = sw::packed_extent(a, d) == e ? less : sw::packed_extent(a, d);
    return sw::pack_extents(x, sw::packed_rank(a));
  }
  static void shrink(program& q, std::int64_t e, std::int64_t less) {
    for (statement& s : q.body) {
      for (int d = 0; d < s.given.rank; ++d)
        if (s.given.extent[d] == e) s.given.extent[d] = less;
      if (s.op == op_code::reshape || s.op == op_code::broadcast) s.a = shrunk(s.a, e, less);
      if (s.bound == e && s.op == op_code::input) s.bound = less;
      if (s.op == op_code::slice && s.a.v[2] == e) s.a.v[2] = less;
      if ((s.op == op_code::scatter_add || s.op == op_code::index_add) && s.a.v[1] == e) s.a.v[1] = less;
      if ((s.op == op_code::embedding_dw || s.op == op_code::one_hot) && s.a.v[0] == e) s.a.v[0] = less;
    }
  }

  verdict::what kind_;
  program best_;
  int tries_ = 0;
};

}  // namespace fuzz
