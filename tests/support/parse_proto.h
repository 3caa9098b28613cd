// Parses messages from proto text.
#ifndef ATTENDANT_TESTS_SUPPORT_PARSE_PROTO_H_
#define ATTENDANT_TESTS_SUPPORT_PARSE_PROTO_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

namespace attendant {

// Returns the message that the text describes. If the text is malformed, adds a
// test failure and returns what could be parsed.
template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_PARSE_PROTO_H_
