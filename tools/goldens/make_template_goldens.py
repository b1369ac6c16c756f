"""Write chat_templates.json: what transformers makes of real chat templates, with tools, tool calls and reasoning.

Reads TEMPLATES/*.jinja. A template NAME_training.jinja is NAME with {% generation %} marks. Each entry of the output: {"name",
"cases": [{"conversation": {"messages", "tools", ...}, "text", "prompt" (with the header of an answer), "trained" (texts inside
generation blocks, where the template has some)}]}; a case that the template refuses has "refused" in place of texts. The date is 2024-07-26.
Needs (PyPI): transformers==5.* jinja2. Usage: make_template_goldens.py TEMPLATES OUT.json
"""
import datetime
import json
import pathlib
import sys

from transformers.utils import chat_template_utils


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26)


chat_template_utils.datetime = FixedDate
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a \"place\": caf\u00e9 <b>&</b> 'co'.",
        "parameters": {"type": "object", "properties": {
            "place": {"type": "string", "description": "City"}, "days": {"type": "integer", "enum": [1, 2]},
            "scale": {"type": "number", "default": 1.0}}, "required": ["place"]}}},
    {"type": "function", "function": {"name": "now", "description": "Time.", "parameters": {"type": "object", "properties": {}}}},
]


def say(*turns):
    names = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
    return [{"role": names[t[0]], "content": t[1:]} for t in turns]


def call(*functions, content=""):
    calls = [{"id": f"call{i:05d}", "type": "function", "function": {"name": name, "arguments": arguments}}
             for i, (name, arguments) in enumerate(functions)]
    message = {"role": "assistant", "tool_calls": calls}
    return message if content is None else {"role": "assistant", "content": content, "tool_calls": calls}


def answer(text, place=0):
    return {"role": "tool", "tool_call_id": f"call{place:05d}", "content": text}


WEATHER = ("get_weather", {"place": "K\u00f6ln", "days": 2, "scale": 0.5})
CONVERSATIONS = [
    {"messages": say("uHello")},
    {"messages": say("uHello", "aHi there!")},
    {"messages": say("sBe brief.", "uHello", "aHi.", "uBye", "aSee you.")},
    {"messages": say("u  it's \"so\" \n", "a\n Let there be light \U0001f600  ", "uMore", "a")},
    {"messages": say("sBe brief.", "uWeather?"), "tools": TOOLS},
    {"messages": say("uWeather?") + [call(WEATHER)] + [answer("{\"t\": 21.5}")] + say("aWarm."), "tools": TOOLS},
    {"messages": say("sBe brief.", "uWeather?") + [call(WEATHER, content=None)] + [answer("21")] + say("aWarm.", "uThanks", "aWelcome."),
     "tools": TOOLS[:1]},
    {"messages": say("uTwo") + [call(WEATHER, ("now", {}))] + [answer("21"), answer("noon", 1)] + say("aWarm at noon."), "tools": TOOLS},
    {"messages": say("uText") + [call(("get_weather", "{\"place\": \"Rome\"}"))] + [answer("21")] + say("aWarm."), "tools": TOOLS},
    {"messages": say("uWhy", "a<think>\nfirst\n</think>\n\nSo.", "uAnd", "a<think>\nsecond\n</think>\n\nThus.")},
    {"messages": say("uWhy") + [{"role": "assistant", "content": "So.", "reasoning_content": "step by step"}]},
    {"messages": say("uWhy") + [{"role": "assistant", "content": "So.", "thinking": "step by step"}] + say("uMore", "aFine.")},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "Part one"}]}] + say("aDone.")},
    {"messages": say("uNo thinking"), "chat_template_kwargs": {"enable_thinking": False}},
    {"messages": say("uWhen", "aNow"), "chat_template_kwargs": {"date_string": "1 Jan 2025"}},
]


def render(template, conversation, **more):
    texts, marks = chat_template_utils.render_jinja_template(
        [[{k: v for k, v in m.items() if v is not None} for m in conversation["messages"]]], tools=conversation.get("tools"),
        chat_template=template, **TOKENS, **conversation.get("chat_template_kwargs", {}), **more)
    return texts[0], marks[0] if marks else []


def make_case(template, conversation):
    case = {"conversation": conversation}
    try:
        case["text"], _ = render(template, conversation)
        case["prompt"], _ = render(template, conversation, add_generation_prompt=True)
        if "endgeneration" in template:
            text, marks = render(template, conversation, return_assistant_tokens_mask=True)
            assert text == case["text"]
            case["trained"] = [text[begin:end] for begin, end in marks if end > begin]
    except Exception as error:  # the template refuses
        return {"conversation": conversation, "refused": str(error)[:200]}
    return case


def main():
    entries = []
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")):
        template = path.read_text(encoding="utf-8")
        entries.append({"name": path.stem, "cases": [make_case(template, c) for c in CONVERSATIONS]})
    pathlib.Path(sys.argv[2]).write_text(json.dumps(entries, ensure_ascii=True, separators=(",", ":")) + "\n")


main()
