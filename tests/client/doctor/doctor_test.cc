#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attendant/v1/catalog_service.grpc.pb.h"
#include "client/api/client.h"
#include "client/doctor/certificate.h"
#include "client/doctor/data_directory.h"
#include "client/doctor/machine.h"
#include "client/doctor/open_files.h"
#include "client/doctor/report.h"
#include "client/doctor/server.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/shortlist/builds/faiss_build.h"
#include "service/security/certificate_expiry.h"
#include "tests/client/temporary_file.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_authority.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Returns the finding about `subject`, which must exist.
Finding About(const std::vector<Finding>& findings,
              const std::string& subject) {
  for (const Finding& finding : findings) {
    if (finding.subject == subject) return finding;
  }
  ADD_FAILURE() << "nothing about " << subject;
  return {};
}

// /proc and /sys of a machine that does not exist.
class MachineTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  Finding About(const std::string& subject) {
    return attendant::About(ExamineMachine(root_.path()), subject);
  }

  ScratchDirectory root_;
};

TEST_F(MachineTest, NamesTheProcessorAndWhatItHas) {
  Write("/proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Abacus 3000\nflags\t\t: fpu avx2 fma\n\n"
        "processor\t: 1\nmodel name\t: Another\n");
  const Finding finding = About("processor");
  EXPECT_EQ(finding.verdict, Verdict::kOk);
  EXPECT_THAT(finding.text, HasSubstr("Abacus 3000"));
  EXPECT_THAT(finding.text, HasSubstr("avx2 fma"));
  EXPECT_THAT(finding.text, Not(HasSubstr("avx512")));
}

TEST_F(MachineTest, AQuotaOfCoresIsAReasonForFewerWorkers) {
  Write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  const Finding finding = About("processor");
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_THAT(finding.advice, HasSubstr("--workers 1"));
  Write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(About("processor").verdict, Verdict::kOk);
}

TEST_F(MachineTest, KernelsAndFaissOfThisMachineWork) {
  EXPECT_NE(About("kernels").verdict, Verdict::kFailure);
  EXPECT_THAT(About("kernels").text, HasSubstr("agree"));
  EXPECT_EQ(About("FAISS").verdict, Verdict::kOk);
  EXPECT_THAT(About("FAISS").text, HasSubstr(FaissVersion()));
}

TEST_F(MachineTest, LittleMemoryIsAWarning) {
  Write("/proc/meminfo", "MemTotal:  524288 kB\n");
  EXPECT_EQ(About("memory").verdict, Verdict::kWarning);
  EXPECT_THAT(About("memory").text, HasSubstr("512 MiB"));
  Write("/proc/meminfo", "MemTotal:  16777216 kB\n");
  EXPECT_EQ(About("memory").verdict, Verdict::kOk);
  std::filesystem::remove(root_.path() + "/proc/meminfo");
  EXPECT_THAT(About("memory").advice, HasSubstr("--memory-limit"));
}

TEST_F(MachineTest, HugePagesThatAreNeverUsedAreAWarning) {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  Write(path, "always [madvise] never\n");
  EXPECT_EQ(About("huge pages").verdict, Verdict::kOk);
  EXPECT_EQ(About("huge pages").text, "madvise");
  Write(path, "always madvise [never]\n");
  EXPECT_EQ(About("huge pages").verdict, Verdict::kWarning);
  EXPECT_THAT(About("huge pages").advice, HasSubstr(path));
}

TEST(OpenFilesTest, TwoThirdsAreForCatalogs) {
  const Finding many = OpenFilesOf(1 << 20, 50);
  EXPECT_EQ(many.verdict, Verdict::kOk);
  EXPECT_EQ(many.text, "50 of 1,048,576, enough for about 1,000 catalogs");
  const Finding few = OpenFilesOf(1200, std::nullopt);
  EXPECT_EQ(few.verdict, Verdict::kWarning);
  EXPECT_EQ(few.text, "up to 1,200, enough for about 20 catalogs");
  EXPECT_THAT(few.advice, HasSubstr("LimitNOFILE"));
  EXPECT_EQ(OpenFilesOf(60000, 39993).verdict, Verdict::kOk);
  const Finding full = OpenFilesOf(60000, 39994);
  EXPECT_EQ(full.verdict, Verdict::kWarning);
  EXPECT_THAT(full.text, HasSubstr("none can be added"));
  const Finding any =
      OpenFilesOf(std::numeric_limits<double>::infinity(), std::nullopt);
  EXPECT_EQ(any.verdict, Verdict::kOk);
  EXPECT_EQ(any.text, "any number");
}

