// `attendant snapshot` and `attendant alias` against a real server, which is
// killed between commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/command_fixture.h"
#include "tests/integration/requests.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class SnapshotCommandTest : public CommandFixture {
 protected:
  void SetUp() override {
    CommandFixture::SetUp();
    ASSERT_EQ(Run({"catalog", "create", "shop-1", "--key-field", "key:2"})
                  .exit_status,
              0);
    ASSERT_OK_AND_ASSIGN(const auto client, server_->Connect());
    v1::BatchUpsertItemsRequest request;
    request.set_catalog("shop-1");
    for (int i = 0; i < 50; ++i) {
      auto* item = request.add_items();
      item->set_id("item" + std::to_string(i));
      auto* floats = (*item->mutable_keys())["key"].mutable_floats();
      floats->add_values(static_cast<float>(i));
      floats->add_values(1);
    }
    ASSERT_OK(client->BatchUpsertItems(request));
  }
};

TEST_F(SnapshotCommandTest, FromCreationOverAFileToASwap) {
  const std::string file = files_ / "shop.snapshot";
  EXPECT_THAT(RunText({"alias", "set", "shop", "shop-1"}),
              HasSubstr("shop names shop-1"));
  EXPECT_THAT(RunText({"snapshot", "create", "shop", "before"}),
              HasSubstr("Stored before of shop-1: 50 items"));
  EXPECT_THAT(RunText({"snapshot", "verify", "shop", "before"}),
              HasSubstr("before is whole"));
  EXPECT_THAT(RunText({"snapshot", "export", "shop", "before", file}),
              HasSubstr("Wrote "));
  const CommandResult again =
      Run({"snapshot", "export", "shop", "before", file});
  EXPECT_EQ(again.exit_status, 1);
  EXPECT_THAT(again.err, HasSubstr("choose another name"));
  EXPECT_THAT(Run({"snapshot", "import", file}).err,
              HasSubstr("; --name imports it under another name"));
  const std::string keys = File("keys.npy", std::string(1000, 'x'));
  EXPECT_THAT(Run({"snapshot", "import", keys}).err,
              HasSubstr("attendant: " + keys +
                        ": got other bytes, want an exported snapshot, which "
                        "begins with ATTNSNP1"));
  server_->Kill();
  Start();
  EXPECT_THAT(RunText({"snapshot", "list"}), HasSubstr("before"));
  EXPECT_THAT(RunText({"snapshot", "delete", "shop", "before"}),
              HasSubstr("Deleted snapshot before"));
  EXPECT_THAT(RunText({"snapshot", "list", "shop"}),
              HasSubstr("There are no snapshots of 'shop'"));
  const json imported =
      RunJson({"snapshot", "import", file, "--name", "brought-back"});
  EXPECT_EQ(imported["snapshot"]["itemCount"], "50");
  EXPECT_EQ(imported["snapshot"]["catalog"], "shop-1");
  EXPECT_THAT(
      RunText({"snapshot", "restore", "shop", "brought-back", "shop-2"}),
      HasSubstr("as catalog shop-2, with 50 items"));
  const CommandResult refused =
      Run({"alias", "set", "shop", "shop-2", "--if-names", "shop-2"});
  // An unset shell variable does not mean "without a condition".
  EXPECT_EQ(
      Run({"alias", "set", "shop", "shop-2", "--if-names", ""}).exit_status, 2);
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("names catalog 'shop-1'"));
  EXPECT_THAT(
      RunText({"alias", "set", "shop", "shop-2", "--if-names", "shop-1"}),
      HasSubstr("shop names shop-2, and named shop-1"));
  EXPECT_THAT(RunText({"alias", "list"}), HasSubstr("shop-2"));
  EXPECT_THAT(RunText({"attend", "shop", "--like", "item3"}),
              HasSubstr("item49"));
  const CommandResult aliased = Run({"catalog", "delete", "shop-2", "--yes"});
  EXPECT_EQ(aliased.exit_status, 1);
  EXPECT_THAT(aliased.err, HasSubstr("has the alias 'shop'"));
  RunText({"catalog", "delete", "shop-1", "--yes"});
  RunText({"alias", "delete", "shop"});
  RunText({"catalog", "delete", "shop-2", "--yes"});
}

// The name of a snapshot's catalog becomes an alias of that catalog's
// successor.
TEST_F(SnapshotCommandTest, SnapshotsOfANameThatIsAnAliasNowAreFound) {
  RunText({"snapshot", "create", "shop-1", "before"});
  RunText({"snapshot", "restore", "shop-1", "before", "shop-2"});
  RunText({"catalog", "delete", "shop-1", "--yes"});
  RunText({"alias", "set", "shop-1", "shop-2"});
  EXPECT_EQ(RunJson({"snapshot", "list", "shop-1"})["snapshots"].size(), 1u);
  EXPECT_THAT(RunText({"snapshot", "verify", "shop-1", "before"}),
              HasSubstr("before is whole"));
  RunText({"snapshot", "restore", "shop-1", "before", "shop-3"});
  // Snapshots of the catalog that the alias names come first.
  RunText({"snapshot", "create", "shop-1", "after"});
  RunText({"snapshot", "create", "shop-1", "before"});
  EXPECT_EQ(RunJson({"snapshot", "list", "shop-1"})["snapshots"].size(), 3u);
  // Deleting a snapshot of one never deletes one of the other.
  const CommandResult refused = Run({"snapshot", "delete", "shop-1", "before"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("name catalog 'shop-2'"));
  RunText({"snapshot", "delete", "shop-2", "before"});
  RunText({"snapshot", "delete", "shop-1", "before"});
  EXPECT_EQ(Run({"snapshot", "verify", "shop-1", "before"}).exit_status, 1);
  RunText({"alias", "delete", "shop-1"});
}

TEST_F(SnapshotCommandTest, ADamagedFileIsNotImported) {
  const std::string file = files_ / "shop.snapshot";
  RunText({"snapshot", "create", "shop-1", "before"});
  RunText({"snapshot", "export", "shop-1", "before", file});
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 100);
  const CommandResult cut =
      Run({"snapshot", "import", file, "--name", "again"});
  EXPECT_EQ(cut.exit_status, 1);
  EXPECT_THAT(cut.err, HasSubstr("the stream ends early"));
  const CommandResult none = Run({"snapshot", "import", files_ / "none"});
  EXPECT_EQ(none.exit_status, 1);
  EXPECT_THAT(none.err, HasSubstr("can't be read"));
  EXPECT_EQ(RunJson({"snapshot", "list"})["snapshots"].size(), 1u);
}

}  // namespace
}  // namespace attendant
