// The statements by which chat templates are recognised: Jinja with {%*%} and @name@ (chat_skeleton.hpp). Broken over
// lines for the reader; line ends carry no meaning.
#pragma once

#include <string_view>

namespace lamina::chat_patterns {

inline constexpr std::string_view chatml_plain = R"({% for message in messages %}
{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

inline constexpr std::string_view chatml_default = R"({% for message in messages %}
{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n@system@<|im_end|>\n' }}{% endif %}
{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

inline constexpr std::string_view qwen25 = R"({%- if tools %}{%*%}{%- else %}
{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
{%- else %}{{- '<|im_start|>system\n@system@<|im_end|>\n' }}{%- endif %}{%- endif %}
{%- for message in messages %}
{%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
{%- elif message.role == "assistant" %}{%*%}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %})";

inline constexpr std::string_view qwen3 = R"({%- if tools %}{%*%}{%- else %}
{%- if messages[0].role == 'system' %}{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{%- endif %}{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}{%*%}
{%- set ns.last_query_index = index %}{%- endif %}{%- endfor %}{%- for message in messages %}{%*%}
{%- if (message.role == "user") or (message.role == "system" and not loop.first) %}{%*%}
{%- if loop.index0 > ns.last_query_index %}{%- if loop.last or (not loop.last and reasoning_content) %}
{{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
{%- else %}{{- '<|im_start|>' + message.role + '\n' + content }}{%- endif %}
{%- else %}{{- '<|im_start|>' + message.role + '\n' + content }}{%- endif %}{%*%}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %})";

inline constexpr std::string_view llama3 = R"({% set loop_messages = messages %}{% for message in loop_messages %}
{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}
{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}
{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %})";

inline constexpr std::string_view llama31 = R"({{- bos_token }}{%*%}{%- set date_string = "@date@" %}{%*%}
{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content']|trim %}
{%- set messages = messages[1:] %}{%- else %}{%- set system_message = "" %}{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}{%*%}
{{- "Cutting Knowledge Date: December 2023\n" }}{{- "Today Date: " + date_string + "\n\n" }}{%*%}
{{- system_message }}{{- "<|eot_id|>" }}{%*%}{%- for message in messages %}
{%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- elif 'tool_calls' in message %}{%*%}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %})";

inline constexpr std::string_view llama2 =
    R"({% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}
{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}
{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('@error@') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}
{% set content = '<<SYS>>\n' + system_message + '\n<</SYS>>\n\n' + message['content'] %}
{% else %}{% set content = message['content'] %}{% endif %}
{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{%*%}
{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %})";

inline constexpr std::string_view mistral_v1 = R"({{ bos_token }}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('@error@') }}{% endif %}
{% if message['role'] == 'user' %}{{ '@before_user@' + message['content'] + '@after_user@' }}
{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}
{% else %}{{ raise_exception('@other@') }}{% endif %}{% endfor %})";

inline constexpr std::string_view mistral_v1_spaced = R"({{ bos_token }}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('@error@') }}{% endif %}
{% if message['role'] == 'user' %}{{ '@before_user@' + message['content'] + '@after_user@' }}
{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token + '@after_answer@' }}
{% else %}{{ raise_exception('@other@') }}{% endif %}{% endfor %})";

inline constexpr std::string_view mistral_v2 = R"({%- if messages[0]['role'] == 'system' %}
{%- set system_message = messages[0]['content'] %}{%- set loop_messages = messages[1:] %}{%- else %}
{%- set loop_messages = messages %}{%- endif %}{{- bos_token }}{%- for message in loop_messages %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('@error@') }}{%- endif %}
{%- if message['role'] == 'user' %}{%- if loop.first and system_message is defined %}
{{- '@before_user@' + system_message + '\n\n' + message['content'] + '@after_user@' }}{%- else %}
{{- '@before_user@' + message['content'] + '@after_user@' }}{%- endif %}{%- elif message['role'] == 'assistant' %}
{{- '@before_answer@' + message['content'] + eos_token}}{%- else %}{{- raise_exception('@other@') }}{%- endif %}{%- endfor %})";

// v0.3 with tools; the system text goes into the last message, or (a later edition) into the user's last.
inline constexpr std::string_view mistral_v3 = R"({%- if messages[0]["role"] == "system" %}
{%- set system_message = messages[0]["content"] %}{%- set loop_messages = messages[1:] %}{%- else %}
{%- set loop_messages = messages %}{%- endif %}{%*%}{{- bos_token }}{%- for message in loop_messages %}
{%- if message["role"] == "user" %}{%*%}{%- if loop.last and system_message is defined %}
{{- "@before_user@" + system_message + "\n\n" + message["content"] + "@after_user@" }}{%- else %}
{{- "@before_user@" + message["content"] + "@after_user@" }}{%- endif %}{%*%}{%- elif message["role"] == "assistant" %}
{{- "@before_answer@" + message["content"]|trim + eos_token}}{%*%}{%- endfor %})";

inline constexpr std::string_view mistral_v3_user = R"({%- if messages[0]["role"] == "system" %}
{%- set system_message = messages[0]["content"] %}{%- set loop_messages = messages[1:] %}{%- else %}
{%- set loop_messages = messages %}{%- endif %}{%*%}{{- bos_token }}{%- for message in loop_messages %}
{%- if message["role"] == "user" %}{%*%}{%- if (message == user_messages[-1]) and system_message is defined %}
{{- "@before_user@" + system_message + "\n\n" + message["content"] + "@after_user@" }}{%- else %}
{{- "@before_user@" + message["content"] + "@after_user@" }}{%- endif %}{%*%}{%- elif message["role"] == "assistant" %}
{{- "@before_answer@" + message["content"]|trim + eos_token}}{%*%}{%- endfor %})";

inline constexpr std::string_view mistral_nemo = R"({%- if messages[0]["role"] == "system" %}
{%- set system_message = messages[0]["content"] %}{%- set loop_messages = messages[1:] %}{%- else %}
{%- set loop_messages = messages %}{%- endif %}{%*%}{{- bos_token }}{%- for message in loop_messages %}
{%- if message["role"] == "user" %}{%*%}{%- if loop.last and system_message is defined %}
{{- "@before_user@" + system_message + "\n\n" + message["content"] + "@after_user@" }}{%- else %}
{{- "@before_user@" + message["content"] + "@after_user@" }}{%- endif %}{%*%}{%- elif message["role"] == "assistant" %}
{{- message["content"] + eos_token}}{%*%}{%- endfor %})";

}  // namespace lamina::chat_patterns
