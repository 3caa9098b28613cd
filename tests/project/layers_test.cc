#include "tests/project/layers.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/support/scratch_directory.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> Check(const std::string& path,
                               const std::string& include) {
  return FindLayerViolations(path, "#include " + include + "\n");
}

TEST(LayersTest, ThisTreeKeepsToTheArrows) {
  const TreeReport report = FindTreeViolations(PROJECT_SOURCE_DIR);
  EXPECT_THAT(report.violations, IsEmpty());
  // The tree was not empty.
  EXPECT_GT(report.file_count, 50);
}

TEST(LayersTest, PlantedViolationIsFoundInATree) {
  const ScratchDirectory root;
  std::filesystem::create_directories(root / "core/base");
  std::filesystem::create_directories(root / "service");
  std::ofstream(root / "core/base/ids.h")
      << "#include \"core/base/status.h\"\n";
  std::ofstream(root / "service/server.cc") << "#include <grpcpp/server.h>\n";
  EXPECT_THAT(FindTreeViolations(root.path()).violations, IsEmpty());
  std::ofstream(root / "core/base/status.cc")
      << "// Comment.\n\n#include \"core/catalog/query/attend.h\"\n";
  const TreeReport report = FindTreeViolations(root.path());
  EXPECT_EQ(report.file_count, 3);
  EXPECT_THAT(report.violations,
              ElementsAre("core/base/status.cc:3: core/catalog/query/attend.h: "
                          "core/base does not stand above core/catalog"));
}

// `levels` go from the lowest up; folders of one level are independent.
void ExpectArrowsPointDown(
    const std::vector<std::vector<std::string>>& levels) {
  for (std::size_t from = 0; from < levels.size(); ++from) {
    for (std::size_t to = 0; to < levels.size(); ++to) {
      for (const std::string& above : levels[from]) {
        for (const std::string& below : levels[to]) {
          const auto violations =
              Check(above + "/a.cc", "\"" + below + "/b.h\"");
          const bool allowed = to < from || above == below;
          EXPECT_EQ(violations.empty(), allowed) << above << " " << below;
        }
      }
    }
  }
}

TEST(LayersTest, ArrowsInCorePointDown) {
  ExpectArrowsPointDown(
      {{"core/base"},
       {"core/kernels"},
       {"core/attention/softmax"},
       {"core/encode", "core/shortlist/keys", "core/storage/files"},
       {"core/catalog/rows"}});
}

TEST(LayersTest, ArrowsInAFolderOfCorePointDown) {
  ExpectArrowsPointDown({{"core/attention/softmax"},
                         {"core/attention/models", "core/attention/sampling"},
                         {"core/attention/heads"},
                         {"core/attention/approximations"},
                         {"core/attention/sequences"}});
  ExpectArrowsPointDown({{"core/shortlist/builds"},
                         {"core/shortlist/keys"},
                         {"core/shortlist/scan"},
                         {"core/shortlist/lists"},
                         {"core/shortlist/calibration", "core/shortlist/mass"},
                         {"core/shortlist/passes"},
                         {"core/shortlist/ivf"},
                         {"core/shortlist/kinds"}});
  ExpectArrowsPointDown({{"core/storage/files"},
                         {"core/storage/records"},
                         {"core/storage/rocks"},
                         {"core/storage/catalogs"},
                         {"core/storage/snapshots"},
                         {"core/storage/store"}});
  ExpectArrowsPointDown({{"core/catalog/rows"},
                         {"core/catalog/filter"},
                         {"core/catalog/segments"},
                         {"core/catalog/writes"},
                         {"core/catalog/live", "core/catalog/query"}});
}

// However deep in the folder a file is.
TEST(LayersTest, FoldersInFoldersStandWhereTheirsDo) {
  EXPECT_THAT(Check("core/catalog/rows/a.h", "\"core/shortlist/kinds/b.h\""),
              IsEmpty());
  EXPECT_THAT(
      Check("core/attention/softmax/a.h", "\"core/shortlist/keys/b.h\""),
      ElementsAre(
          HasSubstr("core/attention does not stand above core/shortlist")));
  EXPECT_THAT(Check("core/shortlist/kinds/a.h", "\"core/storage/files/b.h\""),
              ElementsAre(HasSubstr(
                  "core/shortlist does not stand above core/storage")));
}

TEST(LayersTest, NoFileLiesBesideTheFoldersOfItsOwn) {
  EXPECT_THAT(Check("core/catalog/a.h", "\"core/catalog/rows/b.h\""),
              ElementsAre(HasSubstr("has folders for its files")));
  EXPECT_THAT(Check("core/catalog/rows/a.h", "\"core/shortlist/b.h\""),
              ElementsAre(HasSubstr("has folders for its files")));
}

TEST(LayersTest, ArrowsInServicePointDown) {
  ExpectArrowsPointDown({{"service/log", "service/metrics"},
                         {"service/watches"},
                         {"service/connections", "service/convert",
                          "service/queue", "service/security"},
                         {"service/calls", "service/http"},
                         {"service/handlers"},
                         {"service"},
                         {"service/attendantd"}});
}

