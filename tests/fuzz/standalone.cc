// Runs a fuzz target without libFuzzer:
//
//   NAME_fuzz [--seed=N] [--count=N] [--seconds=S] CORPUS
//     Runs the files of the directory, then mutations of them: for a second,
//     or `count` mutations, or S seconds. Leaves the input of a failure in
//     NAME_fuzz.failed.
//   NAME_fuzz FILE
//     Runs only that input, in this process, as for a debugger.
//
// The parser must accept files named valid*: a corpus that it no longer reads
// would test little.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxInputBytes = std::size_t{1} << 20;

struct Options {
  std::int64_t seed = 1;
  std::int64_t count = 0;  // 0: as many as there is time for
  std::int64_t seconds = 0;
  std::string path;
};

// The position of the run, in memory shared with the child, so that it survives
// a crash.
struct Place {
  std::int64_t mutation = -1;  // -1: in the corpus
  std::int64_t accepted = 0;
  std::size_t size = 0;
  char input[kMaxInputBytes];
};

struct Seed {
  std::string name;
  std::string bytes;
};

int Usage() {
  std::fprintf(stderr,
               "want [--seed=N] [--count=N] [--seconds=S] CORPUS, or FILE\n");
  return 2;
}

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    std::int64_t* number = nullptr;
    if (absl::ConsumePrefix(&argument, "--seed=")) {
      number = &options.seed;
    } else if (absl::ConsumePrefix(&argument, "--count=")) {
      number = &options.count;
    } else if (absl::ConsumePrefix(&argument, "--seconds=")) {
      number = &options.seconds;
    }
    if (number == nullptr) {
      options.path = std::string(argument);
    } else if (!absl::SimpleAtoi(argument, number)) {
      return false;
    }
  }
  if (options.count == 0 && options.seconds == 0) options.seconds = 1;
  return fs::exists(options.path);
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Seed> ReadCorpus(const std::string& directory) {
  std::vector<Seed> seeds;
  for (const auto& entry : fs::directory_iterator(directory)) {
    seeds.push_back({entry.path().filename(), ReadAll(entry.path())});
  }
  std::ranges::sort(
      seeds, [](const Seed& a, const Seed& b) { return a.name < b.name; });
  return seeds;
}

void RunOne(absl::string_view bytes) {
  // Copies the input to its own allocation, so that a read past the end is
  // detected.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

void RunOne(absl::string_view bytes, Place& place) {
  place.size = std::min(bytes.size(), kMaxInputBytes);
  std::copy_n(bytes.data(), place.size, place.input);
  RunOne(bytes.substr(0, place.size));
}

void RunAll(const Options& options, Place& place) {
  std::vector<std::string> inputs;
  for (Seed& seed : ReadCorpus(options.path)) {
    const std::int64_t before = accepted_count;
    RunOne(seed.bytes, place);
    Require(accepted_count > before || !absl::StartsWith(seed.name, "valid"),
            seed.name + " is not taken: see make_corpus.cc");
    inputs.push_back(std::move(seed.bytes));
  }
  Require(!inputs.empty(), "there are seeds");
  std::mt19937_64 random(static_cast<std::uint64_t>(options.seed));
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
  for (place.mutation = 0; options.count == 0 || place.mutation < options.count;
       ++place.mutation) {
    if (options.seconds > 0 && std::chrono::steady_clock::now() >= end) break;
    RunOne(Mutate(inputs, random), place);
  }
  place.accepted = accepted_count;
}

// Runs everything in a child process: whatever kills it, this process reports
// the input.
int Run(const std::string& name, const Options& options) {
  void* shared = mmap(nullptr, sizeof(Place), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Place& place = *new (shared) Place;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    RunAll(options, place);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    std::printf("%s: %lld mutations of seed %lld, %lld inputs taken\n",
                name.c_str(), static_cast<long long>(place.mutation),
                static_cast<long long>(options.seed),
                static_cast<long long>(place.accepted));
    return 0;
  }
  const std::string failed = name + ".failed";
  std::ofstream(failed, std::ios::binary).write(place.input, place.size);
  std::fprintf(stderr,
               "%s: mutation %lld of seed %lld (-1: a seed) failed: %s %d\n"
               "its input is in %s; again: %s %s\n",
               name.c_str(), static_cast<long long>(place.mutation),
               static_cast<long long>(options.seed),
               WIFSIGNALED(status) ? "signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
               fs::absolute(failed).c_str(), name.c_str(), failed.c_str());
  return 1;
}

}  // namespace
}  // namespace attendant

// No input may need more memory than this; libFuzzer has the same limit.
extern "C" const char* __asan_default_options() {
  return "hard_rss_limit_mb=2048:max_allocation_size_mb=2048";
}

int main(int argc, char** argv) {
  attendant::Options options;
  if (!attendant::Parse(argc, argv, options)) return attendant::Usage();
  if (std::filesystem::is_directory(options.path)) {
    return attendant::Run(std::filesystem::path(argv[0]).filename(), options);
  }
  attendant::RunOne(attendant::ReadAll(options.path));
  return 0;
}
