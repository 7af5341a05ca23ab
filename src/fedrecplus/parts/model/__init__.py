"""What is learnt: tables of item factors that everybody shares, and what a device makes of them for its owner.

A model predicts r̂ = X_i·w_u: X_i are columns that everybody knows of an item, w_u are weights that stay on the device.
"""
