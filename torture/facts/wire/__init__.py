"""What went between a client and its NAS, as the NAS's network card passed it on.

A client whose own kernel speaks to the NAS tells nobody what its disk completed. The wire does: each
command as it goes to the NAS, and each answer as it leaves it, which is the promise itself.
"""
