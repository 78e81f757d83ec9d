// strata perplexity: how well a model foretells a text, and how far it is from another model.
#include "measure/perplexity.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "cli/perplexity_report.h"
#include "measure/model_hash.h"
#include "measure/rows.h"
#include "runtime/plan.h"

namespace strata::cli {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;

constexpr std::array kOwn{
    SettingSpec{.name = "perplexity.file",
                .flags = "-f,--file",
                .type = SettingType::Path,
                .group = "Perplexity",
                .help = "text to measure with, UTF-8, taken as it is; - reads standard input",
                .persistent = false},
    SettingSpec{.name = "perplexity.ctx_size",
                .flags = "-c,--ctx-size",
                .type = SettingType::Int,
                .default_text = "512",
                .min = static_cast<double>(kMinChunk),
                .max = 16777216,
                .group = "Perplexity",
                .help = "tokens of a chunk; the second half of each is scored"},
    SettingSpec{.name = "perplexity.chunks",
                .flags = "--chunks",
                .type = SettingType::Int,
                .default_text = "-1",
                .min = -1,
                .max = 2147483647,
                .group = "Perplexity",
                .help = "chunks at most; -1: all of the text",
                .persistent = false},
    SettingSpec{.name = "perplexity.batch_size",
                .flags = "-b,--batch-size",
                .type = SettingType::Int,
                .default_text = "65536",
                .min = 1,
                .max = 65536,
                .group = "Perplexity",
                .help = "tokens computed at a time, if fewer than --ubatch-size; results do not depend on it"},
    SettingSpec{.name = "perplexity.special",
                .flags = "--special",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Perplexity",
                .help = "control tokens written in the text are read as such"},
    SettingSpec{.name = "perplexity.dump",
                .flags = "--save-all-logits",
                .type = SettingType::Path,
                .group = "Perplexity",
                .help = "write the logits of every scored position to this file, with all their bits",
                .persistent = false},
    SettingSpec{.name = "perplexity.base",
                .flags = "--kl-divergence-base",
                .type = SettingType::Path,
                .group = "Perplexity",
                .help = "write llama-perplexity's 16-bit form of them to this file; with --kl-divergence the file, of "
                        "either form, that is compared with",
                .persistent = false},
    SettingSpec{.name = "perplexity.kl",
                .flags = "--kl-divergence",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Perplexity",
                .help = "compare with --kl-divergence-base; the text comes from there if there is no -f",
                .persistent = false},
    SettingSpec{.name = "perplexity.format",
                .flags = "-o,--output,--format",
                .type = SettingType::Choice,
                .default_text = "text",
                .choices = "text|json",
                .group = "Perplexity",
                .help = "how results are written"},
};

std::string read_text(const std::string& path) {
  if (path != "-") return read_file(path, kMaxTextBytes);
  std::string text;
  std::array<char, 65536> part;
  for (size_t got; (got = std::fread(part.data(), 1, part.size(), stdin)) > 0;) {
    text.append(part.data(), got);
    if (text.size() > kMaxTextBytes) throw Error(ErrorKind::File, "holds over 1 GiB of text", "standard input");
  }
  if (std::ferror(stdin) != 0) throw Error(ErrorKind::File, "cannot read", "standard input");
  return text;
}

EngineOptions options_of(const Settings& settings) {
  EngineOptions options = engine_options(settings);
  options.micro_batch = std::min(options.micro_batch, settings.get_int("perplexity.batch_size"));
  return options;
}

class Perplexity {
 public:
  explicit Perplexity(CommandContext& context)
      : context_(context),
        settings_(context.settings),
        json_(settings_.get_bool("json") || settings_.get_text("perplexity.format") == "json"),
        values_(progress_) {
    const std::string& base = settings_.get_text("perplexity.base");
    if (settings_.get_bool("perplexity.kl")) {
      if (base.empty()) throw Error(ErrorKind::Usage, "--kl-divergence needs a file, --kl-divergence-base FILE");
      base_.emplace(LogitsFile::open(base));
    }
    if (settings_.get_text("perplexity.file").empty() && !base_) throw Error(ErrorKind::Usage, "give a text, -f FILE");
    engine_ = std::make_unique<Engine>(options_of(settings_), context.log);
  }

