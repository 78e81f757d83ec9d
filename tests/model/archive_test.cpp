// Damaged archives of sequences: Error{Format}, and the sequence can still load a good one.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "base/error.h"
#include "model/bits_model.h"
#include "support/model_run.h"

namespace strata::test {
namespace {

struct Archive {
  struct Write {
    size_t offset, bytes;
  };
  std::string bytes;
  std::vector<Write> writes;  // one for each value or array
};

Archive archive_of(const Sequence& sequence) {
  Archive archive;
  ArchiveWriter writer([&](const void* data, size_t count) {
    archive.writes.push_back({archive.bytes.size(), count});
    archive.bytes.append(static_cast<const char*>(data), count);
  });
  sequence.save(writer);
  return archive;
}

class DamagedArchive : public testing::TestWithParam<std::string> {
 protected:
  // At this length no array is as short as a count, but the last tokens of an n-gram module.
  static constexpr int64_t kLength = 75;

  DamagedArchive() {
    CallRows call(model, sequence, model.random_tokens(1, kLength));
    std::vector<CallRows*> calls{&call};
    run_together(model.forward(1), calls);
    pool.poison(true);
    target.emplace(model.sequence(pool));
  }

  void expect_refused(const std::string& bytes) {
    try {
      load_into(*target, bytes);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Format) << error.what();
      EXPECT_EQ(error.where(), "a test");
    }
  }
  void expect_usable(const std::string& good) {
    load_into(*target, good);
    EXPECT_EQ(target->hash(), sequence.hash());
  }

  BitsModel model{GetParam()};
  Sequence sequence = model.sequence();
  PagePool pool;
  std::optional<Sequence> target;
};

TEST_P(DamagedArchive, CutAnywhere) {
  const Archive good = archive_of(sequence);
  std::vector<size_t> cuts;
  for (const Archive::Write& write : good.writes)
    for (const size_t cut : {write.offset, write.offset + 1, write.offset + write.bytes - 1})
      if (cut < good.bytes.size()) cuts.push_back(cut);
  const size_t step = test_all() ? 1 : good.bytes.size() / 1500 + 1;
  for (size_t cut = 0; model.small() && cut < good.bytes.size(); cut += step) cuts.push_back(cut);
  for (const size_t cut : cuts) {
    SCOPED_TRACE("cut after " + std::to_string(cut) + " of " + std::to_string(good.bytes.size()) + " bytes");
    expect_refused(good.bytes.substr(0, cut));
    if (HasFailure()) return;
  }
  expect_usable(good.bytes);
  expect_refused(good.bytes + '\0');
}

TEST_P(DamagedArchive, EveryCountChanged) {
  const Archive good = archive_of(sequence);
  int counts = 0;
  for (const Archive::Write& write : good.writes) {
    const bool last_tokens = write.offset + write.bytes == good.bytes.size() && !sequence.ngram_context.empty();
    if (write.bytes != sizeof(int64_t) || last_tokens) continue;
    ++counts;
    SCOPED_TRACE("the value at byte " + std::to_string(write.offset));
    for (size_t byte = 0; byte < sizeof(int64_t); ++byte)
      for (const int flip : {0x01, 0x40, 0x80, 0xff}) {
        std::string bytes = good.bytes;
        bytes[write.offset + byte] = static_cast<char>(bytes[write.offset + byte] ^ flip);
        expect_refused(bytes);
      }
    for (const int64_t value : {int64_t{-1}, INT64_MIN, INT64_MAX, model.context() + 1, kLength + 1, kLength - 1}) {
      std::string bytes = good.bytes;
      std::memcpy(bytes.data() + write.offset, &value, sizeof value);
      expect_refused(bytes);
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(counts, 4);
  expect_usable(good.bytes);
}

// Values are data: no change of them is refused, none does harm.
TEST_P(DamagedArchive, AnyByteChanged) {
  const Archive good = archive_of(sequence);
  Random random(3);
  for (int i = 0; i < (model.small() ? 400 : 40); ++i) {
    std::string bytes = good.bytes;
    const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(bytes.size())));
    bytes[at] = static_cast<char>(bytes[at] ^ (1 + random.below(255)));
    try {
      load_into(*target, bytes);
      EXPECT_EQ(target->length(), kLength);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Format) << error.what();
    }
  }
  expect_usable(good.bytes);
}

TEST_P(DamagedArchive, OfAnotherModel) {
  for (const std::string& name : bits_models()) {
    if (name == GetParam()) continue;
    SCOPED_TRACE(name);
    BitsModel other(name);
    Sequence foreign = other.sequence();
    CallRows call(other, foreign, other.random_tokens(1, kLength));
    std::vector<CallRows*> calls{&call};
    run_together(other.forward(1), calls);
    const std::string bytes = saved(foreign), own = saved(sequence);
    // Families whose sequences remember the same things have archives of one form.
    if (bytes.size() != own.size()) expect_refused(bytes);
  }
  expect_usable(saved(sequence));
}

TEST_P(DamagedArchive, LongerThanTheSequenceHolds) {
  Sequence small(model.spec(), kLength - 1);
  try {
    load_into(small, saved(sequence));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Format);
    EXPECT_NE(std::string(error.what()).find("75"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DamagedArchive, testing::ValuesIn(bits_models()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace strata::test
