#include "client/commands/shared/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "customer item rating" of each event.
std::vector<std::string> Texts(const EventLog& log) {
  std::vector<std::string> texts;
  for (const Event& event : log.events) {
    texts.push_back(absl::StrCat(log.customer_ids[event.customer], " ",
                                 log.item_ids[event.item], " ", event.rating));
  }
  return texts;
}

TEST(EventFileTest, PutsEventsInTimeOrder) {
  const TemporaryFile file("events.csv",
                           "time,customer_id,item_id\n"
                           "2011-01-02T00:00:00Z,c1,b\n"
                           "2011-01-01,c2,a\n"
                           "2011-01-01 23:59:59,c1,a\n"
                           "1293926400.5,c2,c\n"  // 2011-01-02, half a second
                           "2011-01-02T00:00:00+00:00,c3,d\n");
  ASSERT_OK_AND_ASSIGN(const EventLog log, ReadEvents(file.path(), {}));
  EXPECT_THAT(Texts(log),
              ElementsAre("c2 a 1", "c1 a 1", "c1 b 1", "c3 d 1", "c2 c 1"));
}

TEST(EventFileTest, TakesColumnsByNameAndOrderWithoutTime) {
  const TemporaryFile file("events.csv", "stars,film,who\n4,x,p\n-1.5,y,p\n");
  ASSERT_OK_AND_ASSIGN(
      const EventLog log,
      ReadEvents(
          file.path(),
          {.customer = "who", .item = "film", .time = "", .rating = "stars"}));
  EXPECT_THAT(Texts(log), ElementsAre("p x 4", "p y -1.5"));
}

TEST(EventFileTest, NamesTheFlagForAMissingColumn) {
  const TemporaryFile timeless("events.csv", "customer_id,item_id\nc,a\n");
  EXPECT_THAT(
      ReadEvents(timeless.path(), {}),
      StatusIs(kInvalid, timeless.path() +
                             ": no column 'time'; the columns are customer_id, "
                             "item_id (--time-column names another, or '' if "
                             "the rows are in time order)"));
  EXPECT_OK(ReadEvents(timeless.path(), {.time = "", .rating = ""}));
  const TemporaryFile other("events.csv", "who,item_id,time\nc,a,2011-01-01\n");
  EXPECT_THAT(
      ReadEvents(other.path(), {}),
      StatusIs(kInvalid, HasSubstr("(--customer-column names another)")));
}

TEST(EventFileTest, NamesRowAndColumnOfWhatIsWrong) {
  const struct {
    const char* row;
    const char* message;
  } cases[] = {
      {",a,2011-01-01,1", "row 2 (line 3): customer_id: got an empty field"},
      {"c,,2011-01-01,1", "row 2 (line 3): item_id"},
      {"c,a,noon,1", "row 2 (line 3): time: got 'noon'"},
      {"c,a,2011-01-01,five", "row 2 (line 3): rating: got 'five'"},
      {"c,a,2011-01-01,nan", "row 2 (line 3): rating: got 'nan'"},
  };
  for (const auto& test : cases) {
    const TemporaryFile file(
        "events.csv",
        absl::StrCat("customer_id,item_id,time,rating\nc,a,2011-01-01,1\n",
                     test.row, "\n"));
    EventColumns columns;
    columns.rating = "rating";
    EXPECT_THAT(ReadEvents(file.path(), columns),
                StatusIs(kInvalid, HasSubstr(absl::StrCat(file.path(), ": ",
                                                          test.message))));
  }
}

}  // namespace
}  // namespace attendant
