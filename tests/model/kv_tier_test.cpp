// Keys and values in the second tier: what a step reads, and what stays in memory.
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "model/bits_model.h"
#include "support/model_run.h"

namespace strata::test {
namespace {

constexpr int64_t kPrompt = 800, kSteps = 6;

const std::string& mini() {
  static const std::string path = source_path("models/strata-mini-q8_0.gguf");
  return path;
}

std::vector<int32_t> random_tokens(int64_t vocabulary, int64_t count) {
  Random random(11);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(random.below(vocabulary)));
  return tokens;
}

std::string saved(const Sequence& sequence) {
  std::string bytes;
  ArchiveWriter writer([&](const void* data, size_t count) { bytes.append(static_cast<const char*>(data), count); });
  sequence.save(writer);
  return bytes;
}

size_t system_page() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
size_t page_bytes(const PagedRows& rows) {
  const size_t bytes = static_cast<size_t>(rows.bytes_at(1));
  return (bytes + system_page() - 1) / system_page() * system_page();
}
int64_t pages_of(const PagedRows& rows) { return (rows.length() + kPageRows - 1) / kPageRows; }

void protect(const PagedRows& rows, int64_t page, int protection) {
  auto* data = const_cast<void*>(rows.row(page * kPageRows));
  ASSERT_EQ(::mprotect(data, page_bytes(rows), protection), 0);
}

// Steps of a model with block selection, and what each of its layers selects.
class SelectedPages : public testing::Test {
 protected:
  void run(Sequence& sequence, std::span<const int32_t> tokens) {
    logits.resize(static_cast<size_t>(model.vocabulary()));
    model.forward().run(tokens, sequence, make_f32(logits.data(), {1, model.vocabulary()}));
  }
  Sequence make_sequence(PagePool pool, int64_t resident) {
    CacheOptions caches;
    caches.resident = resident;
    return Sequence(model.spec(), kPrompt + kSteps, caches, std::move(pool));
  }
  std::vector<LayerCaches*> selecting(Sequence& sequence) {
    std::vector<LayerCaches*> all;
    for (int i = 0; i < model.spec().trunk_layers(); ++i)
      if (model.spec().layers[static_cast<size_t>(i)].indexer.ratio > 0)
        all.push_back(&sequence.layers[static_cast<size_t>(i)]);
    return all;
  }

  void observe(const char* name, int, const Tensor& tensor) {
    if (std::string_view(name) == "qsa_ids") ids = tensor;
    if (std::string_view(name) == "qsa_counts") {
      std::set<int64_t> pages;
      for (int64_t i = 0; i < tensor.as<int32_t>()[0]; ++i) pages.insert(ids.row<int32_t>(0)[i] / kPageRows);
      chosen.push_back(pages);
      if (guarded != nullptr) guard(*selecting(*guarded).at(chosen.size() - 1), pages, PROT_NONE);
    }
  }
  // Pages without selected cells cannot be read until the step is over.
  static void guard(const LayerCaches& caches, const std::set<int64_t>& pages, int protection) {
    for (const PagedRows* rows : {&caches.k, &caches.v})
      for (int64_t page = 0; page < pages_of(*rows); ++page)
        if (!pages.contains(page)) protect(*rows, page, protection);
  }

  Tensor ids;
  std::vector<std::set<int64_t>> chosen;  // by layer with selection, of the last step
  Sequence* guarded = nullptr;
  std::vector<float> logits;
  ModelRun model{mini(), 2, {.observe = [this](const char* name, int layer, const Tensor& tensor) {
                   if (watching) observe(name, layer, tensor);
                 }}};
  bool watching = false;
};

TEST_F(SelectedPages, AStepTouchesOnlyPagesWithSelectedCells) {
  const auto tokens = random_tokens(model.vocabulary(), kPrompt + kSteps);
  const std::span<const int32_t> all(tokens);
  PagePool pool;
  Sequence plain = make_sequence(PagePool(), 0), tiered = make_sequence(pool, kPageRows);
  run(tiered, all.first(kPrompt));
  load_into(plain, saved(tiered));
  size_t spared = 0;  // pages that no row of a step selected
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto token = all.subspan(static_cast<size_t>(kPrompt + step), 1);
    run(plain, token);
    const std::vector<float> expected = logits;
    const FileTierStats before = pool.file();
    chosen.clear();
    watching = true, guarded = &tiered;
    run(tiered, token);
    watching = false, guarded = nullptr;
    const std::vector<LayerCaches*> layers = selecting(tiered);
    ASSERT_EQ(chosen.size(), layers.size());
    uint64_t wanted = 0;
    for (size_t i = 0; i < layers.size(); ++i) {
      guard(*layers[i], chosen[i], PROT_READ | PROT_WRITE);
      spared += static_cast<size_t>(pages_of(layers[i]->k)) - chosen[i].size();
      EXPECT_TRUE(chosen[i].contains(pages_of(layers[i]->k) - 1));
      wanted += 2 * (chosen[i].size() - 1);  // the newest page of keys and of values is in memory
    }
    EXPECT_EQ(logits, expected) << "step " << step;
    EXPECT_EQ(pool.file().read - before.read, wanted) << "step " << step;
  }
  // In every step, some pages have no selected cell, or the test says nothing.
  EXPECT_GE(spared, static_cast<size_t>(kSteps));
}

// What the system itself counts, after a long prompt and some steps.
TEST_F(SelectedPages, MemoryStaysNearTheWorkingSet) {
  struct statfs status {};
  if (::statfs(kDefaultTierFolder, &status) != 0 || status.f_type == TMPFS_MAGIC)
    GTEST_SKIP() << kDefaultTierFolder << " lies in memory";
  const auto tokens = random_tokens(model.vocabulary(), kPrompt + kSteps);
  PagePool pool;
  constexpr int64_t kPages = 2;
  Sequence sequence = make_sequence(pool, kPages * kPageRows);
  for (size_t at = 0; at < static_cast<size_t>(kPrompt); at += 200)
    run(sequence, std::span<const int32_t>(tokens).subspan(at, 200));
  for (int64_t step = 0; step < kSteps; ++step)
    run(sequence, std::span<const int32_t>(tokens).subspan(static_cast<size_t>(kPrompt + step), 1));
  size_t whole = 0, resident = 0, set = 0;
  for (const LayerCaches* caches : selecting(sequence))
    for (const PagedRows* rows : {&caches->k, &caches->v}) {
      set += kPages * page_bytes(*rows);
      for (int64_t page = 0; page < pages_of(*rows); ++page) {
        std::vector<unsigned char> flags(page_bytes(*rows) / system_page());
        auto* data = const_cast<void*>(rows->row(page * kPageRows));
        ASSERT_EQ(::mincore(data, page_bytes(*rows), flags.data()), 0);
        for (const unsigned char flag : flags) resident += (flag & 1) * system_page();
        whole += page_bytes(*rows);
      }
    }
  EXPECT_EQ(pool.file().resident, set);
  // The system may hold on to some pages for a moment, and writes and reads in larger units on some file systems: half
  // as much again is near enough, and far from the whole.
  EXPECT_LE(resident, set + set / 2);
  EXPECT_GT(whole, 3 * set);
  std::printf("%zu KiB of keys and values, %zu KiB in memory, working sets of %zu KiB\n", whole >> 10, resident >> 10,
              set >> 10);
}

}  // namespace
}  // namespace strata::test
