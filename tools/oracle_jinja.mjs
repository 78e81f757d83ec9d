// A second oracle of the template fixtures: compares recorded.json with what @huggingface/jinja makes of the templates.
// Where the two disagree, Jinja2 is right; this shows which constructs other engines read otherwise.
//
//   npm install --prefix build/oracle @huggingface/jinja && node tools/oracle_jinja.mjs build/oracle
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const folder = "tests/fixtures/templates";
const prefix = path.resolve(process.argv[2] ?? "build/oracle", "node_modules/@huggingface/jinja");
const entry = JSON.parse(fs.readFileSync(path.join(prefix, "package.json"))).module ?? "dist/index.js";
const { Template } = await import(pathToFileURL(path.join(prefix, entry)));

const read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
const tokens = { llama3: ["<|begin_of_text|>", "<|eot_id|>"], hermes: ["<s>", "</s>"] };
// JavaScript has one kind of number.
const skipped = new Set(["number_arguments", "big_numbers", "tools_odd"]);
// Known departures of that engine from Jinja2.
const known = new Map([
  ["no_messages", "an attribute of an undefined value is no error"],
  ["unicode", "its trim takes other characters for white space"],
  ["three_steps", "booleans are not printed as Python prints them; qwen3_coder fails"],
  ["tools_system", "qwen3_coder fails"],
]);

function message(given) {
  const made = { role: given.role === "developer" ? "system" : given.role };
  made.content = Array.isArray(given.content) ? given.content.map((part) => part.text).join("") : (given.content ?? "");
  if (given.reasoning_content != null) made.reasoning_content = given.reasoning_content;
  if (given.tool_calls?.length) {
    made.tool_calls = given.tool_calls.map((call) => {
      const text = call.function.arguments || "{}";
      const args = typeof text === "string" ? JSON.parse(text) : text;
      return { ...(call.id ? { id: call.id } : {}), type: "function", function: { name: call.function.name, arguments: args } };
    });
  }
  for (const key of ["name", "tool_call_id"]) if (given[key]) made[key] = given[key];
  return made;
}

function context(request, name) {
  const [bos, eos] = tokens[name] ?? [];
  return {
    ...(request.kwargs ?? {}),
    messages: request.messages.map(message),
    tools: request.tools?.length ? request.tools : null,
    add_generation_prompt: request.add_generation_prompt ?? true,
    date_string: "04 Mar 2025",
    ...(bos ? { bos_token: bos, eos_token: eos } : {}),
  };
}

const conversations = read("conversations.json");
let same = 0, departures = 0;
const different = [];
for (const [name, results] of Object.entries(read("recorded.json"))) {
  const source = fs.readFileSync(path.join(folder, `${name}.jinja`), "utf8");
  for (const [conversation, recorded] of Object.entries(results)) {
    if (skipped.has(conversation)) continue;
    let text;
    try {
      text = new Template(source).render(context(conversations[conversation], name));
    } catch {
      text = undefined; // recorded as an error too, or a construct that this engine lacks
    }
    if (text === recorded.text) same += 1;
    else if (known.has(conversation)) departures += 1;
    else different.push(`${name} ${conversation}`);
  }
}
console.log(`${same} the same, ${departures} known departures of the oracle, ${different.length} different`);
for (const line of different) console.log(`  ${line}`);
process.exit(different.length === 0 ? 0 : 1);
