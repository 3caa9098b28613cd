#include "core/shortlist/builds/faiss_build.h"

#include <faiss/Index.h>

#include "absl/strings/str_cat.h"

namespace attendant {

std::string FaissVersion() {
  return absl::StrCat(FAISS_VERSION_MAJOR, ".", FAISS_VERSION_MINOR, ".",
                      FAISS_VERSION_PATCH);
}

}  // namespace attendant
