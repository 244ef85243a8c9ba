#!/bin/sh
# Runs before stage.sh where kmod is older than 31, as bookworm's is: its depmod has no --moduledir, and looks
# into /lib/modules of its base. This one does as it is told.
set -eu
mkdir -p /stage/usr/lib /opt/depmod
ln -s usr/lib /stage/lib
mv /usr/sbin/depmod /opt/depmod/depmod
cat > /usr/sbin/depmod <<'END'
#!/bin/sh
if [ "${3-}" = --moduledir ]; then
    exec /opt/depmod/depmod "$1" "$2" "$5"
fi
exec /opt/depmod/depmod "$@"
END
chmod +x /usr/sbin/depmod
