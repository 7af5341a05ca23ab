"""A peer that sees all choices and reads them in order: causal self-attention over a person's last choices.

It predicts each choice from those before it, by a softmax over all items. How long it is trained, the last choice of
each person in the training part says. After: Kang and McAuley 2018 (SASRec), with a full softmax, as Petrov and
Macdonald 2023 (gSASRec) and Klenitskiy and Vasilev 2023 advise
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrecplus.data import Ratings, split
from fedrecplus.training import Fallback, Predictor, ranking

_NOBODY = -1
"""a target that there is none of"""


class Block(nn.Module):
    """Attention to what came before, then a layer for each place; both are added to what goes in."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 1, dropout=dropout, batch_first=True)
        self.layer = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, later: Tensor) -> Tensor:
        """x (people, places, width); ``later`` tells which places come after which."""
        y = self.before(x)
        x = x + self.dropout(self.attention(y, y, y, attn_mask=later, need_weights=False)[0])
        return x + self.dropout(self.layer(self.between(x)))  # type: ignore[no-any-return]


class SasRec(nn.Module):
    """Items and places go in, what is looked for at each place comes out."""

    def __init__(self, items: int, width: int, blocks: int, length: int, dropout: float) -> None:
        super().__init__()
        self.items, self.places = nn.Embedding(items + 1, width, padding_idx=items), nn.Embedding(length, width)
        nn.init.normal_(self.items.weight, std=0.1)
        self.bias = nn.Parameter(torch.zeros(items))
        self.blocks = nn.ModuleList(Block(width, dropout) for _ in range(blocks))
        self.end, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)

    def forward(self, histories: Tensor) -> Tensor:
        """Of histories (people, places), which begin at the first place, (people, places, width)."""
        places = torch.arange(histories.shape[1])
        x = self.dropout(self.items(histories) * self.items.embedding_dim**0.5 + self.places(places))
        later = places[None, :] > places[:, None]
        for block in self.blocks:
            x = block(x, later)
        return self.end(x)  # type: ignore[no-any-return]

    def logits(self, x: Tensor) -> Tensor:
        """Over all items."""
        return x @ self.items.weight[:-1].T + self.bias


def sasrec(
    training: Ratings, width: int = 64, blocks: int = 2, length: int = 50, dropout: float = 0.4,
    most_epochs: int = 60, look_every: int = 20, seed: int = 0,
) -> Predictor:  # fmt: skip
    """The peer, trained anew on everything for as many epochs as were best on each person's last choice."""

    def train(ratings: Ratings, epochs: int, look: Callable[[int, SasRec], None]) -> SasRec:
        torch.manual_seed(seed)
        model = SasRec(ratings.item_count, width, blocks, length, dropout)
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
        histories, targets = _windows(ratings, length)
        for epoch in range(1, epochs + 1):
            model.train()
            for batch in torch.randperm(len(histories)).split(128):  # type: ignore[no-untyped-call]
                asked = targets[batch] != _NOBODY
                loss = nn.functional.cross_entropy(model.logits(model(histories[batch])[asked]), targets[batch][asked])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            if epoch % look_every == 0:
                look(epoch, model)
        return model

    fitted, held_out = split(training, how="last:1")
    everything, found = Fallback.of(fitted).knowing_everything(), {}

    def look(epoch: int, model: SasRec) -> None:
        judged = (fitted, held_out, _predictor(model, fitted, length), everything)
        found[epoch] = float(ranking.rank(*judged, (10,), 1.0)["ndcg@10"])

    train(fitted, most_epochs, look)
    best = max(found, key=lambda epoch: found[epoch])
    return _predictor(train(training, best, lambda _, __: None), training, length)


def _in_order(ratings: Ratings) -> list[NDArray[np.int64]]:
    """Each person's items, the latest last."""
    ages = ratings.ages()
    assert ages is not None
    order = np.lexsort((-ages, ratings.client_of_rating))
    return np.split(ratings.items[order].astype(np.int64), ratings.indptr[1:-1])


def _windows(ratings: Ratings, length: int) -> tuple[Tensor, Tensor]:
    """Parts of histories, overlapping by half, and what comes next at each place; each choice is asked for once."""
    rows = []
    for own in (one for one in _in_order(ratings) if len(one) > 1):
        asked_until = 0
        for end in [*range(len(own) - 1, length, -(length // 2)), min(length, len(own) - 1)][::-1]:
            start = max(0, end - length)
            history, target = np.full(length, ratings.item_count), np.full(length, _NOBODY)
            history[: end - start] = own[start:end]
            fresh = max(asked_until, start)
            target[fresh - start : end - start] = own[fresh + 1 : end + 1]
            rows.append((history, target))
            asked_until = end
    histories, targets = (torch.tensor(np.array(table)) for table in zip(*rows, strict=True))
    return histories, targets


@torch.no_grad()
def _predictor(model: SasRec, ratings: Ratings, length: int) -> Predictor:
    """What each person looks for after its last choice, beside the items' rows."""
    model.eval()
    own = [items[-length:] for items in _in_order(ratings)]
    histories = np.full((len(own), length), ratings.item_count)
    for row, items in zip(histories, own, strict=True):
        row[: len(items)] = items
    last = torch.tensor([max(len(items) - 1, 0) for items in own])
    parts = [model(part) for part in torch.tensor(histories).split(256)]  # type: ignore[no-untyped-call]
    wanted = torch.cat(parts)[torch.arange(len(own)), last].numpy().astype(np.float64)
    X: NDArray[Any] = np.column_stack([model.items.weight[:-1].numpy(), model.bias.numpy()]).astype(np.float64)
    W = np.column_stack([wanted, np.ones(len(own))])
    return Predictor(W, X, W)
