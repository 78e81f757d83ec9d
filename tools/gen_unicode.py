#!/usr/bin/env python3
"""Writes src/text/unicode_table.inc: the character classes the pre-tokenizers need.

Run with Python 3.11, whose unicodedata is Unicode 14.0 (the version of PCRE2 10.42, the oracle of the tests).
"""
import pathlib
import sys
import unicodedata

VERSION = "14.0.0"
LETTER, NUMBER, MARK, SPACE = 1, 2, 4, 8  # CharClass in src/text/unicode.h
PER_LINE = 12


def char_class(code):
    char = chr(code)
    if 0x09 <= code <= 0x0D or code == 0x85:  # White_Space of category Cc; all others are the categories Z
        return SPACE
    return {"L": LETTER, "N": NUMBER, "M": MARK, "Z": SPACE}.get(unicodedata.category(char)[0], 0)


def main():
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"needs Unicode {VERSION}, this Python has {unicodedata.unidata_version}")
    starts, last = [], None
    for code in range(0x110000):
        now = char_class(code)
        if now != last:
            starts.append(f"0x{code * 16 + now:06x}")
            last = now
    lines = [", ".join(starts[i : i + PER_LINE]) + "," for i in range(0, len(starts), PER_LINE)]
    path = pathlib.Path(__file__).resolve().parent.parent / "src/text/unicode_table.inc"
    path.write_text(f"// Written by tools/gen_unicode.py from Unicode {VERSION}. Do not edit.\n" + "\n".join(lines) + "\n")
    print(f"{path}: {len(starts)} ranges")


if __name__ == "__main__":
    main()
