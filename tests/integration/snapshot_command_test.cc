// `attendant snapshot` and `attendant alias` against a real server, over its
// death by kill -9.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/binaries.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class SnapshotCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Start();
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
  void Start() {
    server_ = nullptr;
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start(data_.path()));
  }
  CommandResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {kAttendant, "--server", server_->address()});
    return RunCommand(arguments);
  }
  // What a command that should succeed prints.
  std::string Say(std::vector<std::string> arguments) {
    const CommandResult result = Run(std::move(arguments));
    EXPECT_EQ(result.exit_status, 0) << result.err;
    return result.out;
  }
  json SayJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--json");
    json reply = json::parse(Say(std::move(arguments)), nullptr, false);
    EXPECT_FALSE(reply.is_discarded());
    return reply;
  }

  ScratchDirectory data_;
  ScratchDirectory files_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(SnapshotCommandTest, FromCreationOverAFileToASwap) {
  const std::string file = files_ / "shop.snapshot";
  EXPECT_THAT(Say({"alias", "set", "shop", "shop-1"}),
              HasSubstr("shop names shop-1"));
  EXPECT_THAT(Say({"snapshot", "create", "shop", "before"}),
              HasSubstr("Stored before of shop-1: 50 items"));
  EXPECT_THAT(Say({"snapshot", "verify", "shop", "before"}),
              HasSubstr("before is whole"));
  EXPECT_THAT(Say({"snapshot", "export", "shop", "before", file}),
              HasSubstr("Wrote "));
  EXPECT_FALSE(std::filesystem::exists(file + ".partial"));
  const CommandResult again =
      Run({"snapshot", "export", "shop", "before", file});
  EXPECT_EQ(again.exit_status, 1);
  EXPECT_THAT(again.err, HasSubstr("choose another name"));
  server_->Kill();
  Start();
  EXPECT_THAT(Say({"snapshot", "list"}), HasSubstr("before"));
  EXPECT_THAT(Say({"snapshot", "delete", "shop", "before"}),
              HasSubstr("Deleted snapshot before"));
  EXPECT_THAT(Say({"snapshot", "list", "shop"}),
              HasSubstr("There are no snapshots"));
  const json imported =
      SayJson({"snapshot", "import", file, "--name", "brought-back"});
  EXPECT_EQ(imported["snapshot"]["itemCount"], "50");
  EXPECT_EQ(imported["snapshot"]["catalog"], "shop-1");
  EXPECT_THAT(Say({"snapshot", "restore", "shop", "brought-back", "shop-2"}),
              HasSubstr("as catalog shop-2, with 50 items"));
  const CommandResult refused =
      Run({"alias", "set", "shop", "shop-2", "--if-names", "shop-2"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("names catalog 'shop-1'"));
  EXPECT_THAT(Say({"alias", "set", "shop", "shop-2", "--if-names", "shop-1"}),
              HasSubstr("shop names shop-2, and named shop-1"));
  EXPECT_THAT(Say({"alias", "list"}), HasSubstr("shop-2"));
  EXPECT_THAT(Say({"attend", "shop", "--like", "item3"}), HasSubstr("item49"));
  const CommandResult aliased = Run({"catalog", "delete", "shop-2"});
  EXPECT_EQ(aliased.exit_status, 1);
  EXPECT_THAT(aliased.err, HasSubstr("has the alias 'shop'"));
  Say({"catalog", "delete", "shop-1"});
  Say({"alias", "delete", "shop"});
  Say({"catalog", "delete", "shop-2"});
}

TEST_F(SnapshotCommandTest, ADamagedFileIsNotImported) {
  const std::string file = files_ / "shop.snapshot";
  Say({"snapshot", "create", "shop-1", "before"});
  Say({"snapshot", "export", "shop-1", "before", file});
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 100);
  const CommandResult cut =
      Run({"snapshot", "import", file, "--name", "again"});
  EXPECT_EQ(cut.exit_status, 1);
  EXPECT_THAT(cut.err, HasSubstr("the stream ends early"));
  const CommandResult none = Run({"snapshot", "import", files_ / "none"});
  EXPECT_EQ(none.exit_status, 1);
  EXPECT_THAT(none.err, HasSubstr("can't be read"));
  EXPECT_EQ(SayJson({"snapshot", "list"})["snapshots"].size(), 1u);
}

}  // namespace
}  // namespace attendant