  int run() {
    read_chunks();
    check_context();
    open_outputs();
    const int64_t scored = text_.chunks() * text_.layout.scored();
    context_.log.info(fmt::format("{} | {}", engine_->model().file().path(), describe(engine_->model().spec())));
    context_.log.info(
        fmt::format("{} x {} tokens, {} positions are scored", text_.chunks(), text_.layout.context, scored));
    if (base_ && !json_) fmt::print("{}", chunk_header());
    PerplexityHooks hooks;
    hooks.interrupted = &context_.interrupted;
    hooks.rows = [this](const ScoredRows& rows) { take(rows); };
    hooks.chunk = [this](int64_t chunks) { show_chunk(chunks); };
    hooks.progress = [this](int64_t done, int64_t total) { show_progress(done, total); };
    run_perplexity(*engine_, text_, hooks, run_);
    progress_.clear();
    values_.end();
    const std::vector<std::string> notes = finish_outputs();
    if (json_)
      print_json();
    else
      print_text();
    for (const std::string& note : notes) context_.log.warn(note);
    if (run_.end == PerplexityRun::End::MemoryFloor) context_.log.error("stopped: free memory fell below --mem-floor");
    return run_.end == PerplexityRun::End::Complete      ? 0
           : run_.end == PerplexityRun::End::Interrupted ? exit_code(ErrorKind::Interrupted)
                                                         : exit_code(ErrorKind::Memory);
  }

 private:
  void read_chunks() {
    int64_t context = settings_.get_int("perplexity.ctx_size"), limit = settings_.get_int("perplexity.chunks");
    if (base_) {
      if (settings_.origin("perplexity.ctx_size") == SettingOrigin::Flag && context != base_->header().layout.context)
        throw Error(ErrorKind::Usage,
                    fmt::format("was made with chunks of {} tokens, not {}: leave -c out",
                                base_->header().layout.context, context),
                    base_->path());
      check_vocabulary();
      context = base_->header().layout.context;
      const int64_t whole = base_->header().chunks();
      limit = limit < 0 ? whole : std::min(limit, whole);
    }
    if (const std::string& file = settings_.get_text("perplexity.file"); file.empty()) {
      text_ = cut_chunks({base_->header().tokens.begin(), base_->header().tokens.end()}, context, limit);
    } else {
      const text::Tokenizer& tokenizer = engine_->tokenizer();
      text_ = cut_chunks(tokenizer.encode(read_text(file), {.add_special = true,
                                                            .parse_special = settings_.get_bool("perplexity.special")}),
                         context, limit);
      if (base_) check_tokens();
    }
    if (engine_->has_tokenizer()) text_.first = begin_token(engine_->tokenizer());
    if (base_ && base_->rows() < text_.chunks() * text_.layout.scored()) shorten_to_base();
  }

  void check_vocabulary() const {
    const int64_t ours = engine_->model().spec().vocabulary, theirs = base_->header().vocabulary;
    if (ours == theirs) return;
    throw Error(ErrorKind::Usage,
                fmt::format("has a vocabulary of {} tokens, the model {} has {}: only models of one vocabulary can be "
                            "compared",
                            theirs, engine_->options().model, ours),
                base_->path());
  }

  void check_tokens() const {
    const std::string other = other_text(
        {.layout = text_.layout, .vocabulary = base_->header().vocabulary, .tokens = text_.tokens, .settings = {}},
        base_->header());
    if (!other.empty())
      throw Error(ErrorKind::Usage,
                  "was made from another text or with another tokenizer (" + other + "): leave -f out", base_->path());
  }

