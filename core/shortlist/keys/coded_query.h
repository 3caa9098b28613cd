// Queries coded with 8 or 16 bits per component, for products with coded keys.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_CODED_QUERY_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_CODED_QUERY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels/codes.h"
#include "core/shortlist/keys/key_codes.h"
#include "core/shortlist/keys/rotation.h"

namespace attendant {

// Bits per component of a coded query. With k8, scans of many queries take
// little more than half the time, but logits also carry the query's rounding
// error, which is similar for similar keys.
enum class QueryBits { k8, k16 };

// A query as coded for every KeyCodes of the same rotation. Does not own the
// planes.
struct CutQuery {
  const std::int8_t* high = nullptr;
  const std::int8_t* low = nullptr;  // null: 8 bits
  std::int32_t high_sum = 0;         // sum over components
  std::int32_t low_sum = 0;
  float scale = 0;        // value of a code of 1
  double norm = 0;        // of the query
  double coded_norm = 0;  // of the vector that the codes stand for
  double error_norm = 0;  // of the rotated query minus that vector
  // error_norm if only the high plane is read.
  double high_error_norm = 0;
};

// Bytes of one plane of a coded query.
std::int64_t QueryPlaneBytes(std::int64_t dim);

// Rotates `query` [dim], which is overwritten and has norm `norm`, and codes
// it. Each plane has QueryPlaneBytes; `low` is null for 8 bits. Returns false
// if the query is too large or too small to be coded in floats.
bool CutIntoCodes(const Rotation& rotation, std::span<float> query, double norm,
                  std::int8_t* high, std::int8_t* low, CutQuery* code);

// A query in the form that the code kernels take. Does not allocate when it is
// reused for another query. Not thread-safe.
class CodedQuery {
 public:
  CodedQuery() = default;
  // Moving keeps the pointers into the object's own vectors valid.
  CodedQuery(CodedQuery&&) = default;
  CodedQuery& operator=(CodedQuery&&) = default;

  // Codes `query` [dim], whose logits are dot products x logit_factor. Returns
  // false if its logits may exceed the range of a float, or may be too small
  // for one. Queries of one call of KeyCodes::Logits must have the same bits.
  bool Encode(const KeyCodes& codes, std::span<const float> query,
              double logit_factor, QueryBits bits = QueryBits::k16);
  // Takes a query that was already cut by the same rotation; the planes of
  // `code` must outlive the use of this object. Returns false as Encode does.
  bool Take(const CutQuery& code, const KeyCodes& codes, double logit_factor);
  // Takes the query of `other`, which was set by Encode and not by Take, for
  // other codes of the same rotation. Returns false as Encode does.
  bool EncodeAs(const CodedQuery& other, const KeyCodes& codes);

  // Makes a query that was encoded with 16 bits read only `bits` from now on,
  // with the larger error that follows.
  void Read(QueryBits bits);

  // The codes that the query was encoded for.
  const KeyCodes& codes() const { return *codes_; }
  // Valid until the next Encode or Take, at most as long as the object.
  const CodeQuery& view() const { return view_; }
  // Returns view() with another logit factor; with k8, only its high 8 bits.
  CodeQuery WithFactor(double logit_factor,
                       QueryBits bits = QueryBits::k16) const {
    CodeQuery query = view_;
    query.unit = static_cast<float>(code_.scale * logit_factor);
    query.low = bits == QueryBits::k8 ? nullptr : code_.low;
    return query;
  }
  double norm() const { return code_.norm; }  // of the query before coding

  // The logit of a key of scale s is off by at most LogitErrorPerScale(bits) x
  // s + logit_error().
  double LogitErrorPerScale(CodeBits bits) const;
  double logit_error() const { return logit_error_; }
  // Upper bound of the standard deviation of the error that reading only `bits`
  // of the query adds to a logit. This error is similar for similar keys.
  double LogitDeviation(QueryBits bits) const;
  double LogitDeviation() const {
    return LogitDeviation(view_.low == nullptr ? QueryBits::k8
                                               : QueryBits::k16);
  }
  // Variance of the error that the code of a key adds to a logit, for a key of
  // scale 1; a key of scale s has s^2 times this variance.
  double LogitVariancePerSquareScale(CodeBits bits) const;

 private:
  double ErrorNorm(QueryBits bits) const {
    return bits == QueryBits::k8 ? code_.high_error_norm : code_.error_norm;
  }
  void SetLogitError(double error_norm);

  const KeyCodes* codes_ = nullptr;
  CutQuery code_;
  std::vector<float> rotated_;
  std::vector<std::int8_t> planes_;  // high plane, then low plane
  CodeQuery view_;
  double logit_factor_ = 1;
  double logit_norm_ = 0;  // of the coded query, x logit_factor
  double logit_error_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_CODED_QUERY_H_
