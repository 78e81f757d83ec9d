#!/usr/bin/env python3
"""Writes tests/fixtures/amdsim/opcode_cases.txt: what single instructions of AMD GPUs compute.

The formulas here are written from the published ISA documents, apart from those of src/device/amdsim: a test runs the
cases in the interpreter. llvm-mc-19 turns the text of an instruction into words. Usage: gen_amdsim_cases.py > FILE

A line: targets; text; bytes; EXEC; what is there before; what must be there after. Registers hold a value for each of the
first lanes, the last of them for all others; "lAT" and "gAT" are bytes of shared and global memory, "pAT" words of scratch
memory, "@vN=OFFSETS" and "@sN=OFFSET" addresses of global memory in two registers. "g*" and "l*": byte n of it is 37 n + 11.
"""
import math
import random
import re
import struct
import subprocess
import sys

M32, M64 = 0xffffffff, (1 << 64) - 1
G9, G11, G12 = ["gfx942"], ["gfx1100", "gfx1151"], ["gfx1201"]
NEW, ALL = G11 + G12, G9 + G11 + G12
rng = random.Random(7)
cases = []


def f2b(x):
    try:
        return struct.unpack("<I", struct.pack("<f", x))[0]
    except OverflowError:
        return 0xff800000 if x < 0 else 0x7f800000


def b2f(b):
    return struct.unpack("<f", struct.pack("<I", b & M32))[0]


