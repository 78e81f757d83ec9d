// Fields that the APIs share.
#pragma once

#include "server/json.h"
#include "server/request.h"

namespace strata::server {

inline constexpr int64_t kMaxTokens = 16'777'216;
inline constexpr size_t kMaxStops = 64;
inline constexpr size_t kMaxPrompts = 64, kMaxInputs = 2048;  // texts of a request: to continue, to embed

// temperature, top_p, top_k, min_p, penalties, seed, logit_bias, draft fields, ignore_eos.
void read_sampling(const Fields& fields, const RequestDefaults& defaults, GenerateRequest& generation);
// A string, token ids, or a list of at most `most` of those.
std::vector<Prompt> read_prompts(const Fields& fields, const char* name, size_t most, int64_t vocabulary);
void read_stream(const Fields& fields, ServeRequest& request);            // stream, stream_options, return_progress
void read_constraint(const Fields& fields, GenerateRequest& generation);  // response_format, json_schema, grammar
void set_schema(const Json& schema, GenerateRequest& generation);
void read_template_fields(const Fields& fields, ServeRequest& request);  // chat_template_kwargs, reasoning_effort, ...
void set_tools(const Json& tools, const std::string& where, ServeRequest& request);  // in the form of chat completions
// auto, none and required. What else there is, and names a function in the API's own way; null where there is nothing.
const Json* read_tool_choice(const Fields& fields, ServeRequest& request);
void check_tool_choice(const ServeRequest& request, const std::string& where);

}  // namespace strata::server