  // A base whose run was interrupted has whole chunks of positions and a rest.
  void shorten_to_base() {
    const int64_t chunks = base_->rows() / text_.layout.scored();
    if (chunks < 1) throw Error(ErrorKind::Usage, "holds no whole chunk: its run was interrupted", base_->path());
    context_.log.warn(fmt::format("{} holds {} of {} chunks: its run was interrupted", base_->path(), chunks,
                                  base_->header().chunks()));
    text_.tokens.resize(static_cast<size_t>(chunks * text_.layout.context));
  }

  void check_context() {
    const ModelSpec& spec = engine_->model().spec();
    if (text_.layout.context > spec.context)
      context_.log.warn(fmt::format("chunks of {} tokens are beyond the {} positions the model was trained for",
                                    text_.layout.context, spec.context));
    const std::string refusal = engine_->memory_refusal(text_.layout.context);
    if (!refusal.empty()) throw Error(ErrorKind::Memory, refusal, engine_->options().model);
  }

  void open_outputs() {
    const LogitsHeader header{.layout = text_.layout,
                              .vocabulary = engine_->model().spec().vocabulary,
                              .tokens = text_.tokens,
                              .model = model_hash(engine_->model().file()),
                              .settings = bit_settings(*engine_)};
    const std::string& dump = settings_.get_text("perplexity.dump");
    const std::string& base = settings_.get_text("perplexity.base");
    if (!dump.empty() && !base_ && dump == base)
      throw Error(ErrorKind::Usage, "two forms cannot go to one file: give --save-all-logits another name", dump);
    if (!dump.empty()) outputs_.push_back({dump, std::make_unique<LogitsWriter>(dump, LogitsForm::Full, header)});
    if (!base.empty() && !base_)
      outputs_.push_back({base, std::make_unique<LogitsWriter>(base, LogitsForm::Codes, header)});
    if (base_) scratch_.resize(static_cast<size_t>(engine_->queue().pool().threads() * 2 * header.vocabulary));
  }

  void take(const ScoredRows& rows) {
    for (Output& output : outputs_) output.writer->add(rows.logits, engine_->queue().pool());
    if (!base_) return;
    base_->check_size();
    const auto width = static_cast<size_t>(base_->header().vocabulary);
    const auto count = static_cast<int64_t>(rows.logits.size() / width);
    std::vector<PositionDivergence> found(static_cast<size_t>(count));
    run_rows(engine_->queue().pool(), count, [&](int64_t row, int share) {
      const auto mine = std::span(scratch_).subspan(static_cast<size_t>(share) * 2 * width, 2 * width);
      const auto ours = mine.first(width), theirs = mine.last(width);
      const bool valid = log_softmax(rows.logits.subspan(static_cast<size_t>(row) * width, width), ours);
      if (!valid) throw Error(ErrorKind::Model, "the logits hold no probabilities", engine_->options().model);
      base_->log_probabilities(rows.first + row, theirs);
      found[static_cast<size_t>(row)] =
          compare_position(ours, theirs, base_->header().target(rows.first + row), base_->known_above());
    });
    for (const PositionDivergence& position : found) samples_.add(position);
  }

  void show_chunk(int64_t chunks) {
    if (json_) {
      running_.push_back(perplexity_of(run_.nll).value);
    } else if (base_) {
      progress_.clear();
      fmt::print("{}", chunk_line(chunks, samples_.means()));
      std::fflush(stdout);
    } else {
      values_.add(chunks, perplexity_of(run_.nll).value);
    }
  }

  void show_progress(int64_t done, int64_t total) {
    if (!progress_.due()) return;
    const double share = static_cast<double>(done) / static_cast<double>(total);
    progress_.show(fmt::format("chunk {} of {}, {:.0f} tokens/s, {} {}", run_.chunks + 1, text_.chunks(),
                               static_cast<double>(done) / run_.seconds, time_left(share, 1, run_.seconds),
                               values_.newest()));
  }

