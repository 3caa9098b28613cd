// A catalog as people read it.
#ifndef ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_CATALOG_TEXT_H_
#define ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_CATALOG_TEXT_H_

#include <string>

#include "attendant/v1/catalog_service.pb.h"
#include "client/format/text.h"

namespace attendant {

// Several lines: counts, key fields with their indexes, attributes, memory by
// part, warnings.
std::string DescribeCatalog(const v1::Catalog& catalog, const Style& style);

// A line.
std::string DescribeServer(const v1::ServerMemory& memory);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_CATALOG_TEXT_H_
