"""The MovieLens sets by name: where they come from, how they are laid out, where they are kept."""
