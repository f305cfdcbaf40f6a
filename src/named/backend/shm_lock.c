/* SPDX-License-Identifier: MIT */
#include "named/backend/shm_lock.h"

#include <limits.h>

#include <weir/error.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/cpu.h"

enum { LOCK_PAUSES = 100 };

static const uint32_t SLEEPER = UINT32_C(1) << 31;
static const uint32_t LIFE_MASK = 0x7FFF;

/* How long to wait for a lock that is held for less than a microsecond; and how long to sleep
 * at most, in case the one who was woken was killed before it could take it. */
static const int64_t PATIENCE_NS = 2 * WEIR_S, BACKSTOP_NS = 100 * WEIR_MS;

static uint32_t name_of(const struct shm_client *self)
{
    return (self->life & LIFE_MASK) << 16 | (self->index + 1);
}

/* The client whose name the word carries, if that is its present life; `life` is what such a
 * client would have. */
static bool owner_of(const struct shm_client *self, uint32_t word, uint32_t *ret_index,
                     uint32_t *ret_life)
{
    *ret_index = (word & 0xFFFF) - 1;
    *ret_life = shm_life_of(self, *ret_index);
    return (*ret_life & LIFE_MASK) == (word >> 16 & LIFE_MASK);
}

static bool is_orphaned(const struct shm_client *self, uint32_t word)
{
    uint32_t index, life;

    return !owner_of(self, word, &index, &life) || shm_is_dead(self, index, life);
}

bool shm_lock_is_orphaned(const struct shm_lock *lock, const struct shm_client *self)
{
    uint32_t seen = atomic_get(&lock->word);

    return seen != 0 && is_orphaned(self, seen);
}

int shm_lock_try(struct shm_lock *lock, const struct shm_client *self)
{
    uint32_t seen = 0;

    return atomic_cas(&lock->word, &seen, name_of(self)) ? SHM_LOCKED : WEIR_EAGAIN;
}

static void sleep_on(struct shm_lock *lock, const struct shm_client *self, uint32_t seen)
{
    struct futex_watch watches[2] = {{&lock->word, seen}};
    uint32_t count = 1, index, life;

    if (owner_of(self, seen, &index, &life) && index != self->index)
        count += shm_watch_death(self, index, life, &watches[1]);
    futex_wait_shared(watches, count, clock_real_ns() + (count > 1 ? BACKSTOP_NS : WEIR_MS));
    shm_spread_death(watches + 1, count - 1);
}

/* Who has slept takes the lock with SLEEPER set, since there may be others. */
static int take_slowly(struct shm_lock *lock, const struct shm_client *self)
{
    int64_t until_ns = clock_real_ns() + PATIENCE_NS;

    do {
        uint32_t seen = atomic_get(&lock->word);

        if (seen == 0) {
            if (atomic_cas(&lock->word, &seen, name_of(self) | SLEEPER))
                return SHM_LOCKED;
        } else if (is_orphaned(self, seen)) {
            if (atomic_cas(&lock->word, &seen, name_of(self) | SLEEPER))
                return SHM_ORPHANED;
        } else if ((seen & SLEEPER) || atomic_cas(&lock->word, &seen, seen | SLEEPER)) {
            sleep_on(lock, self, seen | SLEEPER);
        }
    } while (clock_real_ns() < until_ns);
    return WEIR_EBUSY;
}

int shm_lock_take(struct shm_lock *lock, const struct shm_client *self)
{
    for (int i = 0; i < LOCK_PAUSES; i++) {
        if (atomic_peek(&lock->word) == 0 && shm_lock_try(lock, self) == SHM_LOCKED)
            return SHM_LOCKED;
        cpu_pause();
    }
    return take_slowly(lock, self);
}

void shm_lock_drop(struct shm_lock *lock)
{
    if (atomic_swap(&lock->word, 0) & SLEEPER)
        futex_wake_shared(&lock->word, 1);
}
