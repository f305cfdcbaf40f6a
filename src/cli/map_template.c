/* SPDX-License-Identifier: MIT */
#include "cli/map_template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/say.h"

enum piece_kind { LITERAL, ITEM, STEM, BASE, DIRECTORY, BASE_STEM, JOB, SLOT };

struct piece {
    enum piece_kind kind;
    const char *text; /* of a literal */
    size_t length;
};

struct word {
    struct piece *pieces;
    size_t count;
    bool has_item, has_placeholder;
};

/* ---- parsing ---------------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum piece_kind kind;
} placeholders[] = {
    {"{}", ITEM},        {"{.}", STEM}, {"{/}", BASE}, {"{//}", DIRECTORY},
    {"{/.}", BASE_STEM}, {"{#}", JOB},  {"{%}", SLOT},
};

/* How long is the placeholder that begins here?  0: none does. */
static size_t placeholder_at(const char *text, enum piece_kind *ret_kind)
{
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++) {
        size_t length = strlen(placeholders[i].text);

        if (strncmp(text, placeholders[i].text, length) == 0) {
            *ret_kind = placeholders[i].kind;
            return length;
        }
    }
    return 0;
}

static void add_piece(struct word *w, enum piece_kind kind, const char *text, size_t length)
{
    if (kind == LITERAL && length == 0)
        return;
    w->pieces = must_resize(w->pieces, (w->count + 1) * sizeof *w->pieces);
    w->pieces[w->count++] = (struct piece){kind, text, length};
    w->has_placeholder |= kind != LITERAL;
    w->has_item |= kind != LITERAL && kind != JOB && kind != SLOT;
}

static void parse_word(struct template *t, struct word *w, const char *text)
{
    const char *from = text;

    while (*text) {
        enum piece_kind kind;
        size_t length = *text == '{' ? placeholder_at(text, &kind) : 0;

        if (length == 0) {
            text++;
            continue;
        }
        add_piece(w, LITERAL, from, (size_t)(text - from));
        add_piece(w, kind, NULL, 0);
        t->by_slot |= kind == SLOT;
        from = text += length;
    }
    add_piece(w, LITERAL, from, (size_t)(text - from));
}

/* Nothing in it that a shell would do more with than execute it. */
static bool is_plain(const struct word *w)
{
    struct buffer b = {0};

    for (size_t i = 0; i < w->count; i++)
        if (w->pieces[i].kind == LITERAL)
            buffer_add_quoted(&b, w->pieces[i].text, w->pieces[i].length);
    bool plain = b.length == 0 || memchr(b.at, '\'', b.length) == NULL;
    free(b.at);
    return plain;
}

/* ---- the program ------------------------------------------------------------------------- */

static int look_at_program(const char *path)
{
    struct stat info;

    if (stat(path, &info) < 0)
        return errno == EACCES ? EACCES : ENOENT;
    return S_ISDIR(info.st_mode) || access(path, X_OK) < 0 ? EACCES : 0;
}

/* `directory`: NULL for a name that says where it is; "" is the current one. */
static int look_in(const char *directory, size_t length, const char *name, struct buffer *ret_path)
{
    ret_path->length = 0;
    if (directory) {
        buffer_add(ret_path, length ? directory : ".", length ? length : 1);
        buffer_add_byte(ret_path, '/');
    }
    buffer_add(ret_path, name, strlen(name) + 1);
    return look_at_program(ret_path->at);
}

int find_program(const char *name, struct buffer *ret_path)
{
    const char *at = getenv("PATH");
    int result = ENOENT;

    if (*name == '\0')
        return ENOENT;
    if (strchr(name, '/'))
        return look_in(NULL, 0, name, ret_path);
    for (at = at ? at : "/usr/bin:/bin";; at++) {
        size_t length = strcspn(at, ":");
        int r = look_in(at, length, name, ret_path);

        if (r == 0)
            return 0;
        result = r == EACCES ? EACCES : result; /* a later one may do; if none does, that is why */
        at += length;
        if (*at == '\0')
            return result;
    }
}

static const char *program_of(const struct word *w)
{
    struct buffer name = {0}, path = {0};

    if (w->has_placeholder)
        return NULL;
    buffer_add(&name, w->count ? w->pieces[0].text : "", w->count ? w->pieces[0].length : 0);
    buffer_add_byte(&name, '\0');
    int r = find_program(name.at, &path);
    if (r == ENOENT)
        fail(EXIT_NOT_FOUND, "there is no command \"%s\"", name.at);
    if (r)
        fail(EXIT_CANNOT_RUN, "cannot run \"%s\": %s", name.at, strerror(r));
    free(name.at);
    return path.at;
}

