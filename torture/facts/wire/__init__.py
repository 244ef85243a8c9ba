"""The traffic between a client and its NAS, as captured at the NAS's network card.

Where the client's own kernel is the initiator, QEMU cannot trace which requests its disk completed. The
wire shows each command on its way to the NAS, and each answer as it leaves the NAS. That answer is the
promise.
"""
