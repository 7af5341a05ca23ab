"""Real deployment: the two round functions on real devices, machines and failures, carried by Flower.

``wire`` is all that device and server know of each other; ``light`` is a device's node, which speaks Flower's protocol
by itself; ``process`` starts and supervises; ``flower``, on the server, alone imports Flower. Imports point one way:
wire < device, server < light < process < flower; device and server never import each other, nor light the server.
"""
