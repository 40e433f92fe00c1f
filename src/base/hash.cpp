// Content hashing over libxxhash.
#include <tilewright/base/hash.h>

#include <fmt/format.h>
#include <xxhash.h>

namespace tilewright {

namespace {
Hash128 from_xxh(const XXH128_hash_t& hash) { return {hash.high64, hash.low64}; }
}  // namespace

std::string to_hex(const Hash128& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

Hash128 hash_bytes(const void* data, std::size_t size) { return from_xxh(XXH3_128bits(data, size)); }

// XXH3_state_t asks for 64-byte alignment, which only its own allocator promises.
struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { XXH3_128bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add_raw(const void* data, std::size_t size) {
  XXH3_128bits_update(state_->xxh, data, size);
  return *this;
}

Hasher& Hasher::add(std::string_view text) {
  add(text.size());
  return add_raw(text.data(), text.size());
}

Hasher& Hasher::add(double value) { return add_raw(&value, sizeof value); }

Hash128 Hasher::digest() const { return from_xxh(XXH3_128bits_digest(state_->xxh)); }

}  // namespace tilewright
