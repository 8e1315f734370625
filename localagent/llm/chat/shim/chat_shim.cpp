// llama.cpp's common/chat as two C functions: JSON in, JSON out, no exception out.
//
// Built against libllama-common of the same source package (`make setup`). Templates and replies are hostile: they may
// exhaust the stack, never end or raise signals, so this is only ever loaded by the confined helper `shim_child`.

#include "chat.h"
#include "json.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace {

// One date for all: a prompt must not change overnight.
constexpr std::time_t NOW = 1721952000;  // 26 July 2024

std::string text_of(const common_json & table, const char * name) {
    if (!table.contains(name)) {
        return "";
    }
    return table.at(name).get<std::string>();
}

bool flag_of(const common_json & table, const char * name) {
    return table.contains(name) && table.at(name).get<bool>();
}

common_chat_templates_inputs inputs_of(const common_json & request) {
    common_chat_templates_inputs inputs;
    inputs.messages = common_chat_msgs_parse_oaicompat(request.at("messages"));
    if (request.contains("tools")) {
        inputs.tools = common_chat_tools_parse_oaicompat(request.at("tools"));
    }
    inputs.tool_choice           = common_chat_tool_choice_parse_oaicompat(text_of(request, "tool_choice"));
    inputs.parallel_tool_calls   = flag_of(request, "parallel");
    inputs.enable_thinking       = flag_of(request, "thinking");
    inputs.add_generation_prompt = flag_of(request, "generate");
    inputs.reasoning_format      = COMMON_REASONING_FORMAT_DEEPSEEK;
    inputs.use_jinja             = true;
    inputs.now                   = std::chrono::system_clock::from_time_t(NOW);
    return inputs;
}

common_json applied(const common_json & request) {
    auto templates = common_chat_templates_init(nullptr, text_of(request, "template"), text_of(request, "bos"),
                                                text_of(request, "eos"));
    const auto made = common_chat_templates_apply(templates.get(), inputs_of(request));

    std::vector<common_json> triggers;
    for (const auto & trigger : made.grammar_triggers) {
        triggers.push_back(common_json{{"type", (int) trigger.type}, {"value", trigger.value}});
    }
    return common_json{
        {"prompt", made.prompt},
        {"grammar", made.grammar},
        {"lazy", made.grammar_lazy},
        {"triggers", triggers},
        {"preserved", made.preserved_tokens},
        {"stops", made.additional_stops},
        {"format", (int) made.format},
        {"generation_prompt", made.generation_prompt},
        {"parser", made.parser},
        {"thinking_start", made.thinking_start_tag},
        {"thinking_ends", made.thinking_end_tags},
    };
}

common_json parsed(const common_json & request) {
    common_chat_parser_params params;
    params.format            = (common_chat_format) request.at("format").get<int>();
    params.generation_prompt = text_of(request, "generation_prompt");
    params.reasoning_format  = COMMON_REASONING_FORMAT_DEEPSEEK;
    const std::string parser = text_of(request, "parser");
    if (!parser.empty()) {
        params.parser.load(parser);
    }
    const auto message = common_chat_parse(text_of(request, "text"), flag_of(request, "partial"), params);

    std::vector<common_json> calls;
    for (const auto & call : message.tool_calls) {
        calls.push_back(common_json{{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
    }
    return common_json{
        {"content", message.content},
        {"reasoning", message.reasoning_content},
        {"calls", calls},
    };
}

char * copy_of(const std::string & text) {
    char * out = static_cast<char *>(std::malloc(text.size() + 1));
    if (out != nullptr) {
        std::memcpy(out, text.c_str(), text.size() + 1);
    }
    return out;
}

char * answer(const char * request, common_json (*work)(const common_json &)) {
    try {
        return copy_of(work(common_json::parse(std::string(request))).dump_safe());
    } catch (const std::exception & fault) {
        try {
            return copy_of(common_json{{"error", std::string(fault.what()).substr(0, 2000)}}.dump_safe());
        } catch (...) {  // its text is no UTF-8
        }
    } catch (...) {
    }
    return copy_of("{\"error\": \"llama.cpp failed without a reason\"}");
}

}  // namespace

extern "C" {

// A conversation through a template: prompt, grammar, triggers, stops and the parser of the reply.
__attribute__((visibility("default"))) char * localagent_chat_apply(const char * request) {
    return answer(request, applied);
}

// A reply by such a parser: content, reasoning and calls.
__attribute__((visibility("default"))) char * localagent_chat_parse(const char * request) {
    return answer(request, parsed);
}

__attribute__((visibility("default"))) void localagent_chat_free(char * answer) {
    std::free(answer);
}

}
