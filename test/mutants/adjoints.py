# SPDX-License-Identifier: Apache-2.0
"""Mutants of differentiation: of pullbacks and of the sweep over the graph."""

FAMILY = "operations/"
POINTWISE = FAMILY + "pointwise/adjoint.hpp"
ROW = FAMILY + "row/adjoint.hpp"
TAPE = "graph/tape.hpp"
GRAD = "autodiff/grad.hpp"
NUMBERS = "unit/autodiff/finite_differences.cpp"
GRADIENTS = "unit/functions/gradients.cpp"
PROOF = "static/propagation/rule_proofs/"

MUTANTS = [
    ("abs: the sign of the result", POINTWISE, "p.times(p.make(op_code::sign, p.n.in[0]));", "p.times(p.make(op_code::sign, p.id));",
     (GRADIENTS, PROOF + "elementwise.cpp")),
    ("exp: of the operand", POINTWISE, "exp = pulled([](pullback& p) { p.times(p.id); });",
     "exp = pulled([](pullback& p) { p.times(p.n.in[0]); });", (GRADIENTS, PROOF + "elementwise.cpp")),
    ("log: over the result", POINTWISE, "p.give(0, p.make(op_code::div, p.dy, p.n.in[0]));", "p.give(0, p.make(op_code::div, p.dy, p.id));",
     (GRADIENTS, PROOF + "elementwise.cpp")),
    ("sqrt: without the half", POINTWISE, "p.make(op_code::div, p.dy, p.id), -1, 0.5)", "p.make(op_code::div, p.dy, p.id), -1, 1)", (GRADIENTS,)),
    ("rsqrt: the square instead of the cube", POINTWISE, "p.make(op_code::mul, p.make(op_code::mul, p.id, p.id), p.id), -1, -0.5)",
     "p.make(op_code::mul, p.id, p.id), -1, -0.5)", (GRADIENTS,)),
    ("reciprocal: without the sign", POINTWISE, "p.times(p.make(op_code::scale, p.make(op_code::mul, p.id, p.id), -1, -1));",
     "p.times(p.make(op_code::mul, p.id, p.id));", (GRADIENTS,)),
    ("sigmoid: the square alone", POINTWISE, "p.times(p.make(op_code::sub, p.id, p.make(op_code::mul, p.id, p.id)));",
     "p.times(p.make(op_code::mul, p.id, p.id));", (GRADIENTS,)),
    ("sin: the sine", POINTWISE, "p.times(p.make(op_code::cos, p.n.in[0]));", "p.times(p.make(op_code::sin, p.n.in[0]));", (GRADIENTS,)),
    ("cos: without the sign", POINTWISE, "p.times(p.make(op_code::scale, p.make(op_code::sin, p.n.in[0]), -1, -1));",
     "p.times(p.make(op_code::sin, p.n.in[0]));", (GRADIENTS,)),
    ("pow: the exponent is not lowered", POINTWISE, "-1, f == f ? f - 1 : f)", "-1, f)", (GRADIENTS,)),
    ("clamp: passes where the bound holds", POINTWISE, "p.make(op_code::mask_keep, p.dy, p.make(op_code::eq, p.n.in[0], p.id))",
     "p.make(op_code::mask_keep, p.dy, p.make(op_code::eq, p.n.in[0], p.id), 0, 1)", (GRADIENTS,)),
    ("div: the divisor's sign", POINTWISE, "p.make(op_code::mul, p.dy, p.make(op_code::div, p.id, y)), -1, -1)",
     "p.make(op_code::mul, p.dy, p.make(op_code::div, p.id, y)), -1, 1)", (GRADIENTS,)),
    ("minimum: the larger one has the gradient", POINTWISE, "(k == 0) == Maximum ?", "(k == 0) ?", (GRADIENTS,)),
    ("where: both values have the gradient everywhere", POINTWISE, "p.give_summed(k, p.make(op_code::mask_keep, p.dy, p.n.in[0], 0, k - 1));",
     "p.give_summed(k, p.dy);", (GRADIENTS,)),
    ("mask_keep: the other elements", POINTWISE, "0, attributes_of<mask_keep_attributes>(p.n.a).where_zero)",
     "0, 1 - attributes_of<mask_keep_attributes>(p.n.a).where_zero)", (GRADIENTS,),
     "no public function is differentiated through mask_keep"),
    ("amax: ties count for one each", FAMILY + "reduction/adjoint.hpp", "p.make(op_code::mul, p.make(op_code::div, p.dy, count), tie)",
     "((void)count, p.make(op_code::mul, p.dy, tie))", (GRADIENTS, "unit/functions/elementwise.cpp")),
    ("log_softmax: the sum is not taken off", ROW,
     "p.give(0, p.make(op_code::sub, p.dy, p.make(op_code::mul, p.make(op_code::exp, p.id), total)));",
     "(void)total; p.give(0, p.dy);", (GRADIENTS, NUMBERS)),
    ("lse: not a softmax", FAMILY + "loss/adjoint.hpp", "p.make(op_code::exp, p.make(op_code::sub, p.n.in[0], norm));",
     "p.make(op_code::sub, p.n.in[0], norm);", (GRADIENTS, NUMBERS)),
    ("give: sums of broadcast operands are left out", TAPE, "give(k, sums(u) ? emit(op_code::sum, u, 0, k, g) : g);",
     "(void)u; give(k, g);", (GRADIENTS, PROOF + "elementwise.cpp")),
    ("relu: by the result of the cotangent", POINTWISE, "p.emit(Back, {}, 0, 0, p.dy, OfResult ? p.id : p.n.in[0])",
     "p.emit(Back, {}, 0, 0, OfResult ? p.id : p.n.in[0], p.dy)", (NUMBERS, PROOF + "pointwise.cpp")),
    ("tanh: by the operand", POINTWISE, "pulled(&pull_by<op_code::tanh_dx, true>);", "pulled(&pull_by<op_code::tanh_dx>);",
     (GRADIENTS, PROOF + "pointwise.cpp")),
    ("softmax: by the operand", ROW, "p.emit(op_code::softmax_dx, p.n.a, 0, 0, p.dy, p.id)",
     "p.emit(op_code::softmax_dx, p.n.a, 0, 0, p.dy, p.n.in[0])", (NUMBERS, GRADIENTS, PROOF + "rows.cpp")),
    ("norm: the bias has no gradient", FAMILY + "norm/adjoint.hpp", "if (n.inputs > 3 && p.wants(3))", "if (n.inputs > 4 && p.wants(3))",
     (NUMBERS, "golden/transformer.cpp")),
    ("relabel: equal summands count once", FAMILY + "movement/adjoint.hpp", "copies *= own.axis_size[a];", "copies *= 1;",
     ("dist/redistribution/pairs.cpp", "dist/silent_bugs/values.cpp")),
    ("permute: the same permutation again", FAMILY + "view/adjoint.hpp",
     "to |= std::int64_t{d} << (4 * rules::packed_dim(from, d));", "to = from;",
     (NUMBERS, GRADIENTS, PROOF + "moves.cpp")),
    ("unbroadcast: dims in front are kept", TAPE, "if (own < 0) summed |= std::int64_t{1} << d;\n    else if",
     "if (own < 0) continue;\n    else if", (NUMBERS, GRADIENTS, PROOF + "pointwise.cpp")),
    ("opaque functions have a gradient of nothing", FAMILY + "opaque/adjoint.hpp", "p.refuse({problem::opaque_gradient, p.id});", "(void)p;",
     ("dist/functions/two_axes.cpp", "static/graph/attributes.cpp"),
     "only a program that must not compile shows it: test/fail/opaque_gradient.cpp"),
    ("the sweep ends one node early", GRAD, "for (int k = 0; k < nodes && st.cursor >= 0; ++k, --st.cursor)",
     "for (int k = 0; k < nodes && st.cursor > 0; ++k, --st.cursor)", (NUMBERS, GRADIENTS), "node 0 is a leaf or a fill, which nothing is pulled through"),
    ("the seed is two", GRAD, "one.f = 1;", "one.f = 2;", (NUMBERS, GRADIENTS)),
    ("only the first operand passes a need on", GRAD, "for (int k = 0; k < x.inputs && !any; ++k) any = needs[x.in[k]] && differentiable(rule_of(g, x), k);",
     "for (int k = 0; k < x.inputs && k < 1 && !any; ++k) any = needs[x.in[k]] && differentiable(rule_of(g, x), k);", (NUMBERS, GRADIENTS)),
]
