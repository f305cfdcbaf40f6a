/* SPDX-License-Identifier: MIT */
#include "base/id.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/fork.h"

/* A counter and where it began, each thread its own (splitmix64: every value of the counter
 * gives another number). */
static __thread struct {
    uint64_t counter;
    uint32_t forks; /* how often the process had been forked when it was seeded, plus 1 */
} state;

static void seed(void)
{
    uint64_t from;

    if (getrandom(&from, sizeof from, 0) != sizeof from)
        from = (uint64_t)clock_real_ns() ^ (uint64_t)(uintptr_t)&state << 20;
    state.counter = from;
    state.forks = fork_count() + 1;
}

uint64_t id_random(void)
{
    if (state.forks != fork_count() + 1)
        seed();
    uint64_t x = state.counter += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

void id_make(uint8_t id[ID_BYTES])
{
    uint64_t half[2] = {id_random(), id_random()};

    memcpy(id, half, ID_BYTES);
}

/* ---- as text ----------------------------------------------------------------------
 *
 * Sixteen bytes or digits at a time, in the compiler's own vectors, and without a branch on
 * a digit: they are random, and 32 wrong guesses cost 100 ns. */

typedef uint8_t bytes16 __attribute__((vector_size(ID_BYTES)));

/* Each is below 16. */
static bytes16 digits_of(bytes16 values)
{
    bytes16 is_letter = (bytes16)(values > 9);

    return values + '0' + (is_letter & ('a' - '0' - 10));
}

void id_print(const uint8_t id[ID_BYTES], char text[ID_DIGITS + 1])
{
    bytes16 bytes, halves[2];

    memcpy(&bytes, id, sizeof bytes);
    bytes16 high = digits_of(bytes >> 4), low = digits_of(bytes & 15);
    halves[0] =
        __builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    halves[1] = __builtin_shufflevector(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
                                        30, 15, 31);
    memcpy(text, halves, sizeof halves);
    text[ID_DIGITS] = '\0';
}

/* What digits are worth; *wrong gets bits where there is none. */
static bytes16 values_of(bytes16 digits, bytes16 *wrong)
{
    bytes16 decimal = digits - '0', letter = (digits | 0x20) - 'a';
    bytes16 is_decimal = (bytes16)(decimal < 10), is_letter = (bytes16)(letter < 6);

    *wrong |= ~(is_decimal | is_letter);
    return (decimal & is_decimal) | ((letter + 10) & is_letter);
}

bool id_parse(const char *text, uint8_t id[ID_BYTES])
{
    bytes16 halves[2], wrong = {0};
    uint64_t any[2];

    if (strnlen(text, ID_DIGITS + 1) != ID_DIGITS)
        return false;
    memcpy(halves, text, sizeof halves);
    halves[0] = values_of(halves[0], &wrong);
    halves[1] = values_of(halves[1], &wrong);
    memcpy(any, &wrong, sizeof any);
    if (any[0] | any[1])
        return false;
    bytes16 high = __builtin_shufflevector(halves[0], halves[1], 0, 2, 4, 6, 8, 10, 12, 14, 16, 18,
                                           20, 22, 24, 26, 28, 30);
    bytes16 low = __builtin_shufflevector(halves[0], halves[1], 1, 3, 5, 7, 9, 11, 13, 15, 17, 19,
                                          21, 23, 25, 27, 29, 31);
    bytes16 bytes = high << 4 | low;
    memcpy(id, &bytes, sizeof bytes);
    return true;
}
