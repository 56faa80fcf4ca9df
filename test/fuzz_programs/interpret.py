# SPDX-License-Identifier: Apache-2.0
"""Tensors in plain Python: what programs mean. PyTorch's semantics, one rank, views share storage, no number is an object of
the library. A redistribution is a value: nothing here knows that there are ranks."""

import math
import struct

INF, NAN = math.inf, math.nan


def numel(shape):
    n = 1
    for e in shape:
        n *= e
    return n


def dense(shape):
    strides, step = [], 1
    for e in reversed(shape):
        strides.append(step)
        step *= e
    return strides[::-1]


class Array:
    """A view of a storage, which is a list."""

    def __init__(self, store, shape, strides=None, offset=0):
        self.store, self.shape, self.offset = store, list(shape), offset
        self.strides = dense(shape) if strides is None else list(strides)

    def places(self):
        at = [self.offset]
        for e, s in zip(self.shape, self.strides):
            at = [p + i * s for p in at for i in range(e)]
        return at

    def flat(self):
        store = self.store
        return [store[p] for p in self.places()]

    def write(self, values):
        for p, v in zip(self.places(), list(values)):
            self.store[p] = v

    def is_dense(self):
        return self.strides == dense(self.shape) and self.offset == 0

    def overlaps(self):
        return any(e > 1 and s == 0 for e, s in zip(self.shape, self.strides))

    def copy(self):
        return Array(self.flat(), self.shape)

    def at(self, *index):
        return self.store[self.offset + sum(i * s for i, s in zip(index, self.strides))]


def new(shape, values):
    return Array(list(values), shape)


def indices(shape):
    at = [()]
    for e in shape:
        at = [p + (i,) for p in at for i in range(e)]
    return at


# --- views ----------------------------------------------------------------------------------------------------------------


def permute(a, order):
    return Array(a.store, [a.shape[d] for d in order], [a.strides[d] for d in order], a.offset)


def contiguous(a):
    return a if a.is_dense() else a.copy()


def channels_last(a):
    """Of four dims: the second one fastest."""
    n, c, h, w = a.shape
    strides = [h * w * c, 1, w * c, c]
    if a.strides == strides and a.offset == 0:
        return a
    r = Array([None] * (n * c * h * w), a.shape, strides)
    r.write(a.flat())
    return r


def reshape(a, shape):
    a = contiguous(a)
    return Array(a.store, shape, None, a.offset)


def units(a, shape):
    """Other dims of extent 1 alone: strides stay."""
    if a.is_dense():
        return Array(a.store, shape, None, a.offset)
    strides, i = [], 0
    for e in shape:
        while i < len(a.shape) and a.shape[i] == 1 and e != 1:
            i += 1
        if i < len(a.shape) and a.shape[i] == e:
            strides.append(a.strides[i])
            i += 1
        else:
            strides.append(0)
    return Array(a.store, shape, strides, a.offset)


def narrow(a, d, start, length):
    shape = list(a.shape)
    shape[d] = length
    return Array(a.store, shape, a.strides, a.offset + start * a.strides[d])


def expand(a, shape):
    lead = len(shape) - len(a.shape)
    strides = [0] * lead + [s if e == w else 0 for e, w, s in zip(a.shape, shape[lead:], a.strides)]
    return Array(a.store, shape, strides, a.offset)


# --- elementwise ----------------------------------------------------------------------------------------------------------


def broadcast_shape(shapes):
    rank = max(len(s) for s in shapes)
    out = [1] * rank
    for s in shapes:
        for d, e in enumerate(s):
            if e != 1:
                out[d + rank - len(s)] = e
    return out


def pointwise(f, *arrays):
    shape = broadcast_shape([a.shape for a in arrays])
    return new(shape, [f(*v) for v in zip(*(expand(a, shape).flat() for a in arrays))])


def is_nan(x):
    return x != x


def guarded(f):
    def g(*x):
        if any(is_nan(v) for v in x):
            return NAN
        try:
            return f(*x)
        except (OverflowError, ValueError, ZeroDivisionError):
            return NAN
    return g


def to_f16(v):
    """To nearest, ties to even, as elements of two bytes are stored; subnormal numbers too."""
    return struct.unpack("<e", struct.pack("<e", v))[0]


def to_bf16(v):
    """The same with a float's exponent; `v` is a float."""
    bits = struct.unpack("<I", struct.pack("<f", v))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def division(a, b):
    if is_nan(a) or is_nan(b):
        return NAN
    if b == 0:
        if a == 0:
            return NAN
        return math.copysign(INF, a) * math.copysign(1, b)
    return a / b