def d2b(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def b2d(b):
    return struct.unpack("<d", struct.pack("<Q", b & M64))[0]


def h2b(x):
    try:
        return struct.unpack("<H", struct.pack("<e", x))[0]
    except OverflowError:
        return 0xfc00 if x < 0 else 0x7c00


def b2h(b):
    return struct.unpack("<e", struct.pack("<H", b & 0xffff))[0]


def i32(x):
    x &= M32
    return x - (1 << 32) if x >> 31 else x


def i64(x):
    x &= M64
    return x - (1 << 64) if x >> 63 else x


def i16(x):
    x &= 0xffff
    return x - (1 << 16) if x >> 15 else x


def exact_fma(a, b, c, pack):
    from fractions import Fraction
    if not all(map(math.isfinite, (a, b, c))):
        return pack(a * b + c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return pack(a * b + c)  # the sign
    return pack(float(exact)) if pack is d2b else pack_rounded(exact, pack)


def pack_rounded(exact, pack):
    """Rounds a fraction once: float() of it, moved to the neighbour that is nearer."""
    bits = pack(float(exact))
    back = {f2b: b2f, h2b: b2h}[pack]
    best = None
    for candidate in (bits - 1, bits, bits + 1):
        if candidate < 0:
            continue
        value = back(candidate)
        if not math.isfinite(value):
            continue
        from fractions import Fraction
        key = (abs(Fraction(value) - exact), candidate & 1)
        if best is None or key < best[0]:
            best = (key, candidate)
    return best[1] if best else bits


def add(targets, text, before, after, exec_mask=7):
    for target in targets:
        cases.append([target, text, exec_mask, before, after])


def lanes(values):
    return ",".join("%x" % v for v in values)


def regs(prefix, number, values, words):
    """Tokens of a register or of a pair."""
    if words == 1:
        return ["%s%d=%s" % (prefix, number, lanes([v & M32 for v in values]))]
    return ["%s%d=%s" % (prefix, number + k, lanes([v >> 32 * k & M32 for v in values])) for k in range(words)]


KEEP = 0x5eedf00d
WORDS = {"u": 1, "i": 1, "f": 1, "h": 1, "w": 1, "U": 2, "I": 2, "d": 2}
POOL = {
    "u": [0, 1, 5, 31, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678, 0xdeadbeef, 0x00ff00ff],
    "w": [0, 1, 3, 15, 0x7fff, 0x8000, 0xffff, 0x1234, 0xbeef],
    "f": [f2b(x) for x in (0.0, -0.0, 1.0, -1.5, 3.25, 1e-30, -7e20, 0.1, 65537.0, 2.5, -0.75)],
    "h": [h2b(x) for x in (0.0, -0.0, 1.0, -1.5, 3.25, 0.1, 100.0, -0.333, 6e-6)],
    "U": [0, 1, 0xffffffffffffffff, 0x8000000000000000, 0x123456789abcdef0, 0x00000000ffffffff],
    "d": [d2b(x) for x in (0.0, 1.0, -1.5, 3.25, 1e-30, -7e20, 0.1, 65537.125)],
}
POOL["i"], POOL["I"] = POOL["u"], POOL["U"]
LOAD = {"u": lambda b: b & M32, "i": i32, "f": b2f, "h": b2h, "w": lambda b: b & 0xffff, "U": lambda b: b & M64,
        "I": i64, "d": b2d}
STORE = {"u": lambda x: int(x) & M32, "i": lambda x: int(x) & M32, "f": f2b, "h": h2b, "w": lambda x: int(x) & 0xffff,
         "U": lambda x: int(x) & M64, "I": lambda x: int(x) & M64, "d": d2b, "raw": lambda x: x}


def vector(targets, name, kinds, formula, result, pools=None, suffix="", result_words=None, rounds=4, keeps=False, tail=""):
    """dst v10; sources v20, v24, v28. `formula` gets numbers; `keeps`: the destination is the last source."""
    words = result_words or WORDS.get(result, 1)
    for _ in range(rounds):
        values = [[rng.choice((pools or {}).get(n, POOL[k])) for _ in range(3)] for n, k in enumerate(kinds)]
        before, operands = [], []
        for n, k in enumerate(kinds):
            number = 10 if keeps and n == len(kinds) - 1 else 20 + 4 * n
            before += regs("v", number, values[n] + [0], WORDS[k])
            if number != 10:
                operands.append("v%d" % number if WORDS[k] == 1 else "v[%d:%d]" % (number, number + 1))
        out = []
        for lane in range(3):
            x = formula(*[LOAD[k](values[n][lane]) for n, k in enumerate(kinds)])
            out.append(STORE[result](x))
        if not keeps:
            before += regs("v", 10, [KEEP] * 4, words)
        rest = KEEP & M32 if not keeps else 0
        for target in targets:
            shown = list(out)
            if result in ("w", "h") and target not in G9 and not keeps:
                shown = [KEEP & 0xffff0000 | v for v in out]  # the other half stays
            after = regs("v", 10, shown + [rest if words == 1 else 0], words) if words == 1 else \
                regs("v", 10, shown, words)
            dst = "v10" if words == 1 else "v[10:11]"
            add([target], "%s%s %s, %s%s" % (name, suffix, dst, ", ".join(operands), tail), before, after)


def mad24(a, b, c=0):
    return (a & 0xffffff) * (b & 0xffffff) + c


def s24(x):
    x &= 0xffffff
    return x - (1 << 24) if x >> 23 else x


def perm(a, b, sel):
    data = a << 32 | b
    out = 0
    for k in range(4):
        s = sel >> 8 * k & 255
        byte = data >> 8 * s & 255 if s < 8 else (255 if data >> 16 * (s - 8) + 15 & 1 else 0) if s < 12 else \
            (0 if s == 12 else 255)
        out |= byte << 8 * k
    return out


def clz(x):
    return 0xffffffff if x == 0 else 32 - x.bit_length()


def cls(x):
    s = x >> 31
    for k in range(31):
        if (x >> (30 - k) & 1) != s:
            return k + 1
    return 0xffffffff


def bfe_i(x, offset, width):
    offset, width = offset & 31, width & 31
    if width == 0:
        return 0
    x = (i32(x) >> offset) & ((1 << width) - 1)
    return x - (1 << width) if x >> (width - 1) else x


def fmax(a, b):
    if a != a:
        return b
    if b != b:
        return a
    if a == b == 0:
        return 0.0 if math.copysign(1, a) > 0 or math.copysign(1, b) > 0 else -0.0
    return max(a, b)


def fmin(a, b):
    return -fmax(-a, -b)


def sat_u(x):
    return 0 if x != x or x <= 0 else min(int(x), M32)


def sat_i(x):
    return 0 if x != x else max(-(1 << 31), min(int(x), (1 << 31) - 1)) if math.isfinite(x) else (M32 >> 1 if x > 0 else -(1 << 31))


def med(*v):
    return sorted(v)[1]


SH = {0: [0, 1, 5, 31, 33]}
SH2 = {2: [0, 1, 5, 31]}
vector(ALL, "v_mov_b32_e32", "u", lambda a: a, "u")
vector(G9, "v_mov_b64_e32", "U", lambda a: a, "U")
vector(ALL, "v_not_b32_e32", "u", lambda a: ~a, "u")
vector(ALL, "v_bfrev_b32_e32", "u", lambda a: int("{:032b}".format(a)[::-1], 2), "u")
vector(G9, "v_ffbh_i32_e32", "u", cls, "u")
vector(NEW, "v_cls_i32_e32", "u", cls, "u")
vector(G9, "v_ffbh_u32_e32", "u", clz, "u")
vector(NEW, "v_clz_i32_u32_e32", "u", clz, "u")
vector(G9, "v_ffbl_b32_e32", "u", lambda a: M32 if a == 0 else (a & -a).bit_length() - 1, "u")
vector(NEW, "v_ctz_i32_b32_e32", "u", lambda a: M32 if a == 0 else (a & -a).bit_length() - 1, "u")
vector(ALL, "v_bcnt_u32_b32", "uu", lambda a, b: bin(a).count("1") + b, "u")
for g, nm in ((G9, "v_%s_u32_e32"), (NEW, "v_%s_nc_u32_e32")):
    vector(g, nm % "add", "uu", lambda a, b: a + b, "u")
    vector(g, nm % "sub", "uu", lambda a, b: a - b, "u")
    vector(g, nm % "subrev", "uu", lambda a, b: b - a, "u")
vector(G9, "v_sub_u32_e64", "uu", lambda a, b: max(a - b, 0), "u", tail=" clamp")
vector(G9, "v_add_u32_e64", "uu", lambda a, b: min(a + b, M32), "u", tail=" clamp")
vector(NEW, "v_sub_nc_u32_e64", "uu", lambda a, b: max(a - b, 0), "u", tail=" clamp")
vector(ALL, "v_add3_u32", "uuu", lambda a, b, c: a + b + c, "u")
vector(ALL, "v_add_lshl_u32", "uuu", lambda a, b, c: (a + b) << (c & 31), "u")
vector(ALL, "v_lshl_add_u32", "uuu", lambda a, b, c: (a << (b & 31)) + c, "u")
vector(G9, "v_lshl_add_u64", "UuU", lambda a, b, c: (a << (b & 7)) + c, "U", pools={1: [0, 1, 2, 3, 4]})
vector(ALL, "v_xad_u32", "uuu", lambda a, b, c: (a ^ b) + c, "u")
vector(ALL, "v_mul_lo_u32", "uu", lambda a, b: a * b, "u")
vector(ALL, "v_mul_hi_u32", "uu", lambda a, b: a * b >> 32, "u")
vector(ALL, "v_mul_hi_i32", "ii", lambda a, b: a * b >> 32, "u")
vector(ALL, "v_mul_u32_u24_e32", "uu", mad24, "u")
vector(ALL, "v_mul_hi_u32_u24_e32", "uu", lambda a, b: mad24(a, b) >> 32, "u")
vector(ALL, "v_mul_i32_i24_e32", "uu", lambda a, b: s24(a) * s24(b), "u")
vector(ALL, "v_mul_hi_i32_i24_e32", "uu", lambda a, b: s24(a) * s24(b) >> 32, "u")
vector(ALL, "v_mad_u32_u24", "uuu", mad24, "u")
vector(ALL, "v_mad_i32_i24", "uuu", lambda a, b, c: s24(a) * s24(b) + c, "u")
for k in ("i", "u"):
    vector(ALL, "v_min_%s32_e32" % k, k * 2, min, k)
    vector(ALL, "v_max_%s32_e32" % k, k * 2, max, k)
    vector(ALL, "v_min3_%s32" % k, k * 3, min, k)
    vector(ALL, "v_max3_%s32" % k, k * 3, max, k)
    vector(ALL, "v_med3_%s32" % k, k * 3, med, k)
    vector(NEW, "v_maxmin_%s32" % k, k * 3, lambda a, b, c: min(max(a, b), c), k)
    vector(NEW, "v_minmax_%s32" % k, k * 3, lambda a, b, c: max(min(a, b), c), k)
vector(ALL, "v_and_b32_e32", "uu", lambda a, b: a & b, "u")
vector(ALL, "v_or_b32_e32", "uu", lambda a, b: a | b, "u")
vector(ALL, "v_xor_b32_e32", "uu", lambda a, b: a ^ b, "u")
vector(ALL, "v_xnor_b32_e32", "uu", lambda a, b: ~(a ^ b), "u")
vector(ALL, "v_and_or_b32", "uuu", lambda a, b, c: a & b | c, "u")
vector(ALL, "v_or3_b32", "uuu", lambda a, b, c: a | b | c, "u")
vector(NEW, "v_xor3_b32", "uuu", lambda a, b, c: a ^ b ^ c, "u")
vector(ALL, "v_lshl_or_b32", "uuu", lambda a, b, c: a << (b & 31) | c, "u")
vector(ALL, "v_lshlrev_b32_e32", "uu", lambda a, b: b << (a & 31), "u", SH)
vector(ALL, "v_lshrrev_b32_e32", "uu", lambda a, b: b >> (a & 31), "u", SH)
vector(ALL, "v_ashrrev_i32_e32", "ui", lambda a, b: b >> (a & 31), "u", SH)
vector(G9 + G11, "v_lshlrev_b64", "uU", lambda a, b: b << (a & 63), "U", SH)
vector(G12, "v_lshlrev_b64_e32", "uU", lambda a, b: b << (a & 63), "U", SH)
vector(ALL, "v_lshrrev_b64", "uU", lambda a, b: b >> (a & 63), "U", SH)
vector(ALL, "v_ashrrev_i64", "uI", lambda a, b: b >> (a & 63), "U", SH)
vector(ALL, "v_alignbit_b32", "uuu", lambda a, b, c: (a << 32 | b) >> (c & 31), "u", SH2)
vector(ALL, "v_alignbyte_b32", "uuu", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3), "u", SH2)
vector(ALL, "v_bfe_u32", "uuu", lambda a, b, c: a >> (b & 31) & ((1 << (c & 31)) - 1), "u", {1: [0, 3, 16], 2: [0, 1, 8, 31]})
vector(ALL, "v_bfe_i32", "uuu", bfe_i, "u", {1: [0, 3, 16], 2: [0, 1, 8, 31]})
vector(ALL, "v_bfi_b32", "uuu", lambda a, b, c: a & b | ~a & c, "u")
vector(ALL, "v_bfm_b32", "uu", lambda a, b: ((1 << (a & 31)) - 1) << (b & 31), "u")
vector(ALL, "v_perm_b32", "uuu", perm, "u", {2: [0x07060504, 0x0c010d05, 0x03020100, 0x0b0a0908, 0x05040100]})
vector(ALL, "v_add_f32_e32", "ff", lambda a, b: a + b, "f")
vector(ALL, "v_sub_f32_e32", "ff", lambda a, b: a - b, "f")
vector(ALL, "v_subrev_f32_e32", "ff", lambda a, b: b - a, "f")
vector(ALL, "v_mul_f32_e32", "ff", lambda a, b: a * b, "f")
vector(ALL, "v_fma_f32", "fff", lambda a, b, c: exact_fma(a, b, c, f2b), "raw")
vector(ALL, "v_fmac_f32_e32", "fff", lambda a, b, c: exact_fma(a, b, c, f2b), "raw", keeps=True)
vector(ALL, "v_fmaak_f32", "ff", lambda a, b: exact_fma(a, b, 1.25, f2b), "raw", tail=", 0x3fa00000")
add(ALL, "v_add_f32_e64 v10, -v20, |v24|", ["v20=3f800000,40000000", "v24=c0400000"], ["v10=40000000,3f800000"])
add(ALL, "v_mul_f32_e64 v10, v20, v24 clamp", ["v20=3f800000,bf800000,3e800000", "v24=40400000"], ["v10=3f800000,0,3f400000"])
add(ALL, "v_mul_f32_e64 v10, v20, v24 mul:4", ["v20=3f800000", "v24=40400000"], ["v10=41400000"])
for targets, suffix in ((G9 + G11, ""), (G12, "_num")):
    vector(targets, "v_min%s_f32_e32" % suffix, "ff", fmin, "f")
    vector(targets, "v_max%s_f32_e32" % suffix, "ff", fmax, "f")
    vector(targets, "v_min3%s_f32" % suffix, "fff", lambda a, b, c: fmin(fmin(a, b), c), "f")
    vector(targets, "v_max3%s_f32" % suffix, "fff", lambda a, b, c: fmax(fmax(a, b), c), "f")
    e = "_e32" if suffix else ""
    vector(targets, "v_max%s_f64%s" % (suffix, e), "dd", fmax, "d")
    vector(targets, "v_min%s_f64%s" % (suffix, e), "dd", fmin, "d")
NOZERO = {0: [f2b(x) for x in (1.0, -2.0, 0.75, 3.0, 1e10)]}
POSITIVE = {0: [f2b(x) for x in (0.0, 1.0, 2.25, 3.0, 1e10)]}
vector(ALL, "v_rcp_f32_e32", "f", lambda a: 1 / a, "f", NOZERO)
vector(ALL, "v_rcp_iflag_f32_e32", "f", lambda a: 1 / a, "f", NOZERO)
vector(ALL, "v_sqrt_f32_e32", "f", math.sqrt, "f", POSITIVE)
vector(ALL, "v_rsq_f32_e32", "f", lambda a: 1 / math.sqrt(a), "f", {0: [f2b(x) for x in (1.0, 4.0, 2.0)]})
vector(ALL, "v_exp_f32_e32", "f", lambda a: 2.0 ** a, "f", {0: [f2b(x) for x in (0.0, 1.0, -3.0, 10.0)]})
vector(ALL, "v_log_f32_e32", "f", math.log2, "f", {0: [f2b(x) for x in (1.0, 8.0, 0.25)]})
for k, w in (("f", 32), ("d", 64)):
    p = {0: [STORE[k](x) for x in (0.0, 1.0, -1.5, 2.5, 3.5, -0.75, 1e10, 7.25)]}
    vector(ALL, "v_floor_f%d_e32" % w, k, lambda a: float(math.floor(a)), k, p)
    vector(ALL, "v_ceil_f%d_e32" % w, k, lambda a: math.copysign(float(math.ceil(a)), a), k, p)
    vector(ALL, "v_trunc_f%d_e32" % w, k, lambda a: math.copysign(float(math.trunc(a)), a), k, p)
    vector(ALL, "v_rndne_f%d_e32" % w, k, lambda a: math.copysign(float(round(a)), a), k, p)
    vector(ALL, "v_fract_f%d_e32" % w, k, lambda a: a - math.floor(a), k, p)
    vector(ALL, "v_ldexp_f%d" % w, k + "i", lambda a, b: math.ldexp(a, b), k, {0: p[0], 1: [0, 1, 0xffffffff, 7, 0xfffffff8]})
    vector(ALL, "v_frexp_mant_f%d_e32" % w, k, lambda a: math.frexp(a)[0], k, p)
    vector(ALL, "v_frexp_exp_i32_f%d_e32" % w, k, lambda a: math.frexp(a)[1], "u", p)
vector(ALL, "v_fma_f64", "ddd", lambda a, b, c: exact_fma(a, b, c, d2b), "raw", result_words=2)
vector(G9, "v_fmac_f64_e32", "ddd", lambda a, b, c: exact_fma(a, b, c, d2b), "raw", result_words=2, keeps=True)
for targets, e in ((G9 + G11, ""), (G12, "_e32")):
    vector(targets, "v_add_f64" + e, "dd", lambda a, b: a + b, "d")
    vector(targets, "v_mul_f64" + e, "dd", lambda a, b: a * b, "d")
vector(ALL, "v_rcp_f64_e32", "d", lambda a: 1 / a, "d", {0: [d2b(x) for x in (1.0, -2.0, 0.75)]})
vector(ALL, "v_cvt_f32_i32_e32", "i", float, "f")
vector(ALL, "v_cvt_f32_u32_e32", "u", float, "f")
vector(ALL, "v_cvt_i32_f32_e32", "f", sat_i, "u")
vector(ALL, "v_cvt_u32_f32_e32", "f", sat_u, "u")
vector(ALL, "v_cvt_f64_i32_e32", "i", float, "d")
vector(ALL, "v_cvt_f64_u32_e32", "u", float, "d")
vector(ALL, "v_cvt_i32_f64_e32", "d", sat_i, "u")
vector(ALL, "v_cvt_u32_f64_e32", "d", sat_u, "u")
vector(ALL, "v_cvt_f32_f64_e32", "d", lambda a: a, "f")
vector(ALL, "v_cvt_f64_f32_e32", "f", lambda a: a, "d")
for n in range(4):
    vector(ALL, "v_cvt_f32_ubyte%d_e32" % n, "u", lambda a: float(a >> 8 * n & 255), "f", rounds=1)
# Halves.
for targets, form, e in ((G9, "v_%s_u16_e32", "_e32"), (NEW, "v_%s_nc_u16", "")):
    vector(targets, form % "add", "ww", lambda a, b: a + b, "w")
    vector(targets, form % "sub", "ww", lambda a, b: a - b, "w")
    vector(targets, "v_mul_lo_u16" + e, "ww", lambda a, b: a * b, "w")
    vector(targets, "v_lshlrev_b16" + e, "ww", lambda a, b: b << (a & 15), "w")
    vector(targets, "v_lshrrev_b16" + e, "ww", lambda a, b: b >> (a & 15), "w")
    vector(targets, "v_ashrrev_i16" + e, "ww", lambda a, b: i16(b) >> (a & 15), "w")
    for m, fn in (("min", min), ("max", max)):
        vector(targets, "v_%s_u16%s" % (m, e), "ww", fn, "w")
        vector(targets, "v_%s_i16%s" % (m, e), "ww", lambda a, b: fn(i16(a), i16(b)), "w")
vector(G9, "v_subrev_u16_e32", "ww", lambda a, b: b - a, "w")
vector(NEW, "v_mad_u16", "www", lambda a, b, c: a * b + c, "w")
vector(G9, "v_mad_legacy_u16", "www", lambda a, b, c: a * b + c, "w")
vector(ALL, "v_cvt_f16_f32_e32", "f", lambda a: a, "h", {0: [f2b(x) for x in (0.1, 1.0, 70000.0, -3.3, 1e-6)]})
vector(ALL, "v_cvt_f32_f16_e32", "h", lambda a: a, "f")
vector(ALL, "v_add_f16_e32", "hh", lambda a, b: a + b, "h")
vector(ALL, "v_mul_f16_e32", "hh", lambda a, b: a * b, "h")
vector(ALL, "v_pack_b32_f16", "hh", lambda a, b: h2b(a) | h2b(b) << 16, "u")
for name, fn in (("add", lambda a, b: a + b), ("mul_lo", lambda a, b: a * b), ("min", min), ("max", max),
                 ("sub", lambda a, b: a - b)):
    vector(ALL, "v_pk_%s_u16" % name, "uu", lambda a, b: (fn(a & 0xffff, b & 0xffff) & 0xffff) |
           (fn(a >> 16, b >> 16) & 0xffff) << 16, "u")
vector(ALL, "v_pk_mad_u16", "uuu", lambda a, b, c: ((a & 0xffff) * (b & 0xffff) + c & 0xffff) |
       ((a >> 16) * (b >> 16) + (c >> 16) & 0xffff) << 16, "u")
vector(ALL, "v_pk_lshrrev_b16", "uu", lambda a, b: (b & 0xffff) >> (a & 15) | (b >> 16) >> (a >> 16 & 15) << 16, "u")
vector(ALL, "v_pk_lshlrev_b16", "uu", lambda a, b: ((b & 0xffff) << (a & 15) & 0xffff) | ((b >> 16) << (a >> 16 & 15) & 0xffff) << 16, "u")
vector(ALL, "v_pk_add_u16", "uu", lambda a, b: ((a & 0xffff) + (b & 0xffff) & 0xffff) | ((a >> 16) + (b & 0xffff) & 0xffff) << 16,
       "u", tail=" op_sel_hi:[1,0]")
PAIR = [h2b(1.5) | h2b(-2.0) << 16, h2b(0.1) | h2b(3.0) << 16, h2b(100.0) | h2b(-0.333) << 16]
P2 = {0: PAIR, 1: PAIR, 2: PAIR}
for name, fn in (("add", lambda a, b: a + b), ("mul", lambda a, b: a * b)):
    vector(ALL, "v_pk_%s_f16" % name, "uu", lambda a, b: h2b(fn(b2h(a), b2h(b))) | h2b(fn(b2h(a >> 16), b2h(b >> 16))) << 16, "u", P2)
vector(ALL, "v_pk_fma_f16", "uuu", lambda a, b, c: exact_fma(b2h(a), b2h(b), b2h(c), h2b) |
       exact_fma(b2h(a >> 16), b2h(b >> 16), b2h(c >> 16), h2b) << 16, "u", P2)


def f32_pair(fn):
    return lambda *v: fn(*[b2f(x) for x in v]) | fn(*[b2f(x >> 32) for x in v]) << 32


FP = {n: [f2b(1.5) | f2b(-2.25) << 32, f2b(0.1) | f2b(3.0) << 32] for n in range(3)}
vector(G9, "v_pk_add_f32", "UU", f32_pair(lambda a, b: f2b(a + b)), "U", FP)
vector(G9, "v_pk_mul_f32", "UU", f32_pair(lambda a, b: f2b(a * b)), "U", FP)
vector(G9, "v_pk_mul_f32", "UU", lambda a, b: f2b(b2f(a) * b2f(b)) | f2b(b2f(a) * b2f(b >> 32)) << 32, "U", FP,
       tail=" op_sel_hi:[0,1]")
vector(G9, "v_pk_fma_f32", "UUU", f32_pair(lambda a, b, c: exact_fma(a, b, c, f2b)), "U", FP)
vector(G9, "v_pk_mov_b32", "UU", lambda a, b: a >> 32 | (b & M32) << 32, "U", FP, tail=" op_sel:[1,0]")
vector(ALL, "v_fma_mix_f32", "fuf", lambda a, b, c: exact_fma(a, b2h(b), c, f2b), "raw", {1: PAIR}, tail=" op_sel_hi:[0,1,0]")
vector(ALL, "v_fma_mix_f32", "fuf", lambda a, b, c: exact_fma(a, b2h(b >> 16), c, f2b), "raw", {1: PAIR},
       tail=" op_sel:[0,1,0] op_sel_hi:[0,1,0]")
for name, shift in (("v_fma_mixlo_f16", 0), ("v_fma_mixhi_f16", 16)):
    F = {n: [f2b(x) for x in (1.5, -2.0, 0.1)] for n in range(3)}
    vector(ALL, name, "fff", lambda a, b, c: exact_fma(a, b, c, h2b) << shift | KEEP & 0xffff0000 >> shift, "raw", F)


def dot4(a, b, c, sa, sb):
    total = c
    for k in range(4):
        x, y = a >> 8 * k & 255, b >> 8 * k & 255
        total += (x - 256 if sa and x > 127 else x) * (y - 256 if sb and y > 127 else y)
    return total


vector(NEW, "v_dot4_i32_iu8", "uuu", lambda a, b, c: dot4(a, b, c, True, True), "u", tail=" neg_lo:[1,1,0]")
vector(NEW, "v_dot4_i32_iu8", "uuu", lambda a, b, c: dot4(a, b, c, True, False), "u", tail=" neg_lo:[1,0,0]")
vector(G9, "v_dot4_i32_i8", "uuu", lambda a, b, c: dot4(a, b, c, True, True), "u")
vector(ALL, "v_dot4_u32_u8", "uuu", lambda a, b, c: dot4(a, b, c, False, False), "u")


# Division: plain values divide without scaling; see the tests of kernels for the others.
def flag_case(targets, name, sdst, sources, out, flags, before, words=1):
    for target in targets:
        dst = "v10" if words == 1 else "v[10:11]"
        s = sdst[1] if target in G9 else sdst[0]
        after = regs("v", 10, out, words) + (["s%d=%x" % (s[1], flags)] if s[1] is not None else [])
        add([target], "%s %s, %s, %s" % (name, dst, s[0], sources), before, after)


S4 = (("s4", 4), ("s[4:5]", 4))
for k, w in (("f", 32), ("d", 64)):
    n = w // 32
    src = (lambda r: "v%d" % r) if n == 1 else (lambda r: "v[%d:%d]" % (r, r + 1))
    p = STORE[k]
    big, tiny = (2.0 ** 100, 2.0 ** -140) if w == 32 else (2.0 ** 900, 2.0 ** -1060)
    scale = 64 if w == 32 else 128
    b = [p(3.0), p(1 / big), p(tiny)]
    a = [p(7.0), p(8.0), p(4.0 * tiny)]
    before = regs("v", 20, b, n) + regs("v", 24, a, n)
    flag_case(ALL, "v_div_scale_f%d" % w, S4, "%s, %s, %s" % (src(20), src(20), src(24)),
              [p(3.0), p(math.ldexp(1 / big, scale)), p(math.ldexp(tiny, scale))], 2, before, n)
    flag_case(ALL, "v_div_scale_f%d" % w, S4, "%s, %s, %s" % (src(24), src(20), src(24)),
              [p(7.0), p(8.0), p(math.ldexp(4.0 * tiny, scale))], 2, before, n)
    three = ", ".join(src(r) for r in (20, 24, 28))
    before = regs("v", 20, [p(3.0)], n) + regs("v", 24, [p(0.5)], n) + regs("v", 28, [p(0.25), p(0.25), p(4.0)], n) + ["s106=6"]
    for target in ALL:
        add([target], "v_div_fmas_f%d %s, %s" % (w, src(10), three), before,
            regs("v", 10, [p(1.75), p(math.ldexp(1.75, -scale)), p(math.ldexp(5.5, scale))], n))
    inf = float("inf")
    q, bb, aa = [1.5, 9.0, 9.0], [-2.0, 0.0, -inf], [3.0, -5.0, 4.0]
    before = regs("v", 20, list(map(p, q)), n) + regs("v", 24, list(map(p, bb)), n) + regs("v", 28, list(map(p, aa)), n)
    add(ALL, "v_div_fixup_f%d %s, %s" % (w, src(10), three), before, regs("v", 10, [p(-1.5), p(-inf), p(-0.0)], n))

# Carries.
a, b = [0xffffffff, 5, 0], [1, 3, 1]
before = ["v20=" + lanes(a), "v24=" + lanes(b), "s6=5", "s7=0"]


def carry(targets, name, fn, takes):
    out, flags = [], 0
    for lane in range(3):
        r = fn(a[lane], b[lane], 5 >> lane & 1 if takes else 0)
        out.append(r & M32)
        flags |= (1 if r < 0 or r > M32 else 0) << lane
    for target in targets:
        wide = target in G9
        text = "%s v10, %s, v20, v24%s" % (name, "s[4:5]" if wide else "s4", (", s[6:7]" if wide else ", s6") if takes else "")
        add([target], text, before, ["v10=" + lanes(out), "s4=%x" % flags])


for targets, names in ((G9, ("v_add_co_u32_e64", "v_sub_co_u32_e64", "v_subrev_co_u32_e64", "v_addc_co_u32_e64",
                             "v_subb_co_u32_e64", "v_subbrev_co_u32_e64")),
                       (NEW, ("v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32", "v_add_co_ci_u32_e64",
                              "v_sub_co_ci_u32_e64", "v_subrev_co_ci_u32_e64"))):
    carry(targets, names[0], lambda x, y, c: x + y, False)
    carry(targets, names[1], lambda x, y, c: x - y, False)
    carry(targets, names[2], lambda x, y, c: y - x, False)
    carry(targets, names[3], lambda x, y, c: x + y + c, True)
    carry(targets, names[4], lambda x, y, c: x - y - c, True)
    carry(targets, names[5], lambda x, y, c: y - x - c, True)
for target in ALL:
    wide = target in G9
    s = "s[4:5]" if wide else "s4"
    co = "co_" if target in G12 else ""
    x, y, z = [7, 0xffffffff, 3], [9, 0xffffffff, 0x80000000], [1, M64, 2]
    m = ["v20=" + lanes(x), "v24=" + lanes(y)] + regs("v", 28, z, 2)
    r = [x[n] * y[n] + z[n] for n in range(3)]
    add([target], "v_mad_%su64_u32 v[10:11], %s, v20, v24, v[28:29]" % (co, s), m,
        regs("v", 10, [v & M64 for v in r], 2) + ["s4=%x" % sum((1 << n) for n in range(3) if r[n] > M64)])
    r = [i32(x[n]) * i32(y[n]) + i64(z[n]) for n in range(3)]
    add([target], "v_mad_%si64_i32 v[10:11], %s, v20, v24, v[28:29]" % (co, s), m, regs("v", 10, [v & M64 for v in r], 2))
    mask = "s[6:7]" if wide else "s6"
    add([target], "v_cndmask_b32_e64 v10, v20, v24, %s" % mask, m + ["s6=5", "s7=0"], ["v10=" + lanes([y[0], x[1], y[2]])])
    add([target], "v_cndmask_b32_e32 v10, v20, v24, %s" % ("vcc" if wide else "vcc_lo"), m + ["s106=2", "s107=0"],
        ["v10=" + lanes([x[0], y[1], x[2]])])
    add([target], "v_readfirstlane_b32 s4, v20", ["v20=1,2,3"], ["s4=2"], 6)
    add([target], "v_readlane_b32 s4, v20, 2", ["v20=1,2,3"], ["s4=3"])
    add([target], "v_writelane_b32 v10, s4, 1", ["v10=1,2,3", "s4=99"], ["v10=1,99,3"])
    add([target], "v_mbcnt_lo_u32_b32 v10, s4, v20", ["v20=64", "s4=5"], ["v10=64,65,65"])
    add([target], "v_mbcnt_hi_u32_b32 v10, s4, v20", ["v20=7", "s4=5"], ["v10=7,7,7"])
    add([target], "v_swap_b32 v10, v20", ["v10=1,2,3,4", "v20=5,6,7,8"], ["v10=5,6,7,4", "v20=1,2,3,8"])
add(NEW, "v_movrels_b32_e32 v10, v20", ["v22=5,6,7", "s124=2"], ["v10=5,6,7"])
for target in G9:
    add([target], "v_accvgpr_write_b32 a3, v20", ["v20=5,6,7"], ["a3=5,6,7"])
    add([target], "v_accvgpr_read_b32 v10, a3", ["a3=5,6,7"], ["v10=5,6,7"])

# Comparisons.
CONDITIONS = {"lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
              "ne": lambda a, b: a != b, "ge": lambda a, b: a >= b}
FLOAT = {"lg": lambda a, b: a < b or a > b, "o": lambda a, b: a == a and b == b, "u": lambda a, b: a != a or b != b,
         "nge": lambda a, b: not a >= b, "nlg": lambda a, b: not (a < b or a > b), "ngt": lambda a, b: not a > b,
         "nle": lambda a, b: not a <= b, "neq": lambda a, b: not a == b, "nlt": lambda a, b: not a < b}


def compare(kind, suffix, conditions):
    nan = {"f": 0x7fc00000, "d": 0x7ff8000000000000}.get(kind)
    for name, fn in conditions.items():
        for second in (0, 1):
            x = [rng.choice(POOL[kind]) for _ in range(3)]
            y = [x[0], rng.choice(POOL[kind]), nan if nan and second else rng.choice(POOL[kind])]
            flags = sum(1 << n for n in range(3) if fn(LOAD[kind](x[n]), LOAD[kind](y[n])))
            n = WORDS[kind]
            src = ["v%d" % r if n == 1 else "v[%d:%d]" % (r, r + 1) for r in (20, 24)]
            before = regs("v", 20, x, n) + regs("v", 24, y, n)
            for target in ALL:
                vcc = "vcc" if target in G9 else "vcc_lo"
                if second == 0:
                    add([target], "v_cmp_%s_%s_e32 %s, %s, %s" % (name, suffix, vcc, *src), before, ["s106=%x" % flags])
                    if target in NEW:
                        add([target], "v_cmpx_%s_%s_e32 %s, %s" % (name, suffix, *src), before, ["exec=%x" % flags])
                else:
                    s = "s[4:5]" if target in G9 else "s4"
                    add([target], "v_cmp_%s_%s_e64 %s, %s, %s" % (name, suffix, s, *src), before, ["s4=%x" % flags])


for kind, suffix in (("i", "i32"), ("u", "u32"), ("I", "i64"), ("U", "u64"), ("w", "u16")):
    compare(kind, suffix, CONDITIONS)
LOAD["x"], POOL["x"], WORDS["x"] = i16, POOL["w"], 1
compare("x", "i16", CONDITIONS)
floats = {k: v for k, v in CONDITIONS.items() if k != "ne"}
compare("f", "f32", {**floats, **FLOAT})
compare("d", "f64", {**floats, **FLOAT})
CLASSES = [0x7f800001, 0x7fc00000, 0xff800000, 0xbf800000, 0x80000001, 0x80000000, 0, 1, 0x3f800000, 0x7f800000]
for first in range(0, 9, 3):
    for target in ALL:
        s = "s[4:5]" if target in G9 else "s4"
        add([target], "v_cmp_class_f32_e64 %s, v20, v24" % s,
            ["v20=" + lanes(CLASSES[first:first + 3]), "v24=" + lanes([1 << first, 1 << first, 1 << first + 2])], ["s4=5"])

# Scalars.
SU = [0, 1, 5, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678]
SQ = POOL["U"]


def scalar(targets, name, words, fn, out_words=1, pools=None, takes_scc=False, keeps=False, tail="", no_dst=False, rounds=4):
    """fn(values..., scc) -> (result, scc or None)."""
    for r in range(rounds):
        scc = r & 1
        values = [rng.choice((pools or {}).get(n, SU if w == 1 else SQ)) for n, w in enumerate(words)]
        result, flag = fn(*values, scc)
        before, operands = ["scc=%d" % scc], []
        for n, w in enumerate(words):
            number = 10 if keeps and n == 0 else 20 + 4 * n
            before += regs("s", number, [values[n]], w)
            if number != 10:
                operands.append("s%d" % number if w == 1 else "s[%d:%d]" % (number, number + 1))
        after = []
        if not no_dst:
            operands.insert(0, "s10" if out_words == 1 else "s[10:11]")
            after += regs("s", 10, [result & (M32 if out_words == 1 else M64)], out_words)
        after.append("scc=%d" % (scc if flag is None else 1 if flag else 0))
        add(targets, "%s %s%s" % (name, ", ".join(operands), tail), before, after)


def nz(fn, mask=M32):
    def inner(*v):
        r = fn(*v[:-1]) & mask
        return r, r != 0
    return inner


def plain(fn):
    return lambda *v: (fn(*v[:-1]), None)


def over(x):
    return not -(1 << 31) <= x < (1 << 31)


for w, mask in ((1, M32), (2, M64)):
    b = 32 * w
    scalar(ALL, "s_mov_b%d" % b, [w], plain(lambda a: a), w)
    scalar(ALL, "s_not_b%d" % b, [w], nz(lambda a: ~a, mask), w)
    scalar(ALL, "s_and_b%d" % b, [w, w], nz(lambda a, b: a & b, mask), w)
    scalar(ALL, "s_or_b%d" % b, [w, w], nz(lambda a, b: a | b, mask), w)
    scalar(ALL, "s_xor_b%d" % b, [w, w], nz(lambda a, b: a ^ b, mask), w)
    scalar(ALL, "s_xnor_b%d" % b, [w, w], nz(lambda a, b: ~(a ^ b), mask), w)
    scalar(ALL, "s_nand_b%d" % b, [w, w], nz(lambda a, b: ~(a & b), mask), w)
    scalar(ALL, "s_nor_b%d" % b, [w, w], nz(lambda a, b: ~(a | b), mask), w)
    for t, n1, n2 in ((G9, "s_andn2_b%d", "s_orn2_b%d"), (NEW, "s_and_not1_b%d", "s_or_not1_b%d")):
        scalar(t, n1 % b, [w, w], nz(lambda a, b: a & ~b, mask), w)
        scalar(t, n2 % b, [w, w], nz(lambda a, b: a | ~b, mask), w)
    scalar(ALL, "s_cselect_b%d" % b, [w, w], lambda a, b, c: (a if c else b, None), w)
    P = {1: [0, 1, 5, b - 1]}
    scalar(ALL, "s_lshl_b%d" % b, [w, 1], nz(lambda a, b: a << b, mask), w, P)
    scalar(ALL, "s_lshr_b%d" % b, [w, 1], nz(lambda a, b: a >> b, mask), w, P)
    scalar(ALL, "s_ashr_i%d" % b, [w, 1], nz(lambda a, s: (i32(a) if b == 32 else i64(a)) >> s, mask), w, P)
    scalar(ALL, "s_bcnt1_i32_b%d" % b, [w], nz(lambda a: bin(a).count("1")))
    FIELD = {1: [0, 0x80004, 0x1f0001, 0x100010, 0x1001c & 0x40000 | 3]}
    scalar(ALL, "s_bfe_u%d" % b, [w, 1], nz(lambda a, f: a >> (f & b - 1) & ((1 << (f >> 16 & 127)) - 1), mask), w, FIELD)

    def signed_bfe(a, f):
        width = f >> 16 & 127
        if width == 0:
            return 0
        x = a >> (f & b - 1) & ((1 << width) - 1)
        return x - (1 << width) if x >> width - 1 else x
    scalar(ALL, "s_bfe_i%d" % b, [w, 1], nz(signed_bfe, mask), w, FIELD)
    scalar(ALL, "s_bfm_b%d" % b, [1, 1], plain(lambda a, s: ((1 << (a & b - 1)) - 1) << (s & b - 1)), w, {0: [0, 3, 31], 1: [0, 4]})
    for t, nm in ((G9, "s_ff1_i32_b%d"), (NEW, "s_ctz_i32_b%d")):
        scalar(t, nm % b, [w], plain(lambda a: M32 if a == 0 else (a & -a).bit_length() - 1))
for t, names in ((G9 + G11, ("add_u32", "sub_u32", "addc_u32", "subb_u32", "add_i32", "sub_i32")),
                 (G12, ("add_co_u32", "sub_co_u32", "add_co_ci_u32", "sub_co_ci_u32", "add_co_i32", "sub_co_i32"))):
    scalar(t, "s_" + names[0], [1, 1], lambda a, b, c: (a + b, a + b > M32))
    scalar(t, "s_" + names[1], [1, 1], lambda a, b, c: (a - b, b > a))
    scalar(t, "s_" + names[2], [1, 1], lambda a, b, c: (a + b + c, a + b + c > M32))
    scalar(t, "s_" + names[3], [1, 1], lambda a, b, c: (a - b - c, b + c > a))
    scalar(t, "s_" + names[4], [1, 1], lambda a, b, c: (a + b, over(i32(a) + i32(b))))
    scalar(t, "s_" + names[5], [1, 1], lambda a, b, c: (a - b, over(i32(a) - i32(b))))
    scalar(t, "s_addk_%si32" % ("co_" if t is G12 else ""), [1], lambda a, c: (a - 2, over(i32(a) - 2)), keeps=True, tail=", 0xfffe")
scalar(ALL, "s_mulk_i32", [1], plain(lambda a: a * -3), keeps=True, tail=", 0xfffd")
scalar(ALL, "s_movk_i32", [], plain(lambda: -5), tail=", 0xfffb", rounds=1)
scalar(G12, "s_add_nc_u64", [2, 2], plain(lambda a, b: a + b), 2)
scalar(G12, "s_sub_nc_u64", [2, 2], plain(lambda a, b: a - b), 2)
scalar(G12, "s_mul_u64", [2, 2], plain(lambda a, b: a * b), 2)
scalar(ALL, "s_mul_i32", [1, 1], plain(lambda a, b: a * b))
scalar(ALL, "s_mul_hi_u32", [1, 1], plain(lambda a, b: a * b >> 32))
scalar(ALL, "s_mul_hi_i32", [1, 1], plain(lambda a, b: i32(a) * i32(b) >> 32))
scalar(ALL, "s_min_i32", [1, 1], lambda a, b, c: (min(i32(a), i32(b)), i32(a) < i32(b)))
scalar(ALL, "s_max_i32", [1, 1], lambda a, b, c: (max(i32(a), i32(b)), i32(a) > i32(b)))
scalar(ALL, "s_min_u32", [1, 1], lambda a, b, c: (min(a, b), a < b))
scalar(ALL, "s_max_u32", [1, 1], lambda a, b, c: (max(a, b), a > b))
scalar(ALL, "s_abs_i32", [1], nz(lambda a: abs(i32(a))))
for k in (1, 2, 3, 4):
    scalar(ALL, "s_lshl%d_add_u32" % k, [1, 1], lambda a, b, c: ((a << k) + b, (a << k) + b > M32))
scalar(ALL, "s_brev_b32", [1], plain(lambda a: int("{:032b}".format(a)[::-1], 2)))
scalar(G9, "s_flbit_i32", [1], plain(cls))
scalar(NEW, "s_cls_i32", [1], plain(cls))
scalar(G9, "s_flbit_i32_b32", [1], plain(clz))
scalar(NEW, "s_clz_i32_u32", [1], plain(clz))
scalar(ALL, "s_sext_i32_i8", [1], plain(lambda a: (a & 255) - (256 if a & 128 else 0)))
scalar(ALL, "s_sext_i32_i16", [1], plain(i16))
scalar(ALL, "s_bitset0_b32", [1, 1], plain(lambda d, a: d & ~(1 << (a & 31))), keeps=True)
scalar(ALL, "s_bitset1_b32", [1, 1], plain(lambda d, a: d | 1 << (a & 31)), keeps=True)
scalar(ALL, "s_cmov_b32", [1, 1], lambda d, a, c: (a if c else d, None), keeps=True)
scalar(ALL, "s_pack_ll_b32_b16", [1, 1], plain(lambda a, b: a & 0xffff | b << 16))
scalar(ALL, "s_pack_lh_b32_b16", [1, 1], plain(lambda a, b: a & 0xffff | b & 0xffff0000))
scalar(ALL, "s_pack_hh_b32_b16", [1, 1], plain(lambda a, b: a >> 16 | b & 0xffff0000))


def test(fn):
    return lambda *v: (0, fn(*v[:-1]))


for c, fn in (("eq", lambda a, b: a == b), ("lg", lambda a, b: a != b), ("gt", lambda a, b: a > b), ("ge", lambda a, b: a >= b),
              ("lt", lambda a, b: a < b), ("le", lambda a, b: a <= b)):
    scalar(ALL, "s_cmp_%s_i32" % c, [1, 1], test(lambda a, b: fn(i32(a), i32(b))), no_dst=True)
    scalar(ALL, "s_cmp_%s_u32" % c, [1, 1], test(fn), no_dst=True)
    scalar(G9 + G11, "s_cmpk_%s_i32" % c, [1], test(lambda a: fn(i32(a), -3)), no_dst=True, tail=", 0xfffd")
    scalar(G9 + G11, "s_cmpk_%s_u32" % c, [1], test(lambda a: fn(a, 5)), no_dst=True, tail=", 0x5")
for c, fn in (("eq", lambda a, b: a == b), ("lg", lambda a, b: a != b)):
    scalar(ALL, "s_cmp_%s_u64" % c, [2, 2], test(fn), no_dst=True)
for w in (1, 2):
    scalar(ALL, "s_bitcmp0_b%d" % (32 * w), [w, 1], test(lambda a, b: not a >> (b & 32 * w - 1) & 1), no_dst=True)
    scalar(ALL, "s_bitcmp1_b%d" % (32 * w), [w, 1], test(lambda a, b: a >> (b & 32 * w - 1) & 1), no_dst=True)
SF = {n: [f2b(x) for x in (1.0, -1.5, 3.25, 100.75, -0.5)] for n in range(3)}
H2 = ["gfx1151", "gfx1201"]


def flt(fn):
    return lambda *v: (f2b(fn(*[b2f(x) for x in v[:-1]])), None)


for name, fn in (("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b)):
    scalar(H2, "s_%s_f32" % name, [1, 1], flt(fn), pools=SF)
scalar(H2, "s_fmaak_f32", [1, 1], lambda a, b, c: (exact_fma(b2f(a), b2f(b), 1.25, f2b), None), pools=SF, tail=", 0x3fa00000")
add(H2, "s_fmamk_f32 s10, s20, 0x40400000, s24", ["s20=40000000", "s24=3f000000"], ["s10=40d00000"])
scalar(H2, "s_fmac_f32", [1, 1, 1], lambda d, a, b, c: (exact_fma(b2f(a), b2f(b), b2f(d), f2b), None), pools=SF, keeps=True)
scalar(H2, "s_trunc_f32", [1], flt(lambda a: math.copysign(math.trunc(a), a)), pools=SF)
scalar(H2, "s_floor_f32", [1], flt(lambda a: float(math.floor(a))), pools=SF)
scalar(H2, "s_ceil_f32", [1], flt(lambda a: math.copysign(float(math.ceil(a)), a)), pools=SF)
scalar(H2, "s_rndne_f32", [1], flt(lambda a: math.copysign(float(round(a)), a)), pools=SF)
scalar(["gfx1151"], "s_min_f32", [1, 1], flt(fmin), pools=SF)
scalar(["gfx1151"], "s_max_f32", [1, 1], flt(fmax), pools=SF)
scalar(G12, "s_min_num_f32", [1, 1], flt(fmin), pools=SF)
scalar(G12, "s_max_num_f32", [1, 1], flt(fmax), pools=SF)
scalar(G12, "v_s_rcp_f32", [1], flt(lambda a: 1 / a), pools=SF)
scalar(G12, "v_s_sqrt_f32", [1], flt(math.sqrt), pools={0: [f2b(2.25), f2b(9.0)]})
scalar(H2, "s_cvt_f32_i32", [1], lambda a, c: (f2b(float(i32(a))), None))
scalar(H2, "s_cvt_f32_u32", [1], lambda a, c: (f2b(float(a)), None))
scalar(H2, "s_cvt_i32_f32", [1], lambda a, c: (sat_i(b2f(a)), None), pools=SF)
scalar(H2, "s_cvt_u32_f32", [1], lambda a, c: (sat_u(b2f(a)), None), pools=SF)
for c, fn in {**floats, **FLOAT}.items():
    scalar(H2, "s_cmp_%s_f32" % c, [1, 1], test(lambda a, b: fn(b2f(a), b2f(b))), no_dst=True,
           pools={0: SF[0] + [0x7fc00000], 1: SF[0]})
exec(open(sys.argv[0].replace("gen_amdsim_cases", "gen_amdsim_memory_cases")).read())


def assemble():
    by_target = {}
    for case in cases:
        by_target.setdefault(case[0], []).append(case)
    for target, some in by_target.items():
        text = "\n".join(c[1] for c in some) + "\n"
        run = subprocess.run(["llvm-mc-19", "-triple=amdgcn-amd-amdhsa", "-mcpu=" + target, "-show-encoding"], input=text,
                             capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(run.stderr[:3000])
        encodings = re.findall(r"encoding: \[([^\]]*)\]", run.stdout)
        assert len(encodings) == len(some), (target, len(encodings), len(some))
        for case, encoding in zip(some, encodings):
            case.append(encoding.replace("0x", "").replace(",", ""))


assemble()
merged = {}
for target, text, exec_mask, before, after, encoding in cases:
    key = (text, encoding, "%x" % exec_mask, " ".join(before), " ".join(after))
    if target not in merged.setdefault(key, []):
        merged[key].append(target)
for key, targets in merged.items():
    print("; ".join([",".join(targets), *key]))
