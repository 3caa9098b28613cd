#include "service/attendantd/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/process_memory.h"
#include "tests/support/scratch_directory.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::variant<Flags, EarlyExit> ParseLine(
    std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv = {"attendantd"};
  argv.insert(argv.end(), arguments);
  return ParseFlags(static_cast<int>(argv.size()), argv.data());
}

// Sets an environment variable for its lifetime.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const char* value) : name_(name) {
    setenv(name, value, 1);
  }
  ~ScopedEnvironment() { unsetenv(name_); }

 private:
  const char* name_;
};

// A configuration file that exists for its lifetime.
class ScopedFile {
 public:
  explicit ScopedFile(const std::string& content)
      : path_(directory_ / "attendant.toml") {
    std::ofstream(path_) << content;
  }
  const char* path() const { return path_.c_str(); }

 private:
  ScratchDirectory directory_;
  std::string path_;
};

void ExpectUsageError(const std::variant<Flags, EarlyExit>& parsed,
                      const std::string& text) {
  const auto* exit = std::get_if<EarlyExit>(&parsed);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->exit_status, 2);
  EXPECT_THAT(exit->text, StartsWith("attendantd: "));
  EXPECT_THAT(exit->text, HasSubstr(text));
  // The text is a single line.
  EXPECT_EQ(exit->text.find('\n'), exit->text.size() - 1);
}

TEST(FlagsTest, Defaults) {
  const auto parsed = ParseLine({});
  const auto* flags = std::get_if<Flags>(&parsed);
  ASSERT_NE(flags, nullptr);
  EXPECT_EQ(flags->data_dir, "attendant-data");
  EXPECT_EQ(flags->server.listen, "127.0.0.1:7600");
  EXPECT_EQ(flags->http_listen, "127.0.0.1:8600");
  EXPECT_GE(flags->server.worker_count, 1);
  EXPECT_EQ(flags->server.max_message_bytes, 16 << 20);
  EXPECT_EQ(flags->server.max_waiting_count, 1024U);
  EXPECT_EQ(flags->grace_seconds, 30);
  EXPECT_EQ(flags->log_level, LogLevel::kInfo);
  EXPECT_EQ(flags->server.slow_query_time, absl::Seconds(1));
  EXPECT_EQ(flags->auto_ivf_min_count, LiveCatalogOptions().auto_ivf_min_count);
  EXPECT_GT(flags->memory_limit_bytes, 64 << 20);
  EXPECT_LE(flags->memory_limit_bytes, MachineMemoryBytes());
}

TEST(FlagsTest, TheHttpPortIsOfLoopbackWhateverTheOtherIs) {
  const auto http_of = [](std::initializer_list<const char*> arguments) {
    const auto parsed = ParseLine(arguments);
    const auto* flags = std::get_if<Flags>(&parsed);
    return flags == nullptr ? "refused" : flags->http_listen;
  };
  EXPECT_EQ(http_of({"--listen", "0.0.0.0:5000", "--plaintext-on-network"}),
            "127.0.0.1:6000");
  EXPECT_EQ(http_of({"--listen", "127.0.0.1:0"}), "127.0.0.1:0");
  EXPECT_EQ(http_of({"--listen", "127.0.0.1:65000"}), "127.0.0.1:0");
  EXPECT_EQ(http_of({"--http-listen", "0.0.0.0:80", "--plaintext-on-network"}),
            "0.0.0.0:80");
  ExpectUsageError(ParseLine({"--http-listen", "0.0.0.0:80"}),
                   "http-listen: got 0.0.0.0 without TLS");
  EXPECT_EQ(http_of({"--http-listen", "none"}), "");
  ExpectUsageError(ParseLine({"--http-listen", "nowhere"}), "HOST:PORT");
  ExpectUsageError(ParseLine({"--listen", "nowhere"}),
                   "--listen: got \"nowhere\", want HOST:PORT");
}

