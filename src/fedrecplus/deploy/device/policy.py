"""What a node's owner demands of a server's requests; those that ask for less protection are refused.

The server chooses the settings. Without a policy it could ask for no pseudo items, or hand out a catalogue made to tell
rated rows apart, and every node would comply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire.packet import Refusal
from fedrecplus.deploy.wire.stages import is_secure
from fedrecplus.errors import UserError

if TYPE_CHECKING:  # who only reads what may be demanded waits for none of these
    from fedrecplus.config import Config
    from fedrecplus.deploy.wire.catalogue import ItemCatalogue
    from fedrecplus.deploy.wire.ring import SumTerms

CHANNELS = ("clear", "secure")
"""channels that a deployment carries"""
_FACT, _PAUSED = "policy", "paused"


def _demand(text: str, option: str = "", ge: float | None = None) -> msgspec.Meta:
    """What an owner reads of a demand, and the option of `device policy` that changes it, if its name isn't its own."""
    return msgspec.Meta(description=text, extra={"option": option}, ge=ge)


class Policy(msgspec.Struct, frozen=True):
    """The owner's demands. Those with words for the owner are options of `device policy`."""

    bare: Annotated[bool, _demand("Whether the server may see what you rated.", "--allow-bare/--refuse-bare")] = False
    """no pseudo items, too few, or ones drawn anew in each round"""
    least_ratio: Annotated[float, _demand("Fewest pseudo items per rated item.", ge=0.0)] = 1.0
    """in channels that show rows"""
    channels: Annotated[tuple[str, ...], _demand("How uploads may travel: clear, secure; repeatable.", "--channel")] = (
        "secure",
    )
    """a weaker channel takes the owner's word"""
    pin: Annotated[bool, _demand("Take no catalogue but the newest one seen, or the first.", "--pin/--no-pin")] = False
    catalogue: str = ""
    """digest of the pinned catalogue; empty until there is one"""
    least_cohort: Annotated[int, _demand("Fewest participants of a secure sum.", ge=2)] = 3
    """a sum of one is an upload, and of two each knows the other's"""
    demonstration: Annotated[
        bool,
        _demand("Whether sums may be of so few that they tell on you.", "--allow-demonstration/--refuse-demonstration"),
    ] = False
    largest_epsilon: Annotated[float, _demand("Most ε of one noised task.", ge=0.0)] = 10.0
    """for a person here, statistics included"""
    largest_delta: float = 1e-3
    """most of δ that a task may claim"""
    lifetime_epsilon: Annotated[float, _demand("Most ε of all tasks together.", ge=0.0)] = 30.0
    """whatever a server calls them"""
    most_sharing: Annotated[int, _demand("Most devices that share a sum's noise; 0: as the task says.", ge=0)] = 0
    fewest_contributors: int = 6
    """people who are expected to have rated a row, at least, for it to be in a sum that is no demonstration"""
    any_task: Annotated[
        bool, _demand("Whether to do whatever a server asks: for tries.", "--allow-any-task/--refuse-unagreed")
    ] = False
    """where the owner of this device is the server's"""

    def check_noise(self, terms: SumTerms, *, pinned: bool) -> None:
        """Refuse shares of noise that count on more devices than the owner does: a server could invent them.

        With pinned identities everybody in a sum is known, and counted by each.
        """
        if terms.noise is None or pinned or (self.any_task and not self.most_sharing):
            return
        devices = terms.noise.settings.devices
        if not devices:
            raise Refusal("policy", "noise that as many devices share as the server names: a task says how many")
        if self.most_sharing and devices > self.most_sharing:
            raise Refusal(
                "policy", f"noise that {devices} devices share, and {self.most_sharing} at most are relied on"
            )

    def check(self, config: Config, catalogue: ItemCatalogue, *, pinned: bool) -> None:
        """Refuse a request that asks for less, whatever the ratings here are: who refuses must not tell of them.

        Where identities are pinned, signed sums are all that this node takes part in, whatever the channels.
        """
        rule = config.channel.rule
        if pinned and not is_secure(config):
            raise Refusal("policy", f"channel.rule={rule}, and identities are pinned here: signed sums alone")
        if rule not in self.channels:
            raise Refusal(
                "policy",
                f"channel.rule={rule} is not among {', '.join(self.channels)}; "
                f"`fedrecplus device policy --channel {rule}` would let it",
            )
        if self.pin and self.catalogue not in ("", catalogue.digest):
            raise Refusal("policy", f"catalogue {catalogue.digest} instead of the pinned {self.catalogue}")
        if config.privacy.rule != "none" and catalogue.tells_participants:
            raise Refusal("policy", f"privacy.rule={config.privacy.rule} with exact figures, which no budget covers")
        if config.channel.demonstration and not self.demonstration:
            allow = "`fedrecplus device policy --allow-demonstration` would let it"
            raise Refusal("policy", f"channel.demonstration: sums of so few people can be taken apart; {allow}")
        ring = config.channel.settings
        in_earnest = is_secure(config) and not config.channel.demonstration and not self.any_task
        if in_earnest and ring.fewest_contributors < self.fewest_contributors:
            few = f"{ring.fewest_contributors} people alone"
            raise Refusal("policy", f"rows of {few} in the sums, and {self.fewest_contributors} are wanted")
        if self.bare:
            return
        allow = "`fedrecplus device policy --allow-bare` would let it"
        if is_secure(config) and catalogue.tells_participants:  # however they were added up
            raise Refusal("policy", "exact figures of the participants beside secure sums tell what the sums hide")
        if is_secure(config) and ring.weights == "sent" and ring.counts_raters(all_items=config.model.ALL_ITEMS):
            raise Refusal("policy", f"channel.weights=sent: each sum would count exactly who rated what; {allow}")
        if not config.shows_rows:
            return
        ratio = config.pseudo_items.ratio
        if ratio < self.least_ratio:
            raise Refusal("policy", f"{ratio:g} pseudo items per rating, at least {self.least_ratio:g} wanted; {allow}")
        if config.redraws:
            raise Refusal("policy", f"pseudo items drawn anew in each round tell the rated ones; {allow}")


