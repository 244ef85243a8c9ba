"""Sources that a user brings into the build of an image: trees of OpenZFS and Linux, patches."""
