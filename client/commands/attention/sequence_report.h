// Formats attention over sequences and histories for people.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_REPORT_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_REPORT_H_

#include <string>

#include "attendant/v1/sequence_service.pb.h"
#include "client/commands/attention/attention_maps.h"
#include "client/format/text.h"

namespace attendant {

// Returns a table of the tokens with their outputs and, if the reply has
// weights, what each attends to most; then a sentence on the cost.
std::string ContextReport(const v1::ContextualizeResponse& response,
                          const TokenNames& names, const Style& style);

struct RankReportOptions {
  ItemNames names = {};
  // The most events shown with each candidate.
  int because_count = 3;
  Style style = {};
};

// Returns a table of the candidates with their scores and the events that
// earned them, followed by sentences on the cost, masked events and unknown
// items.
std::string RankReport(const v1::RankCandidatesRequest& request,
                       const v1::RankCandidatesResponse& response,
                       const RankReportOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_REPORT_H_
