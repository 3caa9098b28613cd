#include "core/base/published.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace attendant {
namespace {

TEST(PublishedTest, LoadReturnsTheLastStored) {
  Published<int> published(std::make_shared<const int>(1));
  EXPECT_EQ(*published.Load(), 1);
  for (int i = 2; i < 6; ++i) {
    published.Store(std::make_shared<const int>(i));
    EXPECT_EQ(*published.Load(), i);
    EXPECT_EQ(*published.Load(), i);
  }
}

TEST(PublishedTest, HoldersKeepTheOldVersion) {
  Published<int> published(std::make_shared<const int>(1));
  const std::shared_ptr<const int> held = published.Load();
  published.Store(std::make_shared<const int>(2));
  published.Store(std::make_shared<const int>(3));
  EXPECT_EQ(*held, 1);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(PublishedTest, UnheldVersionDiesAtOnce) {
  auto first = std::make_shared<const int>(1);
  const std::weak_ptr<const int> watched = first;
  Published<int> published(std::move(first));
  EXPECT_FALSE(watched.expired());
  published.Store(std::make_shared<const int>(2));
  EXPECT_TRUE(watched.expired());
}

// Both parts are written before publication and destroyed after the last
// reader. Readers must see them equal, and never see a version older than one
// they have seen.
struct Version {
  explicit Version(int n) : begin(n), end(n) { ++alive; }
  ~Version() {
    begin = -1;
    end = -2;
    --alive;
  }
  int begin;
  int end;
  static std::atomic<int> alive;
};
std::atomic<int> Version::alive = 0;

TEST(PublishedTest, ReadersSeeWholeVersionsInOrder) {
  constexpr int kReaders = 3;
  constexpr int kVersions = 20000;
  {
    Published<Version> published(std::make_shared<const Version>(0));
    std::atomic<int> torn = 0;
    std::atomic<int> backward = 0;
    std::vector<std::thread> readers;
    for (int r = 0; r < kReaders; ++r) {
      readers.emplace_back([&] {
        int last = 0;
        while (last < kVersions) {
          const std::shared_ptr<const Version> version = published.Load();
          if (version->begin != version->end) ++torn;
          if (version->begin < last) ++backward;
          last = version->begin;
        }
      });
    }
    for (int i = 1; i <= kVersions; ++i) {
      published.Store(std::make_shared<const Version>(i));
    }
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(torn, 0);
    EXPECT_EQ(backward, 0);
    EXPECT_EQ(Version::alive, 1);
  }
  EXPECT_EQ(Version::alive, 0);
}

}  // namespace
}  // namespace attendant
