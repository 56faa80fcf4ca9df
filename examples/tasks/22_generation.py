# Greedy decoding with a key/value cache, beside the whole forward pass over the text so far.

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
positions, heads, size, words = 24, 2, 8, 11
width = heads * size


def rotary(x, first):  # (batch, heads, length, size)
    at = first + torch.arange(x.shape[2])
    angle = at.unsqueeze(1) / 10000 ** (torch.arange(0, size, 2) / size)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), dim=-1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width) for _ in range(4))
        self.register_buffer("keys", torch.zeros(1, heads, positions, size), persistent=False)
        self.register_buffer("values", torch.zeros(1, heads, positions, size), persistent=False)

    def forward(self, x, first, cached):
        n = self.norm(x)
        q, k, v = (w(n).unflatten(-1, (heads, size)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotary(q, first), rotary(k, first)
        length, mask = x.shape[1], None
        if cached:
            self.keys[:, :, first : first + length], self.values[:, :, first : first + length] = k, v
            k, v = self.keys[:, :, : first + length], self.values[:, :, : first + length]
            mask = torch.arange(k.shape[2]) <= first + torch.arange(length).unsqueeze(1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return x + self.wo(y.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.layers = nn.ModuleList(Block() for _ in range(2))

    def forward(self, ids, first, cached):
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x, first, cached)
        return self.head(x)


@torch.no_grad()
def next_token(ids, first, cached):
    return int(model(torch.tensor([ids]), first, cached)[0, -1].argmax())


model = Decoder()
text = [3, 1, 4, 1, 5]
token = next_token(text, 0, True)  # the prompt at once
while len(text) < positions:
    assert token == next_token(text, 0, False), "a token is that of the whole pass"
    text.append(token)
    if len(text) < positions:
        token = next_token([token], len(text) - 1, True)
