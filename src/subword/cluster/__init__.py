"""Counting by several processes, of this machine or of a cluster.

`shards.py` divides files, so that counting the shards one behind the other is counting the files; a shard becomes a
sorted table, and the tables are put side by side in the order of the shards. Who counts the shards does not matter:
`processes.py` starts processes for it (what runs in them is `worker.py`), `on_ray.py` gives them to a cluster of Ray's.
"""
