"""The disks of the pool by their labels: their order, and which disks join or leave."""
