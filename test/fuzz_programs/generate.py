#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes programs of the public functions as C++ sources, with the values that they must have.

A program is a list of statements. Each has its C++ text and a function of plain Python tensors (interpret.py), so that the
expected values come from no code of the library; gradients come from finite differences. Operands are redistributed to
placements that the operation admits, by statements of the program, or by implicit mode. generate.py SEED prints a program.
"""

import copy
import math
import random
import re
import sys

import interpret as py
from interpret import Array, NAN, INF

MAX_NUMEL = 60
LIMIT = 60.0


class Skip(Exception):
    """This statement cannot be written here: try another one."""


def R():
    return ("R",)


def U():
    return ("U",)


def S(d, block=1, factor=None):
    return ("S", d, block, factor)


def P(op="sum"):
    return ("P", op)


def cpp_place(p):
    if p[0] == "R":
        return "sw::replicate"
    if p[0] == "U":
        return "sw::reduced"
    if p[0] == "S":
        if p[3]:
            return f"sw::strided_shard<{p[1]}, {p[3]}::size>"
        return f"sw::shard<{p[1]}>" if p[2] == 1 else f"sw::shard<{p[1]}, {p[2]}>"
    if p[1] == "sum":
        return "sw::partial<>"
    if p[1].startswith("norm"):
        return f"sw::partial_norm<{p[1][4:]}>"
    return f"sw::partial<sw::reduction::{p[1]}>"


def factor_holds(place, a):
    """Whether the factor of axis a, if it has one, is of the one later axis that splits its dim; the library refuses another."""
    p = place[a]
    return p[0] != "S" or not p[3] or [f"A{b}" for b, q in enumerate(place) if b > a and q[:2] == p[:2]] == [p[3]]


def lawful(place):
    """The placements, without factors that do not hold and without blocks beside another axis of their dim."""
    place = [p if factor_holds(place, a) else S(p[1]) for a, p in enumerate(place)]
    dims = [p[1] for p in place if p[0] == "S"]
    return [S(p[1]) if p[0] == "S" and p[2] > 1 and dims.count(p[1]) > 1 else p for p in place]


def kind(p):
    """Of a placement, what a rule asks for: without block and factor."""
    return p[:2] if p[0] in "SP" else p[:1]


class Tensor:
    def __init__(self, name, dtype, place, array, exact, loose=False, is_input=None):
        self.name, self.dtype, self.place, self.array = name, dtype, list(place), array
        self.exact, self.loose, self.is_input = exact, loose, is_input
        if not all(factor_holds(self.place, a) for a in range(len(self.place))):
            raise AssertionError(f"the generator placed {name} {', '.join(map(cpp_place, self.place))}")

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return len(self.array.shape)

    @property
    def real(self):
        return self.dtype != "int"


# Calls that read no element of their operand, but its extents, placement or mesh.
EXTENTS_ALONE = re.compile(r"sw::((full|zeros|ones|constant|rand|randn)_like\(|(full|arange|arange_from|rand|randn)<)")


class Statement:
    def __init__(self, code, defs, uses, run, effect=False):
        self.code, self.defs, self.uses, self.run, self.effect = code, defs, uses, run, effect


CPP_TYPE = {"double": "double", "float": "float", "int": "std::int32_t"}


def literal(v, dtype="double"):
    if py.is_nan(v):
        return "fuzz::nan"
    if math.isinf(v):
        return "fuzz::inf" if v > 0 else "-fuzz::inf"
    return repr(float(v)) if dtype != "int" else str(int(v))


class Program:
    """Statements over inputs, on a mesh of these sizes."""

    def __init__(self, seed, sizes, dtype="double"):
        self.seed, self.sizes, self.dtype = seed, list(sizes), dtype
        self.inputs = []      # (name, dtype, shape, placements, values)
        self.statements = []
        self.outputs = []
        self.wrt = []
        self.random = False   # draws numbers: one rank says what is right
        self.written = 0      # bits of inputs
        self.ways = ["eager", "compiled"]
        self.ways_alone = ["eager"]
        self.tolerance = self.gradient_tolerance = self.mesh_tolerance = 0.0
        self.note = ""
        self.kind = "function"
        self.pipeline = ""
        self.arrives = False  # the first input is still on its way when the compiled program starts
        self.cut = None       # run at once up to here, as a program from here on
        self.named = False    # the results have names
        self.watched = False  # for what is no finite number, while it runs
        self.fake = False     # also on each rank without its peers
        self.bound = None     # dims of this extent are of run-time size, with this bound
        self.second = None    # and those of this one of another run-time size
        self.run_times = []   # the sizes that it is run with, two a run

    def given(self, k, size):
        """Input k where run-time extents are `size`."""
        _, _, shape, _, values = self.inputs[k]
        a = Array(list(values), shape)
        for d, e in enumerate(shape):
            if size is not None and e in (self.bound, self.second):
                a = py.narrow(a, d, 0, size[0 if e == self.bound else 1])
        return a.copy()

    def evaluate(self, changed=None, size=None):
        env = {}
        for k, i in enumerate(self.inputs):
            a = self.given(k, size)
            if changed and changed[0] == k:
                a.store[changed[1]] += changed[2]
            env[i[0]] = a
        for s in self.statements:
            s.run(env)
        return env

    def expected(self):
        env = self.evaluate()
        return [env[n].flat() for n in self.outputs], [env[i[0]].flat() for i in self.inputs]

    def expected_at(self, size):
        env = self.evaluate(size=size)
        return [env[n].flat() for n in self.outputs]

    def loss(self, changed=None):
        return math.fsum(self.evaluate(changed)[self.outputs[0]].flat())

    def gradient(self, k):
        h = 1e-5
        return [(self.loss((k, i, h)) - self.loss((k, i, -h))) / (2 * h) for i in range(len(self.inputs[k][4]))]

    def axis_count(self):
        return len(self.sizes)


# --- the generator ----------------------------------------------------------------------------------------------------------


class Generator:
    def __init__(self, seed, sizes, features):
        self.r = random.Random(seed)
        self.features = features
        dtype = "float" if "float" in features else "double"
        self.p = Program(seed, sizes, dtype)
        self.axes = len(sizes)
        self.live = []
        self.env = {}
        self.count = 0
        self.frozen = set()
        self.stores = []
        self.gradient = "gradient" in features
        self.special = "special" in features
        self.writes = "writes" in features
        self.used = set()
        self.most_rank = 8 if seed // 1000 % 8 == 6 else 4  # of most programs low, so that their functions meet operands alike

    # --- choosing

    def chance(self, p):
        return self.r.random() < p

    def fresh(self, letter="t"):
        self.count += 1
        return f"{letter}{self.count}"

    def number(self):
        return self.r.choice([-2.0, -1.5, -0.75, -0.5, 0.25, 0.5, 1.25, 1.5, 2.0, 3.0])

    def tensors(self, want):
        return [t for t in self.live if want(t)]

    def pick(self, want=lambda t: True, real=True):
        found = self.tensors(lambda t: t.real == real and want(t)) if real is not None else self.tensors(want)
        if not found:
            raise Skip
        # the newest are likelier
        k = min(self.r.randrange(len(found)), self.r.randrange(len(found)))
        return found[len(found) - 1 - k]

    # --- making inputs

    def placement_for(self, shape, dtype, axis, taken, partial=True):
        choices = [R()] * 3
        choices += [S(d) for d in range(len(shape)) if shape[d] != 1] * 2
        if dtype != "int":
            choices += [U()]
            if partial:
                choices += [P(), P()]
        return self.r.choice(choices)

    def places_for(self, shape, dtype, partial=True, plain=True):
        place = [self.placement_for(shape, dtype, a, None, partial) for a in range(self.axes)]
        if not plain and shape and dtype != "int" and 1 not in shape:
            d = self.r.randrange(len(shape))
            if self.axes >= 2 and self.chance(0.5):
                place = [R()] * self.axes
                place[0], place[1] = S(d, 1, "A1"), S(d)
            elif shape[d] % 2 == 0 and shape[d] > 2:
                place[self.r.randrange(self.axes)] = S(d, 2)
        return lawful(place)

    def values_for(self, n, dtype, below=0):
        if dtype == "int":
            return [self.r.randrange(below) if below else self.r.randrange(-4, 5) for _ in range(n)]
        v = [self.r.randrange(-20, 21) / 8 for _ in range(n)]
        if self.special:
            for i in range(n):
                if self.chance(0.15):
                    v[i] = self.r.choice([NAN, INF, -INF, 0.0])
        return v

    def new_input(self, shape, dtype=None, place=None, values=None, below=0):
        dtype = dtype or self.p.dtype
        if place is None:
            partial = not self.special
            place = self.places_for(shape, dtype, partial=partial, plain=not self.chance(0.12))
        values = values if values is not None else self.values_for(py.numel(shape), dtype, below)
        name = f"x{len(self.p.inputs)}"
        self.p.inputs.append((name, dtype, list(shape), list(place), list(values)))
        array = Array(list(values), shape)
        self.env[name] = array
        t = Tensor(name, dtype, place, array, True, is_input=len(self.p.inputs) - 1)
        self.live.append(t)
        return t

    # --- writing statements

    def check(self, values, real):
        for v in values:
            if py.is_nan(v) or math.isinf(v):
                if not self.special:
                    raise Skip
            elif abs(v) > LIMIT:
                raise Skip

    def statement(self, code, operands, run, defs, effect=False):
        """Runs it at once. defs: names that run(env) stores."""
        run(self.env)
        self.p.statements.append(Statement(code, defs, [t.name for t in operands], run, effect))

    def define(self, code, operands, f, dtype, place, exact, view=False, loose=False):
        """const auto name = code; f of the operands' arrays is its array."""
        name = self.fresh()
        names = [t.name for t in operands]
        array = f(*[self.env[n] for n in names])
        if py.numel(array.shape) > MAX_NUMEL or len(array.shape) > self.most_rank:
            raise Skip
        values = array.flat()
        self.check(values, dtype != "int")
        exact = exact and all(t.exact for t in operands) and (dtype == "int" or all(
            py.is_nan(v) or math.isinf(v) or v * 4096 == math.floor(v * 4096) for v in values))

        def run(env):
            env[name] = f(*[env[n] for n in names])
        self.statement(f"const auto {name} = {code};", operands, run, [name])
        t = Tensor(name, dtype, place, self.env[name], exact, loose=loose)
        if any(p[0] == "P" and p[1] != "sum" for p in place):
            self.used.add("partial extremes, products and norms")
        self.stores.append(t.array.store)
        self.live.append(t)
        return t

    # --- redistributions

    def can_move(self, t, target):
        for a, (p, q) in enumerate(zip(t.place, target)):
            if p == q:
                continue
            if p[0] == "P" and q[0] == "P":
                return False
            if q[0] == "P" and (q[1] not in ("sum", "avg", "max", "min") or not t.real):
                return False
            if q[0] == "P" and p[0] == "S" and q[1] != "sum":
                return False
            if self.special and q[0] == "P":
                return False
        return True

    def listed(self, place, target):
        """Whether the planner goes there: it makes no share of a shard, and moves nothing beside shares of another reduction."""
        partial = any(p != q and "P" in (p[0], q[0]) for p, q in zip(place, target))
        return not (any(p[0] == "S" and q[0] == "P" for p, q in zip(place, target))
                    or (partial and len({"sum" if p[1] == "avg" else p[1] for p in place + target if p[0] == "P"}) > 1))

    def nested(self, place):
        dims = [p[1] for p in place if p[0] == "S"]
        return len(dims) != len(set(dims)) or any(p[0] == "S" and p[3] for p in place)

    def one_move(self, t, code, place, used, key):
        a = t.array
        self.used.update(used)
        loose = t.loose or not a.is_dense()
        return self.define(code.format(t.name), [t], lambda x: x.copy(), t.dtype, place, True, loose=loose)

    def move(self, t, target, force=False):
        """t under other placements: one of the ways to write that."""
        target = lawful(target)
        if target == t.place and not force:
            return t
        if not self.can_move(t, target):
            raise Skip
        changed = [a for a in range(self.axes) if t.place[a] != target[a]]
        if force and not changed:
            changed = [self.r.randrange(self.axes)]
        nested = self.nested(t.place) or self.nested(target)
        on = ", ".join(f"sw::on<A{a}, {cpp_place(target[a])}>" for a in changed)
        key = ("list", tuple(target))
        listed = self.listed(t.place, target)
        if not listed and nested:
            raise Skip
        if listed and all(p == R() for p in target) and len(changed) >= 1 and not nested and self.chance(0.2):
            return self.one_move(t, "sw::full_tensor({0})", target, ["full_tensor"], ("full", tuple(target)))
        policy = "sw::redistribution_policy::late, " if self.chance(0.1) else ""
        if self.chance(0.25):
            return self.move_async(t, target, changed, on, nested)
        if nested or (listed and self.chance(0.4)):
            return self.one_move(t, f"sw::redistribute<{policy}{on}>({{0}})", target, ["redistribute"], key)
        now = t
        self.r.shuffle(changed)
        between = list(t.place)
        for a in changed:
            between[a] = target[a]
            if self.nested(between):
                raise Skip
        for a in changed:
            place = list(now.place)
            before, place[a] = place[a], target[a]
            to = cpp_place(target[a])
            if before == P() and target[a] == R() and self.chance(0.3):
                now = self.one_move(now, f"sw::reduce_gradient<A{a}>({{0}})", place, ["reduce_gradient"], (a, target[a]))
            elif target[a][0] == "S" and target[a][2] == 1 and not self.gradient and not self.p.bound and self.chance(0.2) and not self.nested(place):
                now = self.one_move(now, f"sw::redistribute_padded<A{a}, {to}>({{0}})", place, ["redistribute_padded"], (a, "pad"))
                now.loose = True
            else:
                now = self.one_move(now, f"sw::redistribute<A{a}, {to}>({{0}})", place, ["redistribute"], (a, target[a]))
        return now

    def move_async(self, t, target, changed, on, nested, free=False):
        """Started, other work, and ended: the value is that of where it started."""
        a = t.array
        listed = self.listed(t.place, target)
        if not listed and (nested or len(changed) > 1):
            raise Skip
        if len(changed) == 1 and not nested and (not listed or self.chance(0.6)):
            key = (changed[0], target[changed[0]])
            start = f"sw::redistribute_async<A{changed[0]}, {cpp_place(target[changed[0]])}>({t.name})"
        else:
            key = ("list", tuple(target))
            start = f"sw::redistribute_async<{on}>({t.name})"
        self.used.update(["redistribute_async", "pending"])
        pending, name = self.fresh("p"), self.fresh()
        source = t.name
        loose = t.loose or not a.is_dense()

        def started(env):
            env[pending] = env[source].copy()
        self.statement(f"auto {pending} = {start};", [t], started, [pending])
        if free and self.writes and self.chance(0.85):
            try:
                self.write_into(t)
            except Skip:
                pass
        if free and self.chance(0.3):
            try:
                self.random_statement(depth=1)
            except Skip:
                pass
        then, f = "", lambda x: x
        exact = t.exact
        if self.chance(0.25) and not self.gradient and all(p[0] != "P" for p in target) and all(p[0] != "P" for p in t.place):
            then, f = ".then([](const auto& x) { return sw::scale(x, 0.5); })", lambda x: py.pointwise(lambda v: v * 0.5, x)
            loose = False

        def ended(env):
            env[name] = f(env[pending]).copy()
        self.statement(f"const auto {name} = std::move({pending}){then}.wait();", [Tensor(pending, t.dtype, target, a, True)],
                       ended, [name])
        out = Tensor(name, t.dtype, target, self.env[name], exact, loose=loose)
        if then and t.dtype == "int":
            raise Skip
        self.stores.append(out.array.store)
        self.live.append(out)
        return out

    # --- rows: (operands' placements, the result's) on an axis

    def adapt(self, operands, rows, alone=()):
        """Moves operands to a row on each axis; the operands then, and the result's placements. `alone`: dims of the first operand that one
        axis cuts at most, in equal shards, since windows have halos there."""
        targets = [list(t.place) for t in operands]
        out = []
        for a in range(self.axes):
            usable = []
            for ins, result in rows:
                cost, good = 0, True
                for t, want in zip(operands, ins):
                    if want is None:
                        continue
                    if not t.real and want == U():
                        want = R()
                    if want[0] == "S" and t.shape[want[1]] == 1:
                        good = False
                    if kind(t.place[a]) != kind(want):
                        cost += 1
                        good = good and self.can_move_one(t, t.place[a], want)
                if good:
                    usable.append((cost, ins, result))
            if not usable:
                raise Skip
            best = min(u[0] for u in usable)
            if self.chance(0.7):
                usable = [u for u in usable if u[0] == best]
            _, ins, result = self.r.choice(usable)
            split = None
            for k, (t, want) in enumerate(zip(operands, ins)):
                if want is None:
                    continue
                if not t.real and want == U():
                    want = R()
                if want[0] == "S":
                    keeps = kind(t.place[a]) == kind(want)
                    if split is None:
                        split = t.place[a] if keeps else want
                        split = split if split[3] is None else want
                    want = ("S", want[1], split[2], split[3])
                    if self.block_breaks(t, want):
                        raise Skip
                elif want[0] == "P" and kind(t.place[a]) == kind(want):
                    want = t.place[a]
                targets[k][a] = want
            if result is not None and result[0] == "S" and split is not None:
                result = ("S", result[1], split[2], split[3])
            out.append(result)
        for d in alone:
            cuts = [p for p in targets[0] if p[0] == "S" and p[1] == d]
            if len(cuts) > 1 or any(p != S(d) for p in cuts):
                raise Skip
        return [self.move(t, target) for t, target in zip(operands, targets)], out

    def block_breaks(self, t, p):
        return p[2] > 1 and t.shape[p[1]] % p[2] != 0

    def can_move_one(self, t, p, q):
        if p[0] == "P" and q[0] == "P":
            return kind(p) == kind(q)
        if q[0] == "P":
            return t.real and q[1] == "sum" and not self.special
        return True

    def single(self, t, rank_result=None, linear=False, dims=None, drop=None):
        """Rows of one operand whose dims map to the result's by `dims` (default: themselves)."""
        rows = [([R()], R()), ([U()], U())]
        for d in range(t.rank):
            if drop and d in drop:
                continue
            rows.append(([S(d)], S(d if dims is None else dims[d])))
        if linear:
            rows.append(([P()], P()))
        return rows

    def broadcast_rows(self, operands, linear="none"):
        shape = py.broadcast_shape([t.shape for t in operands])
        n = len(operands)
        rows = [([R()] * n, R()), ([U()] * n, U())]
        for d in range(len(shape)):
            ins = []
            for t in operands:
                own = d - (len(shape) - t.rank)
                ins.append((U() if t.real else R()) if own < 0 or (t.shape[own] == 1 and shape[d] != 1) else S(own))
            rows.append((ins, S(d)))
        if linear == "joint":
            rows.append(([P()] * n, P()))
        if linear in ("first", "each"):
            for k in range(n if linear == "each" else 1):
                rows.append(([P() if i == k else U() for i in range(n)], P()))
        return rows

    def apply(self, call, operands, f, rows, dtype=None, exact=False, implicit=True, names=(), alone=()):
        """call: text with {0}, {1}, ... for the operands."""
        self.used.update(names)
        dtype = dtype or self.p.dtype
        value = f(*[t.array for t in operands])  # before anything is written: this may have to be skipped
        if py.numel(value.shape) > MAX_NUMEL or len(value.shape) > self.most_rank:
            raise Skip
        self.check(value.flat(), dtype != "int")
        # an extreme of a partial tensor may come out partial in itself, which no gradient goes through
        implicit = implicit and not (self.gradient and re.search(r"sw::(amax|amin|max|min|prod|vector_norm|topk)\b", call))
        if implicit and self.chance(0.2) and not (self.special and any(p[0] == "P" for t in operands for p in t.place)):
            return self.apply_implicit(call, operands, f, dtype, exact)
        moved, place = self.adapt(operands, rows, alone)
        return self.define(call.format(*[t.name for t in moved]), moved, f, dtype, place, exact)

    def apply_implicit(self, call, operands, f, dtype, exact):
        self.used.update(["implicit", "strict"])
        text = "sw::strict(" + call.format(*[f"sw::implicit({t.name})" for t in operands]) + ")"
        shape = f(*[t.array for t in operands]).shape
        target = [self.r.choice([R()] + [S(d) for d in range(len(shape)) if shape[d] != 1]) for _ in range(self.axes)]
        on = ", ".join(f"sw::on<A{a}, {cpp_place(p)}>" for a, p in enumerate(target))
        return self.define(f"sw::redistribute<{on}>({text})", operands, lambda *x: f(*x).copy(), dtype, target, exact)

    # --- guards

    def apart(self, values, points, exact):
        """Far from where a function jumps or bends: exact values may stand on the point, where nothing is differentiated."""
        for v in values:
            for p in points:
                if py.is_nan(v) or math.isinf(v) or py.is_nan(p):
                    continue
                if abs(v - p) < 1e-2 and not (exact and not self.gradient):
                    raise Skip

    def distinct(self, values, exact):
        v = sorted(x for x in values if not py.is_nan(x))
        for a, b in zip(v, v[1:]):
            if b - a < 1e-2 and not (exact and not self.gradient):
                raise Skip

    # --- statements: see the table below

    def random_statement(self, depth=0, favourite=None):
        table = STATEMENTS
        if self.p.random:
            table = SMOOTH
        if self.p.bound:
            table = DYNAMIC
        for k in range(40):
            names, weight, f, needs = self.r.choices(table, [s[1] for s in table])[0]
            if favourite and k < 3:
                names, weight, f, needs = favourite
            elif self.writes and k == 0 and self.chance(0.45):
                names, weight, f, needs = self.r.choice(WRITING)
            elif self.writes and k == 0 and self.chance(0.3):
                names, weight, f, needs = self.r.choice(VIEWING)
            if "no_gradient" in needs and self.gradient:
                continue
            if "no_special" in needs and self.special:
                continue
            if "writes" in needs and not self.writes:
                continue
            if "random" in needs and not self.p.random:
                continue
            try:
                f(self)
                self.used.update(names)
                return
            except Skip:
                continue  # what stands there by then stays: redistributions that nothing uses are pruned
            except (OverflowError, ValueError, ZeroDivisionError, IndexError, TypeError):
                continue
        raise Skip

    # writes in place: to t, any of its views, or what it is a view of
    def may_write(self, t):
        if id(t.array.store) in self.frozen or t.array.overlaps() or t.loose:
            return False
        if self.gradient:
            for x in self.live:
                if x.is_input is not None and x.array.store is t.array.store:
                    return False
        if any(p[0] == "P" and p[1] != "sum" for p in t.place):
            return False
        return True

    def write_into(self, t):
        if not self.may_write(t):
            raise Skip
        choices = list(WRITES)
        self.r.shuffle(choices)
        if self.chance(0.5):  # each seed favours one, so that none is rare
            choices.insert(0, WRITES[(self.p.seed // 1000) % len(WRITES)])
        for w in choices[:12]:
            try:
                w(self, t)
                return
            except (Skip, OverflowError, ValueError, ZeroDivisionError, TypeError):
                continue
        raise Skip

    def in_place(self, code, t, operands, f, names, exact=True):
        """f of the arrays gives the new values, row-major."""
        values = f(t.array, *[o.array for o in operands])
        self.check(values, t.real)
        used = [t] + operands
        target, others = t.name, [o.name for o in operands]

        def run(env):
            env[target].write(f(env[target], *[env[o] for o in others]))
        self.statement(code.format(t.name, *others) + ";", used, run, [], effect=True)
        self.used.update(names)
        keeps = exact and all(o.exact for o in operands) and (not t.real or all(
            py.is_nan(v) or math.isinf(v) or v * 4096 == math.floor(v * 4096) for v in values))
        for x in self.live:
            if x.array.store is t.array.store:
                x.exact = x.exact and keeps
                if x.is_input is not None:
                    self.p.written |= 1 << x.is_input


from statements import DYNAMIC, RARE, STATEMENTS, SMOOTH, VIEWING, WRITES, WRITING  # noqa: E402


def depends(program, k):
    """Whether output 0 changes with input k at all."""
    return any(abs(g) > 1e-9 for g in program.gradient(k))


MESHES = [(1,), (2,), (3,), (4,), (2, 2), (1, 2), (2, 1), (2, 3), (3, 2), (1, 3), (4, 2), (2, 4), (1, 4), (2, 2, 2), (1, 2, 2),
          (2, 1, 2), (2, 2, 1), (1, 1, 3), (1, 2, 3)]
# those of several ranks, and of axes of one beside them, find more
MESH_WEIGHTS = [1, 5, 4, 3, 6, 3, 3, 4, 3, 2, 1, 1, 1, 2, 2, 2, 2, 1, 1]


def mesh_for(seed):
    return random.Random(seed * 7919 + 13).choices(MESHES, MESH_WEIGHTS)[0]


def features_for(seed):
    r = random.Random(seed * 104729 + 71)
    f = set()
    style = r.choices(["writes", "gradient", "writes_gradient", "plain", "special", "random", "int"],
                      [30, 20, 10, 20, 8, 6, 6])[0]
    f.update(style.split("_"))
    if r.random() < 0.2 and style != "special":
        f.add("float")
    return f


def make_program(seed, sizes=None, features=None):
    sizes = sizes or mesh_for(seed)
    for attempt in range(50):
        g = Generator(seed * 1000 + attempt, sizes, features or features_for(seed))
        p = try_program(g)
        if p is not None:
            p.seed = seed
            p.used = g.used
            return p
    raise RuntimeError(f"no program for seed {seed}")


def make_any(seed, sizes):
    """The program of a seed, of whatever kind."""
    import modules
    import other
    if seed % 10 == 3:
        return modules.make(seed, sizes)
    if seed % 20 == 7:
        return other.refused(seed, sizes)
    if seed % 20 == 17:
        return other.creation(seed, sizes)
    if seed % 20 == 15:
        return make_program(seed, sizes, {"dynamic"})
    return make_program(seed, sizes)


def smaller(p):
    """Programs that are a little less: fewer outputs, one way, no writes, fewer ranks, fewer statements."""
    def changed(f):
        q = copy.copy(p)
        q.sizes, q.statements, q.outputs = list(p.sizes), list(p.statements), list(p.outputs)
        q.ways, q.ways_alone, q.wrt, q.inputs = list(p.ways), list(p.ways_alone), list(p.wrt), list(p.inputs)
        f(q)
        if "mixed" not in q.ways:
            q.cut = None
        if q.cut is None:
            prune(q)
        return q
    if p.pipeline:
        yield changed(lambda q: setattr(q, "pipeline", ""))
    if p.arrives:
        yield changed(lambda q: setattr(q, "arrives", False))
    for simpler in ("named", "watched"):
        if getattr(p, simpler):
            yield changed(lambda q: setattr(q, simpler, False))
    if p.fake:
        yield changed(lambda q: setattr(q, "fake", False))
    for k in range(len(p.run_times)):
        if len(p.run_times) > 1:
            yield changed(lambda q: setattr(q, "run_times", p.run_times[:k] + p.run_times[k + 1:]))
    if p.ways_alone and not p.random:
        yield changed(lambda q: q.ways_alone.clear())
    for w in p.ways:
        if len(p.ways) > 1:
            yield changed(lambda q: q.ways.remove(w))
    first = 1 if p.wrt else 0
    if len(p.outputs) > first + 1:
        for n in p.outputs[first:]:
            def keep(q, n=n):
                q.outputs = q.outputs[:first] + [n]
            yield changed(keep)
    if p.wrt and len(p.outputs) > 1:
        yield changed(lambda q: q.outputs.__setitem__(slice(1, None), []))
    for k in range(len(p.wrt)):
        if len(p.wrt) > 1:
            yield changed(lambda q: q.wrt.remove(q.wrt[k]))
    for s in reversed(p.statements):
        if s.effect:
            yield changed(lambda q: q.statements.remove(s))
    for s in reversed(p.statements):  # what it makes is not made, but taken from an operand
        if not s.effect and len(s.defs) == 1 and s.defs[0] in p.outputs and s.uses and s.uses[0][0] in "xt":
            if s.uses[0] not in p.outputs:
                yield changed(lambda q: q.outputs.__setitem__(q.outputs.index(s.defs[0]), s.uses[0]))
    for a, n in enumerate(p.sizes):
        for m in (1, 2):
            if m < n:
                yield changed(lambda q: q.sizes.__setitem__(a, m))


def try_program(g):
    r, p = g.r, g.p
    p.random = "random" in g.features
    if "dynamic" in g.features:
        return try_dynamic(g)
    shapes = [[5, 4], [4, 6], [3, 4], [7], [6], [2, 3, 4], [4, 4], [1, 6], [2, 5, 3], [5, 1]]
    if g.most_rank > 4:
        shapes = [[2, 1, 3, 2, 1, 3], [1, 3, 2, 1, 2, 1, 3], [2, 1, 2, 1, 2, 1, 2, 3], [3, 4]]
    shape = r.choice(shapes)
    g.new_input(shape)
    for _ in range(r.randrange(1, 3)):
        if g.chance(0.5):
            g.new_input(shape)
        else:
            g.new_input(r.choice(shapes + [[shape[-1]], []]))
    if "int" in g.features or g.chance(0.35):
        g.new_input(r.choice([shape, [5], [4, 3]]), "int")
    favourite = (g.p.seed // 1000) % len(STATEMENTS)
    for k in range(r.randrange(3, 11)):
        try:
            g.random_statement(favourite=STATEMENTS[favourite] if k == 1 and not p.random else None)
        except Skip:
            break
    more = random.Random(g.p.seed * 17 + 3)  # of its own: what is drawn from it does not move what is drawn from the other
    if not p.random and more.random() < 0.2:  # at the end, what is drawn seldom
        g.r = more
        for names, _, f, needs in more.sample(RARE, 6):
            if ("no_gradient" in needs and g.gradient) or ("no_special" in needs and g.special) or "random" in needs or "writes" in needs:
                continue
            try:
                f(g)
                g.used.update(names)
                break
            except (Skip, OverflowError, ValueError, ZeroDivisionError, IndexError, TypeError):
                continue
        g.r = r
    made = [t for t in g.live if t.is_input is None]
    if len(p.statements) < 2 or not made:
        return None
    real = [t for t in made if t.real]
    if g.gradient:
        loss = [t for t in real if all(q[0] != "P" or q[1] == "sum" for q in t.place) and t.array.flat()]
        if not loss:
            return None
        p.outputs = [loss[-1].name]
    chosen = r.sample(made, min(len(made), r.randrange(1, 5)))
    if made[-1] not in chosen:
        chosen.append(made[-1])
    p.outputs += [t.name for t in chosen if t.name not in p.outputs]
    p.outputs = p.outputs[:4]
    by_name = {t.name: t for t in g.live}
    p.exact = all(by_name[n].exact for n in p.outputs + [i[0] for i in p.inputs])
    single = p.dtype == "float"
    p.tolerance = 0.0 if p.exact else 1e-4 if single else 1e-9
    p.mesh_tolerance = 0.0 if p.exact else 2e-4 if single else 1e-10
    p.gradient_tolerance = 2e-3 if single else 2e-6
    if g.gradient:
        wanted = [k for k, i in enumerate(p.inputs) if i[1] != "int" and all(q[0] != "P" or q[1] in ("sum", "avg") for q in i[3]) and depends(p, k)]
        if not wanted:
            return None
        r.shuffle(wanted)
        p.wrt = sorted(wanted[:2])
        if single:
            p.mesh_tolerance = 2e-3
        else:
            p.mesh_tolerance = 1e-9
        p.ways = [["gradients"], ["compiled_gradients"], ["gradients", "compiled_gradients"]][r.randrange(3)]
        p.ways_alone = [r.choice(["gradients", "compiled_gradients"])]
    else:
        p.ways = ["eager", "compiled"] + (["traced"] if g.chance(0.25) else [])
        p.ways_alone = [r.choice(["eager", "compiled"])]
    prune(p)
    if not g.gradient and not p.random and not any(s.effect for s in p.statements) and g.chance(0.3):
        cuts = [k for k in range(1, len(p.statements)) if all(n[0] in "xt" for n in live_at(p, k)) and len(live_at(p, k)) <= 5]
        if cuts:
            p.cut = r.choice(cuts)
            p.ways.append("mixed")
    p.arrives = g.chance(0.2) and not p.written and not g.nested(p.inputs[0][3])
    if g.chance(0.2):
        p.pipeline = r.choice(["sw::cancel_redistributions, sw::merge_common", "sw::fuse_pointwise",
                               "sw::cancel_redistributions, sw::merge_common, sw::fuse_pointwise"]
                              # refuses collectives that nobody uses: those of a dead write, or of a tensor of which only the
                              # extents are read, are there until the end
                              + ([] if g.gradient or any(s.effect or EXTENTS_ALONE.search(s.code) for s in p.statements)
                                 else ["sw::schedule_comm_wait"]))
    p.fake = "eager" in p.ways and more.random() < 0.12
    p.named = more.random() < 0.15
    p.watched = not g.special and more.random() < 0.15
    if not p.pipeline and more.random() < 0.15:
        plain = ["sw::fuse_kernels", "sw::partial_lower<sw::core_operations, 2>", "sw::merge_common, sw::merge_products",
                 "sw::fuse_kernels, sw::join_norm_adjoints", "sw::fuse_kernels, sw::join_cross_entropy", "sw::sink_waits, sw::raise_comms",
                 "sw::optimize_layout<sw::layout_mode::force>, sw::fuse_kernels"]
        p.pipeline = more.choice(plain + (["sw::rematerialise<50>", "sw::rematerialise<50>"] if g.gradient else []))
    return p


def try_dynamic(g):
    """Programs for every size up to a bound, run with several: every dim of extent 7 is such a one, in some every dim of extent 5
    is of another size."""
    r, p = g.r, g.p
    p.bound = 7
    shapes = [[7, 4], [7, 4], [7, 2, 3], [4, 7], [4], [7], [3, 7, 2]]
    if g.chance(0.6):
        p.second = 5
        shapes = [[7, 5], [7, 5, 3], [5, 7], [7, 4, 5], [5, 4], [7, 4], [5], [4, 5, 7], [4]]
    g.new_input(r.choice(shapes[:4]))
    for _ in range(r.randrange(1, 3)):
        g.new_input(r.choice(shapes))
    for k in range(r.randrange(3, 9)):
        try:
            g.random_statement()
        except Skip:
            break
    made = [t for t in g.live if t.is_input is None and t.real]
    if len(p.statements) < 2 or not made:
        return None
    p.outputs = list(dict.fromkeys([made[-1].name] + [t.name for t in r.sample(made, min(len(made), 2))]))
    p.ways, p.ways_alone = ["compiled"], ["compiled"]
    p.tolerance, p.mesh_tolerance = 1e-9, 1e-10
    p.named, p.watched = g.chance(0.15), g.chance(0.15)
    p.run_times = [(7, 5), (r.randrange(2, 7), r.randrange(1, 6)), (r.randrange(2), r.randrange(1, 6)), (r.randrange(2, 8), r.randrange(1, 6))]
    prune(p)
    if all(p.bound not in i[2] for i in p.inputs):
        return None
    if p.second and all(p.second not in i[2] for i in p.inputs):
        p.second = None
    try:
        for n in p.run_times:
            for row in p.expected_at(n):
                g.check(row, True)
    except (Skip, IndexError, OverflowError, ValueError, ZeroDivisionError):
        return None  # a class that is not there, or nothing to take the mean of
    if g.chance(0.25):
        p.pipeline = r.choice(["sw::cancel_redistributions, sw::merge_common", "sw::fuse_pointwise", "sw::fuse_kernels"])
    return p


def live_at(p, k):
    """Names that statements from k on, or the results, take from before."""
    made = {d for s in p.statements[:k] for d in s.defs} | {i[0] for i in p.inputs}
    return [n for n in sorted(made) if n in p.outputs or any(n in s.uses for s in p.statements[k:])]


def prune(p):
    """Leaves out statements that no output, and no write, depends on."""
    kept, needed = [], set(p.outputs)
    for s in reversed(p.statements):
        if s.effect or any(d in needed for d in s.defs):
            kept.append(s)
            needed.update(s.uses)
    p.statements = kept[::-1]
    used = [k for k, i in enumerate(p.inputs) if i[0] in needed] or [0]
    p.written = sum(1 << n for n, k in enumerate(used) if (p.written >> k) & 1)
    p.wrt = [used.index(k) for k in p.wrt if k in used]
    p.inputs = [p.inputs[k] for k in used]


# --- text -------------------------------------------------------------------------------------------------------------------


def numbers(name, rows):
    text = "".join(f"inline const double {name}_{k}[] = {{{', '.join(literal(v) for v in row) or '0'}}};\n" for k, row in enumerate(rows))
    entries = ", ".join(f"{{{len(row)}, {name}_{k}}}" for k, row in enumerate(rows))
    return text + f"inline const fuzz::numbers {name}[] = {{{entries or '{0, nullptr}'}}};\n"


def cpp(p, name):
    """The program's struct and the line that checks it."""
    out = [f"// {name}: seed {p.seed}, {' x '.join(map(str, p.sizes))}{p.note}\n"]
    results, after = (None, None) if p.random else p.expected()
    if p.bound:
        results, after = [row for n in p.run_times for row in p.expected_at(n)], []
        out.append(numbers(f"{name}_data", [p.given(k, n).flat() for n in p.run_times for k in range(len(p.inputs))]))
    else:
        out.append(numbers(f"{name}_data", [i[4] for i in p.inputs]))
    if results is not None:
        out.append(numbers(f"{name}_results", results))
        out.append(numbers(f"{name}_after", after))
        out.append(numbers(f"{name}_gradients", [p.gradient(k) for k in p.wrt]))
    args = ", ".join(f"[[maybe_unused]] const auto& {i[0]}" for i in p.inputs)
    axes = " ".join(f"using A{a} = typename W::A{a};" for a in range(3))
    out.append(f"struct {name} {{\n  template <class W>\n  struct f {{\n    {axes}\n    constexpr auto operator()({args}) const {{\n")
    out += [f"      {s.code}\n" for s in p.statements]
    if p.named:
        results_text = "sw::outputs(" + ", ".join(f'sw::named<"r{k}">({n})' for k, n in enumerate(p.outputs)) + ")"
    else:
        results_text = f"std::tuple{{{', '.join(p.outputs)}}}"
    out.append(f"      return {results_text};\n    }}\n  }};\n")

    if p.cut is not None:
        names = live_at(p, p.cut)
        taken = ", ".join(f"[[maybe_unused]] const auto& {n}" for n in names)
        for part, given, statements, result in (("head", args, p.statements[:p.cut], [f"sw::contiguous({n})" for n in names]),
                                                ("tail", taken, p.statements[p.cut:], p.outputs)):
            out.append(f"  template <class W>\n  struct {part} {{\n    {axes}\n    constexpr auto operator()({given}) const {{\n")
            out += [f"      {s.code}\n" for s in statements]
            out.append(f"      return std::tuple{{{', '.join(result)}}};\n    }}\n  }};\n")

    def place(q):
        return f"sw::strided_shard<{q[1]}, W::{q[3]}::size>" if q[0] == "S" and q[3] else cpp_place(q)
    tensors = []
    for i in p.inputs:
        shape = ", ".join(f"sw::dyn<{e}>" if e == p.bound else f"sw::dyn<{e}, 1>" if e == p.second else str(e) for e in i[2])
        places = ", ".join(place(q) for q in i[3])
        tensors.append(f"sw::dtensor_of<{CPP_TYPE[i[1]]}, sw::shape<{shape}>, typename W::mesh, {places}>")
    out.append("  template <class W>\n  using inputs = fuzz::list<" + ",\n                             ".join(tensors) + ">;\n")
    wrt = ", ".join(map(str, p.wrt))
    out.append(f"  using wrt = sw::wrt<{wrt}>;\n  using pipeline = sw::pipeline<{p.pipeline}>;\n")
    count = len(p.outputs) * max(len(p.run_times), 1)
    out.append(f"  static constexpr std::size_t results = {count}, gradients = {len(p.wrt)};\n")
    checks = "sw::executor_checks::poison" + (" | sw::executor_checks::finite" if p.watched else "")
    out.append(f"  static constexpr auto checks = {checks};\n  static constexpr bool named = {'true' if p.named else 'false'};\n")
    out.append(f"  static constexpr int run_times = {len(p.run_times)}, run_time[] = {{{', '.join(str(n) for n, _ in p.run_times) or 0}}};\n")
    if p.second:
        out.append(f"  static constexpr int second_run_time[] = {{{', '.join(str(n) for _, n in p.run_times)}}};\n")
    out.append(f"  static constexpr bool writes_inputs = {'true' if p.written else 'false'};\n")
    out.append(f"  static constexpr const fuzz::numbers* data = {name}_data;\n")
    out.append(f"  static constexpr bool arrives = {'true' if p.arrives else 'false'};\n")
    if p.arrives:
        out.append("  template <class W>\n  static void arrive(auto& program, const auto& x) {\n"
                   f"    program.set_input(0, sw::redistribute_async<typename W::A0, {place(p.inputs[0][3][0])}>(x));\n  }}\n")
    if p.wrt:
        out.append("  template <class F, class Inputs>\n  static auto differentiate(const auto& x) {\n"
                   f"    return Inputs::template differentiate<F, {wrt}>(x);\n  }}\n")
    if results is None:
        given = "nullptr, nullptr, nullptr"
    else:
        given = f"{name}_results, {'nullptr' if p.bound else name + '_after'}, {name}_gradients"
    out.append(f"  static fuzz::expectation expected() {{\n    return {{{given}, {count}, {len(p.inputs)}, {len(p.wrt)}, "
               f"{p.tolerance!r}, {p.gradient_tolerance!r}, {p.mesh_tolerance!r}, {'true' if p.pipeline else 'false'}, {p.written}u}};\n  }}\n}};\n\n")
    return "".join(out)


def check_line(p, name):
    ways = " | ".join(f"fuzz::{w}" for w in p.ways + (["faked"] if p.fake and "eager" in p.ways else []))
    alone = " | ".join(f"fuzz::{w}" for w in p.ways_alone) or "0"
    if all(n == 1 for n in p.sizes):
        alone = "0"
    world = ", ".join(map(str, p.sizes))
    return f"  fuzz::check<{name}, fuzz::world<{world}>, ({ways}), ({alone})>(\"{name}\");\n"


def source(programs):
    """One source of several (name, program)."""
    out = ["// Written by generate.py.\n#include <fuzz.hpp>\n\nnamespace {\n\nnamespace sw = shardwise;\n\n"]
    out += [cpp(p, name) if p.kind == "function" else p.text for name, p in programs]
    out.append("}  // namespace\n\nint main() {\n")
    out += [check_line(p, name) if p.kind == "function" else p.line for name, p in programs]
    out.append("  return fuzz::summary();\n}\n")
    return "".join(out)


if __name__ == "__main__":
    chosen = [int(a) for a in sys.argv[1:]]
    sys.stdout.write(source([(f"p{s}", make_program(s)) for s in chosen]))
