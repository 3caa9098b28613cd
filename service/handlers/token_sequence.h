// Token sequences that requests contain or name by item ids.
#ifndef ATTENDANT_SERVICE_HANDLERS_TOKEN_SEQUENCE_H_
#define ATTENDANT_SERVICE_HANDLERS_TOKEN_SEQUENCE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/sequence_service.pb.h"
#include "core/attention/models/model.h"
#include "core/base/interrupt.h"
#include "service/calls/backend.h"

namespace attendant {

// Returns the tokens as rows; ids are looked up in the current state of the
// catalog. InvalidArgument naming a part of `path`: no tokens, components that
// are not finite, vectors of different dimensions. NotFound: no such catalog or
// item. ResourceExhausted: more than kMaxSequenceCount tokens. Also the errors
// of `interrupt`.
absl::StatusOr<Matrix> TokensFromProto(const Backend& backend,
                                       const v1::TokenSequence& wire,
                                       absl::string_view path,
                                       const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_TOKEN_SEQUENCE_H_