TEST(FlagsTest, TheMemoryLimitTakesUnits) {
  const auto limit_of = [](const char* flag, const char* text) {
    const auto parsed = ParseLine({flag, text});
    const auto* flags = std::get_if<Flags>(&parsed);
    return flags == nullptr ? -1 : flags->memory_limit_bytes;
  };
  EXPECT_EQ(limit_of("--memory-limit", "0"), 0);
  EXPECT_EQ(limit_of("--memory-limit", "123456789"), 123456789);
  EXPECT_EQ(limit_of("--memory-limit", "12GiB"), std::int64_t{12} << 30);
  EXPECT_EQ(limit_of("--memory-limit", "12 GB"), 12'000'000'000);
  EXPECT_EQ(limit_of("--memory_limit", "512MiB"), 512 << 20);
  EXPECT_EQ(limit_of("--memory_limit=512MiB", "--max_batch=7"), 512 << 20);
  EXPECT_EQ(limit_of("--memory-limit", "50%"), MachineMemoryBytes() / 2);
  for (const char* share :
       {"0%", "101%", "nan%", "%", "80 percent", "18446744073709551616"}) {
    ExpectUsageError(ParseLine({"--memory-limit", share}),
                     "want bytes such as 12GiB or a percentage such as 80%");
  }
  ExpectUsageError(ParseLine({"--reply-memory", "80%"}),
                   "--reply-memory: got \"80%\", want bytes such as 12GiB;");
  ExpectUsageError(ParseLine({"--memory-limit", "-1"}), "memory-limit");
  ExpectUsageError(ParseLine({"--memory-limit", "much"}), "memory-limit");
  ExpectUsageError(ParseLine({"--memory-limit", "1lightyear"}), "memory-limit");
}

TEST(FlagsTest, AFileMayBeginWithTheMarkOfUtf8AndIsNoLargerThanItNeedsToBe) {
  const ScopedFile marked("\xEF\xBB\xBFworkers = 5\n");
  const auto parsed = ParseLine({"--config", marked.path()});
  const auto* flags = std::get_if<Flags>(&parsed);
  ASSERT_NE(flags, nullptr);
  EXPECT_EQ(flags->server.worker_count, 5);
  const ScopedFile large(std::string((1 << 20) + 1, '\n'));
  ExpectUsageError(ParseLine({"--config", large.path()}),
                   "the --config file has more than 1048576 bytes");
}

TEST(FlagsTest, FlagBeatsFileBeatsEnvironment) {
  const ScopedEnvironment workers("ATTENDANT_WORKERS", "7");
  const ScopedEnvironment listen("ATTENDANT_LISTEN", "127.0.0.1:1");
  const ScopedEnvironment grace("ATTENDANT_GRACE_SECONDS", "4");
  const ScopedFile file("workers = 5\nlisten = \"127.0.0.1:2\"\n");
  const auto parsed =
      ParseLine({"--config", file.path(), "--listen", "127.0.0.1:3"});
  const auto* flags = std::get_if<Flags>(&parsed);
  ASSERT_NE(flags, nullptr);
  EXPECT_EQ(flags->server.listen, "127.0.0.1:3");
  EXPECT_EQ(flags->server.worker_count, 5);
  EXPECT_EQ(flags->grace_seconds, 4);
}

TEST(FlagsTest, EveryFlagHasAVariable) {
  const ScopedEnvironment variables[] = {
      {"ATTENDANT_DATA_DIR", "/tmp/d"},
      {"ATTENDANT_LISTEN", "[::1]:5"},
      {"ATTENDANT_HTTP_LISTEN", "[::1]:6"},
      {"ATTENDANT_WORKERS", "3"},
      {"ATTENDANT_MAX_MESSAGE_BYTES", "65536"},
      {"ATTENDANT_MAX_WAITING", "17"},
      {"ATTENDANT_GRACE_SECONDS", "0"},
      {"ATTENDANT_LOG_LEVEL", "debug"},
      {"ATTENDANT_SLOW_QUERY_MS", "0"},
      {"ATTENDANT_AUTO_IVF_MIN_COUNT", "9"},
      {"ATTENDANT_MEMORY_LIMIT", "5MiB"},
  };
  const auto parsed = ParseLine({});
  const auto* flags = std::get_if<Flags>(&parsed);
  ASSERT_NE(flags, nullptr);
  EXPECT_EQ(flags->data_dir, "/tmp/d");
  EXPECT_EQ(flags->server.listen, "[::1]:5");
  EXPECT_EQ(flags->http_listen, "[::1]:6");
  EXPECT_EQ(flags->server.worker_count, 3);
  EXPECT_EQ(flags->server.max_message_bytes, 65536);
  EXPECT_EQ(flags->server.max_waiting_count, 17U);
  EXPECT_EQ(flags->grace_seconds, 0);
  EXPECT_EQ(flags->log_level, LogLevel::kDebug);
  EXPECT_EQ(flags->server.slow_query_time, absl::InfiniteDuration());
  EXPECT_EQ(flags->auto_ivf_min_count, 9);
  EXPECT_EQ(flags->memory_limit_bytes, 5 << 20);
}

TEST(FlagsTest, SecurityComesFromFlagsAndVariables) {
  const ScopedEnvironment variables[] = {
      {"ATTENDANT_TLS_CERT", "/c"},      {"ATTENDANT_TLS_KEY", "/k"},
      {"ATTENDANT_TLS_CLIENT_CA", "/a"}, {"ATTENDANT_AUTH_TOKENS", "/t"},
      {"ATTENDANT_ANONYMOUS_READ", "1"}, {"ATTENDANT_LISTEN", "0.0.0.0:1"},
  };
  const auto parsed = ParseLine({});
  const auto* flags = std::get_if<Flags>(&parsed);
  ASSERT_NE(flags, nullptr);
  const SecurityOptions& security = flags->server.security;
  EXPECT_EQ(security.tls.certificate, "/c");
  EXPECT_EQ(security.tls.key, "/k");
  EXPECT_EQ(security.tls.client_ca, "/a");
  EXPECT_EQ(security.token_path, "/t");
  EXPECT_TRUE(security.anonymous_read);
  EXPECT_FALSE(security.plaintext_on_network);
  const ScopedFile file(ToText(*flags));
  const auto again = ParseLine({"--config", file.path()});
  ASSERT_TRUE(std::holds_alternative<Flags>(again));
  EXPECT_EQ(ToText(std::get<Flags>(again)), ToText(*flags));
}

TEST(FlagsTest, AFileOfSecurityThatIsNothingIsAnError) {
  for (const char* flag :
       {"--tls-cert", "--tls-key", "--tls-client-ca", "--auth-tokens"}) {
    ExpectUsageError(ParseLine({flag, ""}), flag);
  }
  const ScopedEnvironment variable("ATTENDANT_AUTH_TOKENS", "");
  ExpectUsageError(ParseLine({}), "ATTENDANT_AUTH_TOKENS: got nothing");
}

TEST(FlagsTest, LimitsComeFromFlags) {
  const auto parsed = ParseLine({"--max-connections",
                                 "5",
                                 "--max-streams",
                                 "6",
                                 "--idle-seconds",
                                 "7",
                                 "--stall-seconds",
                                 "8",
                                 "--request-memory",
                                 "1GiB",
                                 "--reply-memory",
                                 "2GiB",
                                 "--max-dimension",
                                 "9",
                                 "--max-batch",
                                 "10",
                                 "--max-id-bytes",
                                 "11",
                                 "--max-attribute-bytes",
                                 "12",
                                 "--max-filter-bytes",
                                 "13",
                                 "--max-filter-depth",
                                 "16",
                                 "--max-opaque-value-bytes",
                                 "17",
                                 "--max-result-count",
                                 "18",
                                 "--max-shortlist-count",
                                 "19",
                                 "--max-examples",
                                 "20",
                                 "--max-id-list",
                                 "21",
                                 "--max-catalogs",
                                 "22",
                                 "--max-metadata-bytes",
                                 "1024",
                                 "--connection-age-seconds",
                                 "14",
                                 "--connection-grace-seconds",
                                 "15"});
  const auto* flags = std::get_if<Flags>(&parsed);
  ASSERT_NE(flags, nullptr);
  const TransportLimits& transport = flags->server.transport;
  EXPECT_EQ(transport.max_connection_count, 5);
  EXPECT_EQ(transport.max_stream_count, 6);
  EXPECT_EQ(transport.idle_seconds, 7);
  EXPECT_EQ(transport.stall_seconds, 8);
  EXPECT_EQ(transport.age_seconds, 14);
  EXPECT_EQ(transport.age_grace_seconds, 15);
  EXPECT_EQ(transport.request_memory_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(transport.reply_memory_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(transport.metadata_bytes, 1024);
  const RequestLimits& limits = flags->server.limits;
  EXPECT_EQ(limits.dimension, 9);
  EXPECT_EQ(limits.batch, 10);
  EXPECT_EQ(limits.id_bytes, 11);
  EXPECT_EQ(limits.attribute_bytes, 12);
  EXPECT_EQ(limits.filter_bytes, 13);
  EXPECT_EQ(limits.filter_depth, 16);
  EXPECT_EQ(limits.opaque_value_bytes, 17);
  EXPECT_EQ(limits.result_count, 18);
  EXPECT_EQ(limits.shortlist_count, 19);
  EXPECT_EQ(limits.example_count, 20);
  EXPECT_EQ(limits.id_list_count, 21);
  EXPECT_EQ(limits.catalog_count, 22);
  const ScopedFile file(ToText(*flags));
  const auto again = ParseLine({"--config", file.path()});
  ASSERT_TRUE(std::holds_alternative<Flags>(again));
  EXPECT_EQ(ToText(std::get<Flags>(again)), ToText(*flags));
  // No flag may exceed the built-in limits.
  ExpectUsageError(ParseLine({"--max-batch", "257"}), "--max-batch");
  ExpectUsageError(ParseLine({"--max-opaque-value-bytes", "65537"}),
                   "--max-opaque-value-bytes");
  ExpectUsageError(ParseLine({"--max-result-count", "10001"}),
                   "--max-result-count");
  ExpectUsageError(ParseLine({"--max-shortlist-count", "100001"}),
                   "--max-shortlist-count");
  ExpectUsageError(ParseLine({"--max-examples", "10001"}), "--max-examples");
  ExpectUsageError(ParseLine({"--max-id-list", "100001"}), "--max-id-list");
  ExpectUsageError(ParseLine({"--max-catalogs", "1001"}), "--max-catalogs");
  ExpectUsageError(ParseLine({"--max-metadata-bytes", "8193"}),
                   "--max-metadata-bytes");
  ExpectUsageError(ParseLine({"--max-metadata-bytes", "1023"}),
                   "--max-metadata-bytes");
  ExpectUsageError(ParseLine({"--max-streams", "0"}), "--max-streams");
  ExpectUsageError(ParseLine({"--reply-memory", "1MiB"}),
                   "reply-memory: got 1048576, want 67108864 or more");
}

TEST(FlagsTest, ListensToOthersOnlyWithTlsOrWhenToldTo) {
  ExpectUsageError(ParseLine({"--listen", "0.0.0.0:1"}),
                   "listen: got 0.0.0.0 without TLS");
  ExpectUsageError(ParseLine({"--tls-cert", "/c"}), "tls-key: got nothing");
  ExpectUsageError(ParseLine({"--auth-tokens", "/a#b"}), "--auth-tokens");
  const auto told =
      ParseLine({"--listen", "0.0.0.0:1", "--plaintext-on-network"});
  ASSERT_TRUE(std::holds_alternative<Flags>(told));
  EXPECT_TRUE(std::get<Flags>(told).server.security.plaintext_on_network);
}

TEST(FlagsTest, AVariableNamesTheFile) {
  const ScopedFile file("workers = 3\n");
  {
    const ScopedEnvironment config("ATTENDANT_CONFIG", file.path());
    const auto named = ParseLine({});
    ASSERT_TRUE(std::holds_alternative<Flags>(named));
    EXPECT_EQ(std::get<Flags>(named).server.worker_count, 3);
    const ScopedFile other("workers = 4\n");
    const auto told = ParseLine({"--config", other.path()});
    ASSERT_TRUE(std::holds_alternative<Flags>(told));
    EXPECT_EQ(std::get<Flags>(told).server.worker_count, 4);
  }
  {
    // Ignoring a missing file would mean that no token is required.
    const ScopedEnvironment config("ATTENDANT_CONFIG", "/missing.toml");
    ExpectUsageError(ParseLine({}), "/missing.toml");
  }
  const ScopedEnvironment config("ATTENDANT_CONFIG", "");
  EXPECT_TRUE(std::holds_alternative<Flags>(ParseLine({})));
}

TEST(FlagsTest, EffectiveConfigurationIsAConfigurationFile) {
  const auto parsed = ParseLine({"--data-dir",
                                 "/tmp/some dir",
                                 "--workers",
                                 "3",
                                 "--listen",
                                 "localhost:0",
                                 "--log-level",
                                 "error",
                                 "--grace-seconds",
                                 "9",
                                 "--max-message-bytes",
                                 "100000",
                                 "--auto-ivf-min-count",
                                 "50",
                                 "--max-waiting",
                                 "60",
                                 "--memory-limit",
                                 "3GiB",
                                 "--http-listen",
                                 "none",
                                 "--slow-query-ms",
                                 "20"});
  ASSERT_TRUE(std::holds_alternative<Flags>(parsed));
  const std::string text = ToText(std::get<Flags>(parsed));
  const ScopedFile file(text);
  const auto again = ParseLine({"--config", file.path()});
  ASSERT_TRUE(std::holds_alternative<Flags>(again));
  EXPECT_EQ(ToText(std::get<Flags>(again)), text);
  EXPECT_THAT(text, HasSubstr("data-dir = \"/tmp/some dir\""));
}

TEST(FlagsTest, TheTextSaysThatPortZeroIsAFreePort) {
  constexpr char kFree[] =
      "\n# Port 0 is a free port, which the start prints.\n"
      "http-listen = \"127.0.0.1:0\"\n";
  const auto parsed = ParseLine({"--listen", "127.0.0.1:65000"});
  ASSERT_TRUE(std::holds_alternative<Flags>(parsed));
  const std::string text = ToText(std::get<Flags>(parsed));
  EXPECT_THAT(text, HasSubstr(kFree));
  const ScopedFile file(text);
  const auto again = ParseLine({"--config", file.path()});
  ASSERT_TRUE(std::holds_alternative<Flags>(again));
  EXPECT_EQ(ToText(std::get<Flags>(again)), text);
  const auto fixed = ParseLine({"--listen", "127.0.0.1:7600"});
  ASSERT_TRUE(std::holds_alternative<Flags>(fixed));
  EXPECT_THAT(ToText(std::get<Flags>(fixed)), Not(HasSubstr("#")));
}

TEST(FlagsTest, AFileHoldsAnyDirectoryThatAFlagTakes) {
  for (const char* directory :
       {"it's", "it's here", "a, b", " a ", "[a]", "a=b", "true", "\\n;"}) {
    const auto parsed = ParseLine({"--data-dir", directory});
    ASSERT_TRUE(std::holds_alternative<Flags>(parsed)) << directory;
    const ScopedFile file(ToText(std::get<Flags>(parsed)));
    const auto again = ParseLine({"--config", file.path()});
    ASSERT_TRUE(std::holds_alternative<Flags>(again)) << directory;
    EXPECT_EQ(std::get<Flags>(again).data_dir, directory);
  }
}

TEST(FlagsTest, BadUsageIsOneLineThatNamesTheFlag) {
  ExpectUsageError(ParseLine({"--bogus"}), "--bogus");
  ExpectUsageError(ParseLine({"--workers", "-1"}), "--workers");
  ExpectUsageError(ParseLine({"--workers", "many"}), "--workers");
  ExpectUsageError(ParseLine({"--listen", "nowhere"}), "HOST:PORT");
  ExpectUsageError(ParseLine({"--listen", "localhost:65536"}), "HOST:PORT");
  ExpectUsageError(ParseLine({"--listen", ":80"}), "HOST:PORT");
  ExpectUsageError(ParseLine({"--max-message-bytes", "5"}),
                   "--max-message-bytes");
  ExpectUsageError(ParseLine({"--max-waiting", "0"}), "--max-waiting");
  ExpectUsageError(ParseLine({"--grace-seconds", "-1"}), "--grace-seconds");
  ExpectUsageError(ParseLine({"--log-level", "loud"}), "--log-level");
  ExpectUsageError(ParseLine({"--auto-ivf-min-count", "0"}),
                   "--auto-ivf-min-count");
  for (const char* text : {"a\"b", "a#b", "a\nb", "'a b'"}) {
    ExpectUsageError(ParseLine({"--data-dir", text}), "--data-dir");
  }
  ExpectUsageError(ParseLine({"--config", "/nonexistent"}), "/nonexistent");
  ExpectUsageError(ParseLine({"--config", "/dev/zero"}),
                   "/dev/zero is not a regular file");
  const ScopedEnvironment workers("ATTENDANT_WORKERS", "many");
  ExpectUsageError(ParseLine({}), "--workers");
}

TEST(FlagsTest, EachKeyOfTheFileIsSetOnce) {
  for (const char* text :
       {"memory-limit = 1GiB\nmemory_limit = 2GiB\n",
        "memory-limit = 1GiB\nworkers = 3\nmemory-limit = 1GiB\n"}) {
    const ScopedFile file(text);
    ExpectUsageError(ParseLine({"--config", file.path()}),
                     "the --config file sets memory-limit twice;");
  }
}

TEST(FlagsTest, WhatAStartWouldFailWithIsRefused) {
  const ScopedFile nowhere("data-dir = \"\"\n");
  ExpectUsageError(ParseLine({"--config", nowhere.path()}),
                   "--data-dir: got nothing, want a directory");
  const ScopedFile unquoted("listen = \"127.0.0.1:0\n");
  ExpectUsageError(ParseLine({"--config", unquoted.path()}),
                   "--listen: want no \"");
  ExpectUsageError(ParseLine({"--http-listen", "'127.0.0.1:0"}),
                   "--http-listen: want no \"");
  ExpectUsageError(
      ParseLine({"--listen", "127.0.0.1:5", "--http-listen", "127.0.0.1:5"}),
      "http-listen: got 127.0.0.1:5, want an address other than that of "
      "listen");
  EXPECT_TRUE(std::holds_alternative<Flags>(
      ParseLine({"--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"})));
}

TEST(FlagsTest, UnknownKeyOfTheFileIsRefused) {
  const ScopedFile file("workerz = 3\n");
  ExpectUsageError(ParseLine({"--config", file.path()}), "workerz");
  const ScopedFile sections("[serving]\nworkers = 3\n");
  ExpectUsageError(ParseLine({"--config", sections.path()}),
                   "has an unknown key: serving;");
}

// --check-config is for the command line, not for a configuration file.
TEST(FlagsTest, AFileDoesNotSayThatItIsOnlyChecked) {
  const ScopedFile file("check-config = true\n");
  ExpectUsageError(ParseLine({"--config", file.path()}), "check-config");
  const auto parsed = ParseLine({"--check-config"});
  ASSERT_TRUE(std::holds_alternative<Flags>(parsed));
  EXPECT_TRUE(std::get<Flags>(parsed).check_config);
}

TEST(FlagsTest, ATruthIsTrueOrFalse) {
  for (const char* text : {"2", "-1", "maybe", "99999999999999999999"}) {
    const ScopedFile file(std::string("plaintext-on-network = ") + text);
    ExpectUsageError(ParseLine({"--config", file.path()}),
                     absl::StrCat("--plaintext-on-network: got '", text,
                                  "', want true or false"));
  }
  for (const char* text : {"true", "1"}) {
    const ScopedEnvironment variable("ATTENDANT_PLAINTEXT_ON_NETWORK", text);
    const auto parsed = ParseLine({});
    ASSERT_TRUE(std::holds_alternative<Flags>(parsed)) << text;
    EXPECT_TRUE(std::get<Flags>(parsed).server.security.plaintext_on_network);
  }
}

TEST(FlagsTest, AnUnknownFlagNamesTheOneThatWasMeant) {
  ExpectUsageError(ParseLine({"--datadir", "x"}),
                   "not expected: --datadir x (did you mean --data-dir?); see "
                   "attendantd --help");
  ExpectUsageError(ParseLine({"--worker=2"}), "(did you mean --workers?)");
  ExpectUsageError(ParseLine({"--colour", "red"}),
                   "not expected: --colour red; see");
  ExpectUsageError(ParseLine({"data"}), "not expected: data; see");
}

TEST(FlagsTest, HelpNamesEveryFlagAndVariable) {
  const auto parsed = ParseLine({"--help"});
  const auto* exit = std::get_if<EarlyExit>(&parsed);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->exit_status, 0);
  EXPECT_EQ(exit->text.find("memory_limit"), std::string::npos);
  for (const char* text : {"--data-dir",
                           "--listen",
                           "--http-listen",
                           "--workers",
                           "--max-message-bytes",
                           "--max-waiting",
                           "--grace-seconds",
                           "--slow-query-ms",
                           "--log-level",
                           "--auto-ivf-min-count",
                           "--config",
                           "--check-config",
                           "--tls-cert",
                           "--tls-key",
                           "--tls-client-ca",
                           "--auth-tokens",
                           "--anonymous-read",
                           "--plaintext-on-network",
                           "--version",
                           "ATTENDANT_DATA_DIR",
                           "ATTENDANT_LOG_LEVEL",
                           "Examples"}) {
    EXPECT_THAT(exit->text, HasSubstr(text));
  }
  // A readable message, not that of the parsing library.
  EXPECT_THAT(exit->text, HasSubstr("--workers COUNT:[0 to 1024]=0 "));
  for (const char* internal : {"INT in", "9223372036854775807", "2147483647"}) {
    EXPECT_THAT(exit->text, Not(HasSubstr(internal)));
  }
}

TEST(FlagsTest, VersionIsOneLine) {
  const auto parsed = ParseLine({"--version"});
  const auto* exit = std::get_if<EarlyExit>(&parsed);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->exit_status, 0);
  EXPECT_EQ(exit->text, "attendantd " ATTENDANT_VERSION "\n");
}

}  // namespace
}  // namespace attendant
