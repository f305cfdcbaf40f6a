/* SPDX-License-Identifier: MIT */
#include "cli/json.h"

#include <weir/time.h>

#include "cli/text.h"

static void print_string(FILE *to, const char *text)
{
    fputc('"', to);
    while (*text) {
        uint32_t c = 0;
        int length = utf8_char(text, &c);

        if (length == 0)
            fputs("\\ufffd", to);
        else if (c < 0x20 || c == 0x7f)
            fprintf(to, "\\u%04x", (unsigned)c);
        else
            fprintf(to, "%s%.*s", c == '"' || c == '\\' ? "\\" : "", length, text);
        text += length ? length : 1;
    }
    fputc('"', to);
}

static void begin(struct json *j, const char *key)
{
    if (j->comma)
        fputc(',', j->to);
    if (key) {
        print_string(j->to, key);
        fputc(':', j->to);
    }
    j->comma = true;
}

void json_open(struct json *j, const char *key, char bracket)
{
    begin(j, key);
    fputc(bracket, j->to);
    j->comma = false;
}

void json_close(struct json *j, char bracket)
{
    fputc(bracket, j->to);
    j->comma = true;
}

void json_text(struct json *j, const char *key, const char *text)
{
    begin(j, key);
    print_string(j->to, text);
}

void json_hex(struct json *j, const char *key, const char *bytes)
{
    begin(j, key);
    fputc('"', j->to);
    for (; *bytes; bytes++)
        fprintf(j->to, "%02x", (unsigned char)*bytes);
    fputc('"', j->to);
}

void json_count(struct json *j, const char *key, uint64_t number)
{
    begin(j, key);
    fprintf(j->to, "%llu", (unsigned long long)number);
}

void json_time(struct json *j, const char *key, int64_t ns)
{
    begin(j, key);
    if (ns == INT64_MAX)
        fputs("null", j->to);
    else
        fprintf(j->to, "%lld.%06d", (long long)(ns / WEIR_S), (int)(ns % WEIR_S / WEIR_US));
}

bool json_is_text(const char *bytes)
{
    uint32_t c;

    for (int length; *bytes; bytes += length) {
        length = utf8_char(bytes, &c);
        if (length == 0)
            return false;
    }
    return true;
}
