// Pieces of answers that the APIs share.
#pragma once

#include "server/json.h"
#include "server/reply.h"

namespace strata::server {

std::string sse(const Json& data);                            // data: ...
std::string sse(const std::string& event, const Json& data);  // event: ... data: ...
Json timings_json(const Ending& ending);                      // llama.cpp's names
Json settings_json(const GenerateRequest& request);           // and its names of what a request asks for
Json usage_json(const Ending& ending);                        // of the OpenAI API
// `finish_reason` of the OpenAI API.
const char* openai_reason(const ChoiceText& choice);
Json chat_scores(const std::vector<TokenScore>& scores, const ReplyFacts& facts);

}  // namespace strata::server
