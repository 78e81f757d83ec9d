// Tools of a request: what the model reads of them, and what it may write when it calls them.
#pragma once

#include <string>

#include "server/request.h"

namespace strata::server {

// How calls are written by models of a template: as JSON between tags, or as XML (docs/templates.md).
enum class CallForm : uint8_t { JsonObject, Xml };
CallForm call_form_of(const std::string& template_source);

// For templates that do not show tools: the same as text at the head of the conversation.
void describe_tools(text::ChatRequest& request);
// For templates that do not show calls of the history, and their results: the same as text of the messages.
void write_out_calls(std::vector<text::ChatMessage>& messages);

// The grammar that tool_choice asks for: calls from the first token on (behind the thoughts, where the reply begins in
// them), or from each opening tag on. A tool whose schema has what grammars cannot say takes any arguments, unless it
// is `strict`: Error{Argument} then.
void constrain_calls(const ServeRequest& request, CallForm form, bool starts_in_thinking, GenerateRequest& generation);

}  // namespace strata::server
