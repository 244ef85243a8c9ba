"""The kernels of the guests: the versions of Linux that both machines may boot."""