TEST(LayersTest, ArrowsInClientPointDown) {
  ExpectArrowsPointDown({{"client/api", "client/files", "client/format"},
                         {"client/flags", "client/picture"},
                         {"client/doctor"},
                         {"client/commands/shared", "client/load/run"},
                         {"client/attendant"}});
  ExpectArrowsPointDown({{"client/commands/shared"},
                         {"client/commands/attention", "client/commands/fits"},
                         {"client/commands/administration",
                          "client/commands/items", "client/commands/models"}});
  ExpectArrowsPointDown({{"client/load/requests", "client/load/results"},
                         {"client/load/send"},
                         {"client/load/report"},
                         {"client/load/run"}});
}

TEST(LayersTest, UnknownFolderMustBeGivenItsPlace) {
  for (const std::string top : {"core", "service", "client"}) {
    EXPECT_THAT(Check(top + "/new/a.h", "\"" + top + "/log/b.h\""),
                ElementsAre(HasSubstr("not known")));
  }
  EXPECT_THAT(Check("core/catalog/a.h", "\"core/new/b.h\""),
              ElementsAre(HasSubstr("not known")));
}

TEST(LayersTest, CoreKnowsNoWire) {
  for (const std::string include :
       {"<grpcpp/grpcpp.h>", "<grpc/grpc.h>", "\"google/protobuf/message.h\"",
        "<google/rpc/status.pb.h>", "\"attendant/v1/vector.pb.h\"",
        "\"service/server.h\"", "\"client/api/client.h\""}) {
    EXPECT_THAT(Check("core/catalog/a.cc", include),
                ElementsAre(StartsWith("core/catalog/a.cc:1: ")))
        << include;
  }
}

TEST(LayersTest, ServiceAndClientKnowTheWireAndNotEachOther) {
  for (const std::string top : {"service", "client"}) {
    for (const std::string include :
         {"<grpcpp/grpcpp.h>", "\"attendant/v1/vector.pb.h\"",
          "\"core/base/status.h\"", "\"core/catalog/query/attend.h\""}) {
      EXPECT_THAT(Check(top + "/a.cc", include), IsEmpty()) << include;
    }
  }
  EXPECT_THAT(Check("service/a.cc", "\"client/api/client.h\""),
              ElementsAre(HasSubstr("on the wire only")));
  EXPECT_THAT(Check("client/load/run/a.cc", "\"service/server.h\""),
              ElementsAre(HasSubstr("on the wire only")));
}

TEST(LayersTest, LibrariesHaveOneHome) {
  EXPECT_THAT(Check("core/shortlist/a.cc", "<faiss/IndexIVF.h>"), IsEmpty());
  EXPECT_THAT(Check("core/storage/a.cc", "<rocksdb/db.h>"), IsEmpty());
  EXPECT_THAT(Check("core/catalog/a.cc", "<faiss/IndexIVF.h>"),
              ElementsAre(HasSubstr("only core/shortlist")));
  EXPECT_THAT(Check("service/a.cc", "\"faiss/IndexIVF.h\""),
              ElementsAre(HasSubstr("only core/shortlist")));
  EXPECT_THAT(Check("core/catalog/a.cc", "<rocksdb/db.h>"),
              ElementsAre(HasSubstr("core/storage")));
  EXPECT_THAT(Check("core/storage/a.h", "<rocksdb/db.h>"),
              ElementsAre(HasSubstr("core/storage")));
}

TEST(LayersTest, ProductDoesNotIncludeTests) {
  EXPECT_THAT(Check("core/base/a.cc", "\"tests/support/a.h\""),
              ElementsAre(HasSubstr("only tests")));
  EXPECT_THAT(Check("client/a.cc", "<gtest/gtest.h>"),
              ElementsAre(HasSubstr("only tests")));
}

TEST(LayersTest, PathsThatHideTheirFolderAreRefused) {
  EXPECT_THAT(Check("core/base/a.cc", "\"../catalog/attend.h\""),
              ElementsAre(HasSubstr("root of the project")));
  EXPECT_THAT(Check("core/base/a.cc", "\"a.h\""),
              ElementsAre(HasSubstr("root of the project")));
  EXPECT_THAT(Check("core/base/a.cc", "<vector>"), IsEmpty());
}

TEST(LayersTest, SpacingHidesNothing) {
  EXPECT_THAT(
      FindLayerViolations(
          "core/base/a.cc",
          "  #  include<faiss/Index.h>\n"
          "//#include <faiss/Index.h>\n"
          "#include MACRO\n"
          "\t#\tinclude \"core/storage/records/store.h\"  // why\n"),
      ElementsAre(
          StartsWith("core/base/a.cc:1: faiss/Index.h"),
          StartsWith("core/base/a.cc:4: core/storage/records/store.h")));
}

}  // namespace
}  // namespace attendant
