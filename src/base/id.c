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

void id_print(const uint8_t id[ID_BYTES], char text[ID_DIGITS + 1])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < ID_BYTES; i++) {
        text[2 * i] = digits[id[i] >> 4];
        text[2 * i + 1] = digits[id[i] & 15];
    }
    text[ID_DIGITS] = '\0';
}

/* What a character is worth as a digit, and NO_DIGIT for the others, so that parsing an id
 * needs no branch on it: they are random, and 32 wrong guesses cost 100 ns. */
enum { NO_DIGIT = 0x80 };

static uint8_t digit_value(char c)
{
    uint8_t decimal = (uint8_t)(c - '0'), letter = (uint8_t)((c | 0x20) - 'a');
    uint8_t value = NO_DIGIT;

    value = letter < 6 ? (uint8_t)(letter + 10) : value;
    return decimal < 10 ? decimal : value;
}

bool id_parse(const char *text, uint8_t id[ID_BYTES])
{
    uint8_t parsed[ID_BYTES], wrong = 0;

    if (strnlen(text, ID_DIGITS + 1) != ID_DIGITS)
        return false;
    for (int i = 0; i < ID_BYTES; i++) {
        uint8_t high = digit_value(text[2 * i]), low = digit_value(text[2 * i + 1]);

        wrong |= high | low;
        parsed[i] = (uint8_t)(high << 4 | low);
    }
    if (wrong & NO_DIGIT)
        return false;
    memcpy(id, parsed, ID_BYTES);
    return true;
}
