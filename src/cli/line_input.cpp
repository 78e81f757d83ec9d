#include "cli/line_input.h"

#include <histedit.h>
#include <unistd.h>

#include <cstdio>

#include "base/error.h"

namespace strata::cli {
namespace {

constexpr size_t kMaxLine = size_t{1} << 20;
constexpr int kHistorySize = 1000;

char* prompt_of(EditLine* line) {
  void* text = nullptr;
  el_get(line, EL_CLIENTDATA, &text);
  return static_cast<char*>(text);
}

void check_length(size_t bytes) {
  if (bytes > kMaxLine) throw Error(ErrorKind::File, "a line has over 1 MiB", "standard input");
}

}  // namespace

struct LineInput::Editor {
  explicit Editor(std::string& prompt) : history(history_init()), line(el_init("strata", stdin, stdout, stderr)) {
    if (history == nullptr || line == nullptr) throw Error(ErrorKind::Device, "cannot set up the terminal");
    HistEvent event;
    ::history(history, &event, H_SETSIZE, kHistorySize);
    ::history(history, &event, H_SETUNIQUE, 1);
    el_set(line, EL_CLIENTDATA, prompt.data());
    el_set(line, EL_PROMPT, prompt_of);
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_HIST, ::history, history);
  }
  ~Editor() {
    if (line != nullptr) el_end(line);
    if (history != nullptr) history_end(history);
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  History* history;
  EditLine* line;
};

LineInput::LineInput(std::string prompt) : prompt_(std::move(prompt)) {
  if (::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0) editor_ = std::make_unique<Editor>(prompt_);
}

LineInput::~LineInput() = default;

std::optional<std::string> LineInput::next() {
  std::string text;
  if (editor_ != nullptr) {
    int count = 0;
    const char* typed = el_gets(editor_->line, &count);
    if (typed == nullptr || count <= 0) return std::nullopt;
    text.assign(typed, static_cast<size_t>(count));
    check_length(text.size());
    HistEvent event;
    if (text != "\n") ::history(editor_->history, &event, H_ENTER, text.c_str());
  } else {
    int c = EOF;
    while ((c = std::fgetc(stdin)) != EOF && c != '\n') {
      text += static_cast<char>(c);
      check_length(text.size());
    }
    if (c == EOF && text.empty()) return std::nullopt;
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace strata::cli
