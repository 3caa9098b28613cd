// Attention over sequences and histories as a person reads it.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_REPORT_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_REPORT_H_

#include <string>

#include "attendant/v1/sequence_service.pb.h"
#include "client/commands/attention/attention_maps.h"
#include "client/format/text.h"

namespace attendant {

// A table of the tokens with what they attend to most, if the weights are
// there, and their outputs; then a sentence on the cost.
std::string ContextReport(const v1::ContextualizeResponse& response,
                          const TokenNames& names, const Style& style);

struct RankReportOptions {
  ItemNames names = {};
  // Events shown with each candidate, of those named.
  int because_count = 3;
  Style style = {};
};

// A table of the candidates with their scores and the events that earned them;
// then sentences on later events and unknown items.
std::string RankReport(const v1::RankCandidatesRequest& request,
                       const v1::RankCandidatesResponse& response,
                       const RankReportOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_REPORT_H_
