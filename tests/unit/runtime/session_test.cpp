// Session files: a run that goes on gives the bits of one that never ended, and no other file passes for a session.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/hash.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "support/test_files.h"

namespace strata {
namespace {

const char* const kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";
constexpr size_t kBlock = size_t{1} << 20;

EngineOptions options() {
  EngineOptions options;
  options.model = kModel;
  options.threads = 2;
  return options;
}

GenerateRequest request(std::vector<int32_t> prompt, int64_t tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.ignore_end = true;
  return request;
}

std::vector<int32_t> prompt_of(int64_t length) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<int32_t>(i * 37 % 900 + 20));
  return tokens;
}

std::string contents(const std::string& path) { return read_file(path, size_t{1} << 30); }

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A changed file whose checksum is right.
void sign(std::string& bytes) {
  uint64_t hash = 0;
  const size_t size = bytes.size() - sizeof hash;
  for (size_t at = 0; at < size; at += kBlock) hash = hash64(bytes.data() + at, std::min(kBlock, size - at), hash);
  std::memcpy(bytes.data() + size, &hash, sizeof hash);
}

class SessionTest : public ::testing::Test {
 protected:
  static Engine& engine() {
    static Engine engine(options(), log_);
    return engine;
  }
  Session session_of(int64_t prompt, int64_t tokens) {
    Session session;
    session.sampled =
        static_cast<int64_t>(engine().generate(request(prompt_of(prompt), tokens), {}, &session.held).tokens.size());
    return session;
  }
  std::string saved(const Session& session, const char* name = "s.session") {
    const std::string path = folder_.file(name);
    save_session(path, engine(), session);
    return path;
  }
  // The message of the error that loading gives.
  std::string refusal(const std::string& path, Engine& by, ErrorKind kind) {
    const uint64_t before = by.pool().used();
    std::string message;
    try {
      load_session(path, by);
      ADD_FAILURE() << "was loaded";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      message = error.what();
    }
    EXPECT_EQ(by.pool().used(), before);
    return message;
  }
  std::string refusal_of(const std::string& bytes, ErrorKind kind = ErrorKind::Format) {
    const std::string path = folder_.file("bad.session");
    put(path, bytes);
    return refusal(path, engine(), kind);
  }
  static inline Log log_{LogLevel::Error};
  test::TempFolder folder_;
};

TEST_F(SessionTest, AResumedRunGivesTheTokensOfOneRun) {
  for (DraftKind draft : {DraftKind::None, DraftKind::Mtp})
    for (double temperature : {0.0, 0.9})
      for (int64_t split : {1, 13, 34}) {
        GenerateRequest whole = request(prompt_of(50), 40);
        whole.draft = draft;
        whole.sampler.temperature = temperature;
        whole.sampler.seed = 4;
        const std::vector<int32_t> expected = engine().generate(whole).tokens;
        GenerateRequest part = whole;
        part.max_tokens = split;
        Session session;
        std::vector<int32_t> tokens = engine().generate(part, {}, &session.held).tokens;
        session.sampled = split;
        Session again = load_session(saved(session), engine());
        EXPECT_EQ(again.held.tokens, session.held.tokens);
        part.prompt = again.held.tokens;
        part.max_tokens = 40 - split;
        part.sampler.skip = static_cast<uint64_t>(again.sampled);
        const GenerateResult rest = engine().generate(part, {}, &again.held);
        EXPECT_EQ(rest.cached_tokens, 50 + split - 1);
        tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
        EXPECT_EQ(tokens, expected) << split << " at temperature " << temperature;
      }
}

TEST_F(SessionTest, LogitsAreTheSameBits) {
  for (int64_t length : {1, 63, 64, 65, 200}) {
    Session session = session_of(length, 3);
    Session again = load_session(saved(session), engine());
    EXPECT_EQ(again.held.sequence->hash(), session.held.sequence->hash());
    const auto vocabulary = static_cast<size_t>(engine().model().spec().vocabulary);
    std::vector<float> logits[2];
    const std::vector<int32_t> more = prompt_of(70);
    for (int i = 0; i < 2; ++i) {
      Sequence& sequence = *(i == 0 ? session : again).held.sequence;
      sequence.set_capacity(400);
      logits[i].resize(vocabulary * 3);
      engine().forward().run(more, sequence, make_f32(logits[i].data(), {3, static_cast<int64_t>(vocabulary)}));
    }
    EXPECT_EQ(std::memcmp(logits[0].data(), logits[1].data(), logits[0].size() * sizeof(float)), 0);
  }
}