def exp(x):
    if is_nan(x):
        return x
    return INF if x > 709.7 else math.exp(x)


def log(x):
    if is_nan(x) or x < 0:
        return NAN
    return -INF if x == 0 else math.log(x)


def sqrt(x):
    if is_nan(x) or x < 0:
        return NAN
    return math.sqrt(x)


def sigmoid(x):
    if is_nan(x):
        return x
    return 1 / (1 + math.exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


def gelu(x):
    if x in (INF, -INF):
        return INF if x > 0 else NAN
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


UNARY = {
    "relu": lambda x: x if is_nan(x) else max(x, 0.0),
    "tanh": lambda x: math.tanh(x),
    "abs": abs,
    "sign": lambda x: x if is_nan(x) else (x > 0) - (x < 0) + 0.0,
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "rsqrt": lambda x: division(1.0, sqrt(x)) if not (x == INF) else 0.0,
    "reciprocal": lambda x: division(1.0, x),
    "sigmoid": sigmoid,
    "sin": lambda x: NAN if math.isinf(x) else math.sin(x),
    "cos": lambda x: NAN if math.isinf(x) else math.cos(x),
    "neg": lambda x: -x,
    "square": lambda x: x * x,
    "silu": lambda x: NAN if x == -INF else x * sigmoid(x),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
}


def maximum(a, b):
    return NAN if is_nan(a) or is_nan(b) else max(a, b)


def minimum(a, b):
    return NAN if is_nan(a) or is_nan(b) else min(a, b)


def clamp_min(a, low):
    return maximum(a, low)


def clamp_max(a, high):
    return minimum(a, high)


COMPARE = {
    "eq": lambda a, b: int(a == b), "ne": lambda a, b: int(a != b), "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b), "gt": lambda a, b: int(a > b), "ge": lambda a, b: int(a >= b),
}


# --- along dims -----------------------------------------------------------------------------------------------------------


def reduce(a, dims, keep, f):
    """f of the list of elements that a result's element stands for, row-major."""
    dims = [d % len(a.shape) for d in dims] if dims else list(range(len(a.shape)))
    kept = [1 if d in dims else e for d, e in enumerate(a.shape)]
    groups = {i: [] for i in indices(kept)}
    for i, v in zip(indices(a.shape), a.flat()):
        groups[tuple(0 if d in dims else k for d, k in enumerate(i))].append(v)
    shape = kept if keep else [e for d, e in enumerate(a.shape) if d not in dims]
    return new(shape, [f(groups[i]) for i in indices(kept)])


def total(v):
    s = 0.0
    for x in v:
        s += x
    return s


def product(v):
    p = 1.0
    for x in v:
        p *= x
    return p


def mean(v):
    return division(total(v), float(len(v)))


def variance(v, correction):
    m = mean(v)
    return division(total([(x - m) * (x - m) for x in v]), len(v) - correction)


def largest(v):
    m = -INF
    for x in v:
        m = maximum(m, x)
    return m


def smallest(v):
    m = INF
    for x in v:
        m = minimum(m, x)
    return m


def logsumexp(v):
    m = largest(v)
    if is_nan(m) or math.isinf(m):
        return m
    return m + math.log(total([math.exp(x - m) for x in v]))


def lines(a, dim, f):
    """f of each line along dim, a list of as many elements or of another number of them."""
    d = dim % len(a.shape)
    moved = a.shape[:d] + a.shape[d + 1:]
    out = []
    for i in indices(moved):
        out.append(f([a.at(*(i[:d] + (k,) + i[d:])) for k in range(a.shape[d])]))
    length = len(out[0]) if out else a.shape[d]
    shape = a.shape[:d] + [length] + a.shape[d + 1:]
    result = new(shape, [0] * numel(shape))
    for i, line in zip(indices(moved), out):
        for k, v in enumerate(line):
            full = i[:d] + (k,) + i[d:]
            result.store[sum(x * s for x, s in zip(full, result.strides))] = v
    return result


def softmax(v):
    m = largest(v)
    if is_nan(m) or m in (INF, -INF):
        return [NAN] * len(v)
    e = [math.exp(x - m) if x != -INF else 0.0 for x in v]
    s = total(e)
    return [x / s for x in e]


def log_softmax(v):
    n = logsumexp(v)
    if is_nan(n) or math.isinf(n):
        return [NAN] * len(v)  # from the largest element first, as PyTorch
    return [x - n for x in v]


def causal_softmax(a):
    out = new(a.shape, [0.0] * numel(a.shape))
    for i in indices(a.shape[:-1]):
        q = i[-1]
        line = softmax([a.at(*i, k) for k in range(min(q + 1, a.shape[-1]))])
        for k, v in enumerate(line):
            out.store[sum(x * s for x, s in zip(i + (k,), out.strides))] = v
    return out


def ranks_of(v, biggest):
    return sorted(range(len(v)), key=lambda k: (-v[k] if biggest else v[k], k))


# --- products -------------------------------------------------------------------------------------------------------------


def matmul(a, b):
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    out = []
    for i in indices(a.shape[:-2]):
        j = i if len(b.shape) > 2 else ()
        for r in range(m):
            for c in range(n):
                out.append(total([a.at(*i, r, x) * b.at(*j, x, c) for x in range(k)]))
    return new(a.shape[:-1] + [n], out)


def linear(x, w):
    out = []
    for i in indices(x.shape[:-1]):
        for o in range(w.shape[0]):
            out.append(total([x.at(*i, k) * w.at(o, k) for k in range(w.shape[1])]))
    return new(x.shape[:-1] + [w.shape[0]], out)


def attention(q, k, v, causal, bthd, window=0, first=None):
    """With fewer heads of k and v than of q, neighbours share one; a query sees the last `window` keys alone, if it is above 0. first:
    where each batch's queries begin."""
    if bthd:
        q, k, v = (permute(t, [0, 2, 1, 3]) for t in (q, k, v))
    group = q.shape[1] // k.shape[1]
    out = []
    for b, h, t in indices(q.shape[:3]):
        i = t + (first[b] if first else 0)
        end = min(i + 1, k.shape[2]) if causal or window else k.shape[2]
        seen = range(max(0, i - window + 1) if window else 0, end)
        score = [total([q.at(b, h, t, c) * k.at(b, h // group, j, c) for c in range(q.shape[3])]) / math.sqrt(q.shape[3]) for j in seen]
        weight = softmax(score) if score else []
        out += [total([w * v.at(b, h // group, j, c) for w, j in zip(weight, seen)]) for c in range(v.shape[3])]
    y = new(q.shape[:3] + v.shape[3:], out)
    return contiguous(permute(y, [0, 2, 1, 3])) if bthd else y


def rotary(a, time, interleaved, first):
    out = new(a.shape, [0.0] * numel(a.shape))
    half = a.shape[3] // 2
    for i in indices(a.shape[:3]):
        for k in range(half):
            one, two = (2 * k, 2 * k + 1) if interleaved else (k, k + half)
            angle = ((first[i[0]] if isinstance(first, list) else first) + i[time]) * 100.0 ** (-2 * k / a.shape[3])
            u, v = a.at(*i, one), a.at(*i, two)
            for place, x in ((one, u * math.cos(angle) - v * math.sin(angle)), (two, v * math.cos(angle) + u * math.sin(angle))):
                out.store[sum(n * s for n, s in zip(i + (place,), out.strides))] = x
    return out


# --- indices --------------------------------------------------------------------------------------------------------------


def put(out, index, value):
    out.store[sum(x * s for x, s in zip(index, out.strides))] = value


def gather(a, d, index):
    return new(index.shape, [a.at(*(i[:d] + (int(k),) + i[d + 1:])) for i, k in zip(indices(index.shape), index.flat())])


def index_select(a, d, index):
    shape = a.shape[:d] + [index.shape[0]] + a.shape[d + 1:]
    return new(shape, [a.at(*(i[:d] + (int(index.at(i[d])),) + i[d + 1:])) for i in indices(shape)])


def scatter(a, d, index, source, add):
    out = a.copy()
    for i, k in zip(indices(index.shape), index.flat()):
        v = source.at(*i) if isinstance(source, Array) else source
        to = i[:d] + (int(k),) + i[d + 1:]
        put(out, to, out.at(*to) + v if add else v)
    return out


def index_add(a, d, index, source):
    out = a.copy()
    for i in indices(source.shape):
        to = i[:d] + (int(index.at(i[d])),) + i[d + 1:]
        put(out, to, out.at(*to) + source.at(*i))
    return out


def embedding(table, index):
    return new(index.shape + [table.shape[1]], [table.at(int(k), f) for k in index.flat() for f in range(table.shape[1])])


def one_hot(index, classes):
    return new(index.shape + [classes], [1 if int(k) == c else 0 for k in index.flat() for c in range(classes)])


# --- joins, paddings, norms, losses ---------------------------------------------------------------------------------------


def cat(d, parts):
    shape = list(parts[0].shape)
    shape[d] = sum(p.shape[d] for p in parts)
    out = new(shape, [0] * numel(shape))
    start = 0
    for p in parts:
        narrow(out, d, start, p.shape[d]).write(p.flat())
        start += p.shape[d]
    return out


def conv2d(x, w, stride, padding, dilation, groups):
    n, c, h, width = x.shape
    o, ci, kh, kw = w.shape
    if padding == "same":  # as torch.nn.functional.conv2d: an odd one more stands behind
        above, left = dilation * (kh - 1) // 2, dilation * (kw - 1) // 2
        oh, ow = h, width
    else:
        above = left = padding
        oh = (h + 2 * padding - dilation * (kh - 1) - 1) // stride + 1
        ow = (width + 2 * padding - dilation * (kw - 1) - 1) // stride + 1
    out = []
    for b, f, u, v in indices([n, o, oh, ow]):
        first, total = f // (o // groups) * ci, 0.0
        for i in range(ci):
            for p in range(kh):
                for q in range(kw):
                    r, s = u * stride - above + p * dilation, v * stride - left + q * dilation
                    if 0 <= r < h and 0 <= s < width:
                        total += x.at(b, first + i, r, s) * w.at(f, i, p, q)
        out.append(total)
    return new([n, o, oh, ow], out)


def pooled(x, kernel, stride, padding, of_window):
    """of_window: a function of the window's elements and of their places in the image's plane."""
    n, c, h, width = x.shape
    oh, ow = (h + 2 * padding - kernel[0]) // stride[0] + 1, (width + 2 * padding - kernel[1]) // stride[1] + 1
    out = []
    for b, f, u, v in indices([n, c, oh, ow]):
        inside = [(r, s) for r in range(u * stride[0] - padding, u * stride[0] - padding + kernel[0])
                  for s in range(v * stride[1] - padding, v * stride[1] - padding + kernel[1]) if 0 <= r < h and 0 <= s < width]
        out.append(of_window([x.at(b, f, r, s) for r, s in inside], [r * width + s for r, s in inside]))
    return new([n, c, oh, ow], out)


def mean_of_window(kernel, counts_padding):
    return lambda values, places: sum(values) / (kernel[0] * kernel[1] if counts_padding else len(values))


def largest_of_window(which):
    def of(values, places):
        best = max(range(len(values)), key=lambda i: (values[i], -i))
        return (values[best], places[best])[which]
    return of


def pad(a, pairs, value):
    """Pairs (before, after) for each dim."""
    shape = [e + b + c for e, (b, c) in zip(a.shape, pairs)]
    out = new(shape, [value] * numel(shape))
    part = out
    for d, (b, _) in enumerate(pairs):
        part = narrow(part, d, b, a.shape[d])
    part.write(a.flat())
    return out


def triangle(a, diagonal, upper):
    keep = (lambda r, c: c - r >= diagonal) if upper else (lambda r, c: c - r <= diagonal)
    return new(a.shape, [v if keep(i[-2], i[-1]) else 0 * 1.0 for i, v in zip(indices(a.shape), a.flat())])


def layer_norm(x, w, b):
    def line(v):
        m, s = mean(v), math.sqrt(variance(v, 0) + 1e-5)
        return [(e - m) / s * w.at(k) + b.at(k) for k, e in enumerate(v)]
    return lines(x, -1, line)


def rms_norm(x, w):
    def line(v):
        s = math.sqrt(mean([e * e for e in v]) + 1e-5)
        return [e / s * w.at(k) for k, e in enumerate(v)]
    return lines(x, -1, line)


def cross_entropy_rows(x, target, ignore):
    out = []
    for i, t in zip(indices(x.shape[:-1]), target.flat()):
        v = [x.at(*i, k) for k in range(x.shape[-1])]
        out.append(0.0 if ignore is not None and t == ignore else logsumexp(v) - v[int(t)])
    return new(x.shape[:-1], out)


def cross_entropy(x, target, ignore):
    rows = cross_entropy_rows(x, target, ignore).flat()
    count = sum(1 for t in target.flat() if ignore is None or t != ignore)
    return new([], [division(total(rows), float(count))])
