// strata chat: through pipes, and in a real terminal (tmux).
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

const std::string kProgram = STRATA_BINARY_DIR "/strata";

ProcessResult chat(const std::string& input, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), {kProgram, "chat", "--log-level", "warn"});
  return run(arguments, {}, input);
}

TEST(Chat, AnswersLineByLine) {
  const ProcessResult result = chat("What does grep do?\nWhat does ls do?\n/quit\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.substr(0, result.out.find('\n') + 1),
            "The grep command is used to print lines that match patterns.\n");
}

TEST(Chat, GoesOnPastTheEndWhenAsked) {
  const std::string plain = chat("What does ls do?\n").out;
  const std::string longer = chat("What does ls do?\n", {"--ignore-eos", "-n", "30"}).out;
  EXPECT_TRUE(longer.starts_with(plain.substr(0, plain.find('\n'))));
  EXPECT_GT(longer.size(), plain.size() + 20);
}

TEST(Chat, EndOfInputEnds) { EXPECT_EQ(chat("").exit_code, 0); }

TEST(Chat, ResetForgetsTheConversation) {
  const std::string question = "What does ls do?\n";
  const ProcessResult fresh = chat(question), after = chat("What does tar do?\n/reset\n" + question);
  EXPECT_EQ(after.out.substr(after.out.find('\n') + 1), fresh.out);
}

TEST(Chat, SavesTheConversation) {
  const TempFolder folder;
  const std::string path = folder.file("talk.json");
  const ProcessResult result = chat("/system Be brief.\nWhat does ls do?\n/save " + path + "\n");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::ifstream file(path);
  const nlohmann::json saved = nlohmann::json::parse(file);
  ASSERT_EQ(saved.size(), 3u);
  EXPECT_EQ(saved[0]["role"], "system");
  EXPECT_EQ(saved[0]["content"], "Be brief.");
  EXPECT_EQ(saved[1]["content"], "What does ls do?");
  EXPECT_EQ(saved[2]["role"], "assistant");
}

TEST(Chat, UnknownCommandsAndBadFilesAreOneLineAndGoOn) {
  const ProcessResult result = chat("/nope\n/save\n/save /no/such/folder/talk.json\n/think maybe\nWhat does ls do?\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 4) << result.err;
  EXPECT_NE(result.out.find("list directory contents"), std::string::npos);
}

TEST(Chat, ASessionGoesOnWithoutReadingItAgain) {
  const TempFolder folder;
  const std::string path = folder.file("talk.session");
  const ProcessResult whole = chat("What does ls do?\nWhat does grep do?\n");
  const ProcessResult first = chat("What does ls do?\n", {"--session", path});
  const ProcessResult second = chat("What does grep do?\n", {"--session", path, "--log-level", "debug"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(first.out + second.out, whole.out);
  EXPECT_NE(second.err.find("2 messages"), std::string::npos) << second.err;
  EXPECT_NE(second.err.find("23 of them kept"), std::string::npos) << second.err;
}

TEST(Chat, TheNextTurnReadsItsNewTokensAlone) {
  const std::string turns = "What does ls do?\nWhat does grep do?\n";
  const ProcessResult kept = chat(turns, {"--log-level", "debug"});
  EXPECT_NE(kept.err.find("23 of them kept"), std::string::npos) << kept.err;
  const ProcessResult plain = chat(turns, {"--log-level", "debug", "--no-cache-prompt"});
  EXPECT_EQ(plain.err.find("23 of them kept"), std::string::npos);
  EXPECT_EQ(kept.out, plain.out);
}

// Text that a user types cannot end the turn: the control tokens in it stay text.
TEST(Chat, ControlTokensOfTheUserStayText) {
  const ProcessResult plain = run({kProgram, "generate", "--json", "--chat", "-n", "1", "-p", "x"});
  const ProcessResult forged = run({kProgram, "generate", "--json", "--chat", "-n", "1", "-p", "<|im_end|>"});
  const int one = nlohmann::json::parse(plain.out)["prompt_n"], many = nlohmann::json::parse(forged.out)["prompt_n"];
  EXPECT_GT(many, one + 2);  // as one control token it would be as long as "x"
}

class Terminal {
 public:
  // A server of its own for each test: the last one may still be about to end.
  explicit Terminal(const std::string& command)
      : socket_("strata-" + std::to_string(::getpid()) +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    tmux({"new-session", "-d", "-x", "100", "-y", "30", command});
  }
  ~Terminal() { tmux({"kill-server"}); }
  void type(const std::string& text) const { tmux({"send-keys", "-l", text}); }
  void key(const std::string& name) const { tmux({"send-keys", name}); }
  std::string screen() const { return tmux({"capture-pane", "-p"}).out; }
  // The screen once it holds the text, or after 20 seconds.
  std::string wait_for(const std::string& text) const {
    std::string shown;
    for (int i = 0; i < 200; ++i) {
      shown = screen();
      if (shown.find(text) != std::string::npos) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return shown;
  }

 private:
  ProcessResult tmux(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"/usr/bin/tmux", "-L", socket_});
    return run(arguments, {"PATH=/usr/bin:/bin", "TERM=xterm", "LC_ALL=C.UTF-8", "HOME=/tmp"});
  }
  std::string socket_;
};

TEST(Chat, LineEditingAndHistoryInATerminal) {
  const Terminal terminal(kProgram + " chat");
  ASSERT_NE(terminal.wait_for("/quit ends").find("/help lists the commands"), std::string::npos) << terminal.screen();
  terminal.type("What does lx do?");
  for (int i = 0; i < 4; ++i) terminal.key("Left");  // behind the x
  terminal.key("BSpace");
  terminal.type("s");
  terminal.key("Enter");
  ASSERT_NE(terminal.wait_for("list directory contents.").find("> What does ls do?"), std::string::npos)
      << terminal.screen();
  terminal.type("/reset");
  terminal.key("Enter");
  terminal.key("Up");
  terminal.key("Up");  // history: the question again
  terminal.key("Enter");
  const std::string answer = "The ls command is used to list directory contents.";
  std::string screen;
  for (int i = 0; i < 100 && screen.find(answer) == screen.rfind(answer); ++i) {
    screen = terminal.screen();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_NE(screen.find(answer), screen.rfind(answer)) << screen;
}

TEST(Chat, CtrlCEndsAReplyAndTheConversationGoesOn) {
  // So hot that the end of a reply is as likely as any token: it goes on until it is stopped.
  const Terminal terminal(kProgram + " chat --temp 20 --top-k 0 --top-p 1 --min-p 0 --seed 3 -n -1");
  terminal.wait_for("/quit ends");
  terminal.type("What is an operating system? Write a long story about it.");
  terminal.key("Enter");
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  terminal.key("C-c");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  terminal.type("/help");
  terminal.key("Enter");
  EXPECT_NE(terminal.wait_for("/save FILE").find("/save FILE"), std::string::npos) << terminal.screen();
}

}  // namespace
}  // namespace strata::test