TEST_F(MachineTest, OpenFilesAreThoseOfTheServersProcess) {
  const std::string head = "Limit  Soft Limit  Hard Limit  Units\n";
  Write("/proc/42/limits",
        head +
            "Max processes  7  7  processes\n"
            "Max open files            1024     524288     files\n");
  auto finding = ExamineOpenFiles(42, root_.path());
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->verdict, Verdict::kWarning);
  EXPECT_THAT(finding->text, HasSubstr("up to 1,024"));
  EXPECT_THAT(finding->text, HasSubstr("of process 42"));
  Write("/proc/42/limits", head + "Max open files  unlimited  unlimited\n");
  EXPECT_EQ(ExamineOpenFiles(42, root_.path()).value_or(Finding()).text,
            "any number of process 42");
  EXPECT_FALSE(ExamineOpenFiles(43, root_.path()).has_value());
  // A process that runs, by the system's own /proc.
  EXPECT_TRUE(ExamineOpenFiles(getpid()).has_value());
}

TEST(OpenFilesTest, ThoseOfAShellAreNotCalledTheServers) {
  EXPECT_THAT(ExamineOwnOpenFiles().text,
              HasSubstr("if the server is started from this shell"));
}

TEST(DataDirectoryTest, OneThatIsNotThereWillBeMade) {
  const ScratchDirectory directory;
  const std::string path = directory / "new/data";
  const auto findings = ExamineDataDirectory(path);
  EXPECT_EQ(About(findings, "directory").verdict, Verdict::kOk);
  EXPECT_THAT(About(findings, "directory").text, HasSubstr("not there yet"));
  EXPECT_THAT(About(findings, "format").text, HasSubstr("nothing was stored"));
  EXPECT_EQ(About(findings, "held by").text, "nobody");
  EXPECT_NE(About(findings, "sync").verdict, Verdict::kFailure);
  EXPECT_THAT(About(findings, "space").text, HasSubstr(" free of "));
  EXPECT_FALSE(About(findings, "file system").text.empty());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(DataDirectoryTest, LeavesNothingBehind) {
  const ScratchDirectory directory;
  ExamineDataDirectory(directory.path());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(DataDirectoryTest, TellsFormatsApart) {
  const ScratchDirectory directory;
  const auto format = [&](const std::string& text) {
    WriteIn(directory, "FORMAT", text);
    return About(ExamineDataDirectory(directory.path()), "format");
  };
  EXPECT_EQ(format("1\n").verdict, Verdict::kOk);
  EXPECT_EQ(format("99\n").verdict, Verdict::kFailure);
  EXPECT_THAT(format("99\n").text, HasSubstr("newer"));
  // attendantd does not start on either.
  EXPECT_EQ(format("one\n").verdict, Verdict::kFailure);
  EXPECT_EQ(format("").verdict, Verdict::kFailure);
}

TEST(DataDirectoryTest, SaysThatTheFormatIsLost) {
  const ScratchDirectory directory;
  std::filesystem::create_directories(directory / "items/uid");
  const Finding format =
      About(ExamineDataDirectory(directory.path()), "format");
  EXPECT_EQ(format.verdict, Verdict::kFailure);
  EXPECT_THAT(format.text, HasSubstr("FORMAT is missing"));
  EXPECT_THAT(format.advice, HasSubstr("backup"));
}

TEST(DataDirectoryTest, NamesWhoHoldsIt) {
  const ScratchDirectory directory;
  const std::string lock = WriteIn(directory, "LOCK", "");
  const int fd = open(lock.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(About(ExamineDataDirectory(directory.path()), "held by").text,
            absl::StrCat("process ", getpid()));
  EXPECT_EQ(About(ExamineDataDirectory(directory.path(),
                                       /*server_answers=*/true),
                  "held by")
                .verdict,
            Verdict::kOk);
  close(fd);
  EXPECT_EQ(About(ExamineDataDirectory(directory.path()), "held by").text,
            "nobody");
}

TEST(DataDirectoryTest, OneThatTheServerDoesNotHoldIsNotIts) {
  const ScratchDirectory directory;
  const Finding holder =
      About(ExamineDataDirectory(directory.path(), /*server_answers=*/true),
            "held by");
  EXPECT_EQ(holder.verdict, Verdict::kWarning);
  EXPECT_EQ(holder.text, "nobody, though the server answers");
  EXPECT_THAT(holder.advice, HasSubstr("--data-dir"));
}

// The advice for another user is not to take the directory from its owner.
TEST(DataDirectoryTest, OneOfAnotherUserIsForThatUserToExamine) {
  if (getuid() != 0) GTEST_SKIP() << "only root makes files of others";
  const ScratchDirectory directory;
  const std::string path = directory / "data";
  std::filesystem::create_directory(path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  constexpr uid_t kNobody = 65534;
  const auto print_as_nobody = [&] {
    if (setuid(kNobody) != 0) _exit(2);
    for (const Finding& finding : ExamineDataDirectory(path)) {
      std::cerr << finding.text << ": " << finding.advice << "\n"
                << (finding.verdict == Verdict::kWarning ? "warning" : "")
                << "\n";
    }
    _exit(0);
  };
  EXPECT_EXIT(print_as_nobody(), ::testing::ExitedWithCode(0),
              "Permission denied, as it is root's: run as its owner: sudo -u "
              "root attendant doctor --data-dir .*data\nwarning");
  ASSERT_EQ(chown(path.c_str(), kNobody, kNobody), 0);
  std::filesystem::permissions(path, std::filesystem::perms::none);
  EXPECT_EXIT(print_as_nobody(), ::testing::ExitedWithCode(0),
              "Permission denied: let its owner in: chmod u\\+rwx .*chown");
}

// Prints the finding about the files, as a user that may not read all of them.
void PrintAboutFilesAsNobody(const std::string& path, uid_t nobody) {
  if (setuid(nobody) != 0) _exit(2);
  const Finding files = About(ExamineDataDirectory(path), "files");
  std::cerr << (files.verdict == Verdict::kFailure ? "failure: " : "well: ")
            << files.text << "\n"
            << files.advice << "\n";
  _exit(0);
}

TEST(DataDirectoryTest, NamesFilesAndFoldersWithoutRights) {
  if (getuid() != 0) GTEST_SKIP() << "only root makes files of others";
  constexpr uid_t kNobody = 65534;
  const ScratchDirectory directory;
  const std::string path = directory / "data";
  std::filesystem::create_directories(path + "/items/uid");
  std::filesystem::create_directories(path + "/keys");
  std::filesystem::create_directories(path + "/lost+found");
  std::ofstream(path + "/FORMAT") << "1\n";
  std::ofstream(path + "/items/uid/CURRENT") << "x";
  // Files outside of the directory don't matter.
  std::filesystem::create_symlink("/etc/shadow", path + "/keys/elsewhere");
  for (const char* stored :
       {"", "/FORMAT", "/items", "/items/uid", "/items/uid/CURRENT", "/keys"}) {
    ASSERT_EQ(chown((path + stored).c_str(), kNobody, kNobody), 0) << stored;
  }
  EXPECT_EXIT(PrintAboutFilesAsNobody(path, kNobody),
              ::testing::ExitedWithCode(0),
              "well: 5, which can be read and written");

  // A read-only file, and a folder that can't be entered.
  std::filesystem::permissions(path + "/items/uid/CURRENT",
                               std::filesystem::perms::owner_read);
  EXPECT_EXIT(PrintAboutFilesAsNobody(path, kNobody),
              ::testing::ExitedWithCode(0),
              "failure: 1 of 5 can't be read and written \\(Permission "
              "denied\\): .*data/items/uid/CURRENT\n.*chown -R nobody .*data; "
              "chmod -R u\\+rwX .*data");
  std::filesystem::permissions(
      path + "/items",
      std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EXIT(PrintAboutFilesAsNobody(path, kNobody),
              ::testing::ExitedWithCode(0),
              "failure: 1 of 3 can't be .*data/items\n");
  for (int i = 0; i < 5; ++i) {
    std::ofstream(absl::StrCat(path, "/keys/", i)) << "root's";
  }
  EXPECT_EXIT(PrintAboutFilesAsNobody(path, kNobody),
              ::testing::ExitedWithCode(0),
              "failure: 6 of 8 can't be .*, .*, .* and 3 more\n");

  // Root can open all of them, whichever user runs the server.
  const Finding files = About(ExamineDataDirectory(path), "files");
  EXPECT_EQ(files.verdict, Verdict::kSkipped);
  EXPECT_THAT(files.advice, HasSubstr("sudo -u nobody attendant doctor"));
}

TEST(DataDirectoryTest, AFileIsNoDirectory) {
  const TemporaryFile file("data", "text");
  const auto findings = ExamineDataDirectory(file.path());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].verdict, Verdict::kFailure);
  EXPECT_THAT(findings[0].advice, HasSubstr("--data-dir"));
}

TEST(ServerTest, OneThatIsNotThereIsAFailureThatSaysWhatToDo) {
  const auto findings = ExamineServer(
      {.server = "127.0.0.1:1", .http = "127.0.0.1:1", .connect = [] {
         return StatusWithReason(absl::StatusCode::kUnavailable,
                                 "nobody listens", kNoServer);
       }});
  EXPECT_EQ(About(findings, "gRPC").verdict, Verdict::kFailure);
  EXPECT_EQ(About(findings, "gRPC").text, "nobody listens");
  EXPECT_THAT(About(findings, "gRPC").advice, HasSubstr("attendantd"));
  EXPECT_EQ(About(findings, "HTTP port").verdict, Verdict::kWarning);
}

// The certificate needs no trusted issuer, and the server may ask for the
// client's.
TEST(ServerTest, TellsWhenTheCertificateEnds) {
  const TestAuthority authority("ours");
  const TestCertificate issued =
      authority.Issue("IP:127.0.0.1", absl::Hours(100));
  const TemporaryFile certificate("server.pem", issued.certificate);
  const TemporaryFile key("server.key", issued.key);
  const TemporaryFile ca("ca.pem", authority.certificate());
  httplib::SSLServer server(certificate.path().c_str(), key.path().c_str(),
                            ca.path().c_str());
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { server.listen_after_bind(); });
  const auto expiry = CertificateExpiry(absl::StrCat("127.0.0.1:", port));
  server.stop();
  serving.join();
  ASSERT_OK(expiry);
  EXPECT_LT(absl::AbsDuration(*expiry - absl::Now() - absl::Hours(100)),
            absl::Minutes(30));
  EXPECT_THAT(CertificateExpiry("127.0.0.1:1"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("127.0.0.1:1 shows no certificate")));
}

// Collects the names by which clients ask a server in TLS (SNI).
class AskedFor {
 public:
  // Watches a server, which must not outlive the object.
  void Watch(httplib::SSLServer& server) {
    SSL_CTX_set_tlsext_servername_arg(server.ssl_context(), this);
    SSL_CTX_set_tlsext_servername_callback(
        server.ssl_context(), +[](SSL* ssl, int*, void* asked_for) {
          static_cast<AskedFor*>(asked_for)->Add(
              SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name));
          return SSL_TLSEXT_ERR_OK;
        });
  }
  std::vector<std::string> names() {
    MutexLock lock(&mutex_);
    return names_;
  }

 private:
  void Add(const char* name) {
    MutexLock lock(&mutex_);
    names_.emplace_back(name == nullptr ? "" : name);
  }

  Mutex mutex_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

TEST(ServerTest, AsksForTheCertificateByTheNameOfTheServer) {
  const TestAuthority authority("ours");
  const TestCertificate issued =
      authority.Issue("DNS:localhost", absl::Hours(100));
  const TemporaryFile certificate("server.pem", issued.certificate);
  const TemporaryFile key("server.key", issued.key);
  AskedFor asked_for;
  httplib::SSLServer server(certificate.path().c_str(), key.path().c_str());
  asked_for.Watch(server);
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { server.listen_after_bind(); });
  EXPECT_OK(CertificateExpiry(absl::StrCat("localhost:", port)));
  EXPECT_OK(CertificateExpiry(absl::StrCat("127.0.0.1:", port)));
  server.stop();
  serving.join();
  EXPECT_THAT(asked_for.names(), ElementsAre("localhost", ""));
}

// Returns the page /readyz of a server whose certificate expires after
// `validity`. The words are the server's, as the doctor recognizes them.
std::string ReadyWithCertificate(absl::Duration validity) {
  const absl::Time now = absl::Now();
  nlohmann::json page;
  page["warnings"] = {ExpiryWarning(now + validity, now).value_or("none")};
  return page.dump();
}

// The server's own warning is left out.
TEST(ServerTest, ACertificateIsToldOfOnce) {
  const TestAuthority authority("ours");
  const TestCertificate issued =
      authority.Issue("IP:127.0.0.1", absl::Hours(100));
  const TemporaryFile certificate("server.pem", issued.certificate);
  const TemporaryFile key("server.key", issued.key);
  const TemporaryFile ca("ca.pem", authority.certificate());
  httplib::SSLServer server(certificate.path().c_str(), key.path().c_str());
  server.Get("/readyz", [](const httplib::Request&, httplib::Response& page) {
    page.set_content(ReadyWithCertificate(absl::Hours(100)),
                     "application/json");
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  const std::string address = absl::StrCat("127.0.0.1:", port);
  std::thread serving([&] { server.listen_after_bind(); });
  const auto findings =
      ExamineServer({.server = address,
                     .http = address,
                     .security = {.ca_path = ca.path()},
                     .connect = [] { return absl::UnavailableError(""); }});
  server.stop();
  serving.join();
  EXPECT_EQ(About(findings, "certificate").verdict, Verdict::kWarning);
  EXPECT_EQ(About(findings, "HTTP port").text, address + ", ready");
}

TEST(ServerTest, TellsOfTheServersOpenFiles) {
  httplib::Server server;
  server.Get("/metrics", [](const httplib::Request&, httplib::Response& page) {
    page.set_content(
        "# TYPE process_open_fds gauge\nprocess_open_fds 31\n"
        "process_max_fds 1200\n",
        "text/plain");
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { server.listen_after_bind(); });
  const auto findings =
      ExamineServer({.server = "127.0.0.1:1",
                     .http = absl::StrCat("127.0.0.1:", port),
                     .connect = [] { return absl::UnavailableError(""); }});
  server.stop();
  serving.join();
  EXPECT_EQ(About(findings, "open files").text,
            "31 of 1,200, enough for about 20 catalogs");
}

// The advice is about certificates, not about where the port is.
TEST(ServerTest, AnHttpPortThatIsNotTrustedIsAMatterOfCertificates) {
  const TestAuthority authority("ours");
  const TestAuthority other("other");
  const TestCertificate issued = authority.Issue();
  const TemporaryFile certificate("server.pem", issued.certificate);
  const TemporaryFile key("server.key", issued.key);
  const TemporaryFile ca("ca.pem", other.certificate());
  httplib::SSLServer with_tls(certificate.path().c_str(), key.path().c_str());
  httplib::Server without_tls;
  const auto examine = [&](httplib::Server& server) {
    const int port = server.bind_to_any_port("127.0.0.1");
    std::thread serving([&] { server.listen_after_bind(); });
    const auto findings =
        ExamineServer({.server = "127.0.0.1:1",
                       .http = absl::StrCat("127.0.0.1:", port),
                       .security = {.ca_path = ca.path()},
                       .connect = [] { return absl::UnavailableError(""); }});
    server.stop();
    serving.join();
    return About(findings, "HTTP port");
  };
  for (httplib::Server* server :
       std::initializer_list<httplib::Server*>{&with_tls, &without_tls}) {
    const Finding port = examine(*server);
    EXPECT_EQ(port.verdict, Verdict::kWarning);
    EXPECT_THAT(port.text, HasSubstr("no TLS connection that both sides"));
    EXPECT_THAT(port.advice, HasSubstr("has not expired"));
    EXPECT_THAT(port.advice, Not(HasSubstr("--http")));
  }
}

TEST(ServerTest, AnHttpPortWithTlsNeedsACa) {
  const TestAuthority authority("ours");
  const TestCertificate issued = authority.Issue();
  const TemporaryFile certificate("server.pem", issued.certificate);
  const TemporaryFile key("server.key", issued.key);
  httplib::SSLServer server(certificate.path().c_str(), key.path().c_str());
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { server.listen_after_bind(); });
  const auto findings =
      ExamineServer({.server = "127.0.0.1:1",
                     .http = absl::StrCat("127.0.0.1:", port),
                     .connect = [] { return absl::UnavailableError(""); }});
  server.stop();
  serving.join();
  const Finding http = About(findings, "HTTP port");
  EXPECT_EQ(http.verdict, Verdict::kWarning);
  EXPECT_THAT(http.text, HasSubstr("does not answer HTTP"));
  EXPECT_THAT(http.advice, HasSubstr("give --ca FILE if the server has TLS"));
}

TEST(ServerTest, FullMemoryIsToldInLargeUnitsWithWhatToDo) {
  httplib::Server server;
  server.Get("/readyz", [](const httplib::Request&, httplib::Response& page) {
    page.set_content(
        R"({"warnings": ["memory: 47185920 bytes are used of 41943040; )"
        R"(writes are refused"]})",
        "application/json");
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { server.listen_after_bind(); });
  const auto findings =
      ExamineServer({.server = "127.0.0.1:1",
                     .http = absl::StrCat("127.0.0.1:", port),
                     .connect = [] { return absl::UnavailableError(""); }});
  server.stop();
  serving.join();
  const Finding http = About(findings, "HTTP port");
  EXPECT_EQ(http.text,
            "ready, but memory: 45 MiB are used of 40 MiB; writes are refused");
  EXPECT_THAT(http.advice, HasSubstr("--memory-limit"));
}

