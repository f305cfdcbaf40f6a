/* SPDX-License-Identifier: MIT */
/* weir map: a command for each item, so many at a time. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "cli/commands.h"
#include "cli/map.h"
#include "cli/map_bar.h"
#include "cli/map_log.h"
#include "cli/map_output.h"
#include "cli/map_permit.h"
#include "cli/map_spawn.h"
#include "cli/say.h"
#include "cli/units.h"

/* ---- the command line ---------------------------------------------------------------------- */

/* never, now, soon, now,fail=3, soon,fail=10% */
static struct map_halt parse_halt(const char *text)
{
    struct map_halt halt = {.failures = 1};
    const char *rest = text + strcspn(text, ",");
    size_t length = (size_t)(rest - text);
    char number[24];
    int64_t value = 1;

    halt.never = strcmp(text, "never") == 0;
    halt.now = length == 3 && strncmp(text, "now", 3) == 0;
    bool good = halt.never || halt.now || (length == 4 && strncmp(text, "soon", 4) == 0);
    if (*rest) {
        good &= !halt.never && strncmp(rest, ",fail=", 6) == 0 && strlen(rest) - 6 < sizeof number;
        strncpy(number, good ? rest + 6 : "", sizeof number - 1);
        size_t end = strcspn(number, "%");
        halt.is_percent = number[end] == '%';
        good &= !halt.is_percent || number[end + 1] == '\0';
        number[end] = '\0';
        good &= parse_number(number, 1, halt.is_percent ? 100 : INT32_MAX, &value);
    }
    if (!good)
        fail(EXIT_WEIR, "--halt is never, now, soon, now,fail=3 or soon,fail=10%%, not \"%s\"",
             text);
    halt.failures = (uint64_t)value;
    return halt;
}

/* One byte, or one of \n \t \0 \\ as printf(1) has them. */
static char parse_delimiter(const char *text)
{
    static const char letters[] = "nt0\\", bytes[] = "\n\t\0\\";

    if (text[0] == '\\' && text[1] && text[2] == '\0') {
        const char *at = strchr(letters, text[1]);

        if (at)
            return bytes[at - letters];
    }
    if (strlen(text) != 1)
        fail(EXIT_WEIR, "--delimiter is one byte, or \\n, \\t or \\0, not \"%s\"", text);
    return text[0];
}

static char delimiter_of(const struct option_value *v)
{
    if (v[OPT_DELIMITER].given)
        return parse_delimiter(v[OPT_DELIMITER].text);
    return v[OPT_NULL].given ? '\0' : '\n';
}

static void check(const struct option_value *v)
{
    static const struct {
        enum option option, needs;
    } pairs[] = {
        {OPT_RESUME, OPT_JOBLOG}, {OPT_SEM_LIMIT, OPT_SEM}, {OPT_WAIT, OPT_SEM},
        {OPT_TTL, OPT_SEM},       {OPT_WEIGHT, OPT_SEM},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (v[pairs[i].option].given && !v[pairs[i].needs].given)
            fail(EXIT_WEIR, "--%s needs --%s", option_table[pairs[i].option].name,
                 option_table[pairs[i].needs].name);
    if (v[OPT_NULL].given && v[OPT_DELIMITER].given)
        fail(EXIT_WEIR, "-0 and -d say both where an item ends: leave one of the two out");
    if (v[OPT_BAR].given && v[OPT_NO_BAR].given)
        fail(EXIT_WEIR, "--bar and --no-bar: which?");
    if (v[OPT_JOBS].number > SLOTS_MAX)
        fail(EXIT_WEIR, "-j is at most %d", SLOTS_MAX);
    if (v[OPT_TTL].given && v[OPT_TTL].number < 100 * WEIR_MS)
        fail(EXIT_WEIR, "a TTL below 100ms cannot be kept up from a shell");
}

static void set_options(struct map *m, const struct option_value *v)
{
    check(v);
    m->items_per_job = v[OPT_ARGS].given ? (uint64_t)v[OPT_ARGS].number : 1;
    m->retries = (uint64_t)v[OPT_RETRIES].number;
    m->timeout_ns = v[OPT_TIMEOUT].number;
    m->grace_ns = v[OPT_MAP_GRACE].given ? v[OPT_MAP_GRACE].number : 5 * WEIR_S;
    m->halt = parse_halt(v[OPT_HALT].given ? v[OPT_HALT].text : "never");
    m->keep_order = v[OPT_KEEP_ORDER].given;
    m->by_line = v[OPT_LINE].given;
    m->dry_run = v[OPT_DRY_RUN].given;
    m->resume = v[OPT_RESUME].given;
    m->quiet = v[OPT_MAP_QUIET].given;
    m->has_permits = v[OPT_SEM].given && !m->dry_run;
    m->logs_commands = v[OPT_JOBLOG].given || v[OPT_RESULTS].given;
    m->has_terminal = isatty(STDIN_FILENO) || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO);
    m->limit = v[OPT_JOBS].given ? (unsigned)v[OPT_JOBS].number : cpu_count();
}

