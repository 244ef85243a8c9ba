"""Guest images, built from the recipes in `vmimages/` and kept in a cache."""

from torture.machines.images.build import IMAGES, GuestImage, ensure, ensure_all, find

__all__ = ["IMAGES", "GuestImage", "ensure", "ensure_all", "find"]
