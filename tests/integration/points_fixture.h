// A catalog of points for tests of the `attendant` command.
#ifndef ATTENDANT_TESTS_INTEGRATION_POINTS_FIXTURE_H_
#define ATTENDANT_TESTS_INTEGRATION_POINTS_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/files/npy.h"
#include "tests/integration/command_fixture.h"
#include "tests/integration/requests.h"
#include "tests/support/status_matchers.h"

namespace attendant {

class AttendantCommandTest : public CommandFixture {
 protected:
  static constexpr int kRowCount = 40;

  // Row i is (i, 1).
  static std::vector<float> Keys() {
    std::vector<float> keys;
    for (int i = 0; i < kRowCount; ++i) {
      keys.push_back(static_cast<float>(i));
      keys.push_back(1);
    }
    return keys;
  }

  static std::string Ids() {
    std::string ids;
    for (int i = 0; i < kRowCount; ++i) absl::StrAppend(&ids, "item", i, "\n");
    return ids;
  }

  void CreatePoints() {
    const CommandResult created =
        Run({"catalog", "create", "points", "--key-field", "key:2:dot",
             "--attribute", "name:string"});
    ASSERT_EQ(created.exit_status, 0) << created.err;
  }

  CommandResult ImportPoints(const std::string& keys, const std::string& ids) {
    return Run(
        {"items", "import", "points", "--keys", "key=" + keys, "--ids", ids});
  }

  void ImportAll() {
    const CommandResult imported = ImportPoints(
        File("keys.npy", NpyBytes(Keys(), 2)), File("ids.txt", Ids()));
    ASSERT_EQ(imported.exit_status, 0) << imported.err;
  }

  void StorePoints() {
    CreatePoints();
    ImportAll();
  }

  std::size_t StoredCount() {
    const auto client = server_->Connect();
    EXPECT_OK(client);
    const auto items = ListAll(**client, "points");
    EXPECT_OK(items);
    return items.ok() ? items->size() : 0;
  }
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_INTEGRATION_POINTS_FIXTURE_H_
