"""The versions of OpenZFS that a NAS can run: one recipe each, in `vmimages/zfs/`. Pure."""
