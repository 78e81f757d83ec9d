// Renders the template fixtures with a second Jinja implementation and compares with tests/fixtures/templates/recorded.json.
//   node jinja.mjs FOLDER
// Requests that a template refuses are compared as refused or not: the wording of errors differs.
import fs from "node:fs";
import path from "node:path";
import { Template } from "@huggingface/jinja";

const folder = process.argv[2];
const read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
const conversations = read("conversations.json");
const recorded = read("recorded.json");
const ends = { llama3: ["<|begin_of_text|>", "<|eot_id|>"], hermes: ["<s>", "</s>"] };

function message(given) {
  const content = Array.isArray(given.content) ? given.content.map((part) => part.text).join("") : given.content ?? "";
  const made = { role: given.role === "developer" ? "system" : given.role, content };
  if (given.reasoning_content != null) made.reasoning_content = given.reasoning_content;
  const calls = (given.tool_calls ?? []).map((call) => {
    const args = call.function.arguments || "{}";
    return {
      ...(call.id ? { id: call.id } : {}),
      type: "function",
      function: { name: call.function.name, arguments: typeof args === "string" ? JSON.parse(args) : args },
    };
  });
  if (calls.length > 0) made.tool_calls = calls;
  for (const key of ["name", "tool_call_id"]) if (given[key]) made[key] = given[key];
  return made;
}

// The clock stands at the moment of the recording, in local time.
const Clock = Date;
globalThis.Date = class extends Clock {
  constructor(...given) {
    super(...(given.length > 0 ? given : [2025, 2, 4, 17, 6, 9]));
  }
};

function context(request, template) {
  const made = {
    ...(request.kwargs ?? {}),
    messages: request.messages.map(message),
    tools: request.tools?.length ? request.tools : null,
    add_generation_prompt: request.add_generation_prompt ?? true,
  };
  if (ends[template]) [made.bos_token, made.eos_token] = ends[template];
  return made;
}

// Where this implementation departs from Jinja2, which defines the language: it prints booleans as true, 1.0 as 1, strips
// other white space, reads an index past the end as undefined, and lacks a few constructs.
const departs = new Set(["three_steps", "number_arguments", "tools_odd", "unicode", "no_messages", "tools_system"]);

let equal = 0;
let total = 0;
let unexpected = 0;
for (const [name, outputs] of Object.entries(recorded)) {
  const template = new Template(fs.readFileSync(path.join(folder, `${name}.jinja`), "utf8"));
  for (const [conversation, wanted] of Object.entries(outputs)) {
    ++total;
    let text;
    try {
      text = template.render(context(conversations[conversation], name));
    } catch {
      text = undefined;
    }
    if (text === wanted.text) ++equal;
    else if (!departs.has(conversation)) {
      ++unexpected;
      console.log(`${name}, ${conversation}: other text`);
    }
  }
}
console.log(`${equal} of ${total} renderings equal`);
process.exit(unexpected === 0 ? 0 : 1);
