"""The stages of a secure sum, one file each: what a client answers, what the server takes, and how it closes the stage.

In the order of Bonawitz et al. 2017, Figure 4: AdvertiseKeys, ShareKeys, MaskedInputCollection, ConsistencyCheck,
Unmasking.
"""

STAGES = ("advertise", "share", "mask", "consent", "reveal")
