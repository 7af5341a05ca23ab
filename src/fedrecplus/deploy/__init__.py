"""Real deployment: the two round functions on real devices, machines and failures, over HTTP.

``wire`` is all that device and server know of each other; ``node`` is a device's process, which asks its server for
work; ``http`` answers it, over a database that ``server`` keeps; ``operate`` starts and looks after both. Device and
server never import each other, nor does ``node`` import the server.
"""
