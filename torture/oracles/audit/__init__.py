"""Whether a recording keeps what makes ZFS safe, at every acknowledgement and uberblock in it. Pure."""
