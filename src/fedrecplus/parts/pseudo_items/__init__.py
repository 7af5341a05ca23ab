"""Which unrated items a client uploads too."""

from fedrecplus.parts.pseudo_items._sets import SetSettings, in_wholes, pseudo_count, size_class

__all__ = ["SetSettings", "in_wholes", "pseudo_count", "size_class"]
