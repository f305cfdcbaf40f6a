/* SPDX-License-Identifier: MIT */
/* explore - try every interleaving of small scenarios on the core.
 *
 *     explore                        all scenarios, at most two preemptions each
 *     explore heavy barrier          those with one of the words in their names
 *     explore --list                 the names
 *     explore --preemptions 3        more of them; "all" is no limit
 *     explore --random 1000000       that many schedules at random instead; --seed 7 for others
 *     explore --replay A5B3A NAME    one schedule again, step by step
 *     explore --must-fail WHAT NAME  this core is a mutant: each scenario must find it
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
    bool limited; /* scenarios of two flows too */
    const char *mutant;
    char **words; /* to be found in names */
    int words_count;
    int passed, failed;
} args = {.search = {.preemptions = 2, .seed = 1}};

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

static void explore(const struct scenario *s)
{
    double begin = seconds();
    struct search how = args.search;

    if (!args.limited && s->flow[2] == NULL)
        how.preemptions = -1;
    struct tally tally = search_all(s, &how);
    unsigned long long schedules = tally.schedules;

    if (args.mutant) {
        printf("%-46s %-9s %9llu  %s\n", args.mutant, tally.faulty ? "found" : "NOT FOUND",
               schedules, tally.faulty ? sched_fault() : s->name);
    } else {
        printf("%-66s %10llu  %-6s %6.2f\n", s->name, schedules, tally.faulty ? "FAULTY" : "clean",
               seconds() - begin);
        if (tally.faulty || args.search.replay)
            sched_report();
    }
    if (tally.faulty == (args.mutant != NULL))
        args.passed++;
    else
        args.failed++;
    fflush(stdout);
}

static int preemptions_of(const char *text)
{
    return strcmp(text, "all") == 0 ? -1 : (int)strtol(text, NULL, 10);
}

/* Takes the options off; what is left are words. */
static void parse(int argc, char **argv)
{
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(option, "--list") == 0) {
            args.list = true;
            continue;
        }
        i++;
        if (strcmp(option, "--preemptions") == 0) {
            args.search.preemptions = preemptions_of(value);
            args.limited = true;
        }
        else if (strcmp(option, "--random") == 0)
            args.search.random_walks = strtoull(value, NULL, 10);
        else if (strcmp(option, "--seed") == 0)
            args.search.seed = strtoull(value, NULL, 10);
        else if (strcmp(option, "--replay") == 0)
            args.search.replay = value;
        else if (strcmp(option, "--must-fail") == 0)
            args.mutant = value;
        else {
            fprintf(stderr, "explore: what is %s?\n", option);
            exit(2);
        }
    }
    args.words = argv + i;
    args.words_count = argc - i;
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    memory_init();
    catch_crashes();
    if (!args.list && !args.mutant)
        printf("%-66s %10s  %-6s %6s\n", "scenario", "schedules", "result", "s");
    for (size_t i = 0; i < sizeof all_scenarios / sizeof *all_scenarios; i++) {
        for (const struct scenario *s = all_scenarios[i]; s->name; s++) {
            if (args.list)
                printf("%s\n", s->name);
            else if (is_wanted(s))
                explore(s);
        }
    }
    if (!args.list)
        printf("%d passed, %d failed\n", args.passed, args.failed);
    return args.failed > 0 || (!args.list && args.passed == 0);
}