void template_parse(struct template *ret, char **words, size_t count)
{
    bool has_placeholder = false;

    *ret = (struct template){.count = count};
    ret->words = must_resize(NULL, (count + 1) * sizeof *ret->words);
    memset(ret->words, 0, (count + 1) * sizeof *ret->words);
    for (size_t i = 0; i < count; i++) {
        parse_word(ret, &ret->words[i], words[i]);
        has_placeholder |= ret->words[i].has_placeholder;
    }
    ret->shell = count == 1 && *words[0] && !is_plain(&ret->words[0]);
    if (!has_placeholder && ret->shell) {
        add_piece(&ret->words[0], LITERAL, " ", 1);
        add_piece(&ret->words[0], ITEM, NULL, 0);
    } else if (!has_placeholder) {
        add_piece(&ret->words[ret->count++], ITEM, NULL, 0);
    }
    ret->path = ret->shell ? "/bin/sh" : program_of(&ret->words[0]);
}

/* ---- rendering ------------------------------------------------------------------------------ */

struct span {
    const char *at;
    size_t length;
};

static struct span base_of(struct span s)
{
    const char *slash = memrchr(s.at, '/', s.length);

    return slash ? (struct span){slash + 1, (size_t)(s.at + s.length - slash - 1)} : s;
}

static struct span directory_of(struct span s)
{
    const char *slash = memrchr(s.at, '/', s.length);

    if (slash == NULL)
        return (struct span){".", 1};
    return (struct span){s.at, slash == s.at ? 1 : (size_t)(slash - s.at)};
}

/* A name that only begins with a dot has no extension. */
static struct span stem_of(struct span s)
{
    struct span base = base_of(s);
    const char *dot = memrchr(base.at, '.', base.length);

    return dot && dot > base.at ? (struct span){s.at, (size_t)(dot - s.at)} : s;
}

static struct span part_of(enum piece_kind kind, struct span item)
{
    switch (kind) {
    case STEM:
        return stem_of(item);
    case BASE:
        return base_of(item);
    case BASE_STEM:
        return base_of(stem_of(item));
    case DIRECTORY:
        return directory_of(item);
    default:
        return item;
    }
}

/* What a template is filled with. */
struct filling {
    const struct items *items;
    uint64_t job;
    unsigned slot;
};

static void add_all_quoted(struct buffer *to, enum piece_kind kind, const struct items *items)
{
    const char *text = items->text.at;

    for (size_t at = 0; text && at < items->text.length;) {
        const char *item = text + at;
        struct span part = part_of(kind, (struct span){item, strlen(item)});

        if (at)
            buffer_add_byte(to, ' ');
        buffer_add_quoted(to, part.at, part.length);
        at += strlen(item) + 1;
    }
}

/* `item`: the one that stands here; NULL: all of them, for sh. */
static void render_piece(struct buffer *to, const struct piece *p, const struct filling *f,
                         const char *item)
{
    if (p->kind == LITERAL) {
        buffer_add(to, p->text, p->length);
    } else if (p->kind == JOB) {
        buffer_add_number(to, f->job);
    } else if (p->kind == SLOT) {
        buffer_add_number(to, f->slot);
    } else if (item) {
        struct span part = part_of(p->kind, (struct span){item, strlen(item)});

        buffer_add(to, part.at, part.length);
    } else {
        add_all_quoted(to, p->kind, f->items);
    }
}

static void begin_argument(struct command_line *c)
{
    if (c->argc + 3 > c->capacity) {
        c->capacity = c->capacity ? c->capacity * 2 : 16;
        char **block = must_resize(c->argv ? c->argv - 1 : NULL, c->capacity * sizeof *c->argv);
        c->argv = block + 1;
    }
    c->argv[c->argc++] = (char *)c->text.length; /* an offset, until the text stays in place */
}

static void render_word(struct command_line *c, const struct word *w, const struct filling *f,
                        const char *item)
{
    begin_argument(c);
    for (size_t i = 0; i < w->count; i++)
        render_piece(&c->text, &w->pieces[i], f, item);
    buffer_add_byte(&c->text, '\0');
}

static void render_words(const struct template *t, const struct filling *f, struct command_line *c)
{
    for (size_t i = 0; i < t->count; i++) {
        const char *item = f->items->text.at;
        size_t times = t->words[i].has_item ? f->items->count : 1;

        for (size_t k = 0; k < times; k++) {
            render_word(c, &t->words[i], f, item);
            item += strlen(item) + 1;
        }
    }
}

void template_render(const struct template *t, const struct items *items, uint64_t job,
                     unsigned slot, struct command_line *ret)
{
    struct filling filling = {items, job, slot};

    ret->text.length = ret->argc = 0;
    if (t->shell) {
        begin_argument(ret);
        buffer_add(&ret->text, "sh", 3);
        begin_argument(ret);
        buffer_add(&ret->text, "-c", 3);
        render_word(ret, &t->words[0], &filling, NULL);
    } else {
        render_words(t, &filling, ret);
    }
    for (size_t i = 0; i < ret->argc; i++)
        ret->argv[i] = ret->text.at + (size_t)ret->argv[i];
    ret->argv[ret->argc] = NULL;
}

void command_print(const struct template *t, const struct command_line *c, struct buffer *to)
{
    if (t->shell) {
        buffer_add_text(to, c->argv[2]);
        return;
    }
    for (size_t i = 0; i < c->argc; i++) {
        if (i)
            buffer_add_byte(to, ' ');
        buffer_add_quoted(to, c->argv[i], strlen(c->argv[i]));
    }
}
