"""Real deployment: the two round functions on real devices, machines and failures, carried by Flower.

``wire`` is all that device and server know of each other. ``device`` answers a round's request, ``server`` runs the
rounds, ``process`` starts and supervises processes, and ``flower`` alone imports Flower. Imports point that way:
wire < device, server < process < flower; ``device`` and ``server`` never import each other.
"""