def load_policy(store: Store) -> Policy:
    """The policy that the owner set, or the default one."""
    text = store.fact(_FACT)
    return msgspec.json.decode(text, type=Policy) if text else Policy()


def save_policy(store: Store, policy: Policy) -> None:
    """Set it from now on; within ``Store.changing``."""
    unknown = set(policy.channels) - {*CHANNELS, *store.allowed_rules}
    if unknown or not policy.channels:
        raise UserError(
            f"no channel is called {', '.join(sorted(unknown)) or 'nothing'}", f"there are {', '.join(CHANNELS)}"
        )
    store.put("facts", [(_FACT, msgspec.json.encode(policy).decode())])


def is_paused(store: Store) -> bool:
    """Whether the owner has stopped taking part: nothing leaves but the word that it does."""
    return bool(store.fact(_PAUSED) == "yes")


def pause(store: Store, paused: bool) -> None:
    """Stop taking part from the next message on, or go on. Ratings and recommendations are not touched."""
    with store.changing():
        store.put("facts", [(_PAUSED, "yes" if paused else "no")])


def pin_first(store: Store, catalogue: str) -> None:
    """Where the owner wants a pin and there is none yet, this catalogue is it: trust on first use."""
    policy = load_policy(store)
    if policy.pin and not policy.catalogue:
        save_policy(store, msgspec.structs.replace(policy, catalogue=catalogue))


def with_pin(store: Store, policy: Policy, pin: bool) -> Policy:
    """The policy with a pin on the newest model's catalogue, or on the first that comes; or without a pin."""
    models = store.models() if pin else []
    return msgspec.structs.replace(policy, pin=pin, catalogue=models[0]["catalogue"] if models else "")
