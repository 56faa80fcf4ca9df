# SPDX-License-Identifier: Apache-2.0
"""Programs that are no functions of tensors alone: tensors made on a rank, submeshes, flat groups and inputs on their way; and
wrong programs, which must be refused with a sentence in the first error, each with a right twin."""

import random

from generate import P, R, S, U, cpp_place, numbers


class Other:
    def __init__(self, seed, sizes, kind):
        self.seed, self.sizes, self.kind, self.used = seed, list(sizes), kind, set()
        self.note = ""


# --- making tensors ---------------------------------------------------------------------------------------------------------


def creation(seed, sizes):
    """fuzz::make<T, shape, placements> compares every way to make a tensor on a rank; and groups of ranks and of parameters."""
    r = random.Random(seed * 31 + 5)
    p = Other(seed, sizes, "creation")
    shape = r.choice([[5, 3], [4], [7, 2], [1, 6], [2, 3, 2]])
    places = []
    for _ in sizes:
        places.append(r.choice([R(), U(), P(), S(r.randrange(len(shape))), S(r.randrange(len(shape)))]))
    dtype = r.choice(["double", "float", "std::int32_t"])
    if dtype == "std::int32_t":
        places = [q if q[0] in "RS" else R() for q in places]
    rows = [r.randrange(0, 9) for _ in range(r.choice([2, 3, 5]))]
    n = 1
    for e in shape:
        n *= e
    values = [float(r.randrange(-9, 10)) for _ in range(n)]
    name = f"p{seed}"
    world = ", ".join(map(str, sizes))
    text = ", ".join(map(str, shape))
    p.text = numbers(f"{name}_data", [values])
    p.line = (f"  fuzz::make<{dtype}, sw::shape<{text}>, fuzz::world<{world}>{''.join(', ' + cpp_place(q) for q in places)}>"
              f"(\"{name}\", {name}_data[0], {{{', '.join(f'{{{e}, {r.randrange(1, 4)}}}' for e in rows)}}});\n")
    p.used |= CREATION
    return p


CREATION = {"empty", "zeros", "ones", "full", "rand", "randn"}


# --- wrong programs ---------------------------------------------------------------------------------------------------------

HEAD = """// A wrong program, and with RIGHT its right twin.
#include <shardwise/module/hana.hpp>
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;
struct A0 : sw::axis<{n}> {{}};
struct A1 : sw::axis<2> {{}};
struct other : sw::axis<2> {{}};
using mesh = sw::mesh<A0, A1>;
"""


def of_function(n, inputs, body, wrt=None):
    """A traced function of inputs (type, shape, placements on A0 and A1)."""
    text = HEAD.format(n=n)
    names = []
    for k, (t, shape, places) in enumerate(inputs):
        text += f"using X{k} = sw::dtensor_of<{t}, sw::shape<{', '.join(map(str, shape))}>, mesh, {', '.join(places)}>;\n"
        names.append(f"const auto& x{k}")
    text += "struct f {\n  constexpr auto operator()(" + ", ".join(f"[[maybe_unused]] {x}" for x in names) + f") const {{\n    {body}\n  }}\n}};\n"
    ins = ", ".join(f"sw::input_like<X{k}>" for k in range(len(inputs)))
    if wrt is None:
        text += f"using step = sw::function_step<f, mesh, sw::inputs<{ins}>>;\n"
    else:
        text += f"using step = sw::gradient_step<f, mesh, sw::inputs<{ins}>, sw::wrt<{wrt}>>;\n"
    return text + "static_assert(step::peak_bytes >= 0);\n"


