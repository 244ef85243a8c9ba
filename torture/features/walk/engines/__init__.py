"""Programs that recover a crash state: the kernel's ZFS in a NAS, or OpenZFS's library on the host."""
