// Sequences of tokens that requests bring, or name by items.
#ifndef ATTENDANT_SERVICE_HANDLERS_TOKEN_SEQUENCE_H_
#define ATTENDANT_SERVICE_HANDLERS_TOKEN_SEQUENCE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/sequence_service.pb.h"
#include "core/attention/models/model.h"
#include "core/base/interrupt.h"
#include "service/calls/backend.h"

namespace attendant {

// The tokens, one a row; ids are looked up in the catalog as it is now.
// InvalidArgument naming a part of `path`: no tokens, no finite numbers,
// vectors of more than one dimension. NotFound: no such catalog or item.
// ResourceExhausted: more than kMaxSequenceCount tokens. Errors of the
// interrupt.
absl::StatusOr<Matrix> TokensFromProto(const Backend& backend,
                                       const v1::TokenSequence& wire,
                                       absl::string_view path,
                                       const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_TOKEN_SEQUENCE_H_
