"""A reader of XDR, the encoding of RPC and NFS (RFC 4506)."""

from __future__ import annotations

from struct import Struct, error

_WORD, _LONG = Struct(">I"), Struct(">Q")


class ShortError(ValueError):
    """The bytes end before the value does."""


class Xdr:
    """Reads values one after another; each raises `ShortError` at the end of the bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def word(self) -> int:
        """An unsigned integer (section 4.2), an enumeration or a boolean."""
        return self._number(_WORD)

    def long(self) -> int:
        """An unsigned hyper integer (section 4.5)."""
        return self._number(_LONG)

    def _number(self, layout: Struct) -> int:
        try:
            (value,) = layout.unpack_from(self._content, self._at)
        except error as short:
            raise ShortError(str(short)) from short
        self._at += layout.size
        return int(value)

    def fixed(self, length: int) -> bytes:
        """Opaque data of a fixed length (section 4.9)."""
        piece = self._content[self._at : self._at + length]
        if len(piece) < length:
            raise ShortError(f"{length} bytes expected, {len(piece)} left")
        self._at += -(-length // _WORD.size) * _WORD.size
        return piece

    def opaque(self) -> bytes:
        """Opaque data or a string behind its length (sections 4.10 and 4.11)."""
        return self.fixed(self.word())

    def rest(self) -> bytes:
        """The remaining bytes."""
        return self._content[self._at :]
