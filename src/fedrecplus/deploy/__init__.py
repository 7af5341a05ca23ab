"""Real deployment: the two round functions on real processes, machines and failures, carried by Flower.

Flower is met in six files alone (``client_app``, ``server_app``, ``messages`` and the three ``…_process``) and through
its commands (``superlink``, ``node``). The others know arrays, SQLite and processes.
"""
