"""Write tests/tokenizer/goldens/chat.json: what transformers' apply_chat_template makes of the families' templates.

Each entry: {"name", "family" (Lamina's), "base" (tokenizer of tests/tokenizer/goldens), "template", "bos", "eos", "cases":
[{"messages", "text", "prompt" (with the header of an answer), "ids", "trained" (0/1 for each id; absent where the template cannot be
marked)}]}. Templates are the families' own statements; their tool-calling branches are left out.
Needs (PyPI): transformers==5.* tokenizers==0.23.* jinja2. Usage: make_chat_goldens.py GOLDENS
"""
import json
import pathlib
import sys

from transformers import PreTrainedTokenizerFast

TURN = "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
TURN_MARKED = ("{{'<|im_start|>' + message['role'] + '\n'}}{% if message['role'] == 'assistant' %}{% generation %}"
               "{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}"
               "{{ '\n' }}")
ASK = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
PLAIN = "{% for message in messages %}" + TURN + "{% endfor %}" + ASK


def with_default(prompt):
    return ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
            "{{ '<|im_start|>system\n" + prompt + "<|im_end|>\n' }}{% endif %}" + TURN + "{% endfor %}" + ASK)


QWEN25 = r"""{%- if tools %}
    {{- raise_exception("tools") }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- raise_exception("tools") }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""
QWEN3 = r"""{%- if tools %}
    {{- raise_exception("tools") }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set reasoning_content = '' %}
        {%- if '</think>' in message.content %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\n') %}
            {%- set reasoning_content = message.content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""
LLAMA3 = (r"{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
          r"message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
          r"{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
          r"{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}")
LLAMA3_MARKED = (r"{% for message in messages %}{% if loop.index0 == 0 %}{{ bos_token }}{% endif %}{{ '<|start_header_id|>' + "
                 r"message['role'] + '<|end_header_id|>\n\n' }}{% if message['role'] == 'assistant' %}{% generation %}"
                 r"{{ message['content'] | trim + '<|eot_id|>' }}{% endgeneration %}{% else %}"
                 r"{{ message['content'] | trim + '<|eot_id|>' }}{% endif %}{% endfor %}")
LLAMA31 = r"""{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}

{#- The system message goes into its own place. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{{- "Cutting Knowledge Date: December 2023\n" }}
{{- "Today Date: " + date_string + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {{- raise_exception("tools") }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""
ALTERNATE = ("{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}"
             "{% endif %}")
LLAMA2 = ("{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = "
          "messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}"
          "{% for message in loop_messages %}" + ALTERNATE + "{% if loop.index0 == 0 and system_message != false %}"
          r"{% set content = '<<SYS>>\n' + system_message + '\n<</SYS>>\n\n' + message['content'] %}{% else %}"
          "{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
          "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
          "{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}")
ANSWER2 = "{{ ' '  + content.strip() + ' ' + eos_token }}"
MISTRAL1 = ("{{ bos_token }}{% for message in messages %}" + ALTERNATE + "{% if message['role'] == 'user' %}"
            "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
            "{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant') }}{% endif %}{% endfor %}")
SYSTEM_FIRST = """{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
"""
MISTRAL2 = SYSTEM_FIRST + r"""
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate') }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {%- if loop.first and system_message is defined %}
            {{- ' [INST] ' + system_message + '\n\n' + message['content'] + ' [/INST]' }}
        {%- else %}
            {{- ' [INST] ' + message['content'] + ' [/INST]' }}
        {%- endif %}
    {%- elif message['role'] == 'assistant' %}
        {{- ' ' + message['content'] + eos_token}}
    {%- else %}
        {{- raise_exception('Only user and assistant roles are supported') }}
    {%- endif %}
{%- endfor %}
"""


def mistral3(condition, answer='" " + message["content"]|trim + eos_token', begin="[INST] "):
    return SYSTEM_FIRST + r"""{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if CONDITION and system_message is defined %}
            {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported") }}
    {%- endif %}
{%- endfor %}
""".replace("CONDITION", condition).replace('" " + message["content"]|trim + eos_token', answer).replace("[INST] ", begin)


QWEN2_PROMPT = "You are a helpful assistant."
SMOL_PROMPT = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
# name, family, base, template, template with {% generation %} marks, bos, eos
FAMILIES = [
    ("chatml", "chatml", "qwen2", PLAIN, PLAIN.replace(TURN, TURN_MARKED), None, "<|im_end|>"),
    ("qwen2", "chatml with a default system prompt", "qwen2", with_default(QWEN2_PROMPT),
     with_default(QWEN2_PROMPT).replace(TURN, TURN_MARKED), None, "<|im_end|>"),
    ("smollm2", "chatml with a default system prompt", "smollm2", with_default(SMOL_PROMPT),
     with_default(SMOL_PROMPT).replace(TURN, TURN_MARKED), "<|im_start|>", "<|im_end|>"),
    ("qwen2.5", "qwen2.5", "qwen2", QWEN25, None, None, "<|im_end|>"),
    ("qwen3", "qwen3", "qwen2", QWEN3, None, None, "<|im_end|>"),
    ("llama3", "llama3", "llama3", LLAMA3, LLAMA3_MARKED, "<|begin_of_text|>", "<|eot_id|>"),
    ("llama3.1", "llama3.1", "llama3", LLAMA31, None, "<|begin_of_text|>", "<|eot_id|>"),
    ("llama2", "llama2", "llama2", LLAMA2, LLAMA2.replace(ANSWER2, "{% generation %}" + ANSWER2 + "{% endgeneration %}"), "<s>", "</s>"),
    ("mistral0.2", "mistral v0.2", "llama2", MISTRAL1, MISTRAL1.replace(
        "{{ message['content'] + eos_token}}", "{% generation %}{{ message['content'] + eos_token}}{% endgeneration %}"), "<s>", "</s>"),
    ("mistral0.1", "mistral v0.1", "llama2", MISTRAL1.replace("eos_token}}", "eos_token + ' ' }}"), None, "<s>", "</s>"),
    ("mistral0.2s", "mistral v0.2 with system", "llama2", MISTRAL2, None, "<s>", "</s>"),
    ("mistral0.3", "mistral v0.3", "llama2", mistral3("loop.last"), None, "<s>", "</s>"),
    ("mistral0.3nemo", "mistral nemo", "llama2", mistral3("loop.last", 'message["content"] + eos_token', "[INST]"), None, "<s>", "</s>"),
    ("mistral0.3u", "mistral v0.3 later", "llama2", mistral3("(message == user_messages[-1])"), None, "<s>", "</s>"),
]


def say(*turns):
    names = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": names[t[0]], "content": t[1:]} for t in turns]


CONVERSATIONS = [
    say("uHello"), say("uHello", "aHi there!"), say("sBe brief.", "uHello", "aHi."), say("sBe brief.", "uHello"),
    say("uWho?", "a  The Lord  \n", "u\n And then?\u00a0", "a\nHe said: \u201clet there be light\u201d \U0001f600"),
    say("s  Spaces.  ", "u it's 'quoted' \\n \"x\" ", "a'", "u3.14", "a"),
    say("uReason", "a<think>\nstep one\n</think>\n\nAnswer one", "uMore", "a<think>step two</think>Answer two"),
    say("uReason", "aPlain", "u<tool_response>5</tool_response>", "a<think>\n\n</think>\n\nAfter"),
    say("u<|im_end|> <s> </s>", "a<|im_start|> caf\u00e9"),
]
MIXED = [say("sOne.", "uA", "sTwo.", "aB"), say("aFirst", "uthen"), say("uA", "uB", "aC", "aD")]


def trained_mask(tokenizer, marked, messages):
    out = tokenizer.apply_chat_template(messages, chat_template=marked, tokenize=True, return_dict=True,
                                        return_assistant_tokens_mask=True)
    return out["input_ids"], out["assistant_masks"]


def make_entry(goldens, name, family, base, template, marked, bos, eos):
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(goldens / f"base_{base}.json"), bos_token=bos, eos_token=eos)
    entry = {"name": name, "family": family, "base": base, "template": template, "bos": bos or "", "eos": eos, "cases": []}
    for messages in CONVERSATIONS + MIXED:
        case = {"messages": messages}
        try:
            case["text"] = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
        except Exception:  # the template itself refuses
            entry["cases"].append({**case, "refused": True})
            continue
        case["prompt"] = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False, add_generation_prompt=True)
        case["ids"] = tokenizer(case["text"], add_special_tokens=False)["input_ids"]
        if marked:
            ids, case["trained"] = trained_mask(tokenizer, marked, messages)
            assert ids == case["ids"], name
        entry["cases"].append(case)
    return entry


def main():
    goldens = pathlib.Path(sys.argv[1])
    entries = [make_entry(goldens, *family) for family in FAMILIES]
    (goldens / "chat.json").write_text(json.dumps(entries, ensure_ascii=True, separators=(",", ":")) + "\n")


main()
