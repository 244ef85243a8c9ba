#!/bin/sh
# Runs before `../planted/stage.sh`, with the patch in /planted.patch: leaves in /planted the files that it changes.
set -eu
sed -n 's|^+++ b/||p' /planted.patch > /planted
