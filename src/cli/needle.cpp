// strata needle: does a model find a key that stands somewhere in a long text?
#include "measure/needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "cli/chat_settings.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "cli/progress.h"
#include "cli/run_facts.h"
#include "evidence/ab_gates.h"
#include "measure/bench_record.h"
#include "runtime/chat.h"

namespace strata::cli {
namespace {

constexpr std::string_view kGroup = "Needle";
constexpr int64_t kMostPrompts = 1000000;

constexpr std::array kOwn{
    SettingSpec{.name = "needle.lengths",
                .flags = "--lengths",
                .type = SettingType::Text,
                .default_text = "512,1024,2K",
                .group = kGroup,
                .help = "prompts of exactly so many tokens, question and template included; K is 1024"},
    SettingSpec{.name = "needle.depths",
                .flags = "--depths",
                .type = SettingType::Ints,
                .default_text = "0,25,50,75,100",
                .min = 0,
                .max = 100,
                .group = kGroup,
                .help = "where the key stands: per cent of the text before it",
                .repeatable = true},
    SettingSpec{
        .name = "needle.markers",
        .flags = "--markers",
        .type = SettingType::Int,
        .default_text = "1",
        .min = 1,
        .max = static_cast<double>(kMaxMarkers),
        .group = kGroup,
        .help = "keys in each text, with a name each; the others stand at equal distances from the one asked for"},
    SettingSpec{.name = "needle.ask",
                .flags = "--ask",
                .type = SettingType::Choice,
                .default_text = "each",
                .choices = "each|all",
                .group = kGroup,
                .help = "with several keys: a question for each, or one question for all"},
    SettingSpec{.name = "needle.samples",
                .flags = "--samples",
                .type = SettingType::Int,
                .default_text = "1",
                .min = 1,
                .max = 10000,
                .group = kGroup,
                .help = "texts of each length and depth"},
    SettingSpec{.name = "needle.seed",
                .flags = "--seed",
                .type = SettingType::Int,
                .default_text = "1",
                .min = 0,
                .max = 9007199254740992.0,
                .group = kGroup,
                .help = "of texts and keys; answers are always greedy"},
    SettingSpec{.name = "needle.answer",
                .flags = "-n,--predict",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 65536,
                .group = kGroup,
                .help = "tokens of an answer, at most; 0: 32, and 16 for each further key asked for"},
    SettingSpec{.name = "needle.template",
                .flags = "--template",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|chat|none",
                .group = kGroup,
                .help = "ask in the form of the model's chat template, or let it continue a plain text; auto: chat "
                        "where the file has a template"},
    SettingSpec{.name = "needle.pass",
                .flags = "--pass",
                .type = SettingType::Real,
                .default_text = "1",
                .min = 0,
                .max = 1,
                .group = kGroup,
                .help = "share of right answers that every cell needs"},
    SettingSpec{.name = "needle.control",
                .flags = "--control",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = kGroup,
                .help = "expect other keys than those in the text: every cell has to fail",
                .persistent = false},
    SettingSpec{.name = "needle.format",
                .flags = "-o,--output",
                .type = SettingType::Choice,
                .default_text = "table",
                .choices = "table|json|csv",
                .group = kGroup,
                .help = "form of the result"},
    SettingSpec{.name = "needle.plot",
                .flags = "--plot",
                .type = SettingType::Path,
                .group = kGroup,
                .help = "draw a heat map into this SVG file",
                .persistent = false},
};

NeedlePlan plan_of(const Settings& settings) {
  NeedlePlan plan;
  plan.lengths = parse_lengths(settings.get_text("needle.lengths"), "--lengths");
  plan.depths = settings.get_ints("needle.depths");
  std::sort(plan.depths.begin(), plan.depths.end());
  plan.depths.erase(std::unique(plan.depths.begin(), plan.depths.end()), plan.depths.end());
  plan.markers = settings.get_int("needle.markers");
  plan.ask_all = settings.get_text("needle.ask") == "all";
  plan.samples = settings.get_int("needle.samples");
  plan.seed = static_cast<uint64_t>(settings.get_int("needle.seed"));
  plan.answer = settings.get_int("needle.answer");
  plan.pass = settings.get_real("needle.pass");
  plan.control = settings.get_bool("needle.control");
  if (plan.depths.empty()) throw Error(ErrorKind::Usage, "no depth is given", "--depths");
  if (plan.prompts() > kMostPrompts)
    throw Error(ErrorKind::Usage, fmt::format("that is {} prompts: at most {} (--lengths, --depths, --samples)",
                                              plan.prompts(), kMostPrompts));
  return plan;
}

class NeedleCommand {
 public:
  explicit NeedleCommand(CommandContext& context)
      : context_(context),
        settings_(context.settings),
        plan_(plan_of(settings_)),
        engine_(options(settings_), context.log) {}

