"""Domains, the guest channel, the network, images and what the host can do."""