def wrong_programs(r):
    """(what is wrong, text of the wrong one, text of the right one)"""
    n = r.choice([2, 3, 4])
    rows, cols = r.choice([(4, 6), (5, 3), (6, 2), (8, 8)])
    s = [rows, cols]
    f = r.choice(["float", "double"])
    Rp, Up, Pp, S0, S1 = "sw::replicate", "sw::reduced", "sw::partial<>", "sw::shard<0>", "sw::shard<1>"
    op = r.choice(["add", "mul", "sub", "div", "maximum"])
    curve = r.choice(["relu", "tanh", "exp", "sigmoid", "abs", "square", "sqrt", "cos"])
    x = (f, s, [S0, Rp])
    whole = (f, s, [Rp, Rp])

    def pair(what, inputs, wrong, right, right_inputs=None, wrt=None, right_wrt=None):
        return what, of_function(n, inputs, wrong, wrt), of_function(n, right_inputs or inputs, right, right_wrt if right_wrt is not None else wrt)
    yield pair(f"{op} of other extents", [whole, (f, [rows, cols + 1], [Rp, Rp])], f"return sw::{op}(x0, x1);", f"return sw::{op}(x0, x0);")
    yield pair("an axis that the mesh lacks", [whole], f"return sw::redistribute<other, {S0}>(x0);", f"return sw::redistribute<A0, {S0}>(x0);")
    yield pair(f"{curve} of a partial tensor", [(f, s, [Pp, Rp])], f"return sw::{curve}(x0);", f"return sw::{curve}(sw::redistribute<A0, {Rp}>(x0));")
    yield pair("shard beside replicate", [x, whole], f"return sw::{op}(x0, x1);", f"return sw::{op}(x0, sw::redistribute<A0, {S0}>(x1));")
    yield pair("a number added to a partial tensor", [(f, s, [Pp, Rp])], "return x0 + 1.5;", "return x0 * 1.5;")
    yield pair("a slice of a sharded dim", [x], f"return sw::narrow<0, 1, {rows - 1}>(x0);", f"return sw::narrow<1, 1, {cols - 1}>(x0);")
    yield pair("softmax over a sharded dim", [(f, s, [S1, Rp])], "return sw::softmax<-1>(x0);", "return sw::softmax<0>(x0);")
    yield pair("a dim that is not there", [whole], f"return sw::sum<{r.choice([2, 3, -3])}>(x0);", "return sw::sum<1>(x0);")
    yield pair("matmul of other extents", [whole, (f, [cols + 1, 2], [Rp, Rp])], "return sw::matmul(x0, x1);",
               "return sw::matmul(x0, sw::narrow<0, 0, %d>(x1));" % cols)
    yield pair("tensors joined along a sharded dim", [x], "return sw::cat<0>(x0, x0);", "return sw::cat<1>(x0, x0);")
    yield pair("float and double", [("float", s, [Rp, Rp]), ("double", s, [Rp, Rp])], f"return sw::{op}(x0, x1);", f"return sw::{op}(x1, x1);")
    yield pair("a write into an expanded tensor", [(f, [1, cols], [Rp, Rp])],
               f"const auto h = x0 * 2.0; const auto e = sw::expand<{rows}, {cols}>(h); sw::{r.choice(['add_(e, 1.0)', 'relu_(e)', 'zero_(e)'])}; return e;",
               f"const auto h = x0 * 2.0; sw::zero_(h); return sw::expand<{rows}, {cols}>(h) * 1.0;")
    yield pair("a write with another placement", [whole, x], f"const auto h = x0 * 1.0; sw::add_(h, x1); return h;",
               f"const auto h = x0 * 1.0; sw::add_(h, sw::redistribute<A0, {Rp}>(x1)); return h;")
    yield pair("an input that a gradient is asked for, written", [whole], f"sw::{r.choice(['relu_(x0)', 'mul_(x0, 2.0)', 'fill_(x0, 1.0)'])}; return x0 * 3.0;",
               "const auto h = x0 * 1.0; sw::relu_(h); return h * 3.0;", wrt="0")
    yield pair("a pending tensor that nobody waits for", [x], f"auto p = sw::redistribute_async<A0, {Rp}>(x0); return x0 * 2.0;",
               f"auto p = sw::redistribute_async<A0, {Rp}>(x0); return std::move(p).wait() * 2.0;")
    yield pair("a pending tensor as an operand", [x], f"auto p = sw::redistribute_async<A0, {Rp}>(x0); return sw::relu(p);",
               f"auto p = sw::redistribute_async<A0, {Rp}>(x0); return sw::relu(std::move(p).wait());")
    yield pair("a gradient of integers", [("std::int32_t", s, [Rp, Rp]), whole], "return x1 * 2.0;", "return x1 * 2.0;", wrt="0", right_wrt="1")
    yield pair("a gradient of what the result does not depend on", [whole, whole], "return x0 * 2.0;", "return x0 * x1;", wrt="1")
    yield pair("a gradient input that is not there", [whole], "return x0 * 2.0;", "return x0 * 2.0;", wrt="3", right_wrt="0")
    yield pair("a view across shards", [(f, [4, 6], [S1, Rp])], "return sw::view<24>(x0);", "return sw::view<24>(x0);", [(f, [4, 6], [Rp, Rp])])
    yield pair("view of what is not dense", [whole], f"return sw::view<{rows * cols}>(sw::transpose<0, 1>(x0));", f"return sw::reshape<{rows * cols}>(sw::transpose<0, 1>(x0));")
    yield pair("shares of a shard under another reduction", [x], "return sw::redistribute<A0, sw::partial<sw::reduction::max>>(x0);",
               "return sw::redistribute<A0, sw::partial<sw::reduction::max>>(x0);", [whole])
    yield pair("partial times partial", [(f, s, [Pp, Rp])], "return x0 * x0;", f"return x0 * sw::redistribute<A0, {Up}>(x0);")
    yield pair("a sum of tensors partial by other reductions", [(f, s, ["sw::partial<sw::reduction::max>", Rp]), (f, s, [Pp, Rp])], "return x0 + x1;",
               f"return sw::redistribute<A0, {Rp}>(x0) + sw::redistribute<A0, {Rp}>(x1);")
    yield pair("indices that are no integers", [whole, (f, [3], [Rp, Rp])], "return sw::index_select<0>(x0, x1);", "return sw::index_select<0>(x0, x1);",
               [whole, ("std::int32_t", [3], [Rp, Rp])])
    yield pair("top elements of a sharded dim", [(f, s, [S1, Rp])], "return sw::topk<1, 1>(x0).values;", "return sw::topk<1, 0>(x0).values;")
    yield plans(r, n)
    yield plans(r, n)
    yield optimizer(r, n)


