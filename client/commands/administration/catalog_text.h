// Formats a catalog for people.
#ifndef ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_CATALOG_TEXT_H_
#define ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_CATALOG_TEXT_H_

#include <string>

#include "attendant/v1/catalog_service.pb.h"
#include "client/format/text.h"

namespace attendant {

// Returns lines with the counts, the key fields and their indexes, attributes,
// memory by part, and warnings.
std::string DescribeCatalog(const v1::Catalog& catalog, const Style& style);

// Returns a line on the server's memory.
std::string DescribeServer(const v1::ServerMemory& memory);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_CATALOG_TEXT_H_
