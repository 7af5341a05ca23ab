"""What ``POST /recommend`` takes and gives, as OpenAPI shows it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from fedrecplus.training import Recommendation
from fedrecplus.web.service.limits import Limits

PROMISE = (
    "For clients that can't compute: a page or a device does the same by itself with the table of `/model`, and then "
    "no rating leaves it. Here your ratings come to this server. They are used for this one answer: nothing of "
    "them is stored or logged. Whoever runs the server could change that, and you could not tell."
)
_LIMITS = Limits()
Rating = Annotated[float, Field(allow_inf_nan=False)]


class ListRequest(BaseModel):
    """Ratings, and what list is wanted. Nothing of it is stored or logged."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"ratings": {"50": 5, "172": 4}, "n": 10, "why": True}]}
    )

    ratings: dict[str, Rating] = Field(
        max_length=_LIMITS.ratings,
        description="Item id → rating, on the scale that `/items` names, the latest last. May be empty.",
    )
    n: int = Field(10, ge=1, le=_LIMITS.longest_list, description="How many items.")
    by: Literal["list", "rating"] = Field(
        "list", description="Rank by the model's weights for lists, where it has any, or by predicted ratings."
    )
    include_seen: bool = Field(False, description="List items that are rated already, too.")
    explore: float = Field(0.0, ge=0, le=1, description="From 0, the best items, to 1, items unlike each other.")
    why: bool = Field(False, description="Name the rated items that speak most for each; counts as several requests.")


class ListReply(BaseModel):
    """The list, and the model that made it."""

    model: str = Field(description="Digest of the model: the first 32 digits of SHA-256 of its file.")
    number: int | None = Field(description="Its number in the registry, if it is from one.")
    items: list[Recommendation] = Field(
        description="Best first: an item's id and title, its predicted rating on the data's scale, the score that "
        "ranks it, and the person's own items that speak most for it, with how much each adds to the score."
    )


class RequestProblem(BaseModel):
    """Why a request was refused."""

    problem: str
    field: str = Field("", description="The field of the body that is wrong; empty where it is none.")
    remedy: str = ""
