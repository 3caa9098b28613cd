// Reads lists that are returned page by page.
#ifndef ATTENDANT_CLIENT_API_PAGES_H_
#define ATTENDANT_CLIENT_API_PAGES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/api/client.h"
#include "core/base/status.h"

namespace attendant {

// A method of Client that returns a page of a list.
template <typename Request, typename Response>
using ListMethod = absl::StatusOr<Response> (Client::*)(const Request&,
                                                        Client::Deadline);

// Calls `take`, an absl::Status take(Response&), with each page, from the
// request's page on. Returns the first error of the list or of `take`.
template <typename Request, typename Response, typename Take>
absl::Status ForEachPage(Client& client, ListMethod<Request, Response> list,
                         Request request, Take take) {
  do {
    ATTENDANT_ASSIGN_OR_RETURN(Response page, (client.*list)(request, {}));
    ATTENDANT_RETURN_IF_ERROR(take(page));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

// Returns all pages merged into one response.
template <typename Request, typename Response>
absl::StatusOr<Response> AllPages(Client& client,
                                  ListMethod<Request, Response> list,
                                  const Request& request) {
  Response all;
  ATTENDANT_RETURN_IF_ERROR(
      ForEachPage(client, list, request, [&all](const Response& page) {
        all.MergeFrom(page);
        return absl::OkStatus();
      }));
  all.clear_next_page_token();
  return all;
}

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_PAGES_H_
