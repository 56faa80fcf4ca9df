// SPDX-License-Identifier: Apache-2.0
// The words of adjoints: what an operand was broadcast along, and nodes that are placed as their rule says.

#include <shardwise/autodiff/adjoints.hpp>
#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace {

namespace sw = shardwise;
using sw::op_code;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class P, std::int64_t... E>
constexpr sw::spec of = sw::spec_of<float, sw::shape<E...>, mesh, P>::value;
using R = sw::replicate;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;

// --- unbroadcast: the sum over these dims, some kept with extent 1, has the operand's extents -----------------------------------

constexpr bool undoes(const sw::spec& x, const sw::spec& out, std::int64_t dims, std::int64_t kept) {
  const sw::op_attr a = sw::autodiff::unbroadcast(x, out);
  const auto sum = sw::attributes_of<sw::sum_attributes>(a);
  if (sum.dims != dims || sum.kept != kept || sum.mean != 0 || sw::autodiff::sums(a) != (dims != 0)) return false;
  const sw::outcome back = sw::infer(op_code::sum, a, &out, 1);
  if (back.error || back.out.rank != x.rank) return false;
  for (int d = 0; d < x.rank; ++d)
    if (back.out.extent[d] != x.extent[d]) return false;
  return true;
}
static_assert(undoes(of<R, 4, 6>, of<R, 4, 6>, 0, 0));
static_assert(undoes(of<R, 6>, of<R, 4, 6>, 1, 0) && undoes(of<R>, of<R, 4, 6>, 3, 0));
static_assert(undoes(of<R, 4, 1>, of<R, 4, 6>, 2, 2) && undoes(of<R, 1, 6>, of<R, 4, 6>, 1, 1));
static_assert(undoes(of<R, 1, 6>, of<R, 3, 4, 6>, 3, 2) && undoes(of<R, 1, 1>, of<R, 3, 4, 6>, 7, 6));
// An extent of 1 that is one in the result, too, was not broadcast.
static_assert(undoes(of<R, 1, 6>, of<R, 1, 6>, 0, 0) && undoes(of<R, 1>, of<R, 4, 1>, 1, 0));
static_assert(undoes(of<R, 1, 6>, of<R, 0, 6>, 1, 1));  // to no elements: a sum of none

// --- derive ---------------------------------------------------------------------------------------------------------------------

struct made {
  sw::graph<8, 8> g;
  sw::finding error{};
};
// A node of two leaves.
constexpr made derived(op_code op, const sw::op_attr& a, double f, const sw::spec& x, const sw::spec& y, int i0 = 0,
                       int i1 = 1) {
  made m;
  sw::autodiff::tape t;
  t.b = m.g.edit();
  for (const sw::spec& s : {x, y}) {
    sw::node n = sw::empty_node;
    n.op = op_code::input;
    n.spec = t.b.intern(s);
    t.b.append(n);
  }
  sw::autodiff::derive(t, op, a, f, -1, i0, i1);
  m.error = t.b.error;
  m.g.finish(t.b);
  return m;
}
constexpr bool is_placed(const made& m, op_code op, const sw::spec& wanted, double f, int inputs) {
  if (m.error || m.g.node_count != 3) return false;
  const sw::node& n = m.g.nodes[2];
  return n.op == op && m.g.spec_of(2) == wanted && n.f == f && n.inputs == inputs && n.in[0] == 0 &&
         (inputs < 2 || n.in[1] == 1);
}
static_assert(is_placed(derived(op_code::mul, {}, 0, of<S<0>, 4, 6>, of<S<0>, 4, 6>), op_code::mul, of<S<0>, 4, 6>, 0, 2));
static_assert(is_placed(derived(op_code::scale, {}, 2.5, of<P, 4, 6>, of<R>, 0, -1), op_code::scale, of<P, 4, 6>, 2.5, 1));
// A sum over a dim that is cut is partial; a dim that stays has extent 1.
static_assert(is_placed(derived(op_code::sum, {{1, 0}}, 0, of<S<0>, 4, 6>, of<R>, 0, -1), op_code::sum, of<P, 6>, 0, 1));
static_assert(is_placed(derived(op_code::sum, {{1, 1}}, 0, of<S<0>, 4, 6>, of<R>, 0, -1), op_code::sum, of<P, 1, 6>, 0, 1));
// What the rule refuses is the tape's finding, and so is an operand that there is not: that makes no node.
static_assert(derived(op_code::mul, {}, 0, of<P, 4, 6>, of<P, 4, 6>).error.what == sw::problem::partial_nonlinear);
static_assert(derived(op_code::mul, {}, 0, of<R, 4, 6>, of<R, 4, 6>, -1).error.what == sw::problem::adjoint_dy &&
              derived(op_code::mul, {}, 0, of<R, 4, 6>, of<R, 4, 6>, -1).g.node_count == 2);

// --- sliced -----------------------------------------------------------------------------------------------------------------------

// Of a cotangent that is cut along dim 0 the part of dim 1 that belongs to some elements: a view, placed as the cotangent.
constexpr made part(int from, std::int64_t start, std::int64_t length) {
  made m;
  sw::autodiff::tape t;
  t.b = m.g.edit();
  sw::node n = sw::empty_node;
  n.op = op_code::input;
  n.spec = t.b.intern(of<S<0>, 4, 6>);
  t.b.append(n);
  sw::autodiff::sliced(t, from, 1, start, length, -1);
  m.error = t.b.error;
  m.g.finish(t.b);
  return m;
}
constexpr made middle = part(0, 2, 3);
static_assert(!middle.error && middle.g.node_count == 2 && middle.g.nodes[1].op == op_code::slice &&
              middle.g.nodes[1].in[0] == 0);
static_assert(sw::attributes_of<sw::slice_attributes>(middle.g.nodes[1].a).dim == 1 &&
              sw::attributes_of<sw::slice_attributes>(middle.g.nodes[1].a).start == 2);
static_assert(middle.g.spec_of(1).rank == 2 && middle.g.spec_of(1).extent[0] == 4 && middle.g.spec_of(1).extent[1] == 3 &&
              middle.g.spec_of(1).stride[0] == 6 && middle.g.spec_of(1).place[0].is_shard(0));
static_assert(part(-1, 2, 3).error.what == sw::problem::adjoint_dy && part(-1, 2, 3).g.node_count == 1);

}  // namespace