// Where keys and values lie is no part of a session: in memory or in a file, it goes on either way.
TEST_F(SessionTest, GoesOnWithKeysAndValuesInAFileAndBack) {
  EngineOptions tiered = options();
  tiered.caches.resident = kPageRows;
  Engine other(tiered, log_);
  const std::vector<int32_t> prompt = prompt_of(300);
  const std::vector<int32_t> expected = engine().generate(request(prompt, 20)).tokens;
  for (Engine* first : {&engine(), &other}) {
    Engine& second = first == &other ? engine() : other;
    Session session;
    std::vector<int32_t> tokens = first->generate(request(prompt, 9), {}, &session.held).tokens;
    save_session(folder_.file("tier.session"), *first, session);
    Session loaded = load_session(folder_.file("tier.session"), second);
    const std::vector<int32_t> rest = second.generate(request(loaded.held.tokens, 11), {}, &loaded.held).tokens;
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    EXPECT_EQ(tokens, expected);
  }
  EXPECT_GT(other.pool().file().read, 0u);
  EXPECT_EQ(other.pool().file().used, 0u);
}

TEST_F(SessionTest, TheConversationComesBack) {
  Session session = session_of(5, 2);
  session.conversation = "[{\"role\": \"user\"}]\n";
  EXPECT_EQ(load_session(saved(session), engine()).conversation, session.conversation);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("s.session.partial")));
  EXPECT_THROW(save_session(folder_.file("empty.session"), engine(), Session{}), Error);
  EXPECT_THROW(load_session(folder_.file("missing.session"), engine()), Error);
}

TEST_F(SessionTest, AnyChangedByteIsNoticed) {
  const std::string good = contents(saved(session_of(70, 3)));
  for (size_t at = 0; at < good.size(); at += at < 700 ? 1 : good.size() / 60) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    refusal_of(bad);
  }
}

TEST_F(SessionTest, ACutFileIsNoticed) {
  const std::string good = contents(saved(session_of(70, 3)));
  for (size_t size :
       {size_t{0}, size_t{7}, size_t{8}, size_t{20}, size_t{31}, size_t{32}, good.size() / 2, good.size() - 1})
    refusal_of(good.substr(0, size));
  refusal_of(good + "x");
}

// Every field of the header, changed by someone who also wrote a new checksum.
TEST_F(SessionTest, EveryFieldIsChecked) {
  const std::string good = contents(saved(session_of(70, 3)));
  auto with = [&](size_t at, int64_t value, size_t bytes = 8) {
    std::string bad = good;
    std::memcpy(bad.data() + at, &value, bytes);
    sign(bad);
    return bad;
  };
  const int64_t settings = *reinterpret_cast<const int64_t*>(good.data() + 40);
  ASSERT_GT(settings, 50);
  const size_t after = 48 + static_cast<size_t>(settings);
  const size_t conversation = after + 16 + 73 * 4, sequence = conversation + 8;
  EXPECT_NE(refusal_of(with(0, 0)).find("no session file"), std::string::npos);
  EXPECT_NE(refusal_of(with(8, 2, 4)).find("format version 2, this program reads 1"), std::string::npos);
  refusal_of(with(12, 1, 4));
  EXPECT_NE(refusal_of(with(16, 5)).find("cut short"), std::string::npos);
  EXPECT_NE(refusal_of(with(24, 5), ErrorKind::Model).find("another model"), std::string::npos);
  EXPECT_NE(refusal_of(with(32, 5), ErrorKind::Model).find("another model"), std::string::npos);
  for (const int64_t value : {int64_t{-1}, INT64_MAX, int64_t{1} << 40}) {
    refusal_of(with(40, value));
    refusal_of(with(after + 8, value));     // number of tokens
    refusal_of(with(conversation, value));  // size of the conversation
    refusal_of(with(sequence, value));      // length
    refusal_of(with(sequence + 8, value));  // length of the MTP cache
  }
  refusal_of(with(after, -1));  // sampled tokens
  refusal_of(with(after + 8, 0));
  refusal_of(with(after + 16, 1 << 30, 4));  // a token
  refusal_of(with(sequence, 71));
  refusal_of(with(sequence + 16, 5));  // rows of the first cache
  std::string longer = good + "12345678";
  const uint64_t size = longer.size();
  std::memcpy(longer.data() + 16, &size, sizeof size);
  sign(longer);
  EXPECT_NE(refusal_of(longer).find("behind the sequence"), std::string::npos);
  sign(longer = good);
  EXPECT_EQ(longer, good);  // sign() writes the checksum that Strata does
}

