#!/usr/bin/env python3
"""Records what Jinja2, set up as Hugging Face does, makes of the template fixtures.

Needs the jinja2 package (recorded with 3.1.6). Run in the root of the repository:
    python3 tools/record_templates.py
"""
import datetime
import json
import pathlib
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from template_snippets import DATA, SNIPPETS  # noqa: E402

FOLDER = pathlib.Path("tests/fixtures/templates")
NOW = datetime.datetime(2025, 3, 4, 17, 6, 9)  # the tests pass the same time, in UTC
BOS_EOS = {"llama3": ("<|begin_of_text|>", "<|eot_id|>"), "hermes": ("<s>", "</s>")}


class Raised(Exception):
    pass


def environment():
    def raise_exception(message):
        raise Raised(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(source, context):
    try:
        return {"text": environment().from_string(source).render(**context)}
    except Raised as error:
        return {"raises": str(error)}
    except Exception as error:  # whatever Python raises, the template is at fault
        return {"fails": f"{type(error).__name__}: {error}"}


def message(given):
    """One message as the engine passes it on: text, parsed arguments, the system role for developers."""
    content = given.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    made = {"role": {"developer": "system"}.get(given["role"], given["role"]), "content": content or ""}
    if given.get("reasoning_content") is not None:
        made["reasoning_content"] = given["reasoning_content"]
    calls = []
    for call in given.get("tool_calls") or []:
        arguments = call["function"].get("arguments") or "{}"
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        entry = {"id": call["id"]} if call.get("id") else {}
        calls.append({**entry, "type": "function", "function": {"name": call["function"]["name"], "arguments": arguments}})
    if calls:
        made["tool_calls"] = calls
    for key in ("name", "tool_call_id"):
        if given.get(key):
            made[key] = given[key]
    return made


def context_of(request, template):
    context = dict(request.get("kwargs", {}))
    context["messages"] = [message(m) for m in request["messages"]]
    context["tools"] = request.get("tools") or None
    context["add_generation_prompt"] = request.get("add_generation_prompt", True)
    bos, eos = BOS_EOS.get(template, (None, None))
    if bos:
        context.update(bos_token=bos, eos_token=eos)
    return context


def write(name, data):
    text = json.dumps(data, ensure_ascii=False, indent=1)
    (FOLDER / name).write_text(text + "\n", encoding="utf-8")


def main():
    conversations = json.loads((FOLDER / "conversations.json").read_text(encoding="utf-8"))
    recorded = {}
    for path in sorted(FOLDER.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        recorded[path.stem] = {
            name: render(source, context_of(request, path.stem)) for name, request in conversations.items()
        }
    write("recorded.json", recorded)
    write("snippets.json", {"context": DATA, "snippets": [{"source": s, **render(s, DATA)} for s in SNIPPETS]})


if __name__ == "__main__":
    main()