def model(plan, n, placed=True):
    return HEAD.format(n=n) + f"""
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {{
  BOOST_HANA_DEFINE_STRUCT(net, (sw::linear<4, 6, sw::child<Bound, 0>>, up), (sw::linear<6, 4, sw::child<Bound, 1>>, down),
                           (sw::rms_norm_module<4, sw::child<Bound, 2>>, norm));
  constexpr auto forward(const auto& x) const {{ return norm(down(sw::relu(up(x)))); }}
}};
template <class B>
using net_model = net<B>;
struct task {{
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<8, 4>{', sw::on<A1, sw::shard<0>>' if placed else ''}>>;
  constexpr auto operator()(const auto& model, const auto& x) const {{ return sw::mean(model(x) * model(x)); }}
}};
using step = sw::train_step<net_model, task, sw::plan<{plan}>, mesh, sw::sgd<>>;
static_assert(step::peak_bytes > 0);
"""


def plans(r, n):
    right = 'sw::data_parallel<A1>, sw::at<"up", sw::colwise<A0>>, sw::at<"down", sw::rowwise<A0>>'
    dp = "sw::data_parallel<A1>"
    what, wrong = r.choice([
        ("a path that names nothing", f'{dp}, sw::at<"{r.choice(["upp", "middle", "up.weights", "net.up", "do?"])}", sw::colwise<A0>>'),
        ("a style on the wrong module", f'{dp}, sw::at<"norm", sw::{r.choice(["colwise", "rowwise"])}<A0>>'),
        ("a style of an axis that the mesh lacks", f'{dp}, sw::at<"up", sw::colwise<other>>'),
        ("a column split that takes shards", f'{dp}, sw::at<"up", sw::colwise<A0>>, sw::at<"down", sw::colwise<A0>>'),
        ("a batch that is sharded without a plan for it", 'sw::at<"up", sw::colwise<A0>>, sw::at<"down", sw::rowwise<A0>>'),
        ("a style that stands alone", f"{dp}, sw::colwise<A0>"),
    ])
    return what, model(wrong, n), model(right, n)


def optimizer(r, n):
    text = HEAD.format(n=n) + "using P = sw::dtensor_of<float, sw::shape<4, 4>, mesh, sw::reduced, sw::replicate>;\n"
    wrong = "using G = sw::dtensor_of<float, sw::shape<4, 4>, mesh, sw::partial<>, sw::replicate>;\n"
    right = "using G = sw::dtensor_of<float, sw::shape<4, 4>, mesh, sw::replicate, sw::replicate>;\n"
    end = "static_assert(sw::checked_update<P, G>::ok);\n"
    return "an update with a gradient that is not summed", text + wrong + end, text + right + end


def refused(seed, sizes):
    r = random.Random(seed * 97 + 3)
    everything = list(wrong_programs(r))
    what, wrong, right = everything[(seed // 20) % len(everything)]
    p = Other(seed, sizes, "refused")
    p.what = what
    p.text = lambda bad: wrong if bad else right
    return p


def names_used():
    return set(CREATION) | {"value_and_grad", "operator()"}
