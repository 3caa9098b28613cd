#include "core/storage/records/item_patch.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

Item Whole() {
  Item item;
  item.id = "a";
  item.keys = {{1, 2}, {3}};
  item.value = {4, 5};
  item.attributes = {{0, std::int64_t{7}}, {2, std::string("red")}};
  item.opaque_value = "bytes";
  return item;
}

TEST(ItemPatchTest, AnEmptyPatchChangesNothing) {
  ItemPatch patch;
  EXPECT_TRUE(patch.empty());
  EXPECT_EQ(Patched(Whole(), patch), Whole());
  patch.keys.resize(2);
  EXPECT_TRUE(patch.empty());
  EXPECT_EQ(Patched(Whole(), patch), Whole());
}

TEST(ItemPatchTest, AttributesAreSetAddedAndRemoved) {
  ItemPatch patch;
  patch.attributes = {{0, std::nullopt},
                      {1, AttributeValue(true)},
                      {2, AttributeValue(std::string("blue"))},
                      {3, std::nullopt}};
  EXPECT_FALSE(patch.empty());
  Item want = Whole();
  want.attributes = {{1, true}, {2, std::string("blue")}};
  EXPECT_EQ(Patched(Whole(), patch), want);
}

TEST(ItemPatchTest, AttributesMayBeReplacedAsAWhole) {
  ItemPatch patch;
  patch.replaces_attributes = true;
  EXPECT_FALSE(patch.empty());
  Item want = Whole();
  want.attributes.clear();
  EXPECT_EQ(Patched(Whole(), patch), want);
  patch.attributes = {{1, AttributeValue(2.5)}};
  want.attributes = {{1, 2.5}};
  EXPECT_EQ(Patched(Whole(), patch), want);
}

TEST(ItemPatchTest, ValuesAndKeysAreReplacedOrRemoved) {
  ItemPatch patch;
  patch.value.emplace();
  EXPECT_FALSE(patch.empty());
  Item want = Whole();
  want.value.clear();
  EXPECT_EQ(Patched(Whole(), patch), want);

  patch = {};
  patch.keys = {std::nullopt, std::vector<float>{9}};
  EXPECT_FALSE(patch.empty());
  want = Whole();
  want.keys[1] = {9};
  EXPECT_EQ(Patched(Whole(), patch), want);

  patch = {};
  patch.opaque_value = "";
  EXPECT_FALSE(patch.empty());
  want = Whole();
  want.opaque_value.clear();
  EXPECT_EQ(Patched(Whole(), patch), want);
}

}  // namespace
}  // namespace attendant
