"""Part of gen_amdsim_cases.py: memory, lanes, SDWA, DPP, dual and matrix instructions."""

DATA = [(n * 37 + 11) & 255 for n in range(512)]


def le(offset, size, data=DATA):
    return int.from_bytes(bytes(data[offset:offset + size]), "little")


def hexbytes(values):
    return "".join("%02x" % v for v in values)


def sx(value, bits):
    return value - (1 << bits) if value >> bits - 1 else value


OFFSETS = [16, 48, 112]
MEMORY, LOCAL = "g*", "l*"  # byte n is what DATA says
# newer name, older name, bytes, how it fills the register
LOADS = [("u8", "ubyte", 1, "zero"), ("i8", "sbyte", 1, "sign"), ("u16", "ushort", 2, "zero"), ("i16", "sshort", 2, "sign"),
         ("d16_b16", "short_d16", 2, "low"), ("d16_hi_b16", "short_d16_hi", 2, "high"), ("b32", "dword", 4, "zero"),
         ("b64", "dwordx2", 8, "zero"), ("b96", "dwordx3", 12, "zero"), ("b128", "dwordx4", 16, "zero")]
STORES = [("b8", "byte", 1, 0), ("b16", "short", 2, 0), ("d16_hi_b8", "byte_d16_hi", 1, 16), ("d16_hi_b16", "short_d16_hi", 2, 16),
          ("b32", "dword", 4, 0), ("b64", "dwordx2", 8, 0), ("b96", "dwordx3", 12, 0), ("b128", "dwordx4", 16, 0)]


def filled(offset, size, how, word=0, data=DATA):
    if size >= 4:
        return le(offset + 4 * word, 4, data)
    value = le(offset, size, data)
    if how == "sign":
        return sx(value, 8 * size) & M32
    if how == "low":
        return KEEP & 0xffff0000 | value
    if how == "high":
        return KEEP & 0xffff | value << 16
    return value


def range_of(first, words, prefix="v"):
    return "%s%d" % (prefix, first) if words == 1 else "%s[%d:%d]" % (prefix, first, first + words - 1)


