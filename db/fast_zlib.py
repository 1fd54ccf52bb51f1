"""zlib, by ISA-L where the extra ``isal`` is installed: the same results, several times as fast."""

try:
    from isal.isal_zlib import crc32, decompressobj, error
except ImportError:
    from zlib import crc32, decompressobj, error

__all__ = ["crc32", "decompressobj", "error"]