TEST(ServerTest, AWarningOfACertificateNamesThePageOnTls) {
  httplib::Server server;
  server.Get("/readyz", [](const httplib::Request&, httplib::Response& page) {
    page.set_content(ReadyWithCertificate(-absl::Hours(1)), "application/json");
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { server.listen_after_bind(); });
  const auto findings =
      ExamineServer({.server = "127.0.0.1:1",
                     .http = absl::StrCat("127.0.0.1:", port),
                     .connect = [] { return absl::UnavailableError(""); }});
  server.stop();
  serving.join();
  EXPECT_EQ(About(findings, "HTTP port").verdict, Verdict::kWarning);
  EXPECT_THAT(About(findings, "HTTP port").advice,
              HasSubstr("docs/operations.md"));
}

TEST(ServerTest, ACertificateThatEndsSoonIsToldOf) {
  const absl::Time now = absl::FromUnixSeconds(1767225600);
  constexpr absl::Duration kDay = absl::Hours(24);
  // The server warns from the same time on.
  EXPECT_EQ(ExamineExpiry(now + kExpiryNotice, now).verdict, Verdict::kOk);
  EXPECT_EQ(ExamineExpiry(now + kExpiryNotice - absl::Seconds(1), now).verdict,
            Verdict::kWarning);
  const Finding soon = ExamineExpiry(now + 13 * kDay, now);
  EXPECT_EQ(soon.verdict, Verdict::kWarning);
  EXPECT_EQ(soon.text, "expires at 2026-01-14T00:00:00+00:00");
  const Finding past = ExamineExpiry(now, now);
  EXPECT_EQ(past.verdict, Verdict::kFailure);
  EXPECT_THAT(past.advice, HasSubstr("--tls-cert"));
  EXPECT_THAT(past.advice, HasSubstr("docs/operations.md"));
}

TEST(ServerTest, TheHttpPortIsAThousandAbove) {
  EXPECT_EQ(DefaultHttpAddress("db.example:7600"), "db.example:8600");
  EXPECT_EQ(DefaultHttpAddress("[2001:db8::1]:7600"), "[2001:db8::1]:8600");
  EXPECT_THAT(DefaultHttpAddress("nowhere"), IsEmpty());
}

TEST(ServerTest, TheHttpPortOfALoopbackIsAtIPv4s) {
  EXPECT_EQ(DefaultHttpAddress("127.0.0.1:7600"), "127.0.0.1:8600");
  EXPECT_EQ(DefaultHttpAddress("[::1]:7600"), "127.0.0.1:8600");
}

// Returns the doctor's text about a ready server at IPv6's loopback; "" without
// IPv6.
std::string ReadyAtIPv6(httplib::Server& server, const std::string& ca_path) {
  server.Get("/readyz", [](const httplib::Request&, httplib::Response& page) {
    page.set_content("{}", "application/json");
  });
  const int port = server.bind_to_any_port("::1");
  if (port < 0) return "";
  const std::string address = absl::StrCat("[::1]:", port);
  std::thread serving([&] { server.listen_after_bind(); });
  const auto findings =
      ExamineServer({.server = address,
                     .http = address,
                     .security = {.ca_path = ca_path},
                     .connect = [] { return absl::UnavailableError(""); }});
  server.stop();
  serving.join();
  const std::string text = About(findings, "HTTP port").text;
  return text == address + ", ready" ? "ready" : text;
}

TEST(ServerTest, AnIPv6AddressIsReached) {
  httplib::Server server;
  const std::string text = ReadyAtIPv6(server, "");
  if (text.empty()) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(text, "ready");
}

TEST(ServerTest, AnIPv6AddressIsReachedByTls) {
  const TestAuthority authority("ours");
  const TestCertificate issued = authority.Issue("IP:::1", absl::Hours(100));
  const TemporaryFile certificate("server.pem", issued.certificate);
  const TemporaryFile key("server.key", issued.key);
  const TemporaryFile ca("ca.pem", authority.certificate());
  httplib::SSLServer server(certificate.path().c_str(), key.path().c_str());
  const std::string text = ReadyAtIPv6(server, ca.path());
  if (text.empty()) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(text, "ready");
}

// Lists one catalog on each page, with two key fields whose builds failed.
class TwoPages final : public v1::CatalogService::Service {
 public:
  grpc::Status ListCatalogs(grpc::ServerContext* /*context*/,
                            const v1::ListCatalogsRequest* request,
                            v1::ListCatalogsResponse* response) override {
    const bool is_first = request->page_token().empty();
    v1::Catalog* catalog = response->add_catalogs();
    catalog->set_name(is_first ? "first" : "second");
    catalog->set_item_count(is_first ? 1 : 0);
    for (int i = 0; i < 2; ++i) {
      catalog->add_indexes()->set_build_error("no room for it");
    }
    catalog->add_warnings("the last index build failed: no room for it");
    if (is_first) response->set_next_page_token("more");
    return grpc::Status::OK;
  }
};

TEST(ServerTest, TellsOfEveryCatalogAndOfEachBuildOnce) {
  TwoPages catalogs;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&catalogs);
  const auto server = builder.BuildAndStart();
  const std::string address = absl::StrCat("127.0.0.1:", port);
  const auto findings =
      ExamineServer({.server = address, .http = "127.0.0.1:1", .connect = [&] {
                       return Client::Connect({.server = address});
                     }});
  EXPECT_THAT(About(findings, "catalogs").text,
              HasSubstr("2 with 1 item, listed in"));
  for (const char* subject : {"catalog first", "catalog second"}) {
    EXPECT_EQ(std::ranges::count_if(findings,
                                    [&](const Finding& finding) {
                                      return finding.subject == subject;
                                    }),
              1)
        << subject;
  }
}

