// Session files: a sequence and its tokens, so that another run goes on where this one ended. docs/sessions.md has the
// format.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/engine.h"

namespace strata {

struct Session {
  HeldSequence held;
  int64_t sampled = 0;       // tokens chosen so far: how far the seed's random numbers are used up
  std::string conversation;  // JSON array of messages; empty: none
};

// Replaces the file once all of it is written. Error{File}; Error{Argument} when the session holds no sequence.
void save_session(const std::string& path, const Engine& engine, const Session& session);

// Error{File} when it cannot be read; Error{Format} when it is no session file, of another version, damaged or cut
// short; Error{Model} when it belongs to another model or other settings. Each names what differs and what to do.
Session load_session(const std::string& path, Engine& engine);

}  // namespace strata
