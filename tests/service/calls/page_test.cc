#include "service/calls/page.h"

#include <gmock/gmock.h>

#include <string>

#include "attendant/v1/catalog_service.pb.h"

namespace attendant {
namespace {

v1::Catalog CatalogOf(std::size_t bytes) {
  v1::Catalog catalog;
  catalog.set_name(std::string(bytes, 'a'));
  return catalog;
}

TEST(PageRoomTest, IsFullAfterAsManyAsWereAskedFor) {
  PageRoom room(2, 1 << 20, v1::ListCatalogsResponse());
  EXPECT_TRUE(room.Takes(CatalogOf(10)));
  EXPECT_TRUE(room.Takes(CatalogOf(10)));
  EXPECT_FALSE(room.Takes(CatalogOf(10)));
}

TEST(PageRoomTest, IsFullWhereNoMoreFitsAMessage) {
  constexpr std::int64_t kMaxBytes = 64 << 10;
  v1::ListCatalogsResponse reply;
  PageRoom room(1000, kMaxBytes, reply);
  while (room.Takes(CatalogOf(1000))) *reply.add_catalogs() = CatalogOf(1000);
  EXPECT_GT(reply.catalogs_size(), 50);
  reply.set_next_page_token(std::string(1000, 't'));
  EXPECT_LE(static_cast<std::int64_t>(reply.ByteSizeLong()), kMaxBytes);
}

TEST(PageRoomTest, CountsWhatTheReplyHasAlready) {
  v1::ListCatalogsResponse reply;
  *reply.add_damaged_catalogs() = CatalogOf(50 << 10);
  PageRoom room(1000, 64 << 10, reply);
  EXPECT_TRUE(room.Takes(CatalogOf(8 << 10)));
  EXPECT_FALSE(room.Takes(CatalogOf(8 << 10)));
}

TEST(PageRoomTest, TheFirstHasRoomHoweverLargeItIs) {
  PageRoom room(1000, 64 << 10, v1::ListCatalogsResponse());
  EXPECT_TRUE(room.Takes(CatalogOf(100 << 10)));
  EXPECT_FALSE(room.Takes(CatalogOf(1)));
}

}  // namespace
}  // namespace attendant
