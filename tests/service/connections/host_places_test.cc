#include "service/connections/host_places.h"

#include <gmock/gmock.h>

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(HostPlacesTest, WhoHasMostGivesUpAPlaceForWhoHasTwoFewer) {
  HostPlaces places;
  EXPECT_THAT(places.CandidatesFor("a"), IsEmpty());
  places.Add("a", 1);
  places.Add("b", 2);
  places.Add("b", 3);
  EXPECT_EQ(places.connection_count(), 3U);
  EXPECT_THAT(places.CandidatesFor("a"), IsEmpty());
  EXPECT_THAT(places.CandidatesFor("b"), IsEmpty());
  EXPECT_THAT(places.CandidatesFor("c"), UnorderedElementsAre(2, 3));
  places.Add("b", 4);
  EXPECT_THAT(places.CandidatesFor("a"), UnorderedElementsAre(2, 3, 4));
}

TEST(HostPlacesTest, WhatIsGoneIsForgotten) {
  HostPlaces places;
  places.Add("a", 1);
  places.Add("a", 2);
  places.Remove("a", 1);
  places.Remove("a", 1);
  places.Remove("b", 2);
  EXPECT_EQ(places.connection_count(), 1U);
  EXPECT_THAT(places.CandidatesFor("c"), IsEmpty());
}

TEST(HostPlacesTest, OfManyConnectionsSomeAreLookedAt) {
  HostPlaces places;
  for (int i = 0; i < 1000; ++i) places.Add("a", i);
  for (int i = 1000; i < 1999; ++i) places.Add("b", i);
  EXPECT_THAT(
      places.CandidatesFor("c"),
      AllOf(SizeIs(HostPlaces::kMaxCandidates), Each(AllOf(Ge(0), Le(999)))));
}

}  // namespace
}  // namespace attendant