/* The words up to ":::" are the command, those behind it the items.  NULL: there is none. */
static char **split(const struct options *o, size_t *ret_count)
{
    for (int i = 0; i < o->count; i++)
        if (strcmp(o->arguments[i], ":::") == 0) {
            *ret_count = (size_t)i;
            return o->arguments + i + 1;
        }
    *ret_count = (size_t)o->count;
    return NULL;
}

/* ---- beginning and end ------------------------------------------------------------------------ */

/* main has filled what was closed, and marked it so.  What is written there is not to vanish:
 * it fails, as it would have. */
static bool was_closed(int fd)
{
    return fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

static void refuse_closed_output(void)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        int unwritable = was_closed(fd) ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

        if (unwritable >= 0) {
            dup3(unwritable, fd, O_CLOEXEC);
            close(unwritable);
        }
    }
}

static void open_files(const struct map *m, const struct option_value *v)
{
    bool bar = v[OPT_BAR].given || (!v[OPT_NO_BAR].given && isatty(STDERR_FILENO));

    output_open(&(struct output_options){
        .tag = v[OPT_TAG].given,
        .whole_lines = v[OPT_TAG].given || m->by_line,
        .before = bar_hide,
        .until_writable = map_until_writable,
    });
    if (m->dry_run)
        return;
    if (v[OPT_JOBLOG].given)
        log_open(v[OPT_JOBLOG].text, m->resume);
    if (v[OPT_RESULTS].given)
        results_open(v[OPT_RESULTS].text);
    if (bar)
        bar_open();
}

static void tell_of_failures(const struct map *m)
{
    if (m->failed == 0 || m->quiet)
        return;
    say("%llu of %llu jobs failed; the first was job %llu, with status %d",
        (unsigned long long)m->failed, (unsigned long long)m->done,
        (unsigned long long)m->first_failed, m->first_failed_as);
}

/* Who called us is to see that we were interrupted. */
static void die_of(int signo)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signo);
    signal(signo, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(signo);
}

static int finish(const struct map *m)
{
    output_flush();
    spawn_end();
    int error = output_error(), signo = error == EPIPE ? SIGPIPE : m->signal;
    if (signo)
        die_of(signo);
    if (signo)
        return EXIT_SIGNAL + signo; /* it is ignored */
    if (error)
        fail(EXIT_WEIR, "cannot write what the jobs say: %s", strerror(error));
    tell_of_failures(m);
    if (m->status)
        return m->status;
    return m->failed ? EXIT_SOME_FAILED : 0;
}

int cmd_map(const struct options *o)
{
    static struct map m;
    const struct option_value *v = o->value;
    sigset_t job_mask;
    size_t words;
    char **items = split(o, &words);

    refuse_closed_output();
    if (words == 0)
        fail(EXIT_WEIR, "there is no command before :::");
    set_options(&m, v);
    template_parse(&m.template, o->arguments, words);
    input_open(&m.input, items, delimiter_of(v), was_closed(STDIN_FILENO));
    if (items == NULL && isatty(STDIN_FILENO) && !m.quiet)
        say("reading items from the terminal, one a line, until Ctrl-D");
    if (m.resume)
        log_read(v[OPT_JOBLOG].text);
    map_block_signals(&job_mask);
    if (!m.dry_run)
        spawn_begin(&job_mask, m.limit);
    open_files(&m, v);
    if (m.has_permits)
        permit_open(o);
    map_loop(&m);
    return finish(&m);
}
