#include <cstdint>
#include <cstring>
#include <new>
#include <thread>

#include "check.h"
#include "core/arena.h"

using tlp_tvm::Arena;

TEST(PiecesFollowOneAnotherAligned) {
  const auto arena = Arena::Take(100);
  const std::size_t room = arena->left();
  auto* first = static_cast<char*>(arena->allocate(3, 1));
  auto* second = static_cast<char*>(arena->allocate(16, 8));
  EXPECT(second - first >= 3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % 8, 0u);
  EXPECT(room - arena->left() >= 3 + 16);
  EXPECT(room - arena->left() <= 3 + 16 + 2 * Arena::kSlack);
}

TEST(WhatDoesNotFitIsRefused) {
  const auto arena = Arena::Take(1);
  const std::size_t room = arena->left();
  bool refused = false;
  try {
    static_cast<void>(arena->allocate(room + 1, 1));
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  EXPECT(refused);
  std::memset(arena->allocate(room, 1), 1, room);
  EXPECT_EQ(arena->left(), 0u);
}

TEST(AnArenaIsAsLargeAsAsked) {
  const std::size_t size = std::size_t{20} << 20;
  const auto arena = Arena::Take(size);
  EXPECT(arena->left() >= size);
  std::memset(arena->allocate(size, 64), 1, size);
}

TEST(WhatIsGivenBackIsUsedAgain) {
  auto arena = Arena::Take(1);
  const std::size_t room = arena->left();
  void* const before = arena->allocate(64, 64);
  arena.reset();
  arena = Arena::Take(1);
  EXPECT_EQ(arena->left(), room);
  EXPECT(arena->allocate(64, 64) == before);
}

TEST(ThreadsTakeAndGiveBack) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        std::vector<std::shared_ptr<Arena>> held;
        for (int k = 0; k < 5; ++k) {
          held.push_back(Arena::Take(1));
          auto* piece = static_cast<char*>(held.back()->allocate(1000, 8));
          std::memset(piece, t, 1000);
          EXPECT_EQ(static_cast<int>(piece[999]), t);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
