#include "breeding/tiles.h"

#include <algorithm>
#include <array>

#include "core/saturating.h"

namespace tlp_tvm {
namespace breeding {
namespace {

/*! \brief Draws before the innermost length is taken apart; each has a good chance to be short. */
constexpr int kDraws = 32;

/*! \brief Shares `count` alike things among `places`, each way to do so with equal chances. */
void Share(int count, std::size_t places, Random* random, int* shares) {
  // Of count + places - 1 marks in a row, places - 1 are borders (stars and bars).
  std::size_t borders = places - 1;
  std::size_t left = static_cast<std::size_t>(count) + borders;
  std::fill_n(shares, places, 0);
  for (std::size_t place = 0; left > 0; --left) {
    if (random->Below(left) < borders) {
      --borders;
      ++place;
    } else {
      ++shares[place];
    }
  }
}

/*! \return A divisor of `length` above 1 and up to `most`, or 1 where there is none. */
std::int64_t DrawFactor(std::int64_t length, std::int64_t most, Random* random) {
  std::array<std::int64_t, 128> small{};  // what divides up to the root; no int has as many
  std::size_t count = 0, fitting = 0;
  for (std::int64_t n = 1; n * n <= length && count < small.size(); ++n) {
    if (length % n == 0) small[count++] = n;
  }
  const auto factor = [&](std::size_t i) {  // 2 * count of them; a square's root is there twice
    return i < count ? small[i] : length / small[i - count];
  };
  const auto fits = [&](std::size_t i) {
    const std::int64_t n = factor(i);
    return n > 1 && n <= most && (i < count || n * n != length);
  };
  for (std::size_t i = 0; i < 2 * count; ++i) fitting += fits(i);
  if (fitting == 0) return 1;
  std::size_t chosen = random->Below(fitting);
  for (std::size_t i = 0; i < 2 * count; ++i) {
    if (fits(i) && chosen-- == 0) return factor(i);
  }
  return 1;
}

}  // namespace

Divisors::Divisors(std::int64_t extent) {
  all.push_back(1);
  for (std::int64_t prime = 2, left = extent; left > 1; ++prime) {
    if (prime * prime > left) prime = left;
    int times = 0;
    for (; left % prime == 0; left /= prime) ++times;
    if (times == 0) continue;
    primes.emplace_back(prime, times);
    const std::size_t before = all.size();
    for (std::size_t i = 0; i < before * static_cast<std::size_t>(times); ++i) {
      all.push_back(all[all.size() - before] * prime);
    }
  }
  std::sort(all.begin(), all.end());
}

void DrawLengths(const Divisors& divisors, std::size_t parts, std::int64_t most, Random* random,
                 std::int64_t* lengths) {
  std::array<int, kMaxParts + 1> shares{};
  for (int draw = 0; draw < kDraws; ++draw) {
    std::fill_n(lengths, parts, 1);
    for (const auto& [prime, times] : divisors.primes) {
      Share(times, parts + 1, random, shares.data());
      for (std::size_t i = 0; i < parts; ++i) {
        for (int k = 0; k < shares[i]; ++k) lengths[i] *= prime;
      }
    }
    if (lengths[parts - 1] <= most) return;
  }
  lengths[parts - 1] = 1;
}

bool MoveFactor(std::int64_t extent, std::size_t parts, std::int64_t most, Random* random,
                std::int64_t* lengths) {
  std::array<std::int64_t, kMaxParts + 1> all{};
  std::array<std::size_t, kMaxParts + 1> order{};
  std::int64_t inside = 1;
  for (std::size_t i = 0; i < parts; ++i) {
    all[i + 1] = lengths[i];
    inside = Product(inside, lengths[i]);
  }
  all[0] = inside > 0 ? extent / inside : 0;
  const std::size_t count = parts + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = random->Below(i + 1);
    order[i] = order[place];
    order[place] = i;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = order[i], to = order[(i + 1) % count];
    if (all[from] <= 1) continue;
    const std::int64_t room = to == parts ? most / all[to] : all[from];
    const std::int64_t factor = DrawFactor(all[from], room, random);
    if (factor == 1) continue;
    if (from != 0) lengths[from - 1] /= factor;
    if (to != 0) lengths[to - 1] *= factor;
    return true;
  }
  return false;
}

}  // namespace breeding
}  // namespace tlp_tvm
