#include "tests/integration/requests.h"

#include "core/base/status.h"

namespace attendant {

v1::KeyField KeyFieldOf(const std::string& name, int dimension,
                        v1::ScoreKind score_kind) {
  v1::KeyField field;
  field.set_name(name);
  field.set_dimension(dimension);
  field.set_score_kind(score_kind);
  return field;
}

v1::Vector VectorOf(const std::vector<double>& components) {
  v1::Vector vector;
  for (const double component : components) {
    vector.mutable_floats()->add_values(static_cast<float>(component));
  }
  return vector;
}

v1::Item ItemOf(const std::string& id, const std::string& key_field,
                const std::vector<double>& key) {
  v1::Item item;
  item.set_id(id);
  (*item.mutable_keys())[key_field] = VectorOf(key);
  return item;
}

absl::Status CreateCatalog(Client& client, const std::string& name,
                           const std::vector<v1::KeyField>& key_fields,
                           int value_dimension) {
  v1::CreateCatalogRequest request;
  request.set_name(name);
  for (const v1::KeyField& field : key_fields) {
    *request.mutable_schema()->add_key_fields() = field;
  }
  request.mutable_schema()->set_value_dimension(value_dimension);
  v1::AttributeField* version = request.mutable_schema()->add_attributes();
  version->set_name("version");
  version->set_type(v1::ATTRIBUTE_TYPE_INT64);
  return client.CreateCatalog(request).status();
}

v1::BatchUpsertItemsRequest UpsertOf(const std::string& catalog,
                                     const std::vector<v1::Item>& items,
                                     const std::string& request_id) {
  v1::BatchUpsertItemsRequest request;
  request.set_catalog(catalog);
  request.set_request_id(request_id);
  for (const v1::Item& item : items) *request.add_items() = item;
  return request;
}

v1::BatchDeleteItemsRequest DeleteOf(const std::string& catalog,
                                     const std::vector<std::string>& ids,
                                     const std::string& request_id) {
  v1::BatchDeleteItemsRequest request;
  request.set_catalog(catalog);
  request.set_request_id(request_id);
  for (const std::string& id : ids) request.add_ids(id);
  return request;
}

absl::StatusOr<std::map<std::string, v1::Item>> ListAll(
    Client& client, const std::string& catalog) {
  std::map<std::string, v1::Item> items;
  v1::ListItemsRequest request;
  request.set_catalog(catalog);
  request.set_page_size(1000);
  do {
    ATTENDANT_ASSIGN_OR_RETURN(const v1::ListItemsResponse page,
                               client.ListItems(request));
    for (const v1::Item& item : page.items()) items[item.id()] = item;
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return items;
}

absl::StatusOr<std::map<std::string, std::int64_t>> ListVersions(
    Client& client, const std::string& catalog) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto items, ListAll(client, catalog));
  std::map<std::string, std::int64_t> versions;
  for (const auto& [id, item] : items) {
    const auto version = item.attributes().find("version");
    versions[id] =
        version == item.attributes().end() ? 0 : version->second.int64_value();
  }
  return versions;
}

}  // namespace attendant
