"""What travels between server and nodes: packets, requests, replies, the catalogue, and the checks of them all.

Within ``deploy`` each name is imported from its file; others find here what they need.
"""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.deploy.wire.catalogue import ItemCatalogue as ItemCatalogue
    from fedrecplus.deploy.wire.identities import read_identities as read_identities
    from fedrecplus.deploy.wire.packet import PROTOCOL as PROTOCOL
    from fedrecplus.deploy.wire.stages import is_secure as is_secure

lazily(__name__)
