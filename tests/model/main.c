/* SPDX-License-Identifier: MIT */
/* explore - try every interleaving of small scenarios on the core.
 *
 *     explore                        all scenarios: two flows with any number of preemptions,
 *                                    three with at most two
 *     explore heavy barrier          those with one of the words in their names
 *     explore --list                 the names
 *     explore --preemptions 3        another limit for all; "all" is none
 *     explore --random 1000000       that many schedules at random instead; --seed 7 for others
 *     explore --replay A5B3A NAME    one schedule again, step by step
 *     explore --must-fail WHAT NAME  this core is a mutant: each scenario must find it
 *     explore --check-pruning        is what is left out really the same again?  With at most
 *                                    one preemption, if nothing else is said
 *
 * Closes with "N passed, N failed"; the exit status is 1 if any failed. */
#include "engine.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct scenario *const all_scenarios[] = {
    sem_scenarios,   sem_end_scenarios, crowd_scenarios, meeting_scenarios,
    mutex_scenarios, op_scenarios,      park_scenarios,
};

static struct {
    struct search search;
    bool list;
    bool check_pruning;
    bool limited; /* by --preemptions */
    const char *mutant;
    char **words; /* to be found in names */
    int words_count;
    int passed, failed;
} args = {.search = {.seed = 1}};

/* A core that is broken may do anything.  The handler has a stack of its own, since the one
 * it interrupts may be used up, and does not return. */
static void crashed(int sig)
{
    model_fail("crash: signal %d", sig);
}

static void catch_crashes(void)
{
    static char stack[64 * 1024];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = crashed, .sa_flags = SA_ONSTACK | SA_NODEFER};

    sigaltstack(&alternative, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
}

static double seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool is_wanted(const struct scenario *s)
{
    for (int i = 0; i < args.words_count; i++) {
        if (strstr(s->name, args.words[i]))
            return true;
    }
    return args.words_count == 0;
}

static void count(bool passed)
{
    if (passed)
        args.passed++;
    else
        args.failed++;
    fflush(stdout);
}

static int limit_of(const struct scenario *s)
{
    if (args.limited)
        return args.search.preemptions;
    return s->preemptions ? s->preemptions : s->flow[2] ? 2 : -1;
}

static const char *limit_name(const struct search *how)
{
    static char text[16];

    if (how->replay)
        return "-";
    snprintf(text, sizeof text, "%d", how->preemptions);
    return how->random_walks || how->preemptions < 0 ? "all" : text;
}

/* Without pruning, are there endings that were not seen with it? */
static void compare(const struct scenario *s)
{
    struct search how = {.preemptions = args.limited ? args.search.preemptions : 1};
    struct tally with = search_all(s, &how);

    how.unpruned = true;
    struct tally without = search_all(s, &how);
    bool same = with.endings == without.endings && with.fingerprint == without.fingerprint;

    printf("%-66s %10llu %10llu  %8llu  %s\n", s->name, (unsigned long long)with.schedules,
           (unsigned long long)without.schedules, (unsigned long long)without.endings,
           same ? "same" : "OTHERS");
    count(same);
}

static void explore(const struct scenario *s)
{
    double begin = seconds();
    struct search how = args.search;

    how.preemptions = limit_of(s);
    struct tally tally = search_all(s, &how);
    unsigned long long schedules = tally.schedules;
    if (args.mutant) {
        printf("%-54s %-9s %9llu  %s\n", args.mutant, tally.faulty ? "found" : "NOT FOUND",
               schedules, tally.faulty ? sched_fault() : s->name);
    } else {
        printf("%-66s %4s %10llu  %-6s %6.2f\n", s->name, limit_name(&how), schedules,
               tally.faulty ? "FAULTY" : "clean", seconds() - begin);
        if (tally.faulty || how.replay)
            sched_report();
    }
    count(tally.faulty == (args.mutant != NULL));
}

static int preemptions_of(const char *text)
{
    return strcmp(text, "all") == 0 ? -1 : (int)strtol(text, NULL, 10);
}

static void take_option(const char *option, const char *value)
{
    if (strcmp(option, "--preemptions") == 0) {
        args.search.preemptions = preemptions_of(value);
        args.limited = true;
    } else if (strcmp(option, "--random") == 0) {
        args.search.random_walks = strtoull(value, NULL, 10);
    } else if (strcmp(option, "--seed") == 0) {
        args.search.seed = strtoull(value, NULL, 10);
    } else if (strcmp(option, "--replay") == 0) {
        args.search.replay = value;
    } else if (strcmp(option, "--must-fail") == 0) {
        args.mutant = value;
    } else {
        fprintf(stderr, "explore: what is %s?\n", option);
        exit(2);
    }
}

/* Takes the options off; what is left are words. */
static void parse(int argc, char **argv)
{
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--list") == 0)
            args.list = true;
        else if (strcmp(argv[i], "--check-pruning") == 0)
            args.check_pruning = true;
        else if (i + 1 < argc)
            take_option(argv[i], argv[i + 1]), i++;
        else
            take_option(argv[i], "");
    }
    args.words = argv + i;
    args.words_count = argc - i;
}

static void print_head(void)
{
    if (args.check_pruning)
        printf("%-66s %10s %10s  %8s  %s\n", "scenario", "pruned", "unpruned", "endings", "which");
    else if (!args.mutant && !args.list)
        printf("%-66s %4s %10s  %-6s %6s\n", "scenario", "pre.", "schedules", "result", "s");
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    memory_init();
    catch_crashes();
    print_head();
    for (size_t i = 0; i < sizeof all_scenarios / sizeof *all_scenarios; i++) {
        for (const struct scenario *s = all_scenarios[i]; s->name; s++) {
            if (args.list)
                printf("%s\n", s->name);
            else if (is_wanted(s) && args.check_pruning)
                compare(s);
            else if (is_wanted(s))
                explore(s);
        }
    }
    if (!args.list && !args.mutant)
        printf("%d passed, %d failed\n", args.passed, args.failed);
    return args.failed > 0 || (!args.list && args.passed == 0);
}
