"""One page of any runs and studies: self-contained, no network, light and dark, on paper too."""
