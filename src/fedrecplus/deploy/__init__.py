"""Real deployment: the two round functions on real devices, machines and failures, carried by Flower.

``wire`` is all that device and server know of each other; ``process`` starts and supervises; ``flower`` alone imports
Flower. Imports point one way: wire < device, server < process < flower; device and server never import each other.
"""