  // What is not as asked for.
  std::vector<std::string> finish_outputs() {
    std::vector<std::string> notes;
    const bool complete = run_.end == PerplexityRun::End::Complete;
    for (Output& output : outputs_) {
      const bool keeps = complete || (output.writer->form() == LogitsForm::Full && !run_.nll.empty());
      if (keeps) output.writer->finish();
      output.writer.reset();
      if (complete) continue;
      notes.push_back(keeps ? fmt::format("{} holds the {} positions measured so far", output.path, run_.nll.size())
                            : fmt::format("{} was not written: {}", output.path,
                                          run_.nll.empty() ? "no position was measured"
                                                           : "the 16-bit form cannot hold a part of a text"));
    }
    return notes;
  }

  void print_text() const {
    const bool complete = run_.end == PerplexityRun::End::Complete;
    const bool interrupted = run_.end == PerplexityRun::End::Interrupted;
    const std::string so_far =
        complete ? ""
                 : fmt::format("{} after {} of {} chunks ({} of {} positions)", interrupted ? "Interrupted" : "Stopped",
                               run_.chunks, text_.chunks(), run_.nll.size(), text_.chunks() * text_.layout.scored());
    if (run_.nll.empty()) {
      fmt::print("{}: nothing was measured\n", so_far);
      return;
    }
    if (base_) {
      if (!complete) fmt::print("\n{}\n", so_far);
      fmt::print("\n{}", divergence_text(samples_.summary()));
    } else if (complete) {
      fmt::print("Final estimate: PPL = {}\n", perplexity_text(perplexity_of(run_.nll)));
    } else {
      fmt::print("{}\nEstimate so far: PPL = {}\n", so_far, perplexity_text(perplexity_of(run_.nll)));
    }
    context_.log.info(fmt::format("{} tokens in {:.2f} s, {:.1f} tokens/s | threads: {}", run_.tokens, run_.seconds,
                                  static_cast<double>(run_.tokens) / std::max(run_.seconds, 1e-9),
                                  engine_->queue().pool().threads()));
  }

  void print_json() const {
    const LogitsHeader header{.layout = text_.layout, .vocabulary = 0, .tokens = text_.tokens, .settings = {}};
    nlohmann::ordered_json document{{"model", engine_->options().model},
                                    {"n_ctx", header.layout.context},
                                    {"chunks", run_.chunks},
                                    {"chunks_planned", header.chunks()},
                                    {"positions", run_.nll.size()},
                                    {"positions_planned", header.planned_rows()},
                                    {"complete", run_.end == PerplexityRun::End::Complete},
                                    {"ppl", nullptr},
                                    {"nll", nullptr},
                                    {"running_ppl", running_},
                                    {"tokens", run_.tokens},
                                    {"seconds", run_.seconds},
                                    {"threads", engine_->queue().pool().threads()},
                                    {"settings", bit_settings(*engine_)}};
    if (!run_.nll.empty()) {
      document["ppl"] = json_of(perplexity_of(run_.nll));
      document["nll"] = json_of(mean_of(run_.nll));
      if (base_) {
        document["base"] = base_->path();
        document["divergence"] = json_of(samples_.summary());
      }
    }
    fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }

  struct Output {
    std::string path;
    std::unique_ptr<LogitsWriter> writer;
  };

  CommandContext& context_;
  const Settings& settings_;
  bool json_;
  Progress progress_;
  RunningValues values_;
  std::optional<LogitsFile> base_;
  std::unique_ptr<Engine> engine_;
  ChunkedText text_;
  std::vector<Output> outputs_;
  PerplexityRun run_;
  DivergenceSamples samples_;
  std::vector<double> scratch_, running_;
};

std::vector<std::string_view> shared_settings() {
  std::vector<std::string_view> names = engine_setting_names();
  std::erase(names, "ctx_size");
  names.push_back("json");
  return names;
}

}  // namespace

Command perplexity_command() {
  return {.name = "perplexity",
          .summary = "Measure how well a model foretells a text, and how far it is from another model.",
          .own = kOwn,
          .settings = shared_settings(),
          .run = [](CommandContext& context) { return Perplexity(context).run(); }};
}

}  // namespace strata::cli