  int run() {
    const int64_t given = settings_.get_int("ctx_size");
    check_needle(plan_, engine_, given);
    const std::string form = settings_.get_text("needle.template");
    const bool has_template = engine_.model().file().get_string("tokenizer.chat_template").has_value();
    if (form == "chat" || (form == "auto" && has_template)) chat_.emplace(chat_template_of(engine_));
    NeedleText text(engine_.tokenizer(), chat_ ? &*chat_ : nullptr, chat_ ? request() : text::ChatRequest());
    GenerateRequest generation;
    set_generation(settings_, generation);
    generation.context = given;
    if (!chat_) generation.stop = {"\n"};
    const NeedleResult result = run_needle(engine_, plan_, text, generation, hooks());
    progress_.clear();
    print(result);
    return finish(result);
  }

 private:
  static EngineOptions options(const Settings& settings) {
    EngineOptions options = engine_options(settings);
    set_prompt_cache(settings, options);
    return options;
  }

  // Thoughts cost tokens and find nothing: off where the template has the switch, unless they are asked for.
  text::ChatRequest request() const {
    text::ChatRequest request = chat_request(settings_);
    if (!request.enable_thinking && chat_->capabilities().thinking_switch) request.enable_thinking = false;
    return request;
  }

  NeedleHooks hooks() {
    NeedleHooks hooks;
    hooks.interrupted = &context_.interrupted;
    hooks.progress = [this](int64_t prompt, const NeedleCase& which, int64_t done, int64_t total) {
      if (!progress_.due()) return;
      progress_.show(fmt::format("prompt {} of {}: {} at {} %, read {} of {}{}", prompt + 1, plan_.prompts(),
                                 length_text(which.length), which.depth, done, total,
                                 wrong_ > 0 ? fmt::format(", {} wrong", wrong_) : ""));
    };
    hooks.answered = [this](const NeedleCase&, const std::string&, bool passed) { wrong_ += passed ? 0 : 1; };
    return hooks;
  }

  NamedValues facts() {
    NamedValues facts = run_facts(engine_.queue());
    facts.emplace_back("model", engine_.options().model);
    facts.emplace_back("model_type", describe_bench_model(engine_.model(), "").type);
    facts.emplace_back("threads", std::to_string(engine_.queue().pool().threads()));
    facts.emplace_back("template", chat_ ? "chat" : "none");
    for (const ArmChoice& arm : engine_.queue().arms())
      if (!arm.ran.empty()) facts.emplace_back("arm." + arm.op, arm.ran);
    return facts;
  }

  void print(const NeedleResult& result) {
    const std::string format = settings_.get_bool("json") ? "json" : settings_.get_text("needle.format");
    const std::string type = describe_bench_model(engine_.model(), "").type;
    if (format == "json") {
      fmt::print("{}", needle_json(result, plan_, facts(), given_settings(settings_)));
    } else if (format == "csv") {
      fmt::print("{}", needle_csv(result, plan_));
    } else {
      fmt::print("{}\n{}, {}\n\n{}", engine_.options().model, type, chat_ ? "asked by its chat template" : "plain text",
                 needle_table(result, plan_));
    }
    const std::string& plot = settings_.get_text("needle.plot");
    if (!plot.empty())
      write_text_file(plot,
                      needle_svg(result, plan_, type,
                                 fmt::format("{} questions a cell, seed {}, greedy", plan_.questions(), plan_.seed)));
    context_.log.info(
        fmt::format("{} prompts of {} tokens ({} of them kept), {:.1f} s{}", result.prompts, result.prompt_tokens,
                    result.cached_tokens, result.seconds,
                    result.drafted > 0 ? fmt::format(", {} of {} drafts held", result.accepted, result.drafted) : ""));
  }

  int finish(const NeedleResult& result) {
    if (!result.interrupted) return needle_verdict(result, plan_) == NeedleVerdict::Pass ? 0 : 1;
    context_.interrupted = false;  // handled: what was answered is printed
    context_.log.warn(fmt::format("interrupted: {} of {} prompts were answered", result.prompts, plan_.prompts()));
    return exit_code(ErrorKind::Interrupted);
  }

  CommandContext& context_;
  const Settings& settings_;
  const NeedlePlan plan_;
  Engine engine_;
  std::optional<text::ChatTemplate> chat_;
  Progress progress_;
  int64_t wrong_ = 0;
};

}  // namespace

Command needle_command() {
  Command command{.name = "needle",
                  .summary = "Ask for keys that stand somewhere in long texts: which lengths and depths are found?",
                  .own = kOwn,
                  .settings = engine_setting_names(),
                  .run = [](CommandContext& context) { return NeedleCommand(context).run(); }};
  for (const std::string_view name : prompt_cache_setting_names()) command.settings.push_back(name);
  command.settings.insert(command.settings.end(), {"draft", "draft_max", "system", "think", "reasoning_effort",
                                                   "chat_template_kwargs", "json"});
  return command;
}

}  // namespace strata::cli