std::vector<Examination> TwoParts() {
  return {{"Machine",
           {{.subject = "memory", .text = "64 GiB"},
            {"open files", Verdict::kWarning, "up to 1,024", "raise it"}}},
          {"Server", {{"gRPC", Verdict::kFailure, "no answer", "start it"}}}};
}

TEST(DoctorReportTest, ListsFindingsWithWhatToDo) {
  EXPECT_EQ(DoctorReport(TwoParts(), Style()),
            "Machine\n"
            "  ✓ memory      64 GiB\n"
            "  ! open files  up to 1,024\n"
            "                → raise it\n"
            "\n"
            "Server\n"
            "  ✗ gRPC        no answer\n"
            "                → start it\n"
            "\n"
            "1 failure and 1 warning.\n");
  EXPECT_THAT(DoctorReport({}, Style()), HasSubstr("All is well."));
}

TEST(DoctorReportTest, WhatWasNotExaminedIsNotCalledWell) {
  const std::vector<Examination> skipped = {{"Server",
                                             {{.subject = "server",
                                               .verdict = Verdict::kSkipped,
                                               .text = "not examined"}}}};
  EXPECT_EQ(DoctorReport(skipped, Style()),
            "Server\n"
            "  - server  not examined\n"
            "\n"
            "All that was examined is well.\n");
  EXPECT_EQ(WorstOf(skipped), Verdict::kOk);
  EXPECT_THAT(DoctorJson(skipped), HasSubstr("\"skipped\""));
}

TEST(DoctorReportTest, JsonSaysTheSame) {
  const auto json = nlohmann::json::parse(DoctorJson(TwoParts()));
  EXPECT_EQ(json["verdict"], "failure");
  EXPECT_EQ(json["examinations"][0]["title"], "Machine");
  EXPECT_EQ(json["examinations"][0]["findings"][1]["subject"], "open files");
  EXPECT_EQ(json["examinations"][0]["findings"][1]["verdict"], "warning");
  EXPECT_EQ(json["examinations"][1]["findings"][0]["advice"], "start it");
}

}  // namespace
}  // namespace attendant