for target in ALL:
    old = target in G9
    for new_name, old_name, size, how in LOADS:
        name, words = (old_name if old else new_name), (size + 3) // 4
        dst = range_of(10, words)
        start = ["v10=" + lanes([KEEP] * 4)] if size < 4 else []
        out = [regs("v", 10 + w, [filled(o + 4, size, how, w) for o in OFFSETS], 1)[0] for w in range(words)]
        add([target], "global_load_%s %s, v[20:21], off offset:4" % (name, dst), ["@v20=" + lanes(OFFSETS), MEMORY] + start, out)
        add([target], "flat_load_%s %s, v[20:21] offset:4" % (name, dst), ["@v20=" + lanes(OFFSETS), MEMORY] + start, out)
        out = [regs("v", 10 + w, [filled(o, size, how, w) for o in OFFSETS], 1)[0] for w in range(words)]
        add([target], "global_load_%s %s, v20, s[4:5]" % (name, dst), ["v20=" + lanes(OFFSETS), "@s4=0", MEMORY] + start, out)
        scratch = [("p%x=" % (4 * k)) + lanes([le(16 * lane + 4 * k, 4) for lane in range(3)]) for k in range(6)]
        out = [regs("v", 10 + w, [filled(16 * lane + 4, size, how, w) for lane in range(3)], 1)[0] for w in range(words)]
        add([target], "scratch_load_%s %s, off, off offset:4" % (name, dst), scratch + start, out)
        add([target], "scratch_load_%s %s, off, s6" % (name, dst), scratch + start + ["s6=4"], out)
    for new_name, old_name, size, shift in STORES:
        name, words = (old_name if old else new_name), (size + 3) // 4
        values = [[rng.getrandbits(32) for _ in range(3)] for _ in range(words)]
        before = [regs("v", 30 + w, values[w] + [0], 1)[0] for w in range(words)]
        image = {o: hexbytes(b"".join((values[w][n] >> shift).to_bytes(4, "little") for w in range(words))[:size])
                 for n, o in enumerate(OFFSETS)}
        src = range_of(30, words)
        mem = ["g%x=%s" % (o + 8, image[o]) for o in OFFSETS]
        add([target], "global_store_%s v[20:21], %s, off offset:8" % (name, src), ["@v20=" + lanes(OFFSETS), MEMORY] + before, mem)
        add([target], "flat_store_%s v[20:21], %s offset:8" % (name, src), ["@v20=" + lanes(OFFSETS), MEMORY] + before, mem)
        mem = ["g%x=%s" % (o, image[o]) for o in OFFSETS]
        add([target], "global_store_%s v20, %s, s[4:5]" % (name, src), ["v20=" + lanes(OFFSETS), "@s4=0", MEMORY] + before, mem)
        if size >= 4:
            out = [("p%x=" % (8 + 4 * w)) + lanes(values[w]) for w in range(words)]
        else:
            mask = (1 << 8 * size) - 1
            out = ["p8=" + lanes([KEEP & ~mask & M32 | values[0][n] >> shift & mask for n in range(3)])]
        add([target], "scratch_store_%s off, %s, off offset:8" % (name, src), ["p8=%x" % KEEP] + before, out)
    for new_name, old_name, fn in (("add_u32", "add", lambda a, b: a + b), ("max_u32", "umax", max), ("min_u32", "umin", min),
                                   ("or_b32", "or", lambda a, b: a | b), ("and_b32", "and", lambda a, b: a & b),
                                   ("swap_b32", "swap", lambda a, b: b)):
        name = "atomic_" + (old_name if old else new_name)
        values = [7, 0x80000001, 9]
        offsets = [16, 48, 16]
        cells, results = {16: le(16, 4), 48: le(48, 4)}, []
        for o, v in zip(offsets, values):
            results.append(cells[o])
            cells[o] = fn(cells[o], v) & M32
        mem = ["g%x=%s" % (o, hexbytes(v.to_bytes(4, "little"))) for o, v in cells.items()]
        before = ["v30=" + lanes(values), MEMORY]
        back = " sc0" if old else " th:TH_ATOMIC_RETURN" if target in G12 else " glc"
        add([target], "global_%s v20, v30, s[4:5]" % name, before + ["v20=" + lanes(offsets), "@s4=0"], mem)
        add([target], "flat_%s v[20:21], v30" % name, before + ["@v20=" + lanes(offsets)], mem)
        add([target], "global_%s v10, v20, v30, s[4:5]%s" % (name, back), before + ["v20=" + lanes(offsets), "@s4=0"],
            mem + ["v10=" + lanes(results)])
        add([target], "flat_%s v10, v[20:21], v30%s" % (name, back), before + ["@v20=" + lanes(offsets)],
            mem + ["v10=" + lanes(results)])
    # Shared memory.
    ld, st, two, two64 = ("read", "write", "read2", "read2st64") if old else ("load", "store", "load_2addr", "load_2addr_stride64")
    wtwo, wtwo64 = ("write2", "write2st64") if old else ("store_2addr", "store_2addr_stride64")
    for name, size, how in (("u8", 1, "zero"), ("i8", 1, "sign"), ("u16", 2, "zero"), ("i16", 2, "sign"), ("u16_d16", 2, "low"),
                            ("u16_d16_hi", 2, "high"), ("b32", 4, "zero"), ("b64", 8, "zero"), ("b96", 12, "zero"),
                            ("b128", 16, "zero")):
        words = (size + 3) // 4
        start = ["v10=" + lanes([KEEP] * 4)] if size < 4 else []
        out = [regs("v", 10 + w, [filled(o + 16, size, how, w) for o in OFFSETS], 1)[0] for w in range(words)]
        add([target], "ds_%s_%s %s, v20 offset:16" % (ld, name, range_of(10, words)), ["v20=" + lanes(OFFSETS), LOCAL] + start, out)
    for size in (1, 2, 4, 8, 12, 16):
        words = (size + 3) // 4
        values = [[rng.getrandbits(32) for _ in range(3)] for _ in range(words)]
        before = [regs("v", 30 + w, values[w] + [0], 1)[0] for w in range(words)]
        out = ["l%x=%s" % (o + 32, hexbytes(b"".join(values[w][n].to_bytes(4, "little") for w in range(words))[:size]))
               for n, o in enumerate(OFFSETS)]
        add([target], "ds_%s_b%d v20, %s offset:32" % (st, 8 * size, range_of(30, words)), ["v20=" + lanes(OFFSETS), LOCAL] + before,
            out)
    for size in (4, 8):
        w = size // 4
        for l, s, stride in ((two, wtwo, 1), (two64, wtwo64, 64)):
            if stride == 64 and size == 8:
                first, second = 0, 0
            else:
                first, second = (1, 0) if stride == 64 else (2, 5)
            places = [o if stride == 1 else 8 * n for n, o in enumerate(OFFSETS)]
            out = []
            for part, k in ((0, first), (1, second)):
                for word in range(w):
                    out += regs("v", 10 + part * w + word, [le(o + k * size * stride + 4 * word, 4) for o in places], 1)
            text = "offset0:%d offset1:%d" % (first, second)
            add([target], "ds_%s_b%d %s, v20 %s" % (l, 8 * size, range_of(10, 2 * w), text), ["v20=" + lanes(places), LOCAL], out)
            if first == second:
                continue
            values = [[rng.getrandbits(32) for _ in range(3)] for _ in range(2 * w)]
            before = [regs("v", 30 + 4 * (k // w) + k % w, values[k] + [0], 1)[0] for k in range(2 * w)]
            out = ["l%x=%s" % (o + k * size * stride, hexbytes(b"".join(values[part * w + word][n].to_bytes(4, "little")
                                                                        for word in range(w))))
                   for n, o in enumerate(places) for part, k in ((0, first), (1, second))]
            add([target], "ds_%s_b%d v20, %s, %s %s" % (s, 8 * size, range_of(30, w), range_of(34, w), text),
                ["v20=" + lanes(places), LOCAL] + before, out)
    for name, fn in (("add%s_u32", lambda a, b: a + b), ("max%s_u32", max), ("min%s_u32", min), ("or%s_b32", lambda a, b: a | b),
                     ("and%s_b32", lambda a, b: a & b)):
        values, offsets = [7, 0x80000001, 9], [16, 48, 16]
        cells, results = {16: le(16, 4), 48: le(48, 4)}, []
        for o, v in zip(offsets, values):
            results.append(cells[o])
            cells[o] = fn(cells[o], v) & M32
        out = ["l%x=%s" % (o, hexbytes(v.to_bytes(4, "little"))) for o, v in cells.items()]
        before = ["v20=" + lanes(offsets), "v30=" + lanes(values), LOCAL]
        add([target], "ds_%s v20, v30" % (name % ""), before, out)
        add([target], "ds_%s v10, v20, v30" % (name % "_rtn"), before, out + ["v10=" + lanes(results)])
    add([target], "ds_add_f32 v20, v30", ["v20=10", "v30=3f800000", "l10=0000c03f"], ["l10=00002040"], 1)
    # Lane 3 is off: its value reads as zero, and it keeps what it had.
    add([target], "ds_bpermute_b32 v10, v20, v24", ["v20=8,c,0,0", "v24=1,2,3,4", "v10=9"], ["v10=3,0,1,9"])
    add([target], "ds_permute_b32 v10, v20, v24", ["v20=8,0,4,0", "v24=1,2,3,4", "v10=9"], ["v10=2,3,1,9"])
    # Scalar loads.
    for words, n, o in ((1, "b32", "dword"), (2, "b64", "dwordx2"), (4, "b128", "dwordx4"), (8, "b256", "dwordx8"),
                        (16, "b512", "dwordx16")):
        out = ["s%d=%x" % (12 + k, le(16 + 4 * k, 4)) for k in range(words)]
        dst = range_of(12, words, "s")
        add([target], "s_load_%s %s, s[4:5], 0x10" % (o if old else n, dst), ["@s4=0", MEMORY], out)
        add([target], "s_load_%s %s, s[4:5], s6" % (o if old else n, dst), ["@s4=0", "s6=10", MEMORY], out)
add(G12, "s_load_b96 s[12:14], s[4:5], 0x10", ["@s4=0", MEMORY], ["s%d=%x" % (12 + k, le(16 + 4 * k, 4)) for k in range(3)])
add(G12, "s_load_u8 s12, s[4:5], 0x11", ["@s4=0", MEMORY], ["s12=%x" % le(17, 1)])
add(G12, "s_load_i8 s12, s[4:5], 0x11", ["@s4=0", MEMORY], ["s12=%x" % (sx(le(17, 1), 8) & M32)])
add(G12, "s_load_u16 s12, s[4:5], 0x12", ["@s4=0", MEMORY], ["s12=%x" % le(18, 2)])
add(G12, "s_load_i16 s12, s[4:5], 0x12", ["@s4=0", MEMORY], ["s12=%x" % (sx(le(18, 2), 16) & M32)])

# EXEC and what saves it; three lanes are on.
for targets, w, names in ((NEW, 32, ("and", "or", "xor", "and_not1", "or_not1", "and_not0")),
                          (G9, 64, ("and", "or", "xor", "andn2", "orn2", "andn1"))):
    full = (1 << w) - 1
    for name, fn in zip(names, (lambda a, e: a & e, lambda a, e: a | e, lambda a, e: a ^ e, lambda a, e: a & ~e,
                                lambda a, e: a | ~e, lambda a, e: ~a & e)):
        for value in (0xa, 0):
            out = fn(value, 7) & full
            src, dst = ("s4", "s10") if w == 32 else ("s[4:5]", "s[10:11]")
            add(targets, "s_%s_saveexec_b%d %s, %s" % (name, w, dst, src), ["s4=%x" % value, "s5=0"],
                ["s10=7", "exec=%x" % out, "scc=%d" % (out != 0)])

# SDWA of gfx9.
add(G9, "v_add_u32_sdwa v10, v20, v24 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1",
    ["v20=1234fe78", "v24=800f0001"], ["v10=810d"], 1)
add(G9, "v_mul_i32_i24_sdwa v10, sext(v20), v24 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:DWORD",
    ["v20=1234fffe", "v24=7"], ["v10=%x" % (-14 & M32)], 1)
add(G9, "v_or_b32_sdwa v10, v20, v24 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:BYTE_3",
    ["v20=1200", "v24=cd000000", "v10=1111beef"], ["v10=12cdbeef"], 1)
add(G9, "v_and_b32_sdwa v10, v20, v24 dst_sel:BYTE_2 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_2",
    ["v20=1f", "v24=f30000", "v10=1111beef"], ["v10=130000"], 1)
add(G9, "v_cmp_gt_i32_sdwa s[4:5], sext(v20), v24 src0_sel:WORD_0 src1_sel:DWORD", ["v20=fffe,5,1", "v24=1"], ["s4=2"])
add(G9, "v_cvt_f32_f16_sdwa v10, v20 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1", ["v20=40001234"], ["v10=40000000"], 1)
add(G9, "v_cvt_f16_f32_sdwa v10, v20 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD", ["v20=40000000"], ["v10=40000000"], 1)

# DPP within a row of 16 lanes; the other rows repeat the last value.
ROW = list(range(100, 116))
for text, fn, bound in (("quad_perm:[1,0,3,2]", lambda l: l ^ 1, ""), ("row_shl:3", lambda l: l + 3, " bound_ctrl:1"),
                        ("row_shr:2", lambda l: l - 2, " bound_ctrl:1"), ("row_ror:5", lambda l: (l - 5) % 16, ""),
                        ("row_mirror", lambda l: 15 - l, ""), ("row_half_mirror", lambda l: l & 8 | 7 - (l & 7), "")):
    out = [ROW[fn(l)] if 0 <= fn(l) < 16 else 0 for l in range(16)]
    for target in ALL:
        b = bound.replace("1", "0") if target in G9 and bound else bound
        add([target], "v_mov_b32_dpp v10, v20 %s row_mask:0xf bank_mask:0xf%s" % (text, b), ["v20=" + lanes(ROW)],
            ["v10=" + lanes(out)], 0xffff)
add(NEW, "v_mov_b32_dpp v10, v20 row_share:4 row_mask:0xf bank_mask:0xf", ["v20=" + lanes(ROW)], ["v10=68"], 0xffff)
add(NEW, "v_mov_b32_dpp v10, v20 row_xmask:6 row_mask:0xf bank_mask:0xf", ["v20=" + lanes(ROW)],
    ["v10=" + lanes([ROW[l ^ 6] for l in range(16)])], 0xffff)
add(ALL, "v_mov_b32_dpp v10, v20 row_shl:15 row_mask:0xf bank_mask:0xf", ["v20=" + lanes(ROW), "v10=7"], ["v10=73,7"], 0xffff)

# Two instructions in one: both read before either writes.
for target in NEW:
    mx = "max_num" if target in G12 else "max"
    add([target], "v_dual_mov_b32 v10, v21 :: v_dual_mov_b32 v21, v10", ["v10=1,2,3", "v21=4,5,6"], ["v10=4,5,6", "v21=1,2,3"])
    add([target], "v_dual_add_f32 v10, v20, v21 :: v_dual_mul_f32 v11, v10, v24",
        ["v20=3f800000", "v21=40000000", "v10=40400000", "v24=40000000"], ["v10=40400000", "v11=40c00000"])
    add([target], "v_dual_fmac_f32 v10, v20, v21 :: v_dual_add_nc_u32 v11, v22, v26",
        ["v20=3f800000", "v21=40000000", "v10=40400000", "v22=5", "v26=6"], ["v10=40a00000", "v11=b"])
    add([target], "v_dual_cndmask_b32 v10, v20, v21 :: v_dual_%s_f32 v11, v22, v26" % mx,
        ["v20=1", "v21=2", "s106=2", "v22=3f800000", "v26=40000000"], ["v10=1,2,1", "v11=40000000"])
    add([target], "v_dual_fmamk_f32 v10, v20, 0x40400000, v21 :: v_dual_sub_f32 v11, v22, v26",
        ["v20=3f800000", "v21=40000000", "v22=3f800000", "v26=40000000"], ["v10=40a00000", "v11=bf800000"])
add(ALL, "v_fmamk_f32 v10, v20, 0x40400000, v24", ["v20=3f800000", "v24=40000000"], ["v10=40a00000"])

# Matrices of small whole numbers: exact in every order. D = A B + C, 16 x 16.


def matrix_case(target, text, kind, k_count, a_layout, d_layout, wave, d_words, full, dst, src_a, src_b, src_c):
    size = {"h": 2, "b": 2, "i": 1}[kind]
    a = [[rng.randrange(-7, 8) for _ in range(k_count)] for _ in range(16)]
    b = [[rng.randrange(-7, 8) for _ in range(16)] for _ in range(k_count)]
    c = [[rng.randrange(-50, 50) for _ in range(16)] for _ in range(16)]

    def pack(x):
        return x & 255 if kind == "i" else h2b(x) if kind == "h" else f2b(x) >> 16
    per_word = 4 // size
    depth = a_layout(0)[1]
    before = []
    for number, get in ((20, lambda line, k: a[line][k]), (30, lambda line, k: b[k][line])):
        for word in range(depth // per_word):
            values = []
            for l in range(wave):
                first = a_layout(l)[0] + word * per_word
                values.append(sum(pack(get(l % 16, first + part)) << 8 * size * part for part in range(per_word)))
            before.append("v%d=%s" % (number + word, lanes(values)))
    number = (lambda x: x & M32) if kind == "i" else f2b
    after = []
    for e in range(d_words):
        cells = [(d_layout(e, l // 16), l % 16) for l in range(wave)]
        before.append("v%d=%s" % (40 + e, lanes([number(c[r][n]) for r, n in cells])))
        after.append("v%d=%s" % (50 + e, lanes([number(c[r][n] + sum(a[r][k] * b[k][n] for k in range(k_count))) for r, n in cells])))
    add([target], text % (dst, src_a, src_b, src_c), before, after, full)


for kind, name in (("h", "f32_16x16x16_f16"), ("b", "f32_16x16x16_bf16"), ("i", "i32_16x16x16_iu8")):
    tail = " neg_lo:[1,1,0]" if kind == "i" else ""
    for target in G11:
        w = 4 if kind == "i" else 8
        matrix_case(target, "v_wmma_%s %%s, %%s, %%s, %%s%s" % (name, tail), kind, 16, lambda l: (0, 16), lambda e, g: 2 * e + g, 32,
                    8, M32, "v[50:57]", range_of(20, w), range_of(30, w), "v[40:47]")
    w = 2 if kind == "i" else 4
    matrix_case("gfx1201", "v_wmma_%s %%s, %%s, %%s, %%s%s" % (name, tail), kind, 16, lambda l: (8 * (l // 16), 8),
                lambda e, g: e + 8 * g, 32, 8, M32, "v[50:57]", range_of(20, w), range_of(30, w), "v[40:47]")
for kind, name, k in (("h", "f32_16x16x16_f16", 16), ("b", "f32_16x16x16_bf16", 16), ("i", "i32_16x16x32_i8", 32)):
    matrix_case("gfx942", "v_mfma_%s %%s, %%s, %%s, %%s" % name, kind, k, lambda l: (k // 4 * (l // 16), k // 4),
                lambda e, g: 4 * g + e, 64, 4, M64, "v[50:53]", "v[20:21]", "v[30:31]", "v[40:43]")