TEST_F(SessionTest, OtherSettingsAreNamed) {
  const std::string path = saved(session_of(20, 3));
  auto message = [&](auto&& change) {
    EngineOptions other = options();
    change(other);
    Engine engine(other, log_);
    return refusal(path, engine, ErrorKind::Model);
  };
  EXPECT_NE(message([](EngineOptions& o) { o.caches.keys = DType::F32; }).find("keys: F16, now F32"),
            std::string::npos);
  EXPECT_NE(message([](EngineOptions& o) {
              o.forward.qsa = QsaSemantics::FixedWidth;
            }).find("block selection: blocks, now fixed-width"),
            std::string::npos);
  EXPECT_NE(
      message([](EngineOptions& o) { o.forward.activations = Activations::Int8; }).find("activations: f32, now int8"),
      std::string::npos);
  EXPECT_NE(message([](EngineOptions& o) { o.rope.base = 12345; }).find("rope base: "), std::string::npos);
  EXPECT_NE(message([](EngineOptions& o) { o.rope.scaling = "yarn"; }).find("rope scaling: none, now yarn"),
            std::string::npos);
  EXPECT_NE(message([](EngineOptions& o) { o.rope.factor = 2; }).find("rope scaling: none, now linear"),
            std::string::npos);
}

// Keys are cached rotated: a session of one scaling is refused with every other.
TEST_F(SessionTest, EverySettingOfTheScalingCounts) {
  EngineOptions yarn = options();
  yarn.rope.scaling = "yarn";
  yarn.rope.factor = 2;
  Engine engine(yarn, log_);
  Session session;
  engine.generate(request(prompt_of(20), 3), {}, &session.held);
  const std::string path = folder_.file("yarn.session");
  save_session(path, engine, session);
  EXPECT_EQ(load_session(path, engine).held.tokens, session.held.tokens);
  const std::pair<void (*)(RopeOverride&), const char*> changes[] = {
      {[](RopeOverride& rope) { rope = {}; }, "rope scaling: yarn, now none"},
      {[](RopeOverride& rope) { rope.scaling = "linear"; }, "rope scaling: yarn, now linear"},
      {[](RopeOverride& rope) { rope.factor = 4; }, "rope scale: 2, now 4"},
      {[](RopeOverride& rope) { rope.original_context = 1024; }, "rope original context: 4096, now 1024"},
      {[](RopeOverride& rope) { rope.attention_factor = 1.5; }, "rope attention factor: 0, now 1.5"},
      {[](RopeOverride& rope) { rope.ext = 0.5; }, "yarn ext factor: 1, now 0.5"},
      {[](RopeOverride& rope) { rope.beta_fast = 20; }, "yarn beta fast: 32, now 20"},
      {[](RopeOverride& rope) { rope.beta_slow = 2; }, "yarn beta slow: 1, now 2"}};
  for (const auto& [change, text] : changes) {
    EngineOptions other = yarn;
    change(other.rope);
    Engine by(other, log_);
    const std::string message = refusal(path, by, ErrorKind::Model);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace strata
