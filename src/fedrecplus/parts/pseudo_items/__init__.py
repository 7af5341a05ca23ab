"""Which unrated items a client uploads too."""

from fedrecplus.parts.pseudo_items._sets import SetSettings, pseudo_count, size_class

__all__ = ["SetSettings", "pseudo_count", "size_class"]
