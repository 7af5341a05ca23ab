"""The model that is served, and how another takes its place while requests run."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.training import Recommender, Registry, RunFolder, digest_of, finished_model, title_of
from fedrecplus.web.browser import media_type
from fedrecplus.web.page.build import MODELS, provenance, site_files

log = logging.getLogger("fedrecplus.service")


@dataclass(frozen=True)
class CachedAnswer:
    """An answer that is the same for everybody, as it is sent."""

    content: bytes
    kind: str
    """its media type"""
    tag: str
    """for ``ETag``"""
    packed: bytes
    """by gzip"""

    @classmethod
    def of(cls, content: bytes, kind: str) -> CachedAnswer:
        """Compressed once."""
        packed = gzip.compress(content, 9, mtime=0)
        return cls(content, kind, f'W/"{hashlib.sha256(content).hexdigest()[:32]}"', packed)


@dataclass(frozen=True)
class ServedModel:
    """A model with all that is computed once of it. A request keeps the one that it began with."""

    recommender: Recommender
    digest: str
    """SHA-256 of its file"""
    number: int | None
    """in the registry; None for a run folder"""
    figures: Mapping[str, Any]
    made: Mapping[str, Any]

    @cached_property
    def site(self) -> dict[str, CachedAnswer]:
        """The person's page with this model's quantised tables, by name; empty where the page can't compute it."""
        model = self.recommender.model.without_transitions()
        if model.config.model.rule not in MODELS:
            return {}
        contents = site_files(model, provenance({"figures": self.figures, "made": self.made}))
        return {name: CachedAnswer.of(content, media_type(name)) for name, content in contents.items()}

    @cached_property
    def table(self) -> CachedAnswer | None:
        """What is to know of the quantised table, and where it is; None where the page can't compute the model."""
        if not self.site:
            return None
        facts = json.loads(self.site["model.json"].content)
        origin = {name: getattr(self, name) for name in ("number", "digest", "figures", "made")}
        content = {"provenance": origin, "table": {"at": "/model.bin", "sha256": facts["digest"]}, **facts}
        return CachedAnswer.of(json.dumps(content, separators=(",", ":")).encode(), "application/json")

    @cached_property
    def items(self) -> CachedAnswer:
        """The catalogue as JSON."""
        model = self.recommender.model
        content = {"scale": str(model.scale), "items": [self._row(place) for place in range(len(model.item_ids))]}
        return CachedAnswer.of(json.dumps(content, separators=(",", ":")).encode(), "application/json")

    def search(self, words: str, most: int) -> list[dict[str, Any]]:
        """Items with all of these words in their title, those with most ratings first."""
        wanted, model = words.casefold().split(), self.recommender.model
        places = [place for place, title in enumerate(self._folded_titles) if all(word in title for word in wanted)]
        popularity = model.public.popularity
        best = sorted(places, key=lambda place: (-popularity[place], place))[:most]
        return [self._row(place) for place in best]

    def _row(self, place: int) -> dict[str, Any]:
        model = self.recommender.model
        ratings = int(model.public.popularity[place])
        return {"item": model.item_ids[place].item(), "title": title_of(model, place), "ratings": ratings}

    @cached_property
    def _folded_titles(self) -> list[str]:
        return [title.casefold() for title in self.recommender.model.titles]

    @cached_property
    def known_ids(self) -> frozenset[str]:
        """Item ids as they are written in a request."""
        return frozenset(map(str, self.recommender.model.item_ids.tolist()))

    def prepare(self) -> ServedModel:
        """Compute what requests would have to wait for."""
        _ = self.items, self.known_ids, self.table, self._folded_titles
        self.recommender.fold_in({})
        return self


@dataclass
class ModelSource:
    """A run folder, or a registry whose current model is followed."""

    place: Path
    allow: Collection[str] = ()
    current: ServedModel = field(init=False)
    _given_up: int | str | None = field(init=False, default=None)
    """the number of a model that can't be read, or what is wrong with the registry"""

    def __post_init__(self) -> None:
        self.current = self._load()

    @property
    def registry(self) -> Registry | None:
        """The registry, unless it is a run folder."""
        return None if RunFolder(self.place).finished else Registry(self.place)

    def refresh(self) -> bool | None:
        """Take the model that is current now, if it is another one: True, or False where it can't be read.

        Then the old one stays, the log says why, and the same number isn't tried again.
        """
        if self.registry is None:
            return None
        wanted: int | str | None = None
        try:
            wanted = self.registry.current_number()
            if wanted in (self.current.number, self._given_up):
                return None
            self.current, self._given_up = self._load(), None
        except UserError as error:
            wanted = error.problem if wanted is None else wanted
            if wanted == self._given_up:
                return None
            self._given_up = wanted
            log.error("model %s is still served: %s", self.current.number, error.problem)
            return False
        log.info("model %s is served from now on, digest %s", self.current.number, self.current.digest[:12])
        return True

    def _load(self) -> ServedModel:
        if self.registry is None:
            model, facts = finished_model(self.place, self.allow)
            digest, number = digest_of(model), None
        elif self.registry.begun:
            published = self.registry.current()
            model, digest, number = published.model(self.allow), published.digest, published.number
            facts = {"figures": published.figures, "made": published.made}
        else:
            raise UserError(
                f"{self.place} is neither a finished run nor a registry of models",
                "give the folder that `fedrecplus train` or `fedrecplus publish` wrote",
            )
        recommender = Recommender.for_newcomers(model)
        return ServedModel(recommender, digest, number, facts["figures"], facts["made"]).prepare()
