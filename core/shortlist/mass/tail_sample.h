// What codes say of keys that are not scored from their floats, corrected by a
// few that are: keys drawn by what their codes weigh. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_MASS_TAIL_SAMPLE_H_
#define ATTENDANT_CORE_SHORTLIST_MASS_TAIL_SAMPLE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// The sum of exp(logit by code) over each block of 16 keys, all blocks from the
// first on.
//
// The sum over all keys of exp(logit) is the mean, over draws of a key i with
// probability p_i, of exp(logit_i) / p_i: whatever the codes are worth, as long
// as p_i is known and not 0 (importance sampling; Owen 2013, ch. 9). Where p_i
// is in proportion to what the code says, the ratio varies by the code's error
// alone. Not thread-safe.
class TailSample {
 public:
  // Draws hold their own sums of a block's keys: one that was drawn.
  struct Draw {
    std::int64_t block = 0;
    double log_probability = 0;  // of the block
    double uniform = 0;          // in [0, 1): which of its keys
  };

  void Start() {
    sums_.clear();
    chunks_.clear();
  }

  // Adds `count` keys, the next ones, of which exps[i] is exp(logit - max). But
  // for the last, chunks are of whole blocks.
  void Add(const float* exps, std::int64_t count, float max);
  // Takes keys out, with these logits by code. Ascending positions.
  void Remove(std::span<const std::int32_t> positions,
              std::span<const float> logits);

  // log of the sum of what is left; -infinity: nothing.
  double LogSum() const;

  // `count` blocks by their sums: one in each of as many equal parts of the sum
  // (stratified), so that every block is drawn as often as its share says, to
  // within two. Places in the parts are independent, whatever recurs in the
  // order of the blocks, and from those of other seeds. The same for the same
  // sums and seed. Nothing is left: none.
  void DrawBlocks(std::int64_t count, std::uint64_t seed,
                  std::vector<Draw>& draws) const;

 private:
  // Keys that were added at once: their blocks' sums are relative to exp(max).
  struct Chunk {
    std::int64_t first_block = 0;
    float max = 0;
  };

  // Past the last block of a chunk.
  std::size_t EndOf(std::size_t chunk) const;
  double SumOf(std::size_t first_block, std::size_t end_block) const;

  std::vector<float> sums_;
  std::vector<Chunk> chunks_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_TAIL_SAMPLE_H_
