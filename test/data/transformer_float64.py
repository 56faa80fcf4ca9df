#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Makes fsdp_transformer_xent_adam_f64.safetensors: the reference of fsdp_transformer_xent_adam with the loss in float64
# too. The original casts its logits to float32 before the cross entropy, so its losses carry float32 rounding. Needs
# PyTorch. usage: transformer_float64.py IN OUT   (checks itself against IN with the cast on)

import json
import struct
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

TYPES = {"F32": (torch.float32, 4), "F64": (torch.float64, 8), "I64": (torch.int64, 8)}


def load(path):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    meta = header.pop("__metadata__")
    out = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        data = bytearray(raw[8 + size + begin:8 + size + end])
        out[name] = torch.frombuffer(data, dtype=TYPES[entry["dtype"]][0]).reshape(entry["shape"]).clone()
    return meta, out


def save(path, meta, tensors):
    header, blobs, at = {"__metadata__": meta}, [], 0
    names = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
    for name in sorted(tensors):
        t = tensors[name].detach().contiguous()
        data = t.numpy().tobytes()
        header[name] = {"dtype": names[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        blobs.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-(len(text)) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        for n in ("wq", "wk", "wv", "wo"):
            setattr(self, n, nn.Linear(16, 16, bias=False))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, 4, 4).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, 16))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        return self.w2(F.gelu(self.w1(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(16), Attention()
        self.ffn_norm, self.feed_forward = nn.LayerNorm(16), FeedForward()

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_embeddings, self.pos_embeddings = nn.Embedding(8, 16), nn.Embedding(16, 16)
        self.layers = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(16)

    def forward(self, tokens):
        h = self.tok_embeddings(tokens) + self.pos_embeddings(torch.arange(tokens.shape[1]))
        for block in self.layers:
            h = block(h)
        return F.linear(self.norm(h), self.tok_embeddings.weight)


def train(given, cast):
    model = Transformer().double()
    state = {k[5:]: v.double() for k, v in given.items() if k.startswith("init.")}
    model.load_state_dict(state)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses, grad0 = [], None
    for i in range(10):
        adam.zero_grad()
        row = []
        for rank in range(2):
            logits = model(given[f"in.rank{rank}.0"][i])
            logits = logits.float() if cast else logits
            loss = F.cross_entropy(logits.reshape(-1, 8), given[f"in.rank{rank}.1"][i].reshape(-1))
            (loss / 2).backward()
            row.append(loss.detach())
        losses.append(torch.stack(row))
        if grad0 is None:
            grad0 = {k: p.grad.clone() for k, p in model.named_parameters()}
        adam.step()
    return torch.stack(losses), grad0, dict(model.named_parameters())


def main():
    meta, given = load(sys.argv[1])
    losses, _, final = train(given, cast=True)
    print("with the cast: largest loss difference", (losses - given["ref.losses"]).abs().max().item(), "largest parameter difference",
          max((final[k] - given["ref.final." + k]).abs().max().item() for k in final))
    losses, grad0, final = train(given, cast=False)
    out = {k: v for k, v in given.items() if not k.startswith("ref.")}
    out["ref.losses"] = losses
    out.update({"ref.grad0." + k: v for k, v in grad0.items()})
    out.update({"ref.final." + k: v for k, v in final.items()})
    meta["loss"] += ", in float64"
    save(sys.argv[2], meta, out)


if __name__ == "__main__":
    main()
