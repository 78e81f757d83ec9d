// strata inspect: what a GGUF file holds and whether this build runs it.
#include <fmt/format.h>

#include <array>

#include "cli/commands.h"
#include "cli/inspect_report.h"
#include "cli/model_settings.h"

namespace strata::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kOwn{
    SettingSpec{.name = "inspect_tensors",
                .flags = "--tensors",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Inspect",
                .help = "list every tensor",
                .persistent = false},
};

double mib(const Json& bytes) { return bytes.get<double>() / 1048576; }

std::string list_text(const Json& items) {
  std::string text;
  for (const Json& one : items)
    text += (text.empty() ? "" : ", ") + (one.is_string() ? '"' + one.get<std::string>() + '"' : one.dump());
  return text;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return "[" + list_text(value) + "]";
  if (!value.is_object()) return value.dump();
  return fmt::format("[{}, ...] ({} of {})", list_text(value["first"]), value["count"].get<uint64_t>(),
                     value["of"].get<std::string>());
}

// Runs of equal layers are one line.
void print_layers(const Json& layers) {
  auto line = [](const Json& layer) {
    return fmt::format("{} | {}{}{}", text_of(layer["mixer"]), text_of(layer["mlp"]),
                       layer.contains("ngram") ? " | n-gram table" : "", layer.contains("mtp") ? " | MTP" : "");
  };
  for (size_t first = 0, last; first < layers.size(); first = last + 1) {
    const std::string text = line(layers[first]);
    for (last = first; last + 1 < layers.size() && line(layers[last + 1]) == text;) ++last;
    const std::string range = first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
    fmt::print("  {:>7}  {}\n", range, text);
  }
}

void print_file(const Json& report) {
  const Json& file = report["file"];
  fmt::print("{}: {:.2f} MiB, {} tensors, {:.2f} M parameters, {:.3f} bits per weight\n", text_of(file["path"]),
             mib(file["bytes"]), file["tensors"].get<uint64_t>(), file["parameters"].get<double>() / 1e6,
             file["bits_per_weight"].get<double>());
  if (file.contains("shards"))
    fmt::print("split into {} files, tensor bytes {}\n", file["shards"].size(), file["shards"].dump());
  fmt::print("\ntypes\n");
  for (const Json& type : report["types"])
    fmt::print("  {:<8} {:>5} tensors {:>11.2f} MiB {:>6.2f} %\n", text_of(type["type"]),
               type["tensors"].get<uint64_t>(), mib(type["bytes"]), 100 * type["share"].get<double>());
}

// "system_role, thinking": what is true, or why the template cannot be used.
std::string capability_text(const Json& capabilities) {
  if (capabilities.contains("error")) return text_of(capabilities["error"]);
  std::string text;
  for (const auto& [name, value] : capabilities.items())
    if (!value.is_boolean() || value.get<bool>())
      text += (text.empty() ? "" : ", ") + name + (value.is_array() ? " " + value.dump() : "");
  return text.empty() ? "messages alone" : text;
}

void print_tokenizer(const Json& report) {
  const Json &tokenizer = report["tokenizer"], &chat = report["chat_template"];
  fmt::print("\ntokenizer\n");
  if (tokenizer.is_null()) fmt::print("  none: this file works with token ids only\n");
  for (const auto& [key, value] : tokenizer.items())
    fmt::print("  {:<10} {}\n", key,
               value.is_object() ? fmt::format("{} {}", value["id"].dump(), text_of(value["text"])) : text_of(value));
  fmt::print("  {:<10} {}\n", "template",
             chat.is_null() ? "none" : fmt::format("{} bytes", chat["bytes"].get<uint64_t>()));
  if (chat.contains("capabilities")) fmt::print("  {:<10} {}\n", "supports", capability_text(chat["capabilities"]));
}

void print_model(const Json& report) {
  fmt::print("\nmodel\n");
  if (!report["runnable"].get<bool>()) fmt::print("  does not run: {}\n", text_of(report["error"]));
  if (!report.contains("model")) return;
  fmt::print("  {}\n", text_of(report["model"]["summary"]));
  fmt::print("  trained for {} positions, {} tokens, {}\n", report["model"]["context"].get<int64_t>(),
             report["model"]["vocabulary"].get<int64_t>(),
             report["model"]["tied_head"].get<bool>() ? "the embedding is the head" : "own head");
  print_layers(report["model"]["layers"]);
  fmt::print("\nmemory (MiB)\n  {:>8} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "context", "weights",
             "KV " + report["memory"][0]["kv_type"].get<std::string>(), "index", "fixed", "total");
  for (const Json& row : report["memory"])
    fmt::print("  {:>8} {:>11.2f} {:>11.2f} {:>11.2f} {:>11.2f} {:>11.2f}\n", row["context"].get<int64_t>(),
               mib(row["weights"]), mib(row["kv"]), mib(row["index"]), mib(row["fixed"]), mib(row["total"]));
}

void print_lists(const Json& report) {
  fmt::print("\nmetadata\n");
  for (const auto& [key, value] : report["metadata"].items()) fmt::print("  {} = {}\n", key, text_of(value));
  if (!report.contains("tensor_list")) return;
  fmt::print("\ntensors\n");
  for (const Json& tensor : report["tensor_list"])
    fmt::print("  {:<40} {:<8} {:<22} {:>10.3f} MiB\n", text_of(tensor["name"]), text_of(tensor["type"]),
               tensor["shape"].dump(), mib(tensor["bytes"]));
}

int run(CommandContext& context) {
  const Json report = inspect_report(gguf::File::open(context.arguments.front()),
                                     context.settings.get_bool("inspect_tensors"), cache_options(context.settings));
  if (context.settings.get_bool("json"))
    fmt::print("{}\n", report.dump(2));
  else
    print_report(report);
  return 0;
}

}  // namespace

void print_report(const nlohmann::ordered_json& report) {
  print_file(report);
  print_tokenizer(report);
  print_model(report);
  print_lists(report);
}

Command inspect_command() {
  return {.name = "inspect",
          .summary = "Show what a GGUF file holds and whether it runs.",
          .own = kOwn,
          .settings = {"json", "cache_type_k", "cache_type_v", "qsa.keys"},
          .positional = {.name = "FILE", .help = "GGUF file; of a split set: any shard", .min = 1, .max = 1},
          .run = run};
}

}  // namespace strata::cli
