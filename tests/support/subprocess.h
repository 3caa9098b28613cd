// A child process whose output a test reads and which the test may kill.
#ifndef ATTENDANT_TESTS_SUPPORT_SUBPROCESS_H_
#define ATTENDANT_TESTS_SUPPORT_SUBPROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

extern char** environ;

namespace attendant {

// Starts `command`, whose first element is the path of the program. The
// destructor kills the process and waits for it. Spawned rather than forked,
// because a forked child has none of its parent's other threads.
class Subprocess {
 public:
  explicit Subprocess(std::vector<std::string> command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(),
                    environ) != 0) {
      pid_ = -1;
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  ~Subprocess() {
    Kill();
    if (output_ != nullptr) fclose(output_);
  }
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }

  // Returns the next line of standard output without the newline; nullopt at
  // the end. A last line that death cut off is dropped.
  std::optional<std::string> ReadLine() {
    std::string line;
    while (true) {
      const int c = output_ == nullptr ? EOF : fgetc(output_);
      if (c == EOF) return std::nullopt;
      if (c == '\n') return line;
      line.push_back(static_cast<char>(c));
    }
  }

  // Sends SIGKILL and waits.
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    Wait();
  }

  // Returns the exit status, or -1 if a signal ended the process or it did not
  // start.
  int Wait() {
    if (pid_ <= 0) return -1;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_SUBPROCESS_H_
