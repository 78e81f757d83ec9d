// strata diff: two files of logits, position by position.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "measure/divergence.h"

namespace strata::cli {
namespace {

constexpr size_t kBytesAtATime = size_t{8} << 20;

class Diff {
 public:
  explicit Diff(CommandContext& context)
      : context_(context),
        a_(LogitsFile::open(context.arguments[0])),
        b_(LogitsFile::open(context.arguments[1])),
        json_(context.settings.get_bool("json")),
        threads_(static_cast<int>(context.settings.get_int("threads"))) {
    if (threads_ == 0) threads_ = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }

  int run() {
    const bool same_bytes = equal_bytes();
    if (!same_bytes) {
      ThreadPool pool(threads_);
      difference_ = compare_files(a_, b_, pool, context_.interrupted, [this](int64_t done, int64_t total) {
        if (progress_.due()) progress_.show(fmt::format("{} of {} positions", done, total));
      });
      progress_.clear();
    } else {
      difference_.positions = difference_.rows_a = difference_.rows_b = difference_.same_top = a_.rows();
    }
    if (json_)
      print_json(same_bytes);
    else
      print_text(same_bytes);
    return difference_.equal() ? 0 : 1;
  }

 private:
  bool equal_bytes() {
    const auto a = a_.bytes(), b = b_.bytes();
    if (a.size() != b.size()) return false;
    for (size_t done = 0; done < a.size(); done += kBytesAtATime) {
      if (context_.interrupted) throw Error(ErrorKind::Interrupted, "interrupted");
      a_.check_size();
      b_.check_size();
      if (std::memcmp(a.data() + done, b.data() + done, std::min(kBytesAtATime, a.size() - done)) != 0) return false;
    }
    return true;
  }

  bool codes() const { return a_.form() == LogitsForm::Codes || b_.form() == LogitsForm::Codes; }

  // "cache_type_k: f16 / q8_0": lines of the settings that one file alone has.
  std::vector<std::string> header_differences() const {
    std::vector<std::string> list;
    const LogitsHeader &a = a_.header(), &b = b_.header();
    if (a_.form() != b_.form())
      list.push_back("one file has all bits, the other 16-bit codes, which lose some: equal is not possible");
    if (a.model != b.model && a.model != 0 && b.model != 0)
      list.push_back(fmt::format("model {} / {}", hash_hex(a.model), hash_hex(b.model)));
    if (a.chunks() != b.chunks()) list.push_back(fmt::format("chunks {} / {}", a.chunks(), b.chunks()));
    for (const auto& [mine, other, mark] : {std::tuple(&a, &b, "-"), std::tuple(&b, &a, "+")})
      for (size_t at = 0; at < mine->settings.size() && !other->settings.empty();) {
        const size_t end = std::min(mine->settings.find('\n', at), mine->settings.size());
        const std::string line = mine->settings.substr(at, end - at);
        if (("\n" + other->settings).find("\n" + line + "\n") == std::string::npos) list.push_back(mark + line);
        at = end + 1;
      }
    return list;
  }

  void print_text(bool same_bytes) const {
    const LogitsDifference& d = difference_;
    if (same_bytes) {
      fmt::print("identical: {} bytes, {} positions of {} tokens\n", a_.bytes().size(), d.positions,
                 a_.header().vocabulary);
      return;
    }
    for (const std::string& line : header_differences()) fmt::print("{}\n", line);
    if (d.rows_a != d.rows_b) fmt::print("positions: {} / {}, compared: {}\n", d.rows_a, d.rows_b, d.positions);
    if (d.differing == 0) {
      fmt::print("{} positions with the same bits; the files differ elsewhere\n", d.positions);
      return;
    }
    const char* what = codes() ? "ln p" : "logit";
    const auto place = [&](const LogitsDifference::Place& p) {
      return fmt::format("chunk {}, position {}, {} of token {}: {} / {}", p.chunk + 1, p.position, what, p.token, p.a,
                         p.b);
    };
    if (d.first) fmt::print("first difference: {}\n", place(*d.first));
    fmt::print("differing positions: {} of {}\n", d.differing, d.positions);
    fmt::print("largest difference: {:.6g} ({})\n", std::abs(d.largest.difference()), place(d.largest));
    fmt::print("KL divergence: mean {:.6g}, maximum {:.6g}\n", d.mean_kld, d.max_kld);
    fmt::print("same top token: {} of {} ({:.3f} %)\n", d.same_top, d.positions,
               100 * static_cast<double>(d.same_top) / static_cast<double>(d.positions));
  }

  void print_json(bool same_bytes) const {
    const LogitsDifference& d = difference_;
    const auto place = [](const LogitsDifference::Place& p) {
      return nlohmann::ordered_json{
          {"chunk", p.chunk + 1}, {"position", p.position}, {"token", p.token}, {"a", p.a}, {"b", p.b}};
    };
    nlohmann::ordered_json document{{"a", a_.path()},
                                    {"b", b_.path()},
                                    {"same_bytes", same_bytes},
                                    {"equal", d.equal()},
                                    {"compared", codes() ? "ln p" : "logits"},
                                    {"positions", d.positions},
                                    {"positions_a", d.rows_a},
                                    {"positions_b", d.rows_b},
                                    {"differing", d.differing},
                                    {"first", nullptr},
                                    {"largest", nullptr},
                                    {"max_abs_difference", std::abs(d.largest.difference())},
                                    {"mean_kld", d.mean_kld},
                                    {"max_kld", d.max_kld},
                                    {"same_top", d.same_top},
                                    {"header_differences", header_differences()}};
    if (d.first) {
      document["first"] = place(*d.first);
      document["largest"] = place(d.largest);
    }
    fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }

  CommandContext& context_;
  LogitsFile a_, b_;
  bool json_;
  int threads_;
  Progress progress_;
  LogitsDifference difference_;
};

// As diff does: 0 equal, 1 different, 2 trouble.
int run(CommandContext& context) {
  try {
    return Diff(context).run();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted) throw;
    throw Error(ErrorKind::Usage, error.message(), error.where());
  }
}

}  // namespace

Command diff_command() {
  return {.name = "diff",
          .summary = "Compare two files of logits; exit code 0: the same bits, 1: not, 2: they cannot be compared.",
          .settings = {"threads", "json"},
          .positional = {.name = "A B",
                         .help = "files that strata perplexity --save-all-logits or "
                                 "--kl-divergence-base wrote, or llama-perplexity",
                         .min = 2,
                         .max = 2},
          .run = run};
}

}  // namespace strata::cli
