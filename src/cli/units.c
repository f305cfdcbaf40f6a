/* SPDX-License-Identifier: MIT */
#include "cli/units.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weir/store.h>
#include <weir/time.h>

bool parse_number(const char *text, int64_t least, int64_t most, int64_t *ret)
{
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || *end || number < least || number > most)
        return false;
    *ret = number;
    return true;
}

bool parse_count(const char *text, int64_t *ret)
{
    return parse_number(text, 1, (int64_t)WEIR_LIMIT_MAX, ret);
}

static int64_t unit_of(const char *text)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"", WEIR_S},       {"s", WEIR_S},        {"ms", WEIR_MS},       {"us", WEIR_US},
        {"m", 60 * WEIR_S}, {"h", 3600 * WEIR_S}, {"d", 86400 * WEIR_S},
    };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text, units[i].name) == 0)
            return units[i].ns;
    return 0;
}

bool parse_duration(const char *text, int64_t *ret_ns)
{
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    double number = strtod(text, &end);
    int64_t unit = unit_of(end);
    if (end != text + strspn(text, "0123456789.")) /* it knows more than people write */
        return false;
    if (unit == 0 || number * (double)unit > 2e18)
        return false;
    *ret_ns = (int64_t)(number * (double)unit);
    return true;
}

bool parse_signal(const char *text, int64_t *ret)
{
    if (parse_number(text, 1, SIGRTMAX, ret))
        return true;
    if (strncasecmp(text, "SIG", 3) == 0)
        text += 3;
    for (int i = 1; i < 32; i++) {
        const char *name = sigabbrev_np(i);

        if (name && strcasecmp(name, text) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

const char *print_duration(int64_t ns, char text[DURATION_BYTES])
{
    int64_t s = ns / WEIR_S;

    if (ns < WEIR_MS)
        snprintf(text, DURATION_BYTES, "%dus", (int)(ns / WEIR_US));
    else if (ns < WEIR_S)
        snprintf(text, DURATION_BYTES, "%dms", (int)(ns / WEIR_MS));
    else if (s < 60)
        snprintf(text, DURATION_BYTES, "%d.%ds", (int)s, (int)(ns / (WEIR_S / 10) % 10));
    else if (s < 3600)
        snprintf(text, DURATION_BYTES, "%dm%02ds", (int)(s / 60), (int)(s % 60));
    else if (s < 86400)
        snprintf(text, DURATION_BYTES, "%dh%02dm", (int)(s / 3600), (int)(s / 60 % 60));
    else
        snprintf(text, DURATION_BYTES, "%dd%02dh", (int)(s / 86400), (int)(s / 3600 % 24));
    return text;
}
