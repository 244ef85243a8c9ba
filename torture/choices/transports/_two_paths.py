"""A second address of the NAS, and the loss of the first one: two paths to one volume. Shell."""

SECOND_HOST = "10.77.0.12"
"""Beside the NAS's own address (`torture/machines/lab/network`)."""
_OF_CARD = "card=$(ip -o -4 addr show scope global | awk '{ print $2; exit }')"
ADD_PATH = f"""{_OF_CARD}
echo 1 > /proc/sys/net/ipv4/conf/$card/promote_secondaries
ip addr replace {SECOND_HOST}/24 dev $card
"""
"""Shell: else the second address would go with the first one (Documentation/networking/ip-sysctl.rst)."""
_PATH_FILE = "/run/first-path"
_LOSE_PATH = f"""set -eu
{_OF_CARD}
ip -o -4 addr show dev $card scope global | awk '{{ print $4; exit }}' > {_PATH_FILE}
ip addr del "$(cat {_PATH_FILE})" dev $card
"""
_REGAIN_PATH = f"""set -eu
{_OF_CARD}
ip addr add "$(cat {_PATH_FILE})" dev $card
"""

PATH_SCRIPTS = (_LOSE_PATH, _REGAIN_PATH)
"""As `Traits.path_scripts`."""
