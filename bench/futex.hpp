/* SPDX-License-Identifier: MIT */
/* futex.hpp - the kernel's own way to sleep, for floors and for harness code that must
 * not favour any implementation. */
#ifndef BENCH_FUTEX_HPP
#define BENCH_FUTEX_HPP

#include <atomic>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sleep while the word has this value. */
inline void futex_wait(std::atomic<uint32_t> &word, uint32_t value)
{
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

inline void futex_wake(std::atomic<uint32_t> &word, int count)
{
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

/* A word that threads wait for to reach a number, as plainly as it can be done. */
struct Signpost {
    std::atomic<uint32_t> reached{0};

    void wait_for(uint32_t number)
    {
        for (uint32_t now; (now = reached.load(std::memory_order_acquire)) < number;)
            futex_wait(reached, now);
    }

    void reach(uint32_t number)
    {
        reached.store(number, std::memory_order_release);
        futex_wake(reached, INT_MAX);
    }
};

inline void cpu_pause()
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    asm volatile("yield");
#endif
}

#endif
