#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_split.h"
#include "client/format/markup.h"
#include "client/format/progress.h"
#include "client/format/terminal.h"
#include "client/format/text.h"
#include "tests/support/pseudo_terminal.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;

TEST(TextTest, BytesHaveTheLargestUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(std::int64_t{3} << 19), "1.5 MiB");
  EXPECT_EQ(FormatBytes(20'214'000'000), "18.83 GiB");
  EXPECT_EQ(FormatBytes(std::int64_t{5000} << 40), "5000 TiB");
}

TEST(TextTest, CountsColumnsAndNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("café"), 4);
  EXPECT_EQ(DisplayWidth("cafe\u0301"), 4);  // combining accent
  EXPECT_EQ(DisplayWidth("目覚まし"), 8);
  EXPECT_EQ(DisplayWidth("▏█"), 2);
}

TEST(TextTest, PrintableTextCommandsNoTerminal) {
  EXPECT_EQ(Printable("a\x1b[31mb\nc\td"), "a [31mb c d");
  EXPECT_EQ(Printable("a\xff"
                      "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(Printable("a\u202Eb"), "a b");  // right-to-left override
  EXPECT_EQ(Printable("café 目"), "café 目");
}

TEST(TextTest, ShortensToColumns) {
  EXPECT_EQ(Shorten("alarm clock", 11), "alarm clock");
  EXPECT_EQ(Shorten("alarm clock", 10), "alarm clo…");
  EXPECT_EQ(Shorten("alarm clock", 7), "alarm…");
  // Half of a wide character does not fit.
  EXPECT_EQ(Shorten("目覚まし", 4), "目…");
  EXPECT_EQ(DisplayWidth(Shorten("目覚まし", 5)), 5);
}

TEST(TextTest, BarsCountEighths) {
  EXPECT_EQ(Bar(0, 4), "");
  EXPECT_EQ(Bar(0.49 / 32, 4), "");
  EXPECT_EQ(Bar(0.51 / 32, 4), "▏");
  EXPECT_EQ(Bar(0.5, 4), "██");
  EXPECT_EQ(Bar(0.25 + 3.0 / 32, 4), "█▍");
  EXPECT_EQ(Bar(1, 4), "████");
  EXPECT_EQ(Bar(7, 4), "████");
}

TEST(TextTest, FormatsNumbers) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(-1234567), "-1,234,567");
  EXPECT_EQ(FormatShare(0), "0 %");
  EXPECT_EQ(FormatShare(1), "100.0 %");
  EXPECT_EQ(FormatShare(0.3142), "31.4 %");
  EXPECT_EQ(FormatShare(0.000042), "0.0042 %");
  EXPECT_EQ(FormatShare(1.04e-5), "0.0010 %");
  EXPECT_EQ(FormatShare(1e-12), "<0.001 %");
  EXPECT_EQ(FormatNumber(-0.5), "-0.5");
  EXPECT_EQ(FormatNumber(-0.0), "0");
}

TEST(TableTest, AlignsByDisplayedColumns) {
  Table table({{.title = "id"},
               {.title = "name"},
               {.title = "n", .align = Table::Align::kRight}});
  table.AddRow({"a", "café", "7"});
  table.AddRow({"bb", "目覚", "10"});
  EXPECT_EQ(table.Format({}),
            "id  name   n\n"
            "a   café   7\n"
            "bb  目覚  10\n");
}

TEST(TableTest, ColourChangesNoWidth) {
  const auto format = [](bool colour) {
    Table table({{.title = "id", .tone = Table::Tone::kAccent},
                 {.title = "n", .tone = Table::Tone::kDim}});
    table.AddRow({"a", "7"});
    return table.Format({.colour = colour});
  };
  EXPECT_EQ(format(false), "id  n\na   7\n");
  EXPECT_EQ(format(true),
            "\x1b[1mid\x1b[0m  \x1b[1mn\x1b[0m\n"
            "\x1b[36ma\x1b[0m   \x1b[2m7\x1b[0m\n");
}

TEST(TableTest, ShortensLongCells) {
  Table table({{.title = "name", .max_width = 6}, {.title = "n"}});
  table.AddRow({"alarm clock", "1"});
  EXPECT_THAT(absl::StrSplit(table.Format({}), '\n'),
              ElementsAre("name    n", "alarm…  1", ""));
}

TEST(MarkupTest, TextIsNoMarkup) {
  EXPECT_EQ(EscapeMarkup("<a & \"b\">\n"), "&lt;a &amp; &quot;b&quot;&gt; ");
  EXPECT_EQ(EscapeMarkup("a\uFFFEb\uFFFF"), "a\uFFFDb\uFFFD");
}

TEST(ProgressTest, ShowsRateAndTimeLeft) {
  EXPECT_EQ(FormatProgress("Importing", {.done_count = 25000,
                                         .total_count = 100000,
                                         .elapsed = absl::Seconds(2)}),
            "Importing  25,000 of 100,000  25 %  12,500/s  6s left");
  EXPECT_EQ(FormatProgress("Importing", {.total_count = 10}),
            "Importing  0 of 10  0 %");
  EXPECT_EQ(FormatProgress("Importing", {}), "Importing  0 of 0  100 %");
}

TEST(ProgressTest, ItsBarTakesTheRoomThatThereIs) {
  const ProgressState state = {
      .done_count = 25000, .total_count = 100000, .elapsed = absl::Seconds(2)};
  const std::string counts = "  25,000 of 100,000  25 %  12,500/s  6s left";
  EXPECT_EQ(FormatProgressBar("Importing", state, 200),
            "Importing ██████" + std::string(18, ' ') + counts);
  EXPECT_EQ(FormatProgressBar("Importing", state, 62),
            "Importing ██      " + counts);
  EXPECT_EQ(FormatProgressBar("Importing", state, 56), "Importing" + counts);
  EXPECT_EQ(FormatProgressBar("Importing", state, 30),
            "Importing  25,000 of 100,000…");
}

TEST(ProgressTest, StaysOnOneLineOfATerminal) {
  const ProgressState state = {.done_count = 1'234'567'890,
                               .total_count = 12'345'678'901,
                               .elapsed = absl::Hours(31)};
  for (const int width : {79, 59}) {
    EXPECT_LE(DisplayWidth(FormatProgressBar("Importing", state, width)),
              width);
  }
}

TEST(TerminalTest, HasTheWidthItHasNow) {
  PseudoTerminal terminal(60);
  if (terminal.stream() == nullptr) GTEST_SKIP() << "no terminals here";
  EXPECT_EQ(DrawnWidth(terminal.stream()), 59);
  terminal.Resize(132);
  EXPECT_EQ(DrawnWidth(terminal.stream()), 131);
  terminal.Resize(0);
  EXPECT_EQ(DrawnWidth(terminal.stream()), 79);
}

TEST(TerminalTest, WhatIsNoneIsTakenForAUsualOne) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(DrawnWidth(file), 79);
  std::fclose(file);
}

}  // namespace
}  // namespace attendant
