#include "runtime/session.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"

namespace strata {
namespace {

constexpr char kMagic[8] = {'S', 'T', 'R', 'A', 'T', 'A', 'S', 'N'};
constexpr uint32_t kVersion = 1;
constexpr size_t kBlock = size_t{1} << 20;  // the checksum runs over blocks of this size, each seeded with the last
constexpr int64_t kMaxSettings = 4096;
constexpr int64_t kMaxConversation = int64_t{256} << 20;
constexpr size_t kFixedBytes = sizeof kMagic + 2 * sizeof(uint32_t) + sizeof(uint64_t);  // up to the file's size

uint64_t mix(const std::string& text, uint64_t seed) { return hash64(text.data(), text.size(), seed); }
template <class T>
uint64_t mix(const std::vector<T>& values, uint64_t seed) {
  return hash64(values.data(), values.size() * sizeof(T), seed);
}

uint64_t mix(const gguf::Value& value, uint64_t seed) {
  const uint64_t fixed[] = {static_cast<uint64_t>(value.type), static_cast<uint64_t>(value.element), value.u,
                            static_cast<uint64_t>(value.i), value.array_size()};
  uint64_t hash = hash64(fixed, sizeof fixed, seed);
  hash = hash64(&value.f, sizeof value.f, hash);
  hash = mix(value.fs, mix(value.is, mix(value.us, mix(value.s, hash))));
  for (const std::string& text : value.ss) hash = mix(text, hash);
  return hash;
}

// Of all metadata and of the names, types, shapes and places of the tensors; the weights themselves are not read.
uint64_t model_hash(const gguf::File& file) {
  uint64_t hash = 0;
  for (const gguf::KeyValue& pair : file.metadata()) hash = mix(pair.value, mix(pair.key, hash));
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const uint64_t fixed[] = {static_cast<uint64_t>(tensor.type),
                              tensor.ne[0],
                              tensor.ne[1],
                              tensor.ne[2],
                              tensor.ne[3],
                              tensor.offset,
                              tensor.shard};
    hash = hash64(fixed, sizeof fixed, mix(tensor.name, hash));
  }
  return hash;
}

std::string real(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// What the contents of a sequence depend on beside the model and the tokens: lines of "name: value".
std::string state_settings(const Engine& engine) {
  const CacheOptions& caches = engine.options().caches;
  const RopeParams& rope = engine.model().spec().rope;
  static constexpr const char* kScalings[] = {"none", "linear", "yarn"};
  std::string text;
  auto line = [&text](const char* name, const std::string& value) {
    text.append(name).append(": ").append(value).append("\n");
  };
  line("keys", std::string(to_string(caches.keys)));
  line("values", std::string(to_string(caches.values)));
  line("index keys", std::string(to_string(caches.index_keys)));
  line("window", std::to_string(caches.window));
  line("activations", engine.options().forward.activations == Activations::Int8 ? "int8" : "f32");
  line("delta nets", caches.anchored ? "anchored" : "serial");
  line("block selection", engine.options().forward.qsa == QsaSemantics::Blocks ? "blocks" : "fixed-width");
  line("rope scaling", kScalings[static_cast<size_t>(rope.scaling)]);
  line("rope base", real(rope.base));
  line("rope scale", real(rope.factor));
  line("rope original context", real(rope.original_context));
  line("rope attention factor", real(rope.attention_factor));
  if (rope.scaling != RopeScaling::Yarn) return text;
  line("yarn ext factor", real(rope.ext));
  line("yarn beta fast", real(rope.beta_fast));
  line("yarn beta slow", real(rope.beta_slow));
  return text;
}

// The first lines that differ, as "keys: f16, now q8_0".
std::string first_difference(const std::string& saved, const std::string& now) {
  for (size_t a = 0, b = 0; a < saved.size() || b < now.size();) {
    const size_t a_end = std::min(saved.find('\n', a), saved.size()), b_end = std::min(now.find('\n', b), now.size());
    const std::string was = saved.substr(a, a_end - a), is = now.substr(b, b_end - b);
    if (was != is) return was + ", now " + is.substr(std::min(is.find(": ") + 2, is.size()));
    a = std::min(a_end + 1, saved.size());
    b = std::min(b_end + 1, now.size());
  }
  return "settings";
}

void write_contents(ArchiveWriter& out, const Engine& engine, const Session& session) {
  auto text = [&out](const std::string& bytes) {
    out.value(static_cast<int64_t>(bytes.size()));
    out.bytes(bytes.data(), bytes.size());
  };
  out.value(model_hash(engine.model().file()));
  out.value(engine.model().file().file_bytes());
  text(state_settings(engine));
  out.value(session.sampled);
  out.value(static_cast<int64_t>(session.held.tokens.size()));
  out.bytes(session.held.tokens.data(), session.held.tokens.size() * sizeof(int32_t));
  text(session.conversation);
  session.held.sequence->save(out);
}

// Gathers what is written into blocks, which go to the file and into the checksum.
class CheckedOutput {
 public:
  explicit CheckedOutput(OutputFile& file) : file_(file) { block_.reserve(kBlock); }

  void write(const void* data, size_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const size_t count = std::min(bytes, kBlock - block_.size());
      block_.insert(block_.end(), from, from + count);
      from += count;
      bytes -= count;
      if (block_.size() == kBlock) flush();
    }
  }
  uint64_t finish() {
    flush();
    return hash_;
  }

 private:
  void flush() {
    if (block_.empty()) return;
    hash_ = hash64(block_.data(), block_.size(), hash_);
    file_.write(block_.data(), block_.size());
    block_.clear();
  }
  OutputFile& file_;
  std::vector<char> block_;
  uint64_t hash_ = 0;
};

uint64_t checksum(std::span<const std::byte> data) {
  uint64_t hash = 0;
  for (size_t at = 0; at < data.size(); at += kBlock)
    hash = hash64(data.data() + at, std::min(kBlock, data.size() - at), hash);
  return hash;
}

std::string read_text(ArchiveReader& in, int64_t limit, const char* what) {
  const auto size = static_cast<size_t>(in.ranged(0, limit, what));
  return {static_cast<const char*>(in.bytes(size)), size};
}

// The envelope: a session file, of this version, whole.
void check_envelope(const MappedFile& file) {
  auto refuse = [&](const std::string& message) { throw Error(ErrorKind::Format, message, file.path()); };
  const std::span<const std::byte> data = file.bytes();
  if (data.size() < sizeof kMagic || std::memcmp(data.data(), kMagic, sizeof kMagic) != 0)
    refuse("is no session file of Strata: give another --session");
  if (data.size() < kFixedBytes + sizeof(uint64_t)) refuse("the session file is cut short: remove it to begin anew");
  ArchiveReader in(data.subspan(sizeof kMagic), file.path());
  const auto version = in.value<uint32_t>();
  if (version != kVersion)
    refuse("the session file has format version " + std::to_string(version) + ", this program reads " +
           std::to_string(kVersion) + ": use the program that wrote it, or remove it to begin anew");
  const auto reserved = in.value<uint32_t>();
  const auto bytes = in.value<uint64_t>();
  if (bytes != data.size())
    refuse("the session file has " + std::to_string(data.size()) + " bytes, not " + std::to_string(bytes) +
           " as it says: it is damaged or cut short; remove it to begin anew");
  uint64_t expected = 0;
  std::memcpy(&expected, data.data() + data.size() - sizeof expected, sizeof expected);
  if (reserved != 0 || checksum(data.first(data.size() - sizeof expected)) != expected)
    refuse("the session file is damaged: its checksum is wrong; remove it to begin anew");
}

void check_origin(ArchiveReader& in, const Engine& engine, const std::string& path) {
  const gguf::File& model = engine.model().file();
  const auto hash = in.value<uint64_t>();
  const auto bytes = in.value<uint64_t>();
  if (hash != model_hash(model) || bytes != model.file_bytes())
    throw Error(ErrorKind::Model,
                "the session belongs to another model (" + std::to_string(bytes) + " bytes, metadata " +
                    hash_hex(hash) + "; " + model.path() + " has " + std::to_string(model.file_bytes()) + ", " +
                    hash_hex(model_hash(model)) + "): give that model with -m, or another --session",
                path);
  const std::string saved = read_text(in, kMaxSettings, "the size of the settings"), now = state_settings(engine);
  if (saved != now)
    throw Error(ErrorKind::Model,
                "the session was made with other settings (" + gguf::printable(first_difference(saved, now), 200) +
                    "): run with those, or give another --session",
                path);
}

}  // namespace

void save_session(const std::string& path, const Engine& engine, const Session& session) {
  if (!session.held.sequence) throw Error(ErrorKind::Argument, "there is no sequence to save", path);
  uint64_t bytes = kFixedBytes + sizeof(uint64_t);
  ArchiveWriter counter([&bytes](const void*, size_t count) { bytes += count; });
  write_contents(counter, engine, session);

  OutputFile file(path);
  CheckedOutput checked(file);
  ArchiveWriter out([&checked](const void* data, size_t count) { checked.write(data, count); });
  out.bytes(kMagic, sizeof kMagic);
  out.value(kVersion);
  out.value(uint32_t{0});
  out.value(bytes);
  write_contents(out, engine, session);
  const uint64_t sum = checked.finish();
  file.write(&sum, sizeof sum);
  file.commit();
}

Session load_session(const std::string& path, Engine& engine) {
  const MappedFile file(path);
  check_envelope(file);
  const std::span<const std::byte> data = file.bytes();
  ArchiveReader in(data.subspan(kFixedBytes, data.size() - kFixedBytes - sizeof(uint64_t)), path);
  check_origin(in, engine, path);
  Session session;
  session.sampled = in.ranged(0, INT64_MAX, "the number of sampled tokens");
  const auto most = static_cast<int64_t>(data.size() / sizeof(int32_t));
  std::vector<int32_t>& tokens = session.held.tokens;
  tokens.resize(static_cast<size_t>(in.ranged(1, most, "the number of tokens")));
  std::memcpy(tokens.data(), in.bytes(tokens.size() * sizeof(int32_t)), tokens.size() * sizeof(int32_t));
  for (const int32_t token : tokens)
    if (token < 0 || token >= engine.model().spec().vocabulary)
      in.fail("token " + std::to_string(token) + " is outside the vocabulary");
  session.conversation = read_text(in, kMaxConversation, "the size of the conversation");
  Sequence& sequence = session.held.sequence.emplace(engine.model().spec(), static_cast<int64_t>(tokens.size()),
                                                     engine.options().caches, engine.pool());
  sequence.load(in);
  if (!in.done()) in.fail("there are bytes behind the sequence");
  return session;
}

}  // namespace strata
